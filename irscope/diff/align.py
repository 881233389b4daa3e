"""Which node of one module is which node of another, whatever their names and the order of lines, in fusions or outside."""
from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from irscope.diff.flat import Flat, closed_graphs, flatten
from irscope.diff.labels import Side, Table, side
from irscope.diff.matching import Matcher
from irscope.graph import Graph, Module, Node, Typing, callees_first
from irscope.graph.numbering import Numbering


@dataclass(slots=True, eq=False)
class Alignment:
    """``pairs``: the node after of each node before that has one. ``hosts``: the pairs of graphs that were aligned, with what they open."""

    pairs: dict[Node, Node] = field(default_factory=dict)
    hosts: list[tuple[Side, Side]] = field(default_factory=list)


def align(before: Module, after: Module, numbering: Numbering | None = None) -> Alignment:
    """Align two modules from their entries on: the graphs that run in place are opened, bodies are aligned where their nodes are."""
    from irscope.diff.compare import _equality

    graphs = [*callees_first(before), *callees_first(after)]
    numbering = numbering or Numbering(_equality(before, after), graphs)
    closed = closed_graphs(before.graphs.values()) | closed_graphs(after.graphs.values())
    typed = before.dialect.typing is after.dialect.typing is Typing.STATED
    result = Alignment()
    votes: dict[Graph, Counter[Graph]] = {before.main(): Counter((after.main(),))}
    taken: set[Graph] = set()
    for graph in reversed(callees_first(before, before.main())):
        if graph not in votes:
            continue
        partner = next((g for g, _ in votes[graph].most_common() if g not in taken), None)
        if partner is None:
            continue
        taken.add(partner)
        a, b = pair_graphs(graph, partner, numbering, closed, typed)
        result.hosts.append((a, b))
        _collect(a, b, result, votes)
    return result


def pair_graphs(before: Graph, after: Graph, numbering: Numbering, closed: set[Graph], typed: bool) -> tuple[Side, Side]:
    """Align two graphs."""
    first, second = flatten(before, closed), flatten(after, closed)
    table = Table()
    anchored = len(before.params) == len(after.params) and all(
        numbering.equality.type(p.type) == numbering.equality.type(q.type) or not typed for p, q in zip(before.params, after.params, strict=True))
    a, b = side(first, numbering, table, typed, anchored), side(second, numbering, table, typed, anchored)
    Matcher(a, b).run(zip(first.params, second.params, strict=True) if anchored else ())
    return a, b


def _collect(a: Side, b: Side, result: Alignment, votes: dict[Graph, Counter[Graph]]) -> None:
    """The pairs of nodes that pairs of places stand for: a node of a graph that is called twice has two places."""
    chosen: dict[Node, Counter[Node]] = {}
    for x, y in enumerate(a.mate):
        if y >= 0:
            chosen.setdefault(a.flat.nodes[x], Counter())[b.flat.nodes[y]] += 1
    frames = _frames(a, b)
    there: dict[tuple[int, str, int], list[Node]] = {}
    for node, frame, place in b.flat.aliases:
        there.setdefault((frame, node.op.name, place), []).append(node)
    for node, frame, place in a.flat.aliases:
        mate = a.mate[place] if place >= 0 else -1
        if frame not in frames or (place >= 0 > mate):
            continue
        found = there.get((frames[frame], node.op.name, mate))
        if found:
            chosen.setdefault(node, Counter())[found.pop(0)] += 1
    used: set[Node] = set(result.pairs.values())
    for node, others in chosen.items():
        other = next((o for o, _ in others.most_common() if o not in used), None)
        if other is None or node in result.pairs:
            continue
        result.pairs[node] = other
        used.add(other)
        for mine, theirs in zip(node.bodies, other.bodies, strict=False):
            votes.setdefault(mine, Counter())[theirs] += 1


def _frames(a: Side, b: Side) -> dict[int, int]:
    """Opened bodies that have most of their nodes in common, by callers of one operator."""
    common: Counter[tuple[int, int]] = Counter()
    for x, y in enumerate(a.mate):
        if y >= 0:
            mine, theirs = a.flat.frames[x], b.flat.frames[y]
            if mine and theirs and _op(a.flat, mine) == _op(b.flat, theirs):
                common[mine, theirs] += 1
    found, taken = {0: 0}, {0}
    for (mine, theirs), _ in common.most_common():
        if mine not in found and theirs not in taken:
            found[mine] = theirs
            taken.add(theirs)
    return found


def _op(flat: Flat, frame: int) -> str:
    caller = flat.callers[frame]
    return caller.op.name if caller is not None else ""
