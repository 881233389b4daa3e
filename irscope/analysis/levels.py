"""Dependences: levels, the longest chain, and the nodes that could run in parallel."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irscope.graph import Graph, Kind, Node

IDLE = frozenset(("constant", "free", "parameter"))
"""Classes of work that take no time."""


@dataclass(slots=True)
class Levels:
    """``level[i]`` is the length of the longest chain of working nodes that ends at node i; leaves have 0.

    Nodes of one level do not depend on each other: :meth:`independent` lists them. ``depth`` is the highest level,
    ``width`` the size of the largest one.
    """

    graph: Graph
    level: list[int]
    depth: int
    width: int

    def independent(self) -> list[list[Node]]:
        """The working nodes by level, from level 1 on."""
        sets: list[list[Node]] = [[] for _ in range(self.depth)]
        for node in self.graph.nodes:
            if works(node):
                sets[self.level[node.index] - 1].append(node)
        return sets


def works(node: Node) -> bool:
    """Whether a node does work, and is neither a leaf nor plumbing."""
    return node.op.kind not in (Kind.LEAF, Kind.TUPLE) and node.op.work not in IDLE


def levels(graph: Graph) -> Levels:
    """The levels of a graph. Orderings that only effects require are not counted."""
    level = [0] * len(graph.nodes)
    count: dict[int, int] = {}
    for i, node in enumerate(graph.nodes):
        above = 0
        for operand in node.operands:
            if level[operand.index] > above:
                above = level[operand.index]
        if works(node):
            above += 1
            count[above] = count.get(above, 0) + 1
        level[i] = above
    return Levels(graph, level, max(count, default=0), max(count.values(), default=0))


def critical_path(graph: Graph, weight: Sequence[float] | None = None) -> list[Node]:
    """The chain of dependent nodes with the largest sum of weights, operands first.

    ``weight`` is by index; by default working nodes weigh 1, and others 0.
    """
    n = len(graph.nodes)
    if n == 0:
        return []
    best: list[float] = []
    before: list[int] = []
    for i, node in enumerate(graph.nodes):
        via = max((operand.index for operand in node.operands), key=best.__getitem__, default=-1)
        own = weight[i] if weight is not None else float(works(node))
        best.append(best[via] + own if via >= 0 else own)
        before.append(via)
    at = max(range(n), key=lambda i: best[i])
    path = []
    while at >= 0:
        path.append(graph.nodes[at])
        at = before[at]
    return path[::-1]
