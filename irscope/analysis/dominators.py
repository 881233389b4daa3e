"""Dominators: the nodes through which every path goes.

In topological order one pass suffices: the immediate dominator of a node is the nearest common ancestor of its predecessors in the tree
built so far (Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm", 2001, without its iteration). Ancestors are found in
logarithmic time with one jump pointer a node (Myers, "An applicative random-access stack", 1983).
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from irscope.analysis.neighbourhood import between, needed_by, needing
from irscope.analysis.survey import Survey
from irscope.graph import Graph, Node


def dominators(graph: Graph, node: Node) -> set[Node]:
    """The nodes on every path from a parameter of the graph to a node, itself included. Values without a parameter in them do not count."""
    parameters = set(graph.params)
    needed = needed_by(graph, node)
    data: set[Node] = set()
    for each in graph.nodes[:node.index + 1]:
        if each in needed and (each in parameters or any(operand in data for operand in each.operands)):
            data.add(each)
    if node not in data:
        return {node}
    return _on_every_path([each for each in graph.nodes if each in data], lambda each: each.operands, node)


def postdominators(survey: Survey, graph: Graph, node: Node) -> set[Node]:
    """The nodes on every path from a node to the result of its graph, itself included; to any end, where it does not reach the result."""
    users = survey.users(graph)
    reached = needing(survey, graph, node)
    if graph.root is not None and graph.root in reached:
        reached &= needed_by(graph, graph.root)
    return _on_every_path([each for each in reversed(graph.nodes) if each in reached], lambda each: users[each.index], node)


def dominators_between(survey: Survey, graph: Graph, first: Node, second: Node) -> set[Node]:
    """The nodes on every path from one node to another, in either direction; empty where there is no path."""
    nodes = between(survey, graph, first, second)
    last = max(first, second, key=lambda each: each.index)
    return _on_every_path([each for each in graph.nodes if each in nodes], lambda each: each.operands, last) if nodes else set()


def _on_every_path(order: Sequence[Node], before: Callable[[Node], Iterable[Node]], end: Node) -> set[Node]:
    """The nodes on every path to ``end`` from those of ``order`` that have no predecessor in it, in topological order."""
    depth: dict[Node | None, int] = {None: 0}
    above: dict[Node | None, Node | None] = {None: None}
    jump: dict[Node | None, Node | None] = {None: None}

    def common(a: Node | None, b: Node | None) -> Node | None:
        if depth[a] < depth[b]:
            a, b = b, a
        while depth[a] > depth[b]:
            a = jump[a] if depth[jump[a]] >= depth[b] else above[a]
        while a is not b:  # of equal depth, so that their jumps are of equal length
            a, b = (jump[a], jump[b]) if jump[a] is not jump[b] else (above[a], above[b])
        return a

    for node in order:
        known = [each for each in dict.fromkeys(before(node)) if each in depth]
        nearest: Node | None = known[0] if known else None
        for other in known[1:]:
            nearest = common(nearest, other)
        above[node], depth[node] = nearest, depth[nearest] + 1
        far = jump[nearest]
        jump[node] = jump[far] if depth[nearest] - depth[far] == depth[far] - depth[jump[far]] else nearest
    found: set[Node] = set()
    step: Node | None = end
    while step is not None:
        found.add(step)
        step = above[step]
    return found
