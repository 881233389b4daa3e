"""Which nodes have effects: by their operators, by their attributes, or in the graphs that they call."""
from __future__ import annotations

from collections.abc import Callable, Container

from irscope.graph.node import Effect, Graph, Node
from irscope.graph.walk import LASTING, bodies_of, callees_first_of, reachable


def pure(graph: Graph, impure: dict[Graph, bool] | None = None) -> list[bool]:
    """For each node, by index, whether it may be computed once for several, elsewhere, or not at all: neither it nor a graph that it calls
    has an effect. ``impure`` keeps what is known of called graphs, for callers that ask of many graphs."""
    return [not acts for acts in _which(graph, lambda node: node.op.effect is not Effect.PURE, {} if impure is None else impure)]


def kept(graph: Graph, ends: Container[Node] = (), acting: dict[Graph, bool] | None = None) -> list[bool]:
    """For each node, by index, whether a transformation must keep it: the result or an effect needs it.

    Effects in called graphs count, and those that attributes state (``custom_call_has_side_effect``). :func:`irscope.graph.live` leaves
    these out, because irscope's own runs do not have them. The nodes ``ends`` need nothing themselves. ``acting`` keeps what is known of
    called graphs, for callers that ask of many graphs: nested calls are else walked again for each level.
    """
    lasting = _which(graph, lambda node: node.op.effect in LASTING, {} if acting is None else acting)
    roots = [node for node, acts in zip(graph.nodes, lasting, strict=True) if acts]
    return reachable(graph, [*roots, *graph.params, *((graph.root,) if graph.root is not None else ())], ends)


def _which(graph: Graph, acts: Callable[[Node], bool], acting: dict[Graph, bool]) -> list[bool]:
    """For each node, by index, whether it acts, states an effect, or calls a graph with such a node; ``acting`` gains the called graphs."""
    def holds(node: Node) -> bool:
        stated = node.op.acts is not None and node.op.acts(node)
        return stated or acts(node) or any(acting.get(body, False) for body in node.bodies)
    new = callees_first_of((body for node in graph.nodes for body in node.bodies if body not in acting), acting)
    cyclic = False
    for each in new:
        cyclic = cyclic or any(body not in acting for body in bodies_of(each))
        acting[each] = any(map(holds, each.nodes))
    while cyclic:  # of graphs that call themselves, the first had no entry of the others yet
        found = [each for each in new if not acting[each] and any(map(holds, each.nodes))]
        acting.update(dict.fromkeys(found, True))
        cyclic = bool(found)
    return list(map(holds, graph.nodes))
