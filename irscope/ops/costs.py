"""Floating point (and integer) operations of nodes, counted as XLA's cost analysis does: one per element of the result."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import local

from irscope.graph import Graph, Kind, Node, TensorType
from irscope.graph.walk import callees_first_of
from irscope.ops.infer import fits_operands

MOST = 1 << 900
"""The cap on costs: sizes in untrusted text may multiply to more than the largest float, about 2**1024."""
_running = local()


def result_elements(node: Node) -> float:
    """One operation for each element of the (first) result."""
    return float(next((leaf.elements for leaf in node.type.leaves() if isinstance(leaf, TensorType)), 0))


def no_cost(node: Node) -> float:
    """Nothing is computed."""
    return 0.0


def operand_elements(node: Node) -> float:
    """One operation for each element of the operands."""
    return float(sum(leaf.elements for o in node.operands for leaf in o.type.leaves() if isinstance(leaf, TensorType)))


def flops(node: Node) -> float:
    """The operations of one node: its own count, or the default of its kind."""
    if node.op.cost is not None:
        return node.op.cost(node)
    return result_elements(node) if node.op.kind in (Kind.ELEMENTWISE, Kind.REDUCTION, Kind.CONTRACTION) else 0.0


@contextmanager
def bodies_counted_once() -> Iterator[None]:
    """Count the operations of each called graph once in this block, which changes no graph."""
    if getattr(_running, "memo", None) is not None:
        yield
        return
    _running.memo = {}
    try:
        yield
    finally:
        _running.memo = None


def body_flops(graph: Graph) -> float:
    """The operations of one run of a graph, with the graphs that it calls."""
    memo: dict[Graph, float] | None = getattr(_running, "memo", None)
    if memo is None:
        with bodies_counted_once():
            return body_flops(graph)
    if graph in memo:
        return memo[graph]
    # Callees come first, so costs that read their bodies find them in the memo: no recursion, however deep calls nest.
    for callee in callees_first_of([graph], memo):
        memo[callee] = 0.0  # a graph that calls itself counts once
        total = sum(flops(node) for node in callee.nodes if node.op.cost is None or fits_operands(node))
        memo[callee] = min(total, float(MOST))  # calls within calls may double it at each level
    return memo[graph]


def calls_cost(node: Node) -> float:
    """The operations of all bodies, once."""
    return sum(map(body_flops, node.bodies))
