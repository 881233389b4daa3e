"""GELU: a value times a smooth step of itself, with tanh, erf, or an expanded erfc."""
from __future__ import annotations

from collections.abc import Iterator
from math import isclose, pi, sqrt

from irscope.analysis.recognise.parts import SCALED, Composite, Oddity, Users, factor, find, patterns, reached, scaled
from irscope.analysis.values import COPIES, SPREADS, cone, number
from irscope.graph import Kind, Node
from irscope.graph.walk import behind
from irscope.ops import hlo

CLOSE = 2e-3
"""The tolerance for constants in a pattern: half-precision literals are rounded."""
FAR = 0.25
"""A constant that differs by more than this belongs to another function."""
ERFC = 7.85386146e-05
"""The first coefficient of the polynomial that JAX expands erfc to; it identifies the hundred operators."""
WRITTEN_OUT = 200
"""The most operators of an expanded erfc."""
CUBIC = 0.044715
"""The weight of the cube in the approximation by tanh (Hendrycks and Gimpel, 2016)."""
_OF_SUM = "tanh(outer:multiply|divide(add(x, inner:multiply|divide({}, weight)), scale))"
TANH = patterns(*map(_OF_SUM.format, ("multiply(x, multiply(x, x))", "power(x, 3)")), through=COPIES)
STEP = patterns("multiply(add(1, erf), weighed)", through=())
ADD, MULTIPLY = frozenset((hlo.add,)), frozenset((hlo.multiply,))


def gelus(node: Node, users: Users) -> Iterator[Composite]:
    """The GELU whose tanh or erf a node is, or whose polynomial it starts; ``nodes`` are the function and its value.

    ``tanh(a * (x + b * x^3))`` alone identifies one; ``1 + erf(a * x)`` must be multiplied by ``x``.
    """
    if node.op is hlo.tanh:
        found = find(node, TANH, "scale", "weight")
        if found is not None:
            odd = _odd_constant(node, "scale", factor(found["outer"], found["scale"]), sqrt(2 / pi))
            odd = odd or _odd_constant(node, "cubic term", factor(found["inner"], found["weight"]), CUBIC)
            yield Composite("GELU", node, (node, found["x"]), odd)
    elif node.op is hlo.erf:
        scale, x = scaled(node.operands[0])
        if scale is not None and _weighs(users, node, x):
            yield Composite("GELU", node, (node, x), _odd_constant(node, "scale", scale, sqrt(0.5)))
    elif isclose(number(node) or 0.0, ERFC, rel_tol=1e-6):
        yield from _written_out(node, users)


def _weighs(users: Users, erf: Node, x: Node) -> bool:
    """Whether ``1 + erf`` is multiplied by the value itself."""
    steps = (find(product, STEP, erf=erf) for product in reached(users, erf, ADD, MULTIPLY, past=()))
    return any(x is behind(found["weighed"], SPREADS) or x in cone(found["weighed"], 4) for found in steps if found is not None)


def _written_out(marker: Node, users: Users) -> Iterator[Composite]:
    """``x/2 * erfc(-x * sqrt(1/2))`` with erfc as JAX expands it: a polynomial in the square of its argument and two in its inverse."""
    uses = [(user, spread) for spread in users[marker.index] for user in users[spread.index]]
    squares = [operand for user, spread in uses for operand in user.operands if operand is not spread]
    if not squares or squares[0].op is not hlo.multiply or squares[0].operands[0] is not squares[0].operands[1]:
        return
    scale, negated = scaled(squares[0].operands[0])
    if scale is None or (negated.op is not hlo.negate and scale > 0):
        return
    x = negated.operands[0] if negated.op is hlo.negate else negated
    reached_, todo = {squares[0]}, [squares[0]]
    while todo and len(reached_) < WRITTEN_OUT:
        for user in users[todo.pop().index]:
            if user.op is hlo.multiply and any(find(behind(o, COPIES), SCALED, "factor", x=x) for o in user.operands):
                yield Composite("GELU", user, (user, x), _odd_constant(user, "scale", abs(scale), sqrt(0.5)))
                return
            if user not in reached_ and user.op.kind is Kind.ELEMENTWISE:
                reached_.add(user)
                todo.append(user)


def _odd_constant(node: Node, what: str, value: float, wanted: float) -> Oddity | None:
    if isclose(value, wanted, rel_tol=CLOSE) or not isclose(value, wanted, rel_tol=FAR):
        return None
    return Oddity(node, f"its {what} is {value:.6g} and not {wanted:.6g}", "use the framework's gelu")
