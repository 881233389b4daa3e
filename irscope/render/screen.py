"""The terminal view of one module: summary, tree, costliest nodes, findings; or the requested nodes."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from irscope.analysis.outline import Section
from irscope.analysis.parts import part
from irscope.analysis.summary import section_source, summarise
from irscope.analysis.survey import Survey
from irscope.graph import Reading
from irscope.query.choose import Choice
from irscope.render.listing import listing
from irscope.render.operators import MOST, OperatorRows
from irscope.render.paint import Paint
from irscope.render.partial import partial_lines
from irscope.render.summary import costly_lines, findings_lines, summary_lines
from irscope.render.tree import MAX_ROWS, tree_lines
from irscope.render.units import short

DEFAULT_DEPTH = 3
MORE_ROWS = 120
"""Rows of a tree that ends in operators."""
SHOWN_FINDINGS = 3
NO_LIMIT = 10_000_000


@dataclass(frozen=True, slots=True)
class ScreenOptions:
    """``by`` is ``auto``, ``scope`` or ``graph``; ``everything`` lifts the limits on rows; ``hints`` says what to try next; ``operators``
    lets the tree end in operators."""

    depth: int | None = None
    by: str = "auto"
    everything: bool = False
    hints: bool = False
    of_graph: bool = False
    operators: bool = False


def screen(reading: Reading, choice: Choice, paint: Paint, options: ScreenOptions) -> Iterator[str]:
    """The lines to print."""
    survey = choice.survey
    if choice.picked is not None:
        yield from listing(survey, choice.picked, choice.centre, choice.what, paint, None if options.everything else MAX_ROWS * 4)
        return
    cut = survey.module.cut
    if cut is not None:
        yield from partial_lines(survey, cut, paint, reading.source.name, options.everything)
        if options.of_graph and choice.graph.name in cut.complete:
            alone = replace(choice, survey=Survey(part(survey.module, choice.graph)))
            yield from ("", *_tree(alone, paint, options))
        yield from findings_lines(reading, paint, None if options.everything else SHOWN_FINDINGS)
        return
    summary = summarise(survey)
    yield from summary_lines(summary, paint, survey.module.attrs, reading.source.name)
    yield ""
    yield from _tree(choice, paint, options)
    if summary.costly:
        yield ""
        yield from costly_lines(summary.costly, summary.n_open, paint)
    yield from findings_lines(reading, paint, None if options.everything else SHOWN_FINDINGS)
    if options.hints:
        near = f"--around %{summary.costly[0].node.name}" if summary.costly else "--depth 5"
        hints = [near, "-o graph.html", "-o graph.svg", "--where QUERY"]
        line = f"more: irscope show {Path(reading.source.name).name} {hints[0]}"
        for hint in hints[1:]:
            if len(line) + len(hint) + 5 <= paint.width:
                line += f"  {paint.dot}  {hint}"
        yield ""
        yield paint(short(line, paint.width), "dim")


def _tree(choice: Choice, paint: Paint, options: ScreenOptions) -> Iterator[str]:
    depth = DEFAULT_DEPTH if options.depth is None else options.depth
    if options.of_graph:
        choice = replace(choice, survey=choice.survey.reaching(choice.graph))
    root = _outline(choice, options)
    rows = NO_LIMIT if options.everything else MORE_ROWS if options.operators else MAX_ROWS
    return tree_lines(root, paint, depth, rows, lambda section: section_source(choice.survey.module, section),
                      operators=OperatorRows(choice.survey, root, NO_LIMIT if options.everything else MOST) if options.operators else None)


def _outline(choice: Choice, options: ScreenOptions) -> Section:
    survey = choice.survey
    if options.of_graph:
        return survey.outline_from(choice.graph)
    return {"scope": lambda: survey.scope_outline, "graph": lambda: survey.graph_outline}.get(options.by, lambda: survey.outline)()
