"""Parts that composites are made of: a scaled value, a square, a mean, a sigmoid, a value behind casts."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan, prod

from irscope.graph import Graph, Node
from irscope.lint.context import Context
from irscope.lint.values import MOVES, SPREADS, behind, dims, number, reduces

CASTS = ("convert", "copy")
NEAR = 12
"""How many nodes back a part of a pattern may stand."""


def scaled(node: Node) -> tuple[float | None, Node]:
    """The factor and the rest of ``factor * rest`` or ``rest / divisor``; None where there is no factor."""
    node = behind(node, CASTS)
    if node.op.name == "divide" and len(node.operands) == 2:
        divisor = number(node.operands[1])
        return (1 / divisor if divisor else None), node.operands[0]
    if node.op.name == "multiply" and len(node.operands) == 2:
        for factor, rest in (node.operands, node.operands[::-1]):
            value = number(factor)
            if value is not None:
                return value, rest
    return None, node


def squared(node: Node) -> Node | None:
    """What a node is the square of, behind moves and casts: ``x * x`` or ``x ** 2``."""
    node = behind(node, SPREADS)
    if node.op.name == "multiply" and len(node.operands) == 2 and behind(node.operands[0], SPREADS) is behind(node.operands[1], SPREADS):
        return behind(node.operands[0], SPREADS)
    if node.op.name == "power" and len(node.operands) == 2 and number(node.operands[1]) == 2:
        return behind(node.operands[0], SPREADS)
    return None


def summed(node: Node) -> tuple[Node | None, float]:
    """The sum that a node is, but for factors, and the number that it is divided by: of a mean the number of terms."""
    divisor = 1.0
    for _ in range(NEAR):
        node = behind(node, SPREADS)
        if reduces(node, "add"):
            return node, divisor
        if node.op.name == "select" and isnan(number(node.operands[2]) or 0.0):
            node = node.operands[1]  # jnp.var gives nan where nothing is left to divide by
            continue
        factor, rest = scaled(node)
        if factor is None or not factor:
            return None, divisor
        divisor /= factor
        node = rest
    return None, divisor


def terms(reduce: Node) -> int:
    """How many elements a reduction makes one of."""
    shape = dims(reduce.operands[0])
    return prod(shape[d] for d in reduce.attrs.get("dimensions", ()) if d < len(shape))


def long_axes(reduce: Node) -> tuple[int, ...]:
    """The axes that a reduction is over, without those of length 1."""
    shape = dims(reduce.operands[0])
    return tuple(sorted(d for d in reduce.attrs.get("dimensions", ()) if d < len(shape) and shape[d] != 1))


def sigmoid(node: Node) -> Node | None:
    """What a node is the sigmoid of: ``logistic(x)`` or ``1 / (1 + exp(-x))``."""
    node = behind(node, CASTS)
    if node.op.name == "logistic":
        return node.operands[0]
    if node.op.name != "divide" or len(node.operands) != 2 or number(node.operands[0]) != 1:
        return None
    below = behind(node.operands[1], CASTS)
    if below.op.name != "add" or len(below.operands) != 2 or not any(number(o) == 1 for o in below.operands):
        return None
    exp = next((behind(o, CASTS) for o in below.operands if number(o) is None), below)
    if exp.op.name != "exponential" or not exp.operands:
        return None
    inner = behind(exp.operands[0], CASTS)
    return inner.operands[0] if inner.op.name == "negate" else None


def readers(context: Context, graph: Graph, node: Node, past: frozenset[str] = SPREADS) -> Iterator[tuple[Node, Node]]:
    """The operators that take a value, each with the operand by which it does, past moves, broadcasts and casts."""
    todo = [node]
    for at in todo:
        for user in context.users(at, graph):
            if user.op.name in past and len(todo) < NEAR:
                todo.append(user)
            elif user.op.name not in past:
                yield user, at


def other(node: Node, operand: Node) -> Node:
    """The other operand of a node with two."""
    return node.operands[1] if node.operands[0] is operand else node.operands[0]


def product_behind(node: Node) -> tuple[Node | None, list[Node]]:
    """The matrix product that a value is, past moves and casts, and those that lie between."""
    between = []
    while node.op.name in MOVES or node.op.name == "convert":
        between.append(node)
        if not node.operands:
            return None, between
        node = node.operands[0]
    return (node if node.op.name == "dot" else None), between


def axes_text(axes: tuple[int, ...]) -> str:
    """``axis 1``, ``axes 1, 2``."""
    return ("axis " if len(axes) == 1 else "axes ") + ", ".join(map(str, axes))
