"""The folded tree of a module for a terminal: sections, how many nodes, what they cost."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from irscope.analysis.cost import estimate
from irscope.analysis.outline import Section
from irscope.render.operators import OperatorRow, OperatorRows
from irscope.render.paint import Paint
from irscope.render.units import bytes_, cell, flops, percent, plural, short

MAX_ROWS = 40
BAR = 8
TITLE = "tree"
NARROW, WIDE = 72, 100
"""Below these widths columns are left out: the names matter more."""
SOURCED = 16
"""Columns that a line of the user's program needs to say anything."""


@dataclass(slots=True)
class _Row:
    """A section, an operator in one, or a count of ``more`` operators. Figures are multiplied by ``times``; ``hidden`` counts children that
    are not listed."""

    section: Section
    prefix: str
    times: float
    hidden: int = 0
    operator: OperatorRow | None = None
    more: int = 0


def tree_lines(root: Section, paint: Paint, depth: int, max_rows: int, source: Callable[[Section], str],
               operators: OperatorRows | None = None) -> Iterator[str]:
    """A header, and the tree down to ``depth`` levels and ``max_rows`` rows, breadth before depth.

    The figures of a repeated section, and of what is in it, count all its copies. ``source`` returns the user's line that a section
    comes from, which is shown where there is room; not for the root, because the summary has that line. With ``operators`` the tree ends
    in the operators of the sections that are open.
    """
    whole = estimate(root.flops, root.bytes) or 1.0
    header = _cells(paint, "nodes", "work", "traffic", "kernels", "share")
    rows = list(_rows(root, paint, _opened(root, depth, max_rows, operators), operators))
    figures = [_figures(row, whole, paint) for row in rows]
    tail = max((len(f) for f in figures), default=0)
    space = max(20, paint.width - tail - 1)
    widest = min(space, max(len(TITLE) + 1, *(_plain_width(row, paint) for row in rows)))
    yield paint(TITLE, "bold") + paint(" " * max(1, widest - len(TITLE)) + header, "dim")
    left = paint.width - widest - tail - 2
    for row, figure in zip(rows, figures, strict=True):
        where = _source(row, source) if row.prefix and left >= SOURCED else ""
        line = _line(row, f"{figure:<{tail}}" if where else figure.rstrip(), widest, paint)
        yield f"{line}  {paint.link(paint(short(where, left), 'dim'), where)}" if where else line.rstrip()


def _source(row: _Row, source: Callable[[Section], str]) -> str:
    if row.operator is not None:
        return row.operator.source
    return "" if row.more else source(row.section)


def _opened(root: Section, depth: int, max_rows: int, operators: OperatorRows | None) -> set[Section]:
    """Which sections show their children: level by level, the costliest first, as long as rows are left."""
    opened: set[Section] = set()
    rows = 1
    level = [root]
    for _ in range(depth if operators is None else depth + 1):
        below: list[Section] = []
        for section in sorted(level, key=lambda s: -estimate(s.flops, s.bytes)):
            # A section of very many children shows its costliest; the rest becomes one line.
            cost = min(len(section.children), 16)
            if operators is not None:
                cost += min(len(section.nodes), operators.most)
            if not cost or rows + cost > max_rows:
                continue
            rows += cost
            opened.add(section)
            below += section.children
        if not below:
            break
        level = below
    return opened


def _rows(root: Section, paint: Paint, opened: set[Section], operators: OperatorRows | None) -> Iterator[_Row]:
    stack: list[tuple[_Row, str]] = [(_Row(root, "", 1.0), "")]
    while stack:
        row, stem = stack.pop()
        section = row.section
        if row.operator is not None or row.more or section not in opened:
            yield row
            continue
        shown = _shown(section)
        row.hidden = len(section.children) - len(shown)
        yield row
        times = row.times * section.times
        below = [_Row(child, "", times) for child in shown]
        if operators is not None:
            inside, most = operators.of(section), operators.most
            below += [_Row(section, "", times, operator=operator) for operator in inside[:most]]
            below += [_Row(section, "", times, more=len(inside) - most)] if len(inside) > most else []
        for i, one in reversed(list(enumerate(below))):
            last = i == len(below) - 1
            one.prefix = stem + paint.branch(last)
            stack.append((one, stem + paint.stem(last)))


def _shown(section: Section) -> list[Section]:
    if len(section.children) <= 16:
        return section.children
    best = set(sorted(section.children, key=lambda s: -estimate(s.flops, s.bytes))[:15])
    return [child for child in section.children if child in best]


def _label(row: _Row, paint: Paint) -> tuple[str, str]:
    section = row.section
    if row.operator is not None:
        return row.operator.title, ""
    if row.more:
        return f"... {plural(row.more, 'operator')} more", ""
    extra = f" {paint.times}{section.times}" if section.times > 1 else ""
    if section.note:
        extra += f"  {section.note}"
    if row.hidden:
        extra += f"  (+{row.hidden} smaller below)"
    return section.title, extra


def _plain_width(row: _Row, paint: Paint) -> int:
    title, extra = _label(row, paint)
    return len(row.prefix) + len(title) + len(extra)


def _figures(row: _Row, whole: float, paint: Paint) -> str:
    section, times, operator = row.section, row.times, row.operator
    if row.more:
        return ""
    shown = section if operator is None else operator
    work, moved, unknown = shown.flops * times, shown.bytes * times, shown.is_open
    share = estimate(work, moved) / whole
    if operator is None:
        cells = _cells(paint, cell(section.n_nodes * times), flops(work, unknown), bytes_(moved, unknown), cell(section.kernels * times),
                       percent(share))
    else:  # figures of zero are left out
        cells = _cells(paint, cell(times) if times > 1 else "", flops(work, unknown) if work or unknown else "",
                       bytes_(moved, unknown) if moved or unknown else "", "", percent(share) if work or moved else "")
    return cells + (" " + paint.bar(share, BAR if paint.width < 120 else 2 * BAR) if paint.width >= NARROW else "")


def _cells(paint: Paint, nodes: str, work: str, traffic: str, kernels: str, share: str) -> str:
    """The columns of a row that the width has room for."""
    figures = f"{work:>11}{traffic:>10}" if paint.width >= NARROW else ""
    return f"{nodes:>8}{figures}" + (f"{kernels:>9}" if paint.width >= WIDE else "") + f"{share:>6}"


def _line(row: _Row, figures: str, width: int, paint: Paint) -> str:
    title, extra = _label(row, paint)
    space = width - len(row.prefix) - len(extra)
    if space < 8:
        extra, space = "", width - len(row.prefix)
    title = short(title, max(1, space))
    padding = " " * max(0, width - len(row.prefix) - len(title) - len(extra))
    if row.operator is not None or row.more:
        style = row.operator.work if row.operator is not None else "dim"
        return paint(row.prefix, "dim") + paint(title, style) + padding + figures
    style = "bold" if row.prefix == "" else "cyan" if row.section.kind == "scope" else ""
    return paint(row.prefix, "dim") + paint(title, style) + paint(extra, "yellow") + padding + figures
