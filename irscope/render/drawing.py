"""From a choice of nodes to a finished drawing: node by node where that fits, an overview of sections elsewhere."""
from __future__ import annotations

from dataclasses import replace

from irscope.analysis.calls import BodyUse, body_use
from irscope.analysis.highlights import Highlights, highlights
from irscope.analysis.regions import MAX_FLAT
from irscope.graph import Graph, Node, Reading
from irscope.query.choose import Choice
from irscope.render.badges import heading
from irscope.render.classify import peak_words
from irscope.render.detail import detail_view, fits
from irscope.render.dot import can_draw, dot_text, draw
from irscope.render.layout import MAX_DUMMIES, rows_crossed
from irscope.render.overview import MAX_OVERVIEW, overview
from irscope.render.room import screens_of
from irscope.render.svg import svg_text
from irscope.render.units import bytes_, plural
from irscope.render.view import MIN_BOXES, BoxOptions, Drawing
from irscope.source import UserError

MANY_SCREENS = 1.2
"""A first view of a whole program is not drawn node by node where that fills more screens than this."""


def view_of(reading: Reading, choice: Choice, options: BoxOptions) -> Drawing:
    """The boxes and links of a choice; its nodes, its highlights and the findings of the reading replace those of the options.

    Raises UserError for more chosen nodes than ``options.max_boxes``.
    """
    limit = options.max_boxes
    found = highlights(choice.survey) if choice.picked is None and choice.graph is choice.survey.entry else Highlights()
    if choice.picked is not None and len(choice.picked) > limit:
        raise UserError(f"{len(choice.picked):,} nodes are too many to read in a drawing (the limit is {limit})",
                        "a smaller --radius, a narrower --where, or --max-nodes N; --format tree lists them")
    given = replace(options, picked=choice.picked, centre=choice.centre, findings=reading.findings, highlights=found)
    view = _detailed(choice, given) if choice.picked is not None or fits(choice.graph, limit) else None
    if view is not None and options.plan:
        view.notes.insert(0, f"frames are kernels under {options.plan.name}")
    if view is None:
        view = overview(choice.survey, choice.graph, given if options.generous else replace(given, max_boxes=MAX_OVERVIEW))
        if options.plan:
            view.notes.append(f"sections count the kernels of {options.plan.name}; --around NODE, --where or --max-nodes frame them")
    if options.plan.edges:
        moved = bytes_(sum(edge.bytes for edge in options.plan.edges))
        view.notes.append(f"dashed lines are not fused; in all, {plural(len(options.plan.edges), 'edge')} and {moved} go through memory")
    view.notes += [options.note] if options.note else []
    if options.color_by == "liveness":
        view.notes.append(peak_words(choice.survey, choice.graph))
    view.heading = heading(found)
    if choice.what:
        view.notes.insert(0, choice.what)
    return view


def _detailed(choice: Choice, options: BoxOptions) -> Drawing | None:
    """A drawing node by node, with fewer bodies open where all of them take more than a screen; None where sections say more."""
    survey, graph = choice.survey, choice.graph
    view = detail_view(survey, graph, options)
    if options.picked is not None or options.generous or options.plan:
        return view
    if screens_of(view) > MANY_SCREENS:
        if len(graph.nodes) > MAX_FLAT:
            return None
        smaller = detail_view(survey, graph, replace(options, max_boxes=options.max_boxes // 2))
        view = smaller if len(smaller.boxes) >= MIN_BOXES else view
    caller = _largest(graph) if len(view.boxes) < MIN_BOXES else None
    if caller is not None and not fits(caller.bodies[0], options.max_boxes):
        view = overview(survey, caller.bodies[0], replace(options, max_boxes=MAX_OVERVIEW))
        view.notes.append(f"inside %{caller.name}, which does most of {graph.name}")
    return view


def _largest(graph: Graph) -> Node | None:
    """The fusion or call with the most nodes in its body."""
    callers = (node for node in graph.nodes if node.bodies and body_use(node) is BodyUse.ONCE)
    return max(callers, key=lambda node: len(node.bodies[0].nodes), default=None)


def drawing(reading: Reading, choice: Choice, format: str, options: BoxOptions) -> bytes:
    """The file of a drawing: ``dot``, ``svg``, ``png`` or ``pdf``. SVG is drawn by our own layout where there is no graphviz, or where
    it would take minutes."""
    view = view_of(reading, choice, options)
    if format == "svg" and not (can_draw() and _is_quick(view)):
        return svg_text(view, options.color_by, options.dark).encode()
    text = dot_text(view, options.color_by, options.dark)
    return text.encode() if format == "dot" else draw(text, format)


def _is_quick(view: Drawing) -> bool:
    """Whether graphviz draws a view in seconds."""
    number = {box: i for i, box in enumerate(view.boxes)}
    return rows_crossed(len(number), [(number[link.source], number[link.target]) for link in view.links]) <= MAX_DUMMIES
