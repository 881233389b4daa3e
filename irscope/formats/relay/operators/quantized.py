"""Quantised operators: integers that represent ``scale * (q - zero_point)``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from irscope.formats.relay.algebra import Relay
from irscope.formats.relay.operators import Attributes, operator
from irscope.formats.relay.operators.convolution import attributes, convolve, transposed
from irscope.formats.relay.operators.dense import product
from irscope.formats.relay.operators.normalization import softmax
from irscope.formats.relay.operators.pooling import avg_pool
from irscope.graph import DType, Kind, Node
from irscope.graph.dtypes import F32, F64, S8, S32
from irscope.ops.faults import TypeFault

E, B, C = Kind.ELEMENTWISE, Kind.BROADCAST, Kind.CONTRACTION


def per_axis(t: Relay, v: Node, x: Node, axis: int) -> Node:
    """A scale or zero point: one number, or one per channel."""
    return t.broadcast_to(t.reshape(v, ()), t.shape(x)) if t.type(v).elements == 1 else t.along(v, x, axis)


def saturated(t: Relay, x: Node, dtype: DType) -> Node:
    """The nearest value of the narrow type."""
    if not dtype.is_integer:
        return t.convert(x, dtype)
    low, high = dtype.lowest, dtype.highest
    return t.convert(t.minimum(t.maximum(x, t.like(x, low)), t.like(x, high)), dtype)


def dequantized(t: Relay, x: Node, scale: Node, zero: Node, axis: int = -1, dtype: DType = F32) -> Node:
    """``scale * (q - zero)``."""
    shifted = t.sub(t.convert(x, S32), per_axis(t, t.convert(zero, S32), x, axis))
    return t.mul(t.convert(shifted, dtype), per_axis(t, t.convert(scale, dtype), x, axis))


def quantized(t: Relay, x: Node, scale: Node, zero: Node, dtype: DType, axis: int = -1) -> Node:
    """``round(x / scale) + zero``, saturated."""
    steps = t.unary("round-nearest-afz", t.div(x, per_axis(t, t.convert(scale, t.dtype(x)), x, axis)))
    return saturated(t, t.add(steps, per_axis(t, t.convert(zero, t.dtype(x)), x, axis)), dtype)


@operator("qnn.quantize(data, output_scale, output_zero_point; out_dtype='int8', axis=-1)", kind=E)
def quantize(t: Relay, a: Attributes, x: Node, scale: Node, zero: Node) -> Node:
    """Floats as quantised integers."""
    return quantized(t, x, scale, zero, t.dtype_word(a.out_dtype, S8), a.axis)


@operator("qnn.dequantize(data, input_scale, input_zero_point; out_dtype='float32', axis=-1)", kind=E)
def dequantize(t: Relay, a: Attributes, x: Node, scale: Node, zero: Node) -> Node:
    """Quantised integers as floats."""
    return dequantized(t, x, scale, zero, a.axis, t.dtype_word(a.out_dtype, F32))


@operator("qnn.requantize(data, input_scale, input_zero_point, output_scale, output_zero_point; axis=-1, rounding='None', "
          "compute_dtype='None', out_dtype='int8')", kind=E)
def requantize(t: Relay, a: Attributes, x: Node, scale: Node, zero: Node, out_scale: Node, out_zero: Node) -> Node:
    """Quantised integers in another scale; halves go up, or away from zero by ``rounding="TONEAREST"``."""
    away = str(a.rounding).upper() == "TONEAREST"
    return requantized(t, Quantized(x, scale, zero, a.axis), (out_scale, out_zero), t.dtype_word(a.out_dtype, S8), away)


@dataclass(frozen=True, slots=True)
class Quantized:
    """Integers that represent ``scale * (values - zero)``; the scale and the zero point may be vectors along an axis."""

    values: Node
    scale: Node
    zero: Node
    axis: int = -1


Target = tuple[Node, Node]
"""The scale and the zero point of a result, one number each."""


def requantized(t: Relay, x: Quantized, target: Target, dtype: DType, away: bool = False) -> Node:
    """Requantise in float64, which represents every product of the fixed-point arithmetic exactly."""
    scale, zero = target
    shifted = t.convert(t.sub(t.convert(x.values, S32), per_axis(t, t.convert(x.zero, S32), x.values, x.axis)), F64)
    factor = t.div(t.convert(t.convert(x.scale, F32), F64), t.convert(t.convert(t.reshape(scale, ()), F32), F64))
    value = t.mul(shifted, per_axis(t, factor, x.values, x.axis))
    steps = t.unary("round-nearest-afz", value) if away else t.unary("floor", t.plus(value, 0.5))
    return saturated(t, t.add(steps, t.broadcast_to(t.convert(t.reshape(zero, ()), F64), t.shape(x.values))), dtype)


def _binary(name: str, compute: Callable[[Relay, Quantized, Quantized, Target], Node]) -> None:
    def build(t: Relay, a: Attributes, x: Node, y: Node, *scales: Node) -> Node:
        sx, zx, sy, zy, so, zo = scales
        return saturated(t, compute(t, Quantized(x, sx, zx, a.lhs_axis), Quantized(y, sy, zy, a.rhs_axis), (so, zo)), t.dtype(x))

    build.__doc__ = f"``{name}`` of the values that the integers represent."
    operator(f"qnn.{name}(lhs, rhs, lhs_scale, lhs_zero_point, rhs_scale, rhs_zero_point, output_scale, output_zero_point; "
             "lhs_axis=-1, rhs_axis=-1)", kind=B)(build)


def _sum(t: Relay, x: Quantized, y: Quantized, target: Target) -> Node:
    """Requantises both sides to the scale of the result first, rounding each, as TVM does."""
    total = t.add(requantized(t, x, target, S32), requantized(t, y, target, S32))
    return t.sub(total, t.convert(t.reshape(target[1], ()), S32))


def _difference(t: Relay, x: Quantized, y: Quantized, target: Target) -> Node:
    rest = t.sub(requantized(t, x, target, S32), requantized(t, y, target, S32))
    return t.add(rest, t.convert(t.reshape(target[1], ()), S32))


def _product(t: Relay, x: Quantized, y: Quantized, target: Target) -> Node:
    made = t.mul(centred(t, x.values, x.zero, x.axis), centred(t, y.values, y.zero, y.axis))
    scale = t.mul(t.reshape(x.scale, ()), t.reshape(y.scale, ()))
    return requantized(t, Quantized(made, scale, t.array(0, S32)), target, S32)


def centred(t: Relay, x: Node, zero: Node, axis: int) -> Node:
    """int32 values minus the zero point."""
    wide = t.convert(x, S32)
    known = t.known(zero)
    if known is not None and not known.any():
        return wide
    return t.sub(wide, per_axis(t, t.convert(zero, S32), x, axis))


_binary("add", _sum)
_binary("subtract", _difference)
_binary("mul", _product)


@operator("qnn.conv2d(data, weight, input_zero_point, kernel_zero_point, input_scale, kernel_scale; "
          f"{attributes(2, 'NCHW', 'OIHW', repr('int32'))})", kind=C)
def conv2d(t: Relay, a: Attributes, x: Node, w: Node, zx: Node, zw: Node, sx: Node, sw: Node) -> Node:
    """A convolution of the integers without their zero points; padding represents zero."""
    out = str(a.kernel_layout).find("O")
    return convolve(t, a, centred(t, x, zx, 1), centred(t, w, zw, max(out, 0)), 2, t.dtype_word(a.out_dtype, S32))


@operator("qnn.conv2d_transpose(data, weight, input_zero_point, kernel_zero_point, input_scale, kernel_scale; channels=None, "
          "kernel_size=None, strides=[1, 1], output_padding=[0, 0], padding=[0, 0], dilation=[1, 1], groups=1, data_layout='NCHW', "
          "kernel_layout='IOHW', out_layout='', out_dtype='int32')")
def conv2d_transpose(t: Relay, a: Attributes, x: Node, w: Node, zx: Node, zw: Node, sx: Node, sw: Node) -> Node:
    """A transposed convolution of the integers without their zero points."""
    return transposed(t, a, centred(t, x, zx, 1), centred(t, w, zw, 1), 2, t.dtype_word(a.out_dtype, S32))


@operator("qnn.dense(data: 1d+, weight: 2d, input_zero_point, kernel_zero_point, input_scale, kernel_scale; units=None, "
          "out_dtype='int32')", kind=C)
def dense(t: Relay, a: Attributes, x: Node, w: Node, zx: Node, zw: Node, sx: Node, sw: Node) -> Node:
    """A dense layer of the integers without their zero points."""
    if t.shape(x)[-1] != t.shape(w)[1]:
        raise TypeFault(f"data axis -1 is {t.shape(x)[-1]}, weight axis 1 is {t.shape(w)[1]}")
    return product(t, centred(t, x, zx, -1), centred(t, w, zw, 0), ([t.rank(x) - 1], [1]), t.dtype_word(a.out_dtype, S32))


@operator("qnn.batch_matmul(x: 2d+, y: 2d+, x_zero_point, y_zero_point, x_scale, y_scale; out_dtype='int32', transpose_a=False, "
          "transpose_b=True)", kind=C)
def batch_matmul(t: Relay, a: Attributes, x: Node, y: Node, zx: Node, zy: Node, sx: Node, sy: Node) -> Node:
    """Products of stacks of quantised matrices."""
    left, right = centred(t, x, zx, -1), centred(t, y, zy, -1)
    lead = t.broadcast_two(t.shape(x)[:-2], t.shape(y)[:-2])
    left, right = t.broadcast_to(left, lead + t.shape(x)[-2:]), t.broadcast_to(right, lead + t.shape(y)[-2:])
    d, axes = len(lead), list(range(len(lead)))
    return product(t, left, right, ([d + (not a.transpose_a)], [d + bool(a.transpose_b)]), t.dtype_word(a.out_dtype, S32), (axes, axes))


@operator("qnn.concatenate(data: filled, input_scales: tuple, input_zero_points: tuple, output_scale, output_zero_point; axis=0)",
          kind=Kind.INJECTIVE)
def concatenate(t: Relay, a: Attributes, xs: list[Node], scales: list[Node], zeros: list[Node], so: Node, zo: Node) -> Node:
    """Concatenates along an axis, each operand in the scale of the result."""
    if not len(xs) == len(scales) == len(zeros):
        raise TypeFault(f"{len(xs)} tensors with {len(scales)} scales and {len(zeros)} zero points")
    made = [requantized(t, Quantized(x, s, z), (so, zo), t.dtype(x)) for x, s, z in zip(xs, scales, zeros, strict=True)]
    return t.concat(made, t.axis(xs[0], a.axis))


@operator("qnn.softmax(data, scale, zero_point, output_scale, output_zero_point; axis=-1)")
def quantized_softmax(t: Relay, a: Attributes, x: Node, s: Node, z: Node, so: Node, zo: Node) -> Node:
    """Softmax of the values that the integers represent."""
    return quantized(t, softmax(t, dequantized(t, x, s, z), t.axis(x, a.axis)), so, zo, t.dtype(x))


@operator("qnn.leaky_relu(data, input_scale, input_zero_point, output_scale, output_zero_point; alpha=0.25)")
def leaky_relu(t: Relay, a: Attributes, x: Node, s: Node, z: Node, so: Node, zo: Node) -> Node:
    """A leaky relu of the values that the integers represent."""
    value = dequantized(t, x, s, z)
    made = t.select(t.compare("GT", value, t.like(value, 0)), value, t.scale(value, float(a.alpha)))
    return quantized(t, made, so, zo, t.dtype(x))


@operator("qnn.hardswish(data, scale, zero_point, output_scale, output_zero_point)")
def hardswish(t: Relay, a: Attributes, x: Node, s: Node, z: Node, so: Node, zo: Node) -> Node:
    """``x * clip(x + 3, 0, 6) / 6`` of the values that the integers represent."""
    value = dequantized(t, x, s, z)
    gate = t.plus(value, 3)
    gate = t.minimum(t.maximum(gate, t.like(gate, 0)), t.like(gate, 6))
    return quantized(t, t.scale(t.mul(value, gate), 1 / 6), so, zo, t.dtype(x))


@operator("qnn.avg_pool2d(data, input_scale, input_zero_point, output_scale, output_zero_point; pool_size!, strides=[1, 1], dilation=[1, "
          "1], padding=[0, 0], layout='NCHW', out_layout='', ceil_mode=False, count_include_pad=False)", kind=C)
def average_pool(t: Relay, a: Attributes, x: Node, s: Node, z: Node, so: Node, zo: Node) -> Node:
    """The average of the values that the integers represent."""
    value = t.to_layout(dequantized(t, x, s, z), a.layout, "NCHW")
    return quantized(t, t.to_layout(avg_pool(t, a, value, 2), "NCHW", a.out_layout or a.layout), so, zo, t.dtype(x))


def _pointwise(name: str, primitive: str) -> None:
    """Operators of one quantised operand, which TVM computes with a table of all 8-bit values; computed here in floats."""

    def build(t: Relay, a: Attributes, x: Node, *scales: Node) -> Node:
        s, z, so, zo = scales
        return quantized(t, t.unary(primitive, dequantized(t, x, s, z)), so, zo, t.dtype(x))

    build.__doc__ = f"``{name}`` of the values that the integers represent."
    operator(f"qnn.{name}(data, scale, zero_point, output_scale, output_zero_point)", kind=E)(build)


for _name in ("tanh", "exp", "sqrt", "rsqrt", "erf", "sigmoid", "log", "abs"):
    _pointwise(_name, {"exp": "exponential", "sigmoid": "logistic"}.get(_name, _name))


@operator("relay.op.annotation.simulated_quantize(data, dom_scale, clip_min, clip_max; kind=1, sign=True, rounding='round')", kind=E)
def simulated_quantize(t: Relay, a: Attributes, x: Node, scale: Node, low: Node, high: Node) -> Node:
    """Rounds to the values that the integers could represent, as floats."""
    scaled = t.div(x, t.reshape(scale, ()))
    steps = t.unary("round-nearest-afz", t.minimum(t.maximum(scaled, t.reshape(low, ())), t.reshape(high, ())))
    return t.mul(steps, t.reshape(scale, ()))


CODES = {1: (-128, 127), 2: (0, 255), 3: (-(1 << 31), (1 << 31) - 1)}
"""The range of an element type by its number in TVM (1 int8, 2 uint8, 3 int32). 0 leaves the values unchanged."""


@operator("qnn.simulated_quantize(data, out_dtype, output_scale, output_zero_point; axis=-1)", kind=E)
def simulated_quantization(t: Relay, a: Attributes, x: Node, code: Node, scale: Node, zero: Node) -> Node:
    """The quantised number, as a float; the element type is a run-time value."""
    chosen = t.convert(t.reshape(code, ()), S32)
    steps = t.unary("round-nearest-afz", t.div(x, per_axis(t, t.convert(scale, t.dtype(x)), x, a.axis)))
    steps = t.add(steps, per_axis(t, t.convert(zero, t.dtype(x)), x, a.axis))
    made = x
    for number, (low, high) in CODES.items():
        held = t.maximum(t.minimum(steps, t.like(x, high)), t.like(x, low))
        made = t.select(t.compare("EQ", chosen, t.array(number, S32)), held, made)
    return made


@operator("qnn.simulated_dequantize(data, in_dtype, input_scale, input_zero_point; axis=-1)", kind=E)
def simulated_dequantization(t: Relay, a: Attributes, x: Node, code: Node, scale: Node, zero: Node) -> Node:
    """The value of a quantised number that is stored as a float."""
    chosen = t.convert(t.reshape(code, ()), S32)
    shifted = t.sub(x, per_axis(t, t.convert(zero, t.dtype(x)), x, a.axis))
    value = t.mul(shifted, per_axis(t, t.convert(scale, t.dtype(x)), x, a.axis))
    known = t.binary("and", t.compare("GE", chosen, t.array(1, S32)), t.compare("LE", chosen, t.array(3, S32)))
    return t.select(known, value, x)


@operator("qnn.contrib_dense_pack(data: 1d+, weight: 2d+, input_zero_point, kernel_zero_point, input_scale, kernel_scale; units=None, "
          "out_dtype='int32', weight_layout='NC')", kind=C)
def dense_pack(t: Relay, a: Attributes, x: Node, w: Node, zx: Node, zw: Node, sx: Node, sw: Node) -> Node:
    """``qnn.dense`` with a weight that is packed in parts."""
    return dense(t, a, x, t.to_layout(w, str(a.weight_layout), "NC"), zx, zw, sx, sw)
