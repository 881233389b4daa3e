"""Functions of Relay that call themselves before any branch: such a call never ends.

    def @f(%x: float32) { @g(%x) }
    def @g(%x: float32) { @f(%x) }        @g calls @f, which calls @g again, in front of any choice
"""

from __future__ import annotations

from collections.abc import Iterator

from irscope.analysis.verify.faults import GraphFault
from irscope.formats.relay import structure
from irscope.graph import Graph, Node


def endless_calls(graph: Graph) -> Iterator[GraphFault]:
    """Calls of a graph that lead back to it whatever the data are. Calls inside branches, matches and functions as values are choices."""
    for node in _calls(graph):
        way = _way_back(node.bodies[0], graph)
        if way is not None:
            through = f" through {', '.join(f'@{g.name}' for g in way)}" if way else ""
            yield GraphFault(node, f"@{graph.name} calls itself{through} in front of any choice, so it never ends",
                        "a function `if (go) { @f(next...) } else { result }` becomes a loop", about="type")


def _way_back(start: Graph, end: Graph) -> list[Graph] | None:
    """The graphs from one to another by unconditional calls, without the last; None where there is no path."""
    came: dict[Graph, Graph | None] = {start: None}
    queue = [start]
    for graph in queue:
        if graph is end:
            way: list[Graph] = []
            at = came[graph]
            while at is not None:
                way.insert(0, at)
                at = came[at]
            return way
        for call in _calls(graph):
            if call.bodies[0] not in came:
                came[call.bodies[0]] = graph
                queue.append(call.bodies[0])
    return None


def _calls(graph: Graph) -> list[Node]:
    """The calls of the module's functions in a graph itself."""
    return [node for node in graph.nodes if node.op is structure.CALL and node.bodies]
