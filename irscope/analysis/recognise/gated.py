"""SwiGLU: a product times its own sigmoid, times a second product."""
from __future__ import annotations

from collections.abc import Iterator
from math import isclose

from irscope.analysis.recognise.gelu import CLOSE, MULTIPLY
from irscope.analysis.recognise.parts import Composite, Oddity, Users, find, patterns, product_behind, reached, scaled, sigmoid
from irscope.analysis.values import COPIES, SPREADS
from irscope.graph import Node
from irscope.graph.walk import behind

GATED = patterns("multiply(multiply(step, one), two)", through=COPIES)


def swiglus(node: Node, users: Users) -> Iterator[Composite]:
    """Each ``a * sigmoid(a) * b`` whose sigmoid a node is, where ``a`` and ``b`` are products with the same left side."""
    inner = sigmoid(node)
    if inner is None:
        return
    slope, steep = scaled(inner)
    gate = inner if slope is None else steep
    for outer in reached(users, node, MULTIPLY, MULTIPLY):
        found = find(outer, GATED, step=node) or {}
        weighed = next((name for name in ("one", "two") if found and behind(found[name], SPREADS) is behind(gate, SPREADS)), "")
        if not weighed:
            continue
        value, up = found[weighed], found["two" if weighed == "one" else "one"]
        first, second = product_behind(value), product_behind(up)
        if first is not None and second is not None and first is not second:
            yield Composite("SwiGLU", outer, (node, first, second), _odd_gate(node, value, gate, slope, first, second))


def _odd_gate(node: Node, value: Node, gate: Node, slope: float | None, first: Node, second: Node) -> Oddity | None:
    if slope is not None and not isclose(slope, 1.0, rel_tol=CLOSE):
        return Oddity(node, f"%{node.name} is the sigmoid of {slope:.6g} times the gate", "silu(x) is x * sigmoid(x)")
    sources = [behind(product.operands[0], SPREADS) for product in (first, second)]
    if sources[0] is not sources[1] and behind(first.operands[1], SPREADS) is not behind(second.operands[1], SPREADS):
        says = f"%{first.name} is a product of %{sources[0].name} and %{second.name} one of %{sources[1].name}"
        return Oddity(second, says, "take both products of the same value, or of stacked weights at once", others=((first, "is the gate"),))
    if value is not gate and value.op in COPIES:
        says = f"%{value.name} converts the gate for the product, and its sigmoid is of the other type"
        return Oddity(value, says, "take the sigmoid and the product in one type")
    return None
