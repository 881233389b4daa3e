"""From a choice of nodes to a finished drawing: node by node where that fits, an overview of sections elsewhere."""
from __future__ import annotations

from dataclasses import dataclass

from irscope.graph import Reading
from irscope.query.choose import Choice
from irscope.render.detail import detail_view, fits
from irscope.render.dot import can_draw, dot_text, draw
from irscope.render.overview import MAX_OVERVIEW, overview
from irscope.render.view import MAX_BOXES, Options, View
from irscope.source import UserError


@dataclass(frozen=True, slots=True)
class DrawingOptions:
    """How to draw: what the colours mean, on which ground, how many boxes at most, how deep to open."""

    color_by: str = "class"
    dark: bool = False
    max_boxes: int | None = None
    depth: int | None = None


def view_of(reading: Reading, choice: Choice, options: DrawingOptions) -> View:
    """The boxes and links of a choice."""
    limit = options.max_boxes or MAX_BOXES
    if choice.picked is not None and len(choice.picked) > limit:
        raise UserError(f"{len(choice.picked):,} nodes are too many to read in a drawing (the limit is {limit})",
                        "a smaller --radius, a narrower --where, or --max-nodes N; --format tree lists them")
    if choice.picked is not None or fits(choice.graph, limit):
        detailed = Options(limit, depth=options.depth, picked=choice.picked, centre=choice.centre, findings=reading.findings)
        view = detail_view(choice.survey, choice.graph, detailed)
    else:
        limit = options.max_boxes or MAX_OVERVIEW
        folded = Options(limit, generous=options.max_boxes is not None, depth=options.depth, findings=reading.findings)
        view = overview(choice.survey, choice.graph, folded)
    if choice.what:
        view.notes.insert(0, choice.what)
    return view


def drawing(reading: Reading, choice: Choice, format: str, options: DrawingOptions) -> bytes:
    """The file of a drawing: ``dot``, ``svg``, ``png`` or ``pdf``. SVG is drawn by our own layout where there is no graphviz."""
    view = view_of(reading, choice, options)
    if format == "svg" and not can_draw():
        from irscope.render.svg import svg_text

        return svg_text(view, options.color_by, options.dark).encode()
    text = dot_text(view, options.color_by, options.dark)
    return text.encode() if format == "dot" else draw(text, format)
