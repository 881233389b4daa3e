"""The operators in which a tree ends: the nodes of a section with their share of its figures."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from irscope.analysis.calls import is_fusion
from irscope.analysis.classes import drawn_class, is_leaflike
from irscope.analysis.cost import estimate
from irscope.analysis.levels import works
from irscope.analysis.outline import Section
from irscope.analysis.summary import describe_type, source_line
from irscope.analysis.survey import Survey
from irscope.graph import Graph, Node
from irscope.render.labels import headline

MOST = 16
"""Operators of a section that are listed; the others become one row."""


@dataclass(frozen=True, slots=True)
class OperatorRow:
    """A node in a tree. ``flops`` and ``bytes`` are of all its runs, and are those that its section counts for it."""

    node: Node
    title: str
    flops: float
    bytes: float
    is_open: bool
    source: str

    @property
    def cost(self) -> float:
        return estimate(self.flops, self.bytes)

    @property
    def work(self) -> str:
        return drawn_class(self.node)


class OperatorRows:
    """The operators of the sections of an outline, of which ``most`` are listed in each.

    A fusion whose contents are in the outline counts its traffic, they count their FLOPs.
    """

    def __init__(self, survey: Survey, root: Section, most: int = MOST) -> None:
        self.survey, self.most = survey, most
        self._graph_of: dict[Node, Graph] = {node: graph for graph in survey.calls.order for node in graph.nodes}
        self._known = set(root.all_nodes())

    def of(self, section: Section) -> list[OperatorRow]:
        """The operators directly in a section, the costliest first, without constants, parameters, names of values, and without the callers
        of what the outline shows."""
        return sorted(self._operators(section), key=lambda operator: (-operator.cost, operator.node.index))

    def _operators(self, section: Section) -> Iterator[OperatorRow]:
        calls, costs = self.survey.calls, self.survey.costs
        for node in section.nodes:
            graph = self._graph_of.get(node)
            if graph is None:
                continue
            times = calls.times.get(graph, 1.0)
            opened = any(inner in self._known for body in node.bodies for inner in body.nodes)
            if opened and not is_fusion(node):
                continue  # a loop or call, whose bodies are in the tree
            fused = graph in calls.fused
            work = 0.0 if opened else times * costs.flops(node, graph)
            moved = 0.0 if fused else times * costs.traffic(node, graph)
            if not (work or moved) and (is_leaflike(node) or not works(node)):
                continue
            title = f"{headline(node)} %{node.name} {describe_type(node.type)}"
            line = source_line(self.survey.module, node)
            yield OperatorRow(node, title, work, moved, costs.is_open(node, graph), line)
