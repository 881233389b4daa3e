"""Which values are known before the program runs: constants, and values computed only from constants."""
from __future__ import annotations

from math import inf

from irscope.analysis.calls import BodyUse, body_use
from irscope.analysis.trips import trip_count
from irscope.graph import Graph, Module, Node, TensorType, pure
from irscope.graph.walk import callees_first_of
from irscope.ops import hlo
from irscope.ops.attributes import Constant
from irscope.ops.costs import MOST, bodies_counted_once

MOST_EARLY = 1 << 33
"""The most operations of one node to fold before the program runs: some seconds. Larger nodes are left to the run, which may not need
them; a loop of unknown trip count may never end."""


def known_early(graph: Graph, impure: dict[Graph, bool] | None = None) -> list[bool]:
    """For each node, by index, whether its value depends on constants alone. A constant with an elided value is not known; ``impure`` keeps
    which called graphs have effects, for callers that ask of many graphs."""
    known, can_fold = [False] * len(graph.nodes), pure(graph, impure)
    for node in graph.nodes:
        if node.op is hlo.constant:
            known[node.index] = not Constant.of(node).literal.elided
        elif node.op is not hlo.parameter and can_fold[node.index]:
            known[node.index] = all(known[o.index] for o in node.operands)
    return known


def computed_early(module: Module, graph: Graph) -> list[bool]:
    """For each node, by index, whether it is known early and cheap enough to be computed then, as everything before it is."""
    found = known_early(graph)
    totals: dict[Graph, float] = {}
    with bodies_counted_once():
        for node in graph.nodes:
            if found[node.index]:
                found[node.index] = all(found[o.index] for o in node.operands) and operations(module, node, totals) <= MOST_EARLY
    return found


def operations(module: Module, node: Node, totals: dict[Graph, float]) -> float:
    """The operations of a run of a node: its declared cost, or one per element; loops by their trips, infinite where those are
    unknown. ``totals`` caches the counts of graphs."""
    own = float(sum(leaf.elements for leaf in node.type.leaves() if isinstance(leaf, TensorType)))
    whole = max(own, float(min(node.op.cost(node), MOST)) if node.op.cost is not None else 0.0)
    if not node.bodies:
        return whole
    for graph in callees_first_of((body for body in node.bodies if body not in totals), totals):
        totals[graph] = sum(operations(module, inner, totals) for inner in graph.nodes)
    if body_use(node) is BodyUse.ELEMENT:
        # The cost counts an operation of the body as one, which is true of all but loops.
        return whole * max(1.0, *(totals[body] / len(body.nodes) for body in node.bodies)) if whole else 0.0
    trips = trip_count(module, node, noted=False) if body_use(node) is BodyUse.LOOP else 1
    # A trip takes time whatever its nodes hold: bodies of empty tuples have no elements.
    return own + max(1.0, sum(totals[body] for body in node.bodies)) * (inf if trips is None else trips)
