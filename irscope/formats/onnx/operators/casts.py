"""Conversions of element types."""
from __future__ import annotations

from irscope.formats.onnx.algebra import Onnx
from irscope.formats.onnx.declarations import Attributes
from irscope.formats.onnx.operators import operator
from irscope.formats.onnx.types import NUMBERS
from irscope.graph import DType, Node
from irscope.graph.dtypes import F32, PRED, S32, S64
from irscope.ops.faults import TypeFault

NAMES = {"FLOAT": 1, "UINT8": 2, "INT8": 3, "UINT16": 4, "INT16": 5, "INT32": 6, "INT64": 7, "BOOL": 9, "FLOAT16": 10, "DOUBLE": 11,
         "UINT32": 12, "UINT64": 13}
"""Element types by name, as ``to`` has them up to version 5."""


def cast(t: Onnx, x: Node, dtype: DType, saturate: bool = True) -> Node:
    """``x`` in another type. Floats of 8 bits and fewer saturate unless ``saturate`` is off; integers wrap."""
    source = t.dtype(x)
    if source is dtype:
        return x
    if dtype is PRED:
        return t.compare("NE", x, t.like(x, 0))
    if dtype.is_integer and source.is_float:
        return _wrapping(t, x, dtype)
    if dtype.is_float and dtype.bits <= 8 and source.name != "f8e8m0fnu":
        return narrow(t, x, dtype, saturate)
    return t.convert(x, dtype)


def _wrapping(t: Onnx, x: Node, dtype: DType) -> Node:
    """A float truncated; types of less than 32 bits take the low bits, as C does by way of an int."""
    wide = S64 if dtype.bits < 64 and dtype.name == "u32" else S32 if dtype.bits < 32 else dtype
    return t.convert(t.convert(x, wide), dtype)


def narrow(t: Onnx, x: Node, dtype: DType, saturate: bool) -> Node:
    """A float of 8 bits or fewer: values beyond the range become the greatest one, or, without ``saturate``, infinity or NaN."""
    wide = x if t.dtype(x).is_float and t.dtype(x).bits >= 16 else t.convert(x, F32)
    if not saturate or dtype.name == "f8e8m0fnu":
        return t.convert(wide, dtype)
    top = t.like(wide, dtype.largest)
    bounded = t.minimum(t.maximum(wide, t.unary("negate", top)), top)
    return t.convert(t.select(t.compare("NE", wide, wide), wide, bounded), dtype)


@operator("Cast(input; to: int|str!, saturate=1, round_mode='up')")
def cast_(t: Onnx, a: Attributes, x: Node) -> Node:
    """The value in another element type."""
    number = NAMES.get(a.to, 0) if isinstance(a.to, str) else a.to
    if number not in NUMBERS:
        raise TypeFault(f"the element type {a.to} is not known, or is not computed (strings)")
    return _to(t, a, x, NUMBERS[number])


@operator("CastLike(input, target_type; saturate=1, round_mode='up')")
def cast_like(t: Onnx, a: Attributes, x: Node, like: Node) -> Node:
    """The value in the element type of another."""
    return _to(t, a, x, t.dtype(like))


def _to(t: Onnx, a: Attributes, x: Node, dtype: DType) -> Node:
    if dtype.name == "f8e8m0fnu":
        return exponent(t, x, a)
    return cast(t, x, dtype, bool(a.saturate))


def exponent(t: Onnx, x: Node, a: Attributes) -> Node:
    """A power of two: by ``round_mode`` the next greater one, the next smaller one or the nearest."""
    dtype = NUMBERS[24]
    wide = t.unary("abs", t.convert(x, F32))
    bits = t.bitcast_convert(wide, S32)
    low = t.binary("shift-right-logical", bits, t.like(bits, 23))
    rest = t.binary("and", bits, t.like(bits, (1 << 23) - 1))
    least = t.compare("EQ", low, t.like(low, 0))  # 2^-127, the least power, is a denormal: its bit leads the fraction
    if a.round_mode == "up":
        up = t.compare("GT", rest, t.select(least, t.like(rest, 1 << 22), t.like(rest, 0)))
    elif a.round_mode == "nearest":
        up = t.compare("GE", rest, t.select(least, t.like(rest, 3 << 21), t.like(rest, 1 << 22)))
    else:
        up = t.compare("NE", rest, rest)
    power = t.add(low, t.convert(up, S32))
    power = t.minimum(power, t.like(power, 254 if a.saturate else 255))
    code = t.select(t.compare("NE", wide, wide), t.like(power, 255), power)
    return t.bitcast_convert(t.convert(code, NUMBERS[2]), dtype)


@operator("BitCast(input; to: int!)")
def bit_cast(t: Onnx, a: Attributes, x: Node) -> Node:
    """The bits as another element type of the same width."""
    dtype = t.numbered(a.to, t.dtype(x))
    if dtype.bits != t.dtype(x).bits:
        raise TypeFault(f"the types have {t.dtype(x).bits} and {dtype.bits} bits")
    return x if dtype is t.dtype(x) else t.bitcast_convert(x, dtype)
