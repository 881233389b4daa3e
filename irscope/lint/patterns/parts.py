"""Parts that composites are made of: a scaled value, a square, a mean, a sigmoid, a value behind casts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan, prod

from irscope.graph import Graph, Node, Op
from irscope.lint.values import CASTS_AND_MOVES, COPIES, SPREADS, behind, dims, number, reduces
from irscope.lint.view import ModuleView
from irscope.ops import hlo
from irscope.ops.attributes import Reduce

NEAR = 12
"""How many nodes back a part of a pattern may stand."""


def scaled(node: Node) -> tuple[float | None, Node]:
    """The factor and the rest of ``factor * rest`` or ``rest / divisor``; None where there is no factor."""
    node = behind(node, COPIES)
    if node.op is hlo.divide and len(node.operands) == 2:
        divisor = number(node.operands[1])
        return (1 / divisor if divisor else None), node.operands[0]
    if node.op is hlo.multiply and len(node.operands) == 2:
        for factor, rest in (node.operands, node.operands[::-1]):
            value = number(factor)
            if value is not None:
                return value, rest
    return None, node


def squared(node: Node) -> Node | None:
    """What a node is the square of, behind moves and casts: ``x * x`` or ``x ** 2``."""
    node = behind(node, SPREADS)
    if node.op is hlo.multiply and len(node.operands) == 2 and behind(node.operands[0], SPREADS) is behind(node.operands[1], SPREADS):
        return behind(node.operands[0], SPREADS)
    if node.op is hlo.power and len(node.operands) == 2 and number(node.operands[1]) == 2:
        return behind(node.operands[0], SPREADS)
    return None


def summed(node: Node) -> tuple[Node | None, float]:
    """The sum that a node is, but for factors, and the number that it is divided by: of a mean the number of terms."""
    divisor = 1.0
    for _ in range(NEAR):
        node = behind(node, SPREADS)
        if reduces(node, hlo.add):
            return node, divisor
        if node.op is hlo.select and isnan(number(node.operands[2]) or 0.0):
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
    return prod(shape[d] for d in Reduce.of(reduce).dimensions if d < len(shape))


def long_axes(reduce: Node) -> tuple[int, ...]:
    """The axes that a reduction is over, without those of length 1."""
    shape = dims(reduce.operands[0])
    return tuple(sorted(d for d in Reduce.of(reduce).dimensions if d < len(shape) and shape[d] != 1))


def sigmoid(node: Node) -> Node | None:
    """What a node is the sigmoid of: ``logistic(x)`` or ``1 / (1 + exp(-x))``."""
    node = behind(node, COPIES)
    if node.op is hlo.logistic:
        return node.operands[0]
    if node.op is not hlo.divide or len(node.operands) != 2 or number(node.operands[0]) != 1:
        return None
    below = behind(node.operands[1], COPIES)
    if below.op is not hlo.add or len(below.operands) != 2 or not any(number(o) == 1 for o in below.operands):
        return None
    exp = next((behind(o, COPIES) for o in below.operands if number(o) is None), below)
    if exp.op is not hlo.exponential or not exp.operands:
        return None
    inner = behind(exp.operands[0], COPIES)
    return inner.operands[0] if inner.op is hlo.negate else None


def readers(view: ModuleView, graph: Graph, node: Node, past: frozenset[Op] = SPREADS) -> Iterator[tuple[Node, Node]]:
    """The operators that take a value, each with the operand by which it does, past moves, broadcasts and casts."""
    todo = [node]
    for at in todo:
        for user in view.users(at, graph):
            if user.op in past and len(todo) < NEAR:
                todo.append(user)
            elif user.op not in past:
                yield user, at


def other(node: Node, operand: Node) -> Node:
    """The other operand of a node with two."""
    return node.operands[1] if node.operands[0] is operand else node.operands[0]


def product_behind(node: Node) -> tuple[Node | None, list[Node]]:
    """The matrix product that a value is, past moves and casts, and those that lie between."""
    between = []
    while node.op in CASTS_AND_MOVES:
        between.append(node)
        if not node.operands:
            return None, between
        node = node.operands[0]
    return (node if node.op is hlo.dot else None), between


def axes_text(axes: Sequence[int]) -> str:
    """``axis 1``, ``axes 1, 2``."""
    return ("axis " if len(axes) == 1 else "axes ") + ", ".join(map(str, axes))
