"""The drawing of one side of a comparison: nodes that changed, coloured by the kind of the change, and their neighbours."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irscope.analysis.classes import drawn_class
from irscope.graph import Node
from irscope.render.labels import headline, inside_text, shape_text
from irscope.render.svg import MARGIN, svg_text
from irscope.render.units import short
from irscope.render.view import Box, Drawing, Link, stub_crowds

MAX_NAME = 34


@dataclass(frozen=True, slots=True)
class ChangedNode:
    """A node of one side. ``change`` is the kind of its change, empty for a neighbour; ``partner`` is the number that it shares with its
    partner on the other side, ``why`` what differs, ``inside`` the fusion that it is in."""

    node: Node
    change: str
    partner: str
    why: str = ""
    inside: str = ""


def change_view(title: str, nodes: Sequence[ChangedNode], edges: Sequence[tuple[int, int]], notes: Sequence[str] = ()) -> Drawing:
    """The boxes of ``nodes`` and the links of ``edges``, pairs of their numbers."""
    view = Drawing(title, notes=list(notes))
    for one in nodes:
        box = Box(headline(one.node), drawn_class(one.node), node=one.node, change=one.change, partner=one.partner)
        box.lines = [text for text in (inside_text(one.node), shape_text(one.node), short(f"%{one.node.name}", MAX_NAME)) if text]
        box.lines += [f"in {one.inside}"] if one.inside else []
        said = f"\n{one.change}: {one.why}".rstrip(": ") if one.change else ""
        box.tooltip = f"%{one.node.name} = {one.node.type} {one.node.op.name}{said}"
        view.boxes.append(box)
    counts: dict[tuple[int, int], int] = {}
    for edge in edges:
        counts[edge] = counts.get(edge, 0) + 1
    view.links = [Link(view.boxes[a], view.boxes[b], n) for (a, b), n in counts.items()]
    stub_crowds(view)
    return view


def change_svg(view: Drawing) -> str:
    """One side as SVG."""
    return svg_text(view, "change")


def both_sides(before: str, after: str) -> str:
    """Two SVG texts beside each other as one."""
    width = [_size(text, "width") for text in (before, after)]
    height = max(_size(text, "height") for text in (before, after))
    total = sum(width) + MARGIN
    second = after.replace("<svg ", f'<svg x="{width[0] + MARGIN:.0f}" ', 1)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{total:.0f}" height="{height:.0f}" viewBox="0 0 {total:.0f} {height:.0f}">\n'
            f"{before}{second}</svg>\n")


def _size(text: str, name: str) -> float:
    return float(text.split(f'{name}="', 1)[1].split('"', 1)[0])
