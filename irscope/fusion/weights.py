"""What one element of a pointwise operator costs, in simple operations: the measure by which work may be done twice."""
from __future__ import annotations

from irscope.graph import Node
from irscope.ops import hlo

HEAVY = dict.fromkeys(hlo.named(
    "exponential exponential-minus-one log log-plus-one logistic tanh sine cosine tan sinh cosh asin acos atan asinh acosh atanh atan2 "
    "power erf cbrt remainder"), 12) | dict.fromkeys(hlo.named("divide sqrt rsqrt reduce-precision map"), 4)
"""Simple operations an element, of those that take more than one."""


def weight(node: Node) -> int:
    """Simple operations an element; complex and 64-bit values count double."""
    return HEAVY.get(node.op, 1)
