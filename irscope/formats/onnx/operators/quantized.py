"""Quantisation, and operators on quantised integers."""
from __future__ import annotations

from irscope.formats.onnx.algebra import Onnx
from irscope.formats.onnx.declarations import Attributes
from irscope.formats.onnx.operators import operator
from irscope.formats.onnx.operators.casts import narrow
from irscope.formats.onnx.operators.convolution import WINDOW, convolve
from irscope.formats.onnx.operators.linear import product
from irscope.graph import DType, Node
from irscope.graph.dtypes import F32, S32, U8
from irscope.ops.faults import TypeFault


def spread(t: Onnx, v: Node, x: Node, axis: int, block: int = 0) -> Node:
    """A scale or zero point in the shape of ``x``: one number, one a slice along an axis, or one for each block along it."""
    if t.type(v).elements == 1 and t.rank(v) < 2:
        return t.broadcast_to(t.reshape(v, ()), t.shape(x))
    if t.rank(v) == 1 and not block:
        return t.along(v, x, axis)
    d = t.axis(x, axis)
    shape = t.shape(v)
    if block < 1 or len(shape) != t.rank(x) or shape[d] * block < t.shape(x)[d]:
        raise TypeFault(f"scales {list(shape)} in blocks of {block} for data {list(t.shape(x))}")
    wide = t.broadcast_to(t.reshape(v, (*shape[:d + 1], 1, *shape[d + 1:])), (*shape[:d + 1], block, *shape[d + 1:]))
    return t.slice_dim(t.reshape(wide, (*shape[:d], shape[d] * block, *shape[d + 1:])), d, 0, t.shape(x)[d])


def rounded(t: Onnx, x: Node, zero: Node | None, dtype: DType) -> Node:
    """Quotients rounded to the nearest, halves to even, plus the zero point, saturated to the integer type."""
    steps = t.unary("round-nearest-even", x)
    if zero is not None:
        steps = t.add(steps, t.convert(zero, t.dtype(steps)))
    low, high = t.like(steps, dtype.lowest), t.like(steps, dtype.highest)
    return t.convert(t.minimum(t.maximum(steps, low), high), dtype)


AXIS = "axis=1, block_size=0, output_dtype: int=None"


@operator(f"QuantizeLinear(x, y_scale, y_zero_point?; {AXIS}, precision=0, saturate=1)",
          f"com.microsoft.QuantizeLinear(x, y_scale, y_zero_point?; {AXIS}, precision=0, saturate=1)")
def quantize(t: Onnx, a: Attributes, x: Node, scale: Node, zero: Node | None) -> Node:
    """``round(x / scale) + zero point``, saturated; to floats of 8 bits and fewer the nearest value."""
    dtype = t.numbered(a.output_dtype, U8) if zero is None else t.dtype(zero)
    wide = t.numbered(a.precision, F32) if a.precision else F32
    quotient = t.div(t.convert(x, wide), t.convert(spread(t, scale, x, a.axis, a.block_size), wide))
    if dtype.is_float:
        return narrow(t, quotient, dtype, bool(a.saturate))
    return rounded(t, t.convert(quotient, F32), None if zero is None else spread(t, t.convert(zero, S32), x, a.axis, a.block_size), dtype)


@operator(f"DequantizeLinear(x, x_scale, x_zero_point?; {AXIS})", f"com.microsoft.DequantizeLinear(x, x_scale, x_zero_point?; {AXIS})")
def dequantize(t: Onnx, a: Attributes, x: Node, scale: Node, zero: Node | None) -> Node:
    """``(x - zero point) scale``."""
    result = t.numbered(a.output_dtype, t.dtype(scale))
    wide = F32 if t.dtype(scale).bits < 32 else t.dtype(scale)
    factor = t.convert(spread(t, scale, x, a.axis, a.block_size), wide)
    if t.dtype(x).is_float:
        return t.convert(t.mul(t.convert(x, wide), factor), result)
    whole = t.convert(x, S32)
    if zero is not None:
        whole = t.sub(whole, spread(t, t.convert(zero, S32), x, a.axis, a.block_size))
    return t.convert(t.mul(t.convert(whole, wide), factor), result)


@operator("DynamicQuantizeLinear(x)")
def dynamic_quantize(t: Onnx, a: Attributes, x: Node) -> tuple[Node, ...]:
    """Quantised to 8 bits over the range of the data with 0 in it; scale and zero point."""
    axes = list(range(t.rank(x)))
    zero = t.array(0, F32)
    low, high = t.minimum(t.min(x, axes), zero), t.maximum(t.max(x, axes), zero)
    scale = t.div(t.sub(high, low), t.array(255, F32))
    at = t.unary("round-nearest-even", t.minimum(t.maximum(t.div(t.sub(zero, low), scale), zero), t.array(255, F32)))
    point = t.convert(at, U8)
    return rounded(t, t.div(x, t.broadcast_to(scale, t.shape(x))), t.broadcast_to(at, t.shape(x)), U8), scale, point


# ---------------------------------------------------------------------- integer products


def centred(t: Onnx, x: Node, zero: Node | None, axis: int) -> Node:
    """32-bit integers with the zero point subtracted: one number, or one a slice along an axis."""
    wide = t.convert(x, S32)
    if zero is None:
        return wide
    if t.rank(zero) == 1 and t.type(zero).elements > 1:
        return t.sub(wide, t.along(t.convert(zero, S32), wide, axis))
    return t.sub(wide, t.broadcast_to(t.convert(t.reshape(zero, ()) if t.type(zero).elements == 1 else zero, S32), t.shape(x)))


@operator("MatMulInteger(A, B, a_zero_point?, b_zero_point?)")
def matmul_integer(t: Onnx, a: Attributes, x: Node, y: Node, zx: Node | None, zy: Node | None) -> Node:
    """The product of integers with their zero points subtracted."""
    return product(t, centred(t, x, zx, -2 if t.rank(x) > 1 else -1), centred(t, y, zy, -1))


@operator(f"ConvInteger(x, w, x_zero_point?, w_zero_point?; {WINDOW}, group=1)")
def conv_integer(t: Onnx, a: Attributes, x: Node, w: Node, zx: Node | None, zw: Node | None) -> Node:
    """A convolution of integers with their zero points subtracted; the padding is the zero point."""
    return convolve(t, a, centred(t, x, zx, 1), centred(t, w, zw, 0))


def requantized(t: Onnx, total: Node, factor: Node, zero: Node) -> Node:
    """Integers times a factor, in the type of a zero point."""
    point = t.broadcast_to(t.convert(t.reshape(zero, ()), F32), t.shape(total))
    return rounded(t, t.mul(t.convert(total, F32), factor), point, t.dtype(zero))


@operator("QLinearMatMul(a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point)")
def qlinear_matmul(t: Onnx, a: Attributes, x: Node, sx: Node, zx: Node, y: Node, sy: Node, zy: Node, so: Node, zo: Node) -> Node:
    """The product of quantised matrices, quantised again."""
    total = product(t, centred(t, x, zx, -2 if t.rank(x) > 1 else -1), centred(t, y, zy, -1))
    scale = t.div(t.mul(_column(t, t.convert(sx, F32), total, -2), _column(t, t.convert(sy, F32), total, -1)),
                  _column(t, t.convert(so, F32), total, -2))
    return requantized(t, total, scale, zo)


def _column(t: Onnx, v: Node, x: Node, axis: int) -> Node:
    """A scale in the shape of a product: one number, one a row or column, or as it is."""
    if t.rank(v) == 1 and t.type(v).elements > 1:
        return t.along(v, x, axis)
    return t.broadcast_to(t.reshape(v, ()) if t.type(v).elements == 1 else v, t.shape(x))


@operator(f"QLinearConv(x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, B?; {WINDOW}, group=1)")
def qlinear_conv(t: Onnx, a: Attributes, x: Node, sx: Node, zx: Node, w: Node, *rest: Node | None) -> Node:
    """The convolution of quantised data, quantised again; the bias is in 32-bit integers."""
    sw, zw, so, zo, bias = rest
    assert sw is not None and zw is not None and so is not None and zo is not None
    total = convolve(t, a, centred(t, x, zx, 1), centred(t, w, zw, 0))
    if bias is not None:
        total = t.add(total, t.along(bias, total, 1))
    one = t.div(t.reshape(sx, ()), t.reshape(so, ()))
    factor = t.mul(spread(t, sw, total, 1), t.broadcast_to(one, t.shape(total)))
    return requantized(t, total, factor, zo)
