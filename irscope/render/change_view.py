"""The drawing of a comparison: boxes of changed nodes and of their neighbours, and both sides next to each other."""
from __future__ import annotations

from irscope.analysis.classes import drawn_class
from irscope.graph import Node
from irscope.render.labels import box_lines, headline
from irscope.render.svg import MARGIN
from irscope.render.view import Box


def changed_box(node: Node, change: str, why: str, partner: str, inside: str) -> Box:
    """The box of a node of one side. ``change`` is the kind of its change, empty for a neighbour, and ``why`` says what differs;
    ``partner`` is the number that it shares with its partner on the other side, ``inside`` the fusion or call that it is in."""
    lines = box_lines(node) + ([f"in {inside}"] if inside else [])
    said = f"\n{change}: {why}".rstrip(": ") if change else ""
    tooltip = f"%{node.name} = {node.type} {node.op.name}{said}"
    return Box(headline(node), drawn_class(node), lines, node=node, tooltip=tooltip, change=change, partner=partner)


def both_sides(before: str, after: str) -> str:
    """One SVG text with both sides next to each other."""
    width = [_size(text, "width") for text in (before, after)]
    height = max(_size(text, "height") for text in (before, after))
    total = sum(width) + MARGIN
    second = after.replace("<svg ", f'<svg x="{width[0] + MARGIN:.0f}" ', 1)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{total:.0f}" height="{height:.0f}" viewBox="0 0 {total:.0f} {height:.0f}">\n'
            f"{before}{second}</svg>\n")


def _size(text: str, name: str) -> float:
    return float(text.split(f'{name}="', 1)[1].split('"', 1)[0])
