"""The region around a few nodes: the kernels that a change there may affect."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter

from irscope.analysis.values import LEAVES
from irscope.fusion import Plan
from irscope.graph import Graph, Node
from irscope.graph.numbering import Equality, as_written
from irscope.ops import hlo

ALIKE = Equality(frozenset(), literal=as_written, elided=True, steps=True)
"""Nodes that count as equal in a region: by operator, type, attributes, bodies and the types of their operands."""
HOPS = 2
"""Kernels between the change and the edge of its region: with one, what a neighbour would join instead is not seen."""
LIMIT = 120
"""Nodes beyond which a region takes no further kernels in: those of a transformer's layer have 20 to 60 and their neighbours."""
SHARED = 4
"""A value that more kernels compute for themselves (a mask, a broadcast number) does not make them neighbours; of a change to such a value
the first few of its kernels tell."""


@dataclass(frozen=True, slots=True)
class Region:
    """Nodes of a graph in definition order, and those of them whose values are used outside."""

    graph: Graph
    nodes: tuple[Node, ...]
    results: tuple[Node, ...]


class Surroundings:
    """The kernels of one graph by its nodes, which have ``numbers`` under :data:`ALIKE`.

    A plan for primitives names the nodes of the text as the text does.
    """

    def __init__(self, graph: Graph, users: list[list[Node]], plan: Plan, numbers: list[int]) -> None:
        self.graph, self.users, self.numbers = graph, users, numbers
        self.kernels: list[list[Node]] = []
        self._last: tuple[object, Region] | None = None
        self._of: list[list[int]] = [[] for _ in graph.nodes]
        owners = {id(inner): node for node in graph.nodes if node.op is hlo.fusion and node.bodies for inner in node.bodies[0].nodes}
        names = {} if plan.graph is graph else {node.name: node for node in graph.nodes}
        for group in plan.groups:
            mine = list(dict.fromkeys(node for node in (self._own(n, owners, names) for n in group.nodes) if node is not None))
            for node in mine:
                self._of[node.index].append(len(self.kernels))
            self.kernels.append(mine)

    def _own(self, node: Node, owners: dict[int, Node], names: dict[str, Node]) -> Node | None:
        """The node of the graph that a node of its plan is: itself, what it was copied from, or the fusion that holds that."""
        nodes = self.graph.nodes
        for one in (node, *node.origin[:1]):
            if one.index < len(nodes) and nodes[one.index] is one:
                return one
            if id(one) in owners:
                return owners[id(one)]
        return names.get(node.name)

    def largest(self, nodes: Iterable[Node]) -> int:
        """The number of nodes of the largest kernel that computes one of some nodes."""
        return max((len(self.kernels[kernel]) for node in nodes for kernel in self._of[node.index][:SHARED]), default=0)

    def around(self, seeds: Iterable[Node]) -> Region:
        """The kernels of some nodes, and those next to them as far as :data:`HOPS` and :data:`LIMIT` go.

        Nodes of one kernel have one region: it is kept until another is asked for.
        """
        inside = dict.fromkeys(seeds)
        frontier = list(dict.fromkeys(kernel for node in inside for kernel in self._of[node.index][:SHARED]))
        frontier += [kernel for node in inside if not self._of[node.index] for kernel in self._beside([node])]
        apart = tuple(node for node in inside if not frontier or frontier[0] not in self._of[node.index])
        if self._last is None or self._last[0] != (apart, frontier):
            self._last = (apart, frontier), self._grown(inside, frontier)
        return self._last[1]

    def _grown(self, inside: dict[Node, None], frontier: list[int]) -> Region:
        """The region of some nodes that begins with these kernels."""
        reached: dict[int, None] = {}
        for _ in range(HOPS + 1):
            following: dict[int, None] = {}
            for kernel in frontier:
                if kernel in reached or (reached and len(inside) + len(self.kernels[kernel]) > LIMIT):
                    continue
                reached[kernel] = None
                inside.update(dict.fromkeys(self.kernels[kernel]))
                following.update(dict.fromkeys(self._beside(self.kernels[kernel])))
            frontier = list(following)
        self._join(inside)
        nodes = tuple(sorted(inside, key=lambda n: n.index))
        leaving = (n for n in nodes if n is self.graph.root or any(u not in inside for u in self.users[n.index]))
        results = tuple(n for n in leaving if n.op not in LEAVES)
        return Region(self.graph, nodes, results or nodes[-1:])

    def _beside(self, nodes: list[Node]) -> list[int]:
        """The kernels that give these nodes their operands or read their values, also through what no kernel computes.

        A number that these kernels hold, as thousands may, and what many compute for themselves, makes no kernel a neighbour.
        """
        found: dict[int, None] = {}
        nodes = [node for node in nodes if node.op not in LEAVES and len(self._of[node.index]) <= SHARED]
        for step in (lambda n: n.operands, lambda n: self.users[n.index]):
            seen = set(nodes)
            todo = list(nodes)
            while todo:
                for other in step(todo.pop()):
                    regions = self._of[other.index]
                    if other in seen or other.op in LEAVES or other.op is hlo.tuple:
                        continue
                    seen.add(other)
                    if not regions:
                        todo.append(other)
                    elif len(regions) <= SHARED:
                        found.update(dict.fromkeys(regions))
        return list(found)

    def _join(self, inside: dict[Node, None]) -> None:
        """Take in what stands between the nodes and is in no kernel: parts of tuples, changes of shape."""
        todo = list(inside)
        while todo:
            for operand in todo.pop().operands:
                if operand not in inside and not self._of[operand.index] and operand.op not in LEAVES and operand.operands:
                    inside[operand] = None
                    todo.append(operand)

    def shape(self, region: Region) -> tuple[object, ...]:
        """Equal where the operators, types and attributes, who feeds whom and what leaves the region are equal."""
        place = {node: i for i, node in enumerate(region.nodes)}
        return (
            tuple([self.numbers[node.index] for node in region.nodes]),
            tuple([tuple([place.get(o, -1) for o in node.operands]) for node in region.nodes]),
            tuple([place[node] for node in region.results]),
        )


def places(region: Region, nodes: Iterable[Node]) -> tuple[int, ...]:
    """The positions of some nodes in a region; -1 for those outside it."""
    found = ((node, bisect_left(region.nodes, node.index, key=attrgetter("index"))) for node in nodes)
    return tuple(at if at < len(region.nodes) and region.nodes[at] is node else -1 for node, at in found)
