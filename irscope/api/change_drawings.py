"""The drawings of a comparison: for each pair of graphs, the changed nodes of both sides and their neighbours."""
from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from irscope.diff.align import Host
from irscope.diff.changes import KINDS, Change
from irscope.diff.compare import Comparison, GraphPair
from irscope.diff.labels import Side
from irscope.graph import Node
from irscope.render.change_view import changed_box
from irscope.render.svg import svg_text
from irscope.render.view import BoxLink, Drawing, stub_crowds

MOST_CHANGES, MOST_BOXES = 40, 90
"""The most changes of a pair of graphs that are drawn, and the most boxes of one side, neighbours included."""
MOST_GRAPHS = 4
"""The most pairs of graphs that are drawn: those with the most changes."""


@dataclass(frozen=True, slots=True)
class ChangeDrawing:
    """A pair of graphs as two SVG texts; ``partners`` maps a changed node to the number that its boxes on both sides share."""

    pair: GraphPair
    before: str
    after: str
    partners: dict[Node, str]


def change_drawings(comparison: Comparison, names: tuple[str, str]) -> list[ChangeDrawing]:
    """The drawings of the pairs of graphs with most changes."""
    pairs = sorted((pair for pair in comparison.pairs if pair.changes), key=lambda pair: -len(pair.changes))[:MOST_GRAPHS]
    hosts = {host.before.flat.graph: host for host in comparison.alignment.hosts}
    return [_drawing(pair, hosts[pair.before], comparison, names) for pair in pairs if pair.before is not None and pair.before in hosts]


def _drawing(pair: GraphPair, host: Host, comparison: Comparison, names: tuple[str, str]) -> ChangeDrawing:
    chosen = sorted(pair.changes, key=lambda change: KINDS.index(change.kind))[:MOST_CHANGES]
    kinds: dict[Node, Change] = {node: change for change in chosen for node in (change.before, change.after) if node is not None}
    partners = {node: str(number) for number, (a, b) in enumerate(comparison.alignment.pairs.items()) for node in (a, b)}
    left = len(pair.changes) - len(chosen)
    notes = [f"{left} more changes are not drawn"] if left else []
    sides = [_side(side, kinds, partners, f"{name} / {graph.name if graph is not None else ''}", notes)
             for side, name, graph in zip((host.before, host.after), names, (pair.before, pair.after), strict=True)]
    return ChangeDrawing(pair, sides[0], sides[1], {node: partners[node] for node in kinds if node in partners})


def _side(side: Side, kinds: dict[Node, Change], partners: dict[Node, str], title: str, notes: list[str]) -> str:
    flat = side.flat
    changed = [place for place, node in enumerate(flat.nodes) if node in kinds and flat.alive[place]]
    near = [other for place in changed for other in (*flat.operands[place], *(user for user, _ in flat.users[place][:3]))]
    drawn = sorted(list(dict.fromkeys([*changed, *near]))[:MOST_BOXES])
    number = {place: i for i, place in enumerate(drawn)}
    view = Drawing(title, notes=list(notes))
    for place in drawn:
        node = flat.nodes[place]
        change, caller = kinds.get(node), flat.callers[flat.frames[place]]
        kind, why = (change.kind, change.why) if change else ("", "")
        view.boxes.append(changed_box(node, kind, why, partners.get(node, ""), f"%{caller.name}" if caller is not None else ""))
    edges = Counter((number[operand], number[place]) for place in drawn for operand in flat.operands[place] if operand in number)
    view.links = [BoxLink(view.boxes[a], view.boxes[b], n) for (a, b), n in edges.items()]
    stub_crowds(view)
    return svg_text(view, "change")
