"""Relay's conversions and clips: of values already in range, and of quantised values of which only the order matters."""
from __future__ import annotations

from math import isfinite

from irscope.formats.relay.attributes import Clip
from irscope.graph import DType, Node, TensorType
from irscope.ops.sets import relay
from irscope.passes.algebra.arithmetic import passes_through
from irscope.passes.algebra.relay_arithmetic import filled_with, same_type
from irscope.passes.algebra.simplifier import RelayRules, Simplifier, of
from irscope.passes.op_table import OpTable

CAST, CLIP, DEQUANTIZE = relay("cast"), relay("clip"), relay("qnn.dequantize")
SCALES = (1e-30, 1e30)
"""Between these, 16-bit integers times a scale stay apart in float32: neither end of its range (1e-38, 3e38) comes near."""


def after_widening(s: Simplifier, d: Node) -> Node | None:
    """A cast after a lossless cast becomes one cast of the original value."""
    x = d.operands[0]
    if x.op not in CAST or not isinstance(x.type, TensorType) or not isinstance(x.operands[0].type, TensorType):
        return None
    return s.again(d, x.operands) if passes_through(of(x.operands[0]).dtype, x.type.dtype, of(d).dtype) else None


def within_limits(s: Simplifier, d: Node) -> Node | None:
    """Removes a cast to an integer type between a ``clip`` to the range of that type and another cast.

        %0 = clip(%x, a_min=0f, a_max=255f);
        %1 = cast(%0, dtype="uint8");                  ->         %0 = clip(%x, a_min=0f, a_max=255f);
        cast(%1, dtype="int32")                                   cast(%0, dtype="int32")

    A float loses its fraction in the cast, so the result must be an integer type too, and its range must contain the limits.
    """
    x = d.operands[0]
    limited = x.operands[0] if x.op in CAST else None
    if limited is None or limited.op not in CLIP or not isinstance(x.type, TensorType) or not _holds(x.type.dtype, limited):
        return None
    if not of(limited).dtype.is_integer and not _holds(of(d).dtype, limited):
        return None
    return s.again(d, [limited])


def clip(s: Simplifier, d: Node) -> Node | None:
    """A clip to limits that every integer of the type satisfies."""
    dtype = of(d).dtype
    if not dtype.is_integer:
        return None
    return d.operands[0] if Clip.of(d).a_min <= dtype.lowest and Clip.of(d).a_max >= dtype.highest else None


def order_of_quantised(s: Simplifier, d: Node) -> Node | None:
    """Moves argmax, argmin and argsort before the dequantisation: a positive scale keeps the order."""
    whole = d.operands[0]
    if whole.op not in DEQUANTIZE or not isinstance(whole.operands[0].type, TensorType):
        return None
    x, scale, zero = whole.operands
    value, dtype = filled_with(scale), of(x).dtype
    if value is None or filled_with(zero) is None or not SCALES[0] < float(value) < SCALES[1] or dtype.bits > 16 or not dtype.is_integer:
        return None
    return s.again(d, [x]) if of(whole).dtype.name == "f32" else None


def _holds(dtype: DType, limited: Node) -> bool:
    """Whether an integer type contains every value between the limits of a ``clip``."""
    low, high = float(Clip.of(limited).a_min), float(Clip.of(limited).a_max)
    return dtype.is_integer and isfinite(low) and isfinite(high) and dtype.lowest <= low and high <= dtype.highest


RULES: RelayRules = OpTable(
    (CAST, (same_type, after_widening, within_limits)),
    (CLIP, (clip,)),
    (relay("argmax argmin argsort"), (order_of_quantised,)),
)
