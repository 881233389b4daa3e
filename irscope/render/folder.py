"""A folder of dumps for a terminal: its modules, what each pass changed, and the compiler's own account of memory."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from irscope.query.stages import Figures, StageChange
from irscope.render.paint import Paint
from irscope.render.units import bytes_, count, flops, plural, short

MAX_CHANGES = 6
_PLUMBING = frozenset({"parameter", "constant", "tuple", "get-tuple-element"})


@dataclass(frozen=True, slots=True)
class ModuleRow:
    """One module, or equal copies of it that several ranks wrote; ``first_nodes`` counts the nodes before optimisation (None: unknown)."""

    title: str
    stages: int
    first_nodes: int | None
    figures: Figures
    copies: int = 1
    chosen: bool = False


def module_lines(rows: Sequence[ModuleRow], paint: Paint) -> Iterator[str]:
    """The modules as a table, the chosen one marked."""
    name = max(20, paint.width - 62)
    header = f"  {'module':<{name}}{'stages':>7}{'nodes':>16}{'kernels':>9}{'fusions':>8}{'work':>11}{'traffic':>9}"
    yield paint(header, "bold")
    for row in rows:
        mark, figures = ">" if row.chosen else " ", row.figures
        title = row.title + (f" {paint.times}{row.copies}" if row.copies > 1 else "")
        if figures.error:
            yield f"{mark} {short(title, name):<{name}}" + paint(f"  {figures.error}", "red")
            continue
        nodes = (f"{count(row.first_nodes)} {paint.to} " if row.first_nodes is not None else "") + count(figures.nodes)
        line = (f"{mark} {short(title, name):<{name}}{row.stages:>7}{nodes:>16}{count(figures.kernels):>9}{count(figures.fusions):>8}"
                f"{flops(figures.flops):>11}{bytes_(figures.bytes):>9}")
        yield paint(line, "bold") if row.chosen else line


def timeline_lines(rows: Sequence[StageChange], paint: Paint, title: str = "after", every: bool = False) -> Iterator[str]:
    """What each pass changed. Stages that changed no operator are only counted, unless ``every`` stage is requested.

    ``title`` is the heading of their names.
    """
    wide = paint.width >= 110
    name = 48 if wide else max(20, paint.width - 68)
    header = f"  {title:<{name}}{'nodes':>7}{'kernels':>8}{'fusions':>8}{'traffic':>10}  what came and went"
    yield paint(header, "bold")
    silent = 0
    for i, row in enumerate(rows):
        figures = row.figures
        if figures.error:
            yield f"  {short(row.words, name):<{name}}" + paint(f"  {figures.error}", "red")
            continue
        if i and not row.came and not row.went and i < len(rows) - 1 and not every:
            silent += 1
            continue
        words = row.words if len(row.words) <= name - 1 else row.words[:name - 3] + ".."
        kernels, fusions = count(figures.kernels), count(figures.fusions)
        line = f"  {words:<{name}}{count(figures.nodes):>7}{kernels:>8}{fusions:>8}{bytes_(figures.bytes):>10}"
        yield (line + "  " + _changes(row, paint, paint.width - len(line) - 2)).rstrip()
    if silent:
        yield paint(f"  {plural(silent, 'stage')} changed no operator", "dim")


def _changes(row: StageChange, paint: Paint, space: int) -> str:
    parts = [(f"+{n} {op}", "green") for op, n in row.came.most_common() if op not in _PLUMBING]
    parts += [(f"-{n} {op}", "red") for op, n in row.went.most_common() if op not in _PLUMBING]
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


def memory_lines(sizes: Mapping[str, int], largest: Sequence[tuple[str, int, str]], paint: Paint, report: str) -> Iterator[str]:
    """The compiler's own account, from ``report``: bytes by sort of allocation (or by memory space), and the largest values."""
    total = sum(sizes.values())
    yield paint("memory", "bold") + paint(f"  as XLA assigned it ({report})", "dim")
    parts = [f"{sort} {bytes_(n)}" for sort, n in sizes.items() if n]
    yield "  " + f" {paint.dot} ".join([bytes_(total), *parts] if len(parts) > 1 else parts)
    for name, size, sort in largest:
        yield f"  {bytes_(size):>9}  {short('%' + name, paint.width - 30)}  " + paint(sort, "dim")
