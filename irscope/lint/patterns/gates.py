"""GELU and SwiGLU: activations that weigh a value by a smooth step of itself or of its twin."""

from __future__ import annotations

from collections.abc import Iterator
from math import isclose, pi, sqrt

from irscope.graph import Graph, Kind, Node
from irscope.lint.patterns.composite import Composite, Odd
from irscope.lint.patterns.parts import other, product_behind, readers, scaled, sigmoid
from irscope.lint.values import COPIES, SPREADS, behind, cone, number
from irscope.lint.view import ModuleView
from irscope.ops import hlo

CLOSE = 2e-3
"""How far a constant may be from what a pattern has: half-precision literals are rounded."""
FAR = 0.25
"""A constant farther away than this is another function."""
ERFC = 7.85386146e-05
"""The first coefficient of the polynomial that JAX writes erfc out as; by it the hundred operators are known."""
WRITTEN_OUT = 200
"""Operators that erfc is written out as, at most."""
CUBIC = 0.044715
"""The weight of the cube in the approximation by tanh (Hendrycks and Gimpel, 2016)."""


def found(view: ModuleView) -> Iterator[Composite]:
    """Every GELU, by tanh or erf, and every SwiGLU."""
    yield from gelus(view)
    yield from _swiglus(view)


def gelus(view: ModuleView) -> Iterator[Composite]:
    """Every ``tanh(a * (x + b * x^3))`` and every ``1 + erf(a * x)`` that is multiplied by ``x``; ``nodes`` are the function and ``x``."""
    for node, graph in view.primitives(hlo.tanh):
        scale, inner = scaled(node.operands[0])
        if scale is None or inner.op is not hlo.add or len(inner.operands) != 2:
            continue
        for x, term in (inner.operands, inner.operands[::-1]):
            weight, cube = scaled(term)
            if weight is not None and _is_cube(cube, x):
                odd = _constant(node, "scale", scale, sqrt(2 / pi)) or _constant(node, "cubic term", weight, CUBIC)
                yield Composite("GELU", graph, node, (node, x), odd)
                break
    for node, graph in view.primitives(hlo.erf):
        scale, x = scaled(node.operands[0])
        if scale is not None and _weighs(view, graph, node, x):
            yield Composite("GELU", graph, node, (node, x), _constant(node, "scale", scale, sqrt(0.5)))
    for node, graph in view.primitives(hlo.constant):
        if isclose(number(node) or 0.0, ERFC, rel_tol=1e-6):
            yield from _written_out(view, graph, node)


def _written_out(view: ModuleView, graph: Graph, marker: Node) -> Iterator[Composite]:
    """``x/2 * erfc(-x * sqrt(1/2))`` with erfc as JAX writes it out: a polynomial in the square of its argument and two in its inverse."""
    uses = [(user, spread) for spread in view.users(marker, graph) for user in view.users(spread, graph)]
    squares = [operand for user, spread in uses for operand in user.operands if operand is not spread]
    if not squares or squares[0].op is not hlo.multiply or squares[0].operands[0] is not squares[0].operands[1]:
        return
    scale, negated = scaled(squares[0].operands[0])
    if scale is None or (negated.op is not hlo.negate and scale > 0):
        return
    x = negated.operands[0] if negated.op is hlo.negate else negated
    reached, todo = {squares[0]}, [squares[0]]
    while todo and len(reached) < WRITTEN_OUT:
        for user in view.users(todo.pop(), graph):
            if user.op is hlo.multiply and any(scaled(o)[1] is x and scaled(o)[0] is not None for o in user.operands):
                yield Composite("GELU", graph, user, (user, x), _constant(user, "scale", abs(scale), sqrt(0.5)))
                return
            if user not in reached and user.op.kind is Kind.ELEMENTWISE:
                reached.add(user)
                todo.append(user)


def _weighs(view: ModuleView, graph: Graph, erf: Node, x: Node) -> bool:
    """Whether ``1 + erf`` is multiplied by the value itself."""
    for plus in view.users(erf, graph):
        if plus.op is hlo.add and any(number(o) == 1 for o in plus.operands):
            for user in view.users(plus, graph):
                if user.op is hlo.multiply and any(x is behind(o, SPREADS) or x in cone(o, 4) for o in user.operands if o is not plus):
                    return True
    return False


def _constant(node: Node, what: str, value: float, wanted: float) -> Odd | None:
    if isclose(value, wanted, rel_tol=CLOSE) or not isclose(value, wanted, rel_tol=FAR):
        return None
    return Odd(node, f"its {what} is {value:.6g} and not {wanted:.6g}", "use the framework's gelu")


def _is_cube(node: Node, x: Node) -> bool:
    """Whether the value is ``x`` to the third power, in one of its spellings."""
    node = behind(node, COPIES)
    if node.op is hlo.power:
        return node.operands[0] is x and number(node.operands[1]) == 3
    if node.op is not hlo.multiply or len(node.operands) != 2:
        return False
    for one, two in (node.operands, node.operands[::-1]):
        if one is x and two.op is hlo.multiply and two.operands[0] is x and two.operands[1] is x:
            return True
    return False


def _swiglus(view: ModuleView) -> Iterator[Composite]:
    """``a * sigmoid(a) * b`` where ``a`` and ``b`` are products with the same left side."""
    for node, graph in view.primitives(hlo.logistic, hlo.divide):
        gate = sigmoid(node)
        if gate is None or graph in view.inlined:
            continue
        slope, gated = scaled(gate)
        for user, operand in readers(view, graph, node, COPIES):
            if user.op is not hlo.multiply or len(user.operands) != 2:
                continue
            mine = other(user, operand)
            for outer, by in readers(view, graph, user, COPIES):
                if outer.op is hlo.multiply and len(outer.operands) == 2 and outer.operands[0] is not outer.operands[1]:
                    yield from _gate(graph, node, gate if slope is None else gated, slope, outer, (mine, other(outer, by)))


def _gate(
    graph: Graph, node: Node, gate: Node, slope: float | None, outer: Node, factors: tuple[Node, Node]
) -> Iterator[Composite]:
    """The composite, if the three factors are a product, its sigmoid, and another product of the same input."""
    for value, up in (factors, factors[::-1]):
        if behind(value, SPREADS) is not behind(gate, SPREADS):
            continue
        (first, _), (second, _) = product_behind(value), product_behind(up)
        if first is None or second is None or first is second:
            return
        yield Composite("SwiGLU", graph, outer, (node, first, second), _odd_gate(node, value, gate, slope, first, second))
        return


def _odd_gate(node: Node, value: Node, gate: Node, slope: float | None, first: Node, second: Node) -> Odd | None:
    if slope is not None and not isclose(slope, 1.0, rel_tol=CLOSE):
        return Odd(node, f"%{node.name} is the sigmoid of {slope:.6g} times the gate", "silu(x) is x * sigmoid(x)")
    sources = [behind(product.operands[0], SPREADS) for product in (first, second)]
    if sources[0] is not sources[1] and behind(first.operands[1], SPREADS) is not behind(second.operands[1], SPREADS):
        says = f"%{first.name} is a product of %{sources[0].name} and %{second.name} one of %{sources[1].name}"
        return Odd(second, says, "take both products of the same value, or of stacked weights at once", others=((first, "is the gate"),))
    if value is not gate and value.op in COPIES:
        says = f"%{value.name} converts the gate for the product, and its sigmoid is of the other type"
        return Odd(value, says, "take the sigmoid and the product in one type")
    return None
