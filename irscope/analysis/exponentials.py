"""Whether an exponential can overflow: what its argument is computed from."""
from __future__ import annotations

from irscope.analysis.values import CALLS, SPREADS, body_operator, cone
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
    """Whether the argument of an exponential cannot be large: a difference from a maximum, a bounded function, a negated square or
    absolute value."""
    at = behind(node, SPREADS)
    for _ in range(NEAR):
        if at.op in BOUNDED or at.op in HIDDEN:
            return True  # the called computation is not analysed here, so nothing is reported
        if at.op is hlo.subtract:
            return any(_is_maximum(n) for n in cone(at.operands[1], NEAR))
        if at.op is hlo.negate:
            inner = behind(at.operands[0], SPREADS)
            square = inner.op is hlo.multiply and inner.operands[0] is inner.operands[1]
            return square or inner.op in POSITIVE
        if at.op not in PASSED:
            return False
        at = behind(at.operands[1] if at.op is hlo.select else at.operands[0], SPREADS)
    return True


def limit_of(node: Node) -> str:
    """The argument above which an exponential of this element type is infinite, as text."""
    return LIMITS.get(node.type.dtype.name, "88") if isinstance(node.type, TensorType) else "88"


def _is_maximum(node: Node) -> bool:
    """Whether a node is a maximum, or calls a computation that may contain one."""
    return node.op in CALLS or (node.op is hlo.reduce and body_operator(node) is hlo.maximum)
