"""Nodes by name, the nodes around them, and the nodes between two of them."""
from __future__ import annotations

from collections.abc import Collection, Iterable

from irscope.analysis.survey import Survey
from irscope.graph import Graph, Node
from irscope.graph.walk import post_order
from irscope.ops import hlo
from irscope.source import UserError, did_you_mean

FAN_OUT = 16
"""A value with more users than this is shown, but its users are not followed: they are unrelated. Nor are the operands of a tuple."""
THROUGH = ("tuples", "fan-out")
"""What a neighbourhood goes through on request."""

Place = tuple[Graph, Node]


def find_node(survey: Survey, name: str) -> Place:
    """The node of a name: ``%name`` or ``name``, of the entry before any other graph; ``graph/name`` names the graph.

    Raises UserError with the nearest name where there is none, and with the graphs where several, but not the entry, have the name.
    """
    wanted = name.strip().lstrip("%")
    graphs = sorted(survey.module.graphs.values(), key=lambda graph: graph is not survey.entry)
    found = [(graph, node) for graph in graphs for node in graph.nodes if node.name == wanted]
    if not found and "/" in wanted:
        of, _, inner = wanted.rpartition("/")
        graph = find_graph(survey, of)
        found = [(graph, node) for node in graph.nodes if node.name == inner.lstrip("%")]
    if not found:
        raise UserError(f"there is no node %{wanted}", _near(wanted, (node.name for graph in graphs for node in graph.nodes)))
    if len(found) > 1 and found[0][0] is not survey.entry:
        where = ", ".join(graph.name for graph, _ in found[:5])
        raise UserError(f"%{wanted} is in {len(found)} graphs: {where}", f"say which: {found[0][0].name}/{wanted}")
    return found[0]


def find_graph(survey: Survey, name: str) -> Graph:
    """The graph of a name; raises UserError with the nearest name where there is none."""
    graphs = survey.module.graphs
    found = graphs.get(name.strip().lstrip("%"))
    if found is None:
        raise UserError(f"there is no graph {name}", _near(name, graphs) or f"the entry is {survey.module.entry}")
    return found


def around(survey: Survey, graph: Graph, centre: Node, radius: int, through: Collection[str] = ()) -> set[Node]:
    """The nodes of ``graph`` within ``radius`` steps, against the edges and along them.

    Tuples and values with very many users are not followed, except for the centre itself, and for what ``through`` (:data:`THROUGH`) names.
    """
    return _around(survey, graph, centre, radius, through)[0]


def stops(survey: Survey, graph: Graph, centre: Node, radius: int, through: Collection[str] = ()) -> list[Node]:
    """The tuples and values with very many users at which a neighbourhood stops although its radius goes on."""
    return _around(survey, graph, centre, radius, through)[1]


def _around(survey: Survey, graph: Graph, centre: Node, radius: int, through: Collection[str]) -> tuple[set[Node], list[Node]]:
    users = survey.users(graph)
    seen = {centre}
    ring = [centre]
    stopped: list[Node] = []
    for _ in range(radius):
        beyond: list[Node] = []
        for node in ring:
            gathers = node.op is hlo.tuple and node is not centre and "tuples" not in through
            crowded = len(users[node.index]) > FAN_OUT and node is not centre and "fan-out" not in through
            near = [*(() if gathers else node.operands), *(() if crowded else users[node.index])]
            if gathers or crowded:
                stopped.append(node)
            for other in near:
                if other not in seen:
                    seen.add(other)
                    beyond.append(other)
        ring = beyond
        if not ring:
            break
    return seen, [node for node in stopped if any(other not in seen for other in (*node.operands, *users[node.index]))]


def needed_by(graph: Graph, node: Node) -> set[Node]:
    """All that a node depends on, itself included."""
    return set(post_order([node], lambda n: n.operands))


def needing(survey: Survey, graph: Graph, node: Node) -> set[Node]:
    """All that depends on a node, itself included."""
    users = survey.users(graph)
    return set(post_order([node], lambda n: users[n.index]))


def between(survey: Survey, graph: Graph, first: Node, second: Node) -> set[Node]:
    """The nodes on all paths from one node to the other, in either direction; empty where there is no path."""
    if first.index > second.index:
        first, second = second, first
    nodes = needed_by(graph, second) & needing(survey, graph, first)
    return nodes if first in nodes and second in nodes else set()


def _near(name: str, known: Iterable[str]) -> str:
    """The nearest names; among a million of them only those with the same beginning, because comparing with all takes minutes."""
    names = list(dict.fromkeys(known))
    if len(names) > 5000:
        head = name[:3].lower()
        names = [n for n in names if n.lower().startswith(head)][:5000]
    hint = did_you_mean(name, names)
    if hint:
        return hint
    inside = [n for n in names if name.lower() in n.lower()][:5]
    return f"names that hold it: {', '.join(inside)}" if inside else ""
