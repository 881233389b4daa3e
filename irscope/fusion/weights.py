"""The cost of one element of a pointwise operator, in simple operations: it decides which work may be repeated."""
from __future__ import annotations

from irscope.graph import Node
from irscope.ops import hlo

HEAVY = dict.fromkeys(hlo.named(
    "exponential exponential-minus-one log log-plus-one logistic tanh sine cosine tan sinh cosh asin acos atan asinh acosh atanh atan2 "
    "power erf cbrt remainder"), 12) | dict.fromkeys(hlo.named("divide sqrt rsqrt reduce-precision map"), 4)
"""Simple operations for each element, for operators that take more than one."""


def weight(node: Node) -> int:
    """Simple operations for each element; complex and 64-bit values count double."""
    return HEAVY.get(node.op, 1)
