"""Which nodes have effects: by their operators, by their attributes, or in the graphs that they call."""
from __future__ import annotations

from collections.abc import Container, Iterable

from irscope.graph.node import Effect, Graph, Node
from irscope.graph.walk import LASTING, callees_first_of, reachable

IMPURE = (*LASTING, Effect.READS)


def pure(graph: Graph, impure: dict[Graph, bool] | None = None) -> list[bool]:
    """For each node, by index, whether it may be computed once for several, elsewhere, or not at all: neither it nor a graph that it calls
    has an effect. ``impure`` keeps what is known of called graphs, for callers that ask of many graphs."""
    acting = {} if impure is None else impure
    _note(acting, graph.nodes, IMPURE)
    return [not _holds(node, IMPURE, acting) for node in graph.nodes]


def kept(graph: Graph, ends: Container[Node] = (), lasting: dict[Graph, bool] | None = None) -> list[bool]:
    """For each node, by index, whether a transformation must keep it: the result or an effect needs it.

    Effects in called graphs count, and those that attributes state (``custom_call_has_side_effect``). :func:`irscope.graph.live` leaves
    these out, because irscope's own runs do not have them. The nodes ``ends`` need nothing themselves. ``lasting`` keeps what is known of
    called graphs, for callers that ask of many graphs.
    """
    roots = [node for node in graph.nodes if node.op.effect in LASTING or _states(node)]
    roots += [*graph.params, *((graph.root,) if graph.root is not None else ())]
    alive = reachable(graph, roots, ends)
    # The effects of called graphs matter only for calls that nothing needs so far. Looking at all calls would visit nested ones repeatedly.
    unused = [node for node in graph.nodes if node.bodies and not alive[node.index]]
    if not unused:
        return alive
    acting = {} if lasting is None else lasting
    _note(acting, unused, LASTING)
    calls = [node for node in unused if any(acting.get(body, False) for body in node.bodies)]
    return reachable(graph, [*roots, *calls], ends) if calls else alive


def _states(node: Node) -> bool:
    return node.op.acts is not None and node.op.acts(node)


def _note(acting: dict[Graph, bool], callers: Iterable[Node], effects: Container[Effect]) -> None:
    """Add to ``acting`` each graph that ``callers`` call, directly or not, and whether it has one of the ``effects``."""
    found = callees_first_of((body for node in callers for body in node.bodies if body not in acting), acting)
    for each in found:
        acting[each] = any(_holds(node, effects, acting) for node in each.nodes)
    # With mutual recursion a graph may be looked at before its callee has an entry: repeat until nothing changes.
    place = {each: at for at, each in enumerate(found)}
    changed = any(place.get(body, -1) >= at for at, each in enumerate(found) for node in each.nodes for body in node.bodies)
    while changed:
        changed = False
        for each in found:
            if not acting[each] and any(_holds(node, effects, acting) for node in each.nodes):
                acting[each] = changed = True


def _holds(node: Node, effects: Container[Effect], acting: dict[Graph, bool]) -> bool:
    """Whether a node has one of the effects, states one, or calls a graph with such a node."""
    return _states(node) or node.op.effect in effects or any(acting.get(body, False) for body in node.bodies)
