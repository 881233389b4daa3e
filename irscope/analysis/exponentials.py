"""Whether an exponential can overflow: what its argument is computed from."""
from __future__ import annotations

from irscope.analysis.values import CALLS, SPREADS, body_operator, cone, number
from irscope.graph import Node, TensorType
from irscope.graph.walk import behind
from irscope.ops import hlo

BOUNDED = hlo.named("tanh logistic clamp minimum sine cosine erf log is-finite sign")
"""What comes from these does not overflow an exponential, or is the inverse of one."""
HIDDEN = CALLS | hlo.named("get-tuple-element while")
PASSED = hlo.named("multiply divide add select")
POSITIVE = hlo.named("abs exponential log-plus-one")
NEAR = 24
"""How many operators before the exponential are looked at for the maximum."""
LIMITS = {"f16": "11", "f64": "709"}
"""Arguments above which an exponential is infinite, rounded down: ln(65504), ln(1.8e308). All other float types have the range of f32."""


def is_bounded(node: Node) -> bool:
    """Whether the argument of an exponential cannot be large: a difference from a maximum, a bounded function, a value of at most 0, such
    as ``-abs(x)``, ``-max(x, 0)`` or ``-0.5 * x * x``."""
    at = behind(node, SPREADS)
    for _ in range(NEAR):
        if at.op in BOUNDED or at.op in HIDDEN:
            return True  # the called computation is not analysed here, so nothing is reported
        if at.op is hlo.subtract:
            return any(_is_maximum(n) for n in cone(at.operands[1], NEAR))
        if at.op is hlo.negate:
            return _is_nonnegative(behind(at.operands[0], SPREADS))
        if at.op is hlo.multiply and _is_negative_multiple(at):
            return True
        if at.op not in PASSED:
            return False
        at = behind(at.operands[1] if at.op is hlo.select else at.operands[0], SPREADS)
    return True


def limit_of(node: Node) -> str:
    """The argument above which an exponential of this element type is infinite, as text."""
    return LIMITS.get(node.type.dtype.name, "88") if isinstance(node.type, TensorType) else "88"


def _is_nonnegative(node: Node) -> bool:
    """Whether a value is at least 0: a square, an absolute value, ``max(x, 0)``."""
    if node.op is hlo.maximum:
        return any(value is not None and value >= 0 for value in map(number, node.operands))
    return node.op in POSITIVE or (node.op is hlo.multiply and node.operands[0] is node.operands[1])


def _is_negative_multiple(product: Node) -> bool:
    """Whether a product is at most 0: one operand is a number below 0, the other at least 0."""
    one, two = product.operands
    return any((number(by) or 0.0) < 0 and _is_nonnegative(behind(of, SPREADS)) for by, of in ((one, two), (two, one)))


def _is_maximum(node: Node) -> bool:
    """Whether a node is a maximum, or calls a computation that may contain one."""
    return node.op in CALLS or (node.op is hlo.reduce and body_operator(node) is hlo.maximum)
