"""A folder of dumps for a terminal: its modules, what each pass changed, and the compiler's own account of memory."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from irscope.render.paint import Paint
from irscope.render.units import bytes_, count, flops, plural, short

MAX_CHANGES = 6
_PLUMBING = frozenset({"parameter", "constant", "tuple", "get-tuple-element"})


@dataclass(frozen=True, slots=True)
class ModuleRow:
    """One module, or equal copies of it that several ranks wrote."""

    title: str
    stages: int
    first_nodes: int | None
    nodes: int
    kernels: float
    fusions: float
    flops: float
    bytes: float
    copies: int = 1
    chosen: bool = False
    error: str = ""


@dataclass(frozen=True, slots=True)
class StepRow:
    """One stage of a compilation, and what changed since the stage before."""

    words: str
    nodes: int
    kernels: float
    fusions: float
    bytes: float
    came: Mapping[str, int] = field(default_factory=dict)
    went: Mapping[str, int] = field(default_factory=dict)
    error: str = ""


def module_lines(rows: Sequence[ModuleRow], paint: Paint) -> Iterator[str]:
    """The modules as a table, the chosen one marked."""
    name = max(20, paint.width - 62)
    header = f"  {'module':<{name}}{'stages':>7}{'nodes':>16}{'kernels':>9}{'fusions':>8}{'work':>11}{'traffic':>9}"
    yield paint(header, "bold")
    for row in rows:
        mark = ">" if row.chosen else " "
        title = row.title + (f" {paint.times}{row.copies}" if row.copies > 1 else "")
        if row.error:
            yield f"{mark} {short(title, name):<{name}}" + paint(f"  {row.error}", "red")
            continue
        nodes = f"{count(row.first_nodes)} {paint.to} {count(row.nodes)}" if row.first_nodes is not None else count(row.nodes)
        line = (f"{mark} {short(title, name):<{name}}{row.stages:>7}{nodes:>16}{count(row.kernels):>9}{count(row.fusions):>8}"
                f"{flops(row.flops):>11}{bytes_(row.bytes):>9}")
        yield paint(line, "bold") if row.chosen else line


def timeline_lines(rows: Sequence[StepRow], paint: Paint, title: str = "after", every: bool = False) -> Iterator[str]:
    """What each pass changed; stages that changed no operator are counted, and listed only where ``every`` one is requested.

    ``title`` stands above their names.
    """
    wide = paint.width >= 110
    name = 48 if wide else max(20, paint.width - 68)
    header = f"  {title:<{name}}{'nodes':>7}{'kernels':>8}{'fusions':>8}{'traffic':>10}  what came and went"
    yield paint(header, "bold")
    silent = 0
    for i, row in enumerate(rows):
        if row.error:
            yield f"  {short(row.words, name):<{name}}" + paint(f"  {row.error}", "red")
            continue
        if i and not row.came and not row.went and i < len(rows) - 1 and not every:
            silent += 1
            continue
        words = row.words if len(row.words) <= name - 1 else row.words[:name - 3] + ".."
        line = f"  {words:<{name}}{count(row.nodes):>7}{count(row.kernels):>8}{count(row.fusions):>8}{bytes_(row.bytes):>10}"
        yield (line + "  " + _changes(row, paint, paint.width - len(line) - 2)).rstrip()
    if silent:
        yield paint(f"  {plural(silent, 'stage')} changed no operator", "dim")


def _changes(row: StepRow, paint: Paint, space: int) -> str:
    parts = [(f"+{n} {op}", "green") for op, n in Counter(row.came).most_common() if op not in _PLUMBING]
    parts += [(f"-{n} {op}", "red") for op, n in Counter(row.went).most_common() if op not in _PLUMBING]
    parts.sort(key=lambda part: -int(part[0].split()[0][1:]))
    shown: list[str] = []
    used = 0
    for text, style in parts[:MAX_CHANGES]:
        if used + len(text) + 2 > space:
            break
        shown.append(paint(text, style))
        used += len(text) + 2
    left = len(parts) - len(shown)
    return ", ".join(shown) + (f" +{left}" if left and shown else "")


def fusion_lines(before: int | None, kinds: Mapping[str, int], inside: int, alone: Mapping[str, int], paint: Paint) -> Iterator[str]:
    """The compiler's own decisions: kernels before and after, fusions by kind, and what stands alone."""
    fusions = sum(kinds.values())
    kernels = fusions + sum(alone.values())
    yield paint("fusion", "bold") + paint("  as XLA decided it", "dim")
    became = plural(kernels, "kernel")
    if before is not None:
        became = f"{plural(before, 'operation')} before {paint.to} {became}"
    kinds_text = ", ".join(f"{kind} {count(n)}" for kind, n in Counter(kinds).most_common())
    yield f"  {became}: {plural(fusions, 'fusion')}" + (f" ({kinds_text})" if kinds_text else "") + f" of {plural(inside, 'operation')}"
    if alone:
        yield "  alone: " + short(", ".join(f"{op} {n}" for op, n in Counter(alone).most_common(8)), paint.width - 10)


def memory_lines(sizes: Mapping[str, int], largest: Sequence[tuple[str, int, str]], paint: Paint,
                 report: str = "buffer-assignment report") -> Iterator[str]:
    """The compiler's own account: bytes by sort of allocation (or by memory space), and the largest values."""
    total = sum(sizes.values())
    yield paint("memory", "bold") + paint(f"  as XLA assigned it ({report})", "dim")
    parts = [f"{sort} {bytes_(n)}" for sort, n in sizes.items() if n]
    yield "  " + f" {paint.dot} ".join([bytes_(total), *parts] if len(parts) > 1 else parts)
    for name, size, sort in largest:
        yield f"  {bytes_(size):>9}  {short('%' + name, paint.width - 30)}  " + paint(sort, "dim")
