"""Shared by the recognisers: the composite, and its parts: a scaled value, a square, a mean, a sigmoid, a value behind casts."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf, isfinite, isnan, prod

from irscope.analysis.values import CASTS_AND_MOVES, COPIES, SPREADS, dims, number, reduces
from irscope.graph import Node
from irscope.graph.pattern import Bindings, Pattern
from irscope.graph.walk import Operators, behind
from irscope.ops import hlo
from irscope.ops.attributes import Reduce

NEAR = 12
"""The largest distance in nodes to a part of a composite."""
Users = list[list[Node]]
"""For each node of a graph, by index, the nodes that read its value (``graph.users()``)."""


@dataclass(frozen=True, slots=True)
class Oddity:
    """An oddity of a composite: ``node`` is its cause, ``says`` the rest of "this is a ..., but ...".

    ``wrong``: it cannot be intended; otherwise it may be a variant of the model.
    """

    node: Node
    says: str
    help: str
    wrong: bool = False
    others: tuple[tuple[Node, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Composite:
    """A well-known composite, recognised by structure alone.

    ``what`` is its name, ``result`` the node that has its value, ``nodes`` the parts that identify it; ``odd`` is None for the
    canonical form.
    """

    what: str
    result: Node
    nodes: tuple[Node, ...]
    odd: Oddity | None = None

    @property
    def article(self) -> str:
        """The article of its name."""
        return "an" if self.what[0] in "aeiou" or self.what.startswith("RMS") else "a"


def patterns(*spellings: str, through: Operators) -> tuple[Pattern, ...]:
    """The spellings of one thing, as patterns that skip these operators."""
    return tuple(Pattern(text, through) for text in spellings)


def find(node: Node, spellings: Sequence[Pattern], *numbers: str, **bound: Node) -> Bindings | None:
    """The bindings of the first spelling that matches; names in ``numbers`` must match values that one known number fills."""
    for pattern in spellings:
        if node.op.name in pattern.ops:
            found = pattern.match(node, is_filled, lambda names: all(number(names[name]) is not None for name in numbers), bound)
            if found is not None:
                return found
    return None


def is_filled(node: Node, value: float) -> bool:
    """Whether all elements of a value are a number."""
    return number(node) == value


SCALED = patterns("multiply(factor, x)", "divide(x, factor)", through=COPIES)
SQUARE = patterns("multiply(x, x)", "power(x, 2)", through=SPREADS)
SIGMOID = patterns("logistic(x)", "divide(1, add(1, exponential(negate(x))))", through=COPIES)


def scaled(node: Node) -> tuple[float | None, Node]:
    """The factor and the rest of ``factor * rest`` or ``rest / divisor``; None where there is no factor."""
    node = behind(node, COPIES)
    found = find(node, SCALED, "factor")
    return (None, node) if found is None else (factor(node, found["factor"]), found["x"])


def factor(product: Node, by: Node) -> float:
    """The factor of a product or quotient, given its constant operand."""
    value = number(by) or 0.0
    return value if product.op is hlo.multiply else 1 / value if value else inf


def squared(node: Node) -> Node | None:
    """The operand of a square, through moves and casts: ``x * x`` or ``x ** 2``."""
    found = find(behind(node, SPREADS), SQUARE)
    return None if found is None else behind(found["x"], SPREADS)


def sigmoid(node: Node) -> Node | None:
    """The operand of a sigmoid: ``logistic(x)`` or ``1 / (1 + exp(-x))``."""
    found = find(node, SIGMOID)
    return None if found is None else found["x"]


def summed(node: Node) -> tuple[Node | None, float]:
    """The sum that a node is, up to factors, and its divisor: for a mean, the number of terms."""
    divisor = 1.0
    for _ in range(NEAR):
        node = behind(node, SPREADS)
        if reduces(node, hlo.add):
            return node, divisor
        if node.op is hlo.select and isnan(number(node.operands[2]) or 0.0):
            node = node.operands[1]  # jnp.var returns nan where the divisor is not positive
            continue
        by, rest = scaled(node)
        if not by or not isfinite(by):
            return None, divisor
        divisor /= by
        node = rest
    return None, divisor


def terms(reduce: Node) -> int:
    """The number of elements that a reduction combines into one."""
    shape = dims(reduce.operands[0])
    return prod(shape[d] for d in Reduce.of(reduce).dimensions if d < len(shape))


def readers(users: Users, node: Node, past: Operators = SPREADS) -> Iterator[tuple[Node, Node]]:
    """The operators that read a value, each with the operand through which it does, past moves, broadcasts and casts."""
    todo = [node]
    for at in todo:
        for user in users[at.index]:
            if user.op not in past:
                yield user, at
            elif len(todo) < NEAR:
                todo.append(user)


def reached(users: Users, node: Node, *steps: Operators, past: Operators = COPIES) -> list[Node]:
    """The last of each chain of readers whose operators are those of ``steps``, one after the other."""
    ends = [node]
    for ops in steps:
        ends = [user for end in ends for user, _ in readers(users, end, past) if user.op in ops]
    return ends


def moves_behind(node: Node) -> list[Node]:
    """The moves and casts that end in a value, the last first."""
    found: list[Node] = []
    while node.op in CASTS_AND_MOVES and node.operands:
        found.append(node)
        node = node.operands[0]
    return found


def product_behind(node: Node) -> Node | None:
    """The matrix product that computes a value, past moves and casts."""
    node = behind(node, CASTS_AND_MOVES)
    return node if node.op is hlo.dot else None


def axes_text(axes: Sequence[int]) -> str:
    """``axis 1``, ``axes 1, 2``."""
    return ("axis " if len(axes) == 1 else "axes ") + ", ".join(map(str, axes))
