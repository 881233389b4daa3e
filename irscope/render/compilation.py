"""What torch.compile recorded, for a terminal: kernels with their nodes, refusals of fusion, graph breaks, recompiles, guards, times."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from irscope.formats.inductor.compilation import Compilation
from irscope.render.paint import Paint
from irscope.render.units import bytes_, plural, short

SHOWN_KERNELS = 12
SHOWN = 5


@dataclass(frozen=True, slots=True)
class KernelRow:
    """A call of a kernel: its scheduler nodes, its nodes of the FX graph, how it is launched, and lines of the user's program."""

    name: str
    kind: str
    ops: tuple[str, ...]
    nodes: tuple[str, ...]
    launch: str = ""
    sources: tuple[str, ...] = ()


def kernel_lines(title: str, rows: Sequence[KernelRow], paint: Paint) -> Iterator[str]:
    """The kernels in the order of the calls."""
    if not rows:
        return
    fused = sum(row.kind == "fused" for row in rows)
    yield paint("kernels", "bold") + paint(f"  as Inductor recorded them for {title}", "dim")
    yield f"  {plural(fused, 'fused kernel')}, {plural(len(rows) - fused, 'extern call')}"
    name = max(24, (paint.width - 24) // 2)
    for row in rows[:SHOWN_KERNELS]:
        what = ", ".join(row.nodes) or ", ".join(row.ops)
        line = f"  {short(row.name, name):<{name}} {len(row.ops):>3} ops  "
        yield line + paint(short(what, max(20, paint.width - len(line))), "dim")
        said = " ".join(part for part in (row.launch, "from " + ", ".join(row.sources[:2]) if row.sources else "") if part)
        if said:
            yield paint(f"  {'':<{name}}          {short(said, max(20, paint.width - name - 13))}", "dim")
    if len(rows) > SHOWN_KERNELS:
        yield paint(f"  and {plural(len(rows) - SHOWN_KERNELS, 'further call')}", "dim")


def refusal_lines(reasons: Sequence[str], paint: Paint) -> Iterator[str]:
    """The reasons why nodes were not fused, the commonest first."""
    if not reasons:
        return
    yield paint("not fused", "bold") + paint("  in the words of the fusion log; irscope lint --why-not-fused has the pairs", "dim")
    for reason, times in Counter(reasons).most_common(SHOWN):
        yield f"  {times:>5}  {short(reason, paint.width - 10)}"


def saved_lines(total: int, largest: Sequence[tuple[str, int]], paint: Paint) -> Iterator[str]:
    """The memory that lives until the backward pass, and its largest tensors."""
    if not total:
        return
    yield paint("saved for backward", "bold") + f"  {bytes_(total)} beside inputs and parameters"
    for name, size in largest[:SHOWN]:
        yield f"  {bytes_(size):>9}  {name}"


def compilation_lines(compilations: Sequence[Compilation], paint: Paint) -> Iterator[str]:
    """Each compilation with its times; what broke it, and what made it run again."""
    for compilation in compilations:
        times = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in compilation.seconds.items())
        yield paint(compilation.title, "bold") + (f"  {times}" if times else "")
        for broken in compilation.breaks:
            yield paint(f"  graph break at {broken.place or '?'}: ", "yellow") + short(broken.reason, paint.width - 20)
        for again in compilation.recompiles:
            yield paint("  recompiled: ", "yellow") + short("; ".join(again.reasons), paint.width - 14)
        for fixed in compilation.specialisations[:SHOWN]:
            yield f"  {fixed.symbol} ({fixed.source}) became {fixed.value}: {fixed.reason}"
        if compilation.failure:
            yield paint(f"  failed: {short(compilation.failure, paint.width - 12)}", "red")
        if compilation.guards:
            yield paint(f"  {plural(len(compilation.guards), 'guard')}", "dim")
