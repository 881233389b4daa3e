"""What torch.compile recorded, for a terminal: kernels with their nodes, refusals of fusion, graph breaks, recompiles, guards, times."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from irscope.formats.inductor.compilation import Compilation
from irscope.formats.inductor.recorded_kernels import RecordedKernel
from irscope.render.paint import Paint
from irscope.render.units import bytes_, plural, short

SHOWN_KERNELS = 12
SHOWN = 5


def kernel_lines(title: str, kernels: Sequence[RecordedKernel], lines: Mapping[str, str], paint: Paint) -> Iterator[str]:
    """The kernels in the order of the calls. ``lines`` has the lines of the user's program, by the names of nodes of the FX graph."""
    if not kernels:
        return
    fused = sum(kernel.kind == "fused" for kernel in kernels)
    yield paint("kernels", "bold") + paint(f"  as Inductor recorded them for {title}", "dim")
    yield f"  {plural(fused, 'fused kernel')}, {plural(len(kernels) - fused, 'extern call')}"
    name = max(24, (paint.width - 24) // 2)
    for kernel in kernels[:SHOWN_KERNELS]:
        ops = list(dict.fromkeys(kernel.ops))
        what = ", ".join(kernel.nodes) or ", ".join(ops)
        line = f"  {short(kernel.call.kernel, name):<{name}} {len(ops):>3} ops  "
        yield line + paint(short(what, max(20, paint.width - len(line))), "dim")
        sources = list(dict.fromkeys(lines[node] for node in kernel.nodes if node in lines))
        said = " ".join(filter(None, (str(kernel.source or ""), "from " + ", ".join(sources[:2]) if sources else "")))
        if said:
            yield paint(f"  {'':<{name}}          {short(said, max(20, paint.width - name - 13))}", "dim")
    if len(kernels) > SHOWN_KERNELS:
        yield paint(f"  and {plural(len(kernels) - SHOWN_KERNELS, 'further call')}", "dim")


def refusal_lines(reasons: Sequence[str], paint: Paint) -> Iterator[str]:
    """The reasons why nodes were not fused, the commonest first."""
    if not reasons:
        return
    yield paint("not fused", "bold") + paint("  in the words of the fusion log; irscope lint --why-not-fused has the pairs", "dim")
    for reason, times in Counter(reasons).most_common(SHOWN):
        yield f"  {times:>5}  {short(reason, paint.width - 10)}"


def saved_lines(saved: Sequence[tuple[str, int]], paint: Paint) -> Iterator[str]:
    """The memory that lives until the backward pass, and its largest tensors. ``saved`` has names and bytes, the largest first."""
    total = sum(size for _, size in saved)
    if not total:
        return
    yield paint("saved for backward", "bold") + f"  {bytes_(total)} besides inputs and parameters"
    for name, size in saved[:SHOWN]:
        yield f"  {bytes_(size):>9}  {name}"


def compilation_lines(compilations: Sequence[Compilation], paint: Paint) -> Iterator[str]:
    """Each compilation with its times, graph breaks, recompilations, specialisations and failure."""
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
