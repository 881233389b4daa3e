"""Quantisation as plain arithmetic: the operators of ``quantized_decomposed``, which keep integers in integer tensors.

    quantize_per_tensor(x, s, z, low, high):   clamp(round(x / s) + z, low, high)
    dequantize_per_tensor(q, s, z):            (q - z) * s
"""
from __future__ import annotations

from math import prod

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.torch import Torch
from irscope.graph import DType, Node
from irscope.graph.dtypes import F32, F64, S32, S64
from irscope.ops.checked import nonzero
from irscope.ops.faults import TypeFault

SPACE = "quantized_decomposed"
SMALLEST = 2.0 ** -23
"""The smallest scale: the distance of 1 to the next float32."""


def quantized(t: Torch, x: Node, inverse: Node, zero: Node, limits: tuple[int, int], kind: DType) -> Node:
    """The nearest steps of ``x`` in the limits; ``inverse`` is 1 / scale."""
    steps = t.unary("round-nearest-even", t.mul(*t.promote(_wide(t, x), inverse)))
    return limited(t, t.add(*t.promote(steps, zero)), limits, kind)


def limited(t: Torch, steps: Node, limits: tuple[int, int], kind: DType) -> Node:
    """Steps within the limits, as integers."""
    low, high = (t.array(v, t.dtype(steps)) for v in limits)
    return t.convert(t.minimum(t.maximum(steps, low), high), kind)


def dequantized(t: Torch, x: Node, scale: Node, zero: Node | None, kind: DType) -> Node:
    """The numbers that steps stand for."""
    wide = t.promote_floating(x, scale)[0]
    if zero is not None:
        wide = t.sub(wide, t.convert(zero, t.dtype(wide)))
    return t.convert(t.mul(*t.promote(wide, scale)), kind)


def _wide(t: Torch, x: Node) -> Node:
    return t.convert(x, F32) if t.dtype(x).bits < 32 else x


def _inverse(t: Torch, scale: Node) -> Node:
    return t.div(t.like(scale, 1), scale)


def _number(t: Torch, value: object, kind: DType) -> Node:
    return t.reshape(t.as_tensor(value, kind), ())


def _axis(t: Torch, x: Node, values: Node | None, axis: int) -> Node | None:
    """A value per channel, aligned with ``x``."""
    d = t.dim(x, axis)
    return None if values is None else t.reshape(values, tuple(n if i == d else 1 for i, n in enumerate(t.shape(x))))


LIMITS = "int quant_min, int quant_max, ScalarType dtype"


@operator(f"quantize_per_tensor(Tensor input, float scale, int zero_point, {LIMITS})",
          f"quantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, {LIMITS})",
          "quantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, Tensor quant_min, Tensor quant_max, "
          "ScalarType dtype)", namespace=SPACE)
def quantize_per_tensor(t: Torch, x: Node, scale: object, zero: object, low: int | Node, high: int | Node, dtype: int) -> Node:
    inverse = t.convert(_inverse(t, _number(t, scale, F64)), F32)  # torch divides Python's numbers
    if isinstance(low, Node) or isinstance(high, Node):
        raise TypeFault("limits of a quantisation that are tensors are not supported: pass ints")
    return quantized(t, x, inverse, _number(t, zero, F32), (low, high), t.dtype_number(dtype, S32))


@operator(f"dequantize_per_tensor(Tensor input, float scale, int zero_point, {LIMITS}, *, ScalarType? out_dtype=None)",
          f"dequantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, {LIMITS}, *, ScalarType? out_dtype=None)",
          namespace=SPACE)
def dequantize_per_tensor(t: Torch, x: Node, scale: object, zero: object, low: int, high: int, dtype: int, out: int | None) -> Node:
    return dequantized(t, x, _number(t, scale, F32), _number(t, zero, F32), t.dtype_number(out, F32))


@operator(f"quantize_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, {LIMITS})", namespace=SPACE)
def quantize_per_channel(t: Torch, x: Node, scales: Node, zeros: Node, axis: int, low: int, high: int, dtype: int) -> Node:
    scale, zero = _axis(t, x, scales, axis), _axis(t, x, zeros, axis)
    assert scale is not None and zero is not None
    return quantized(t, x, _inverse(t, scale), zero, (low, high), t.dtype_number(dtype, S32))


@operator(f"dequantize_per_channel(Tensor input, Tensor scales, Tensor? zero_points, int axis, {LIMITS}, *, ScalarType? out_dtype=None)",
          namespace=SPACE)
def dequantize_per_channel(t: Torch, x: Node, scales: Node, zeros: Node | None, axis: int, low: int, high: int, dtype: int,
                           out: int | None) -> Node:
    scale = _axis(t, x, scales, axis)
    assert scale is not None
    return dequantized(t, x, scale, _axis(t, x, zeros, axis), t.dtype_number(out, F32))


@operator(f"quantize_per_token(Tensor input, Tensor scales, Tensor zero_points, {LIMITS})", namespace=SPACE)
def quantize_per_token(t: Torch, x: Node, scales: Node, zeros: Node, low: int, high: int, dtype: int) -> Node:
    return quantized(t, x, _inverse(t, scales), zeros, (low, high), t.dtype_number(dtype, S32))


@operator(f"dequantize_per_token(Tensor input, Tensor scales, Tensor zero_points, {LIMITS}, ScalarType output_dtype)", namespace=SPACE)
def dequantize_per_token(t: Torch, x: Node, scales: Node, zeros: Node, low: int, high: int, dtype: int, out: int) -> Node:
    away = t.sub(*t.promote(x, zeros))
    return t.convert(t.mul(*t.promote(away, scales)), t.dtype_number(out, F32))


def _grouped(t: Torch, x: Node, scales: Node, zeros: Node | None, size: int) -> tuple[Node, Node, Node | None]:
    """Rows of groups, and the scale and zero point of each."""
    rows = t.reshape(x, (prod(t.shape(x)) // nonzero("the size of a group", size), size))
    return rows, t.reshape(scales, (t.shape(rows)[0], 1)), None if zeros is None else t.reshape(zeros, (t.shape(rows)[0], 1))


@operator(f"quantize_per_channel_group(Tensor input, Tensor scales, Tensor zero_points, {LIMITS}, int group_size)", namespace=SPACE)
def quantize_per_group(t: Torch, x: Node, scales: Node, zeros: Node, low: int, high: int, dtype: int, size: int) -> Node:
    rows, scale, zero = _grouped(t, x, scales, zeros, size)
    assert zero is not None
    steps = t.add(*t.promote(t.mul(*t.promote(rows, _inverse(t, scale))), zero))
    return t.reshape(limited(t, t.unary("round-nearest-even", steps), (low, high), t.dtype_number(dtype, S32)), t.shape(x))


@operator(f"dequantize_per_channel_group(Tensor w_int8, Tensor scales, Tensor? zero_points, {LIMITS}, int group_size=128, "
          "ScalarType output_dtype=6)", namespace=SPACE)
def dequantize_per_group(t: Torch, x: Node, scales: Node, zeros: Node | None, low: int, high: int, dtype: int, size: int, out: int) -> Node:
    rows, scale, zero = _grouped(t, x, scales, zeros, size)
    return t.reshape(dequantized(t, rows, scale, zero, t.dtype_number(out, F32)), t.shape(x))


# ---------------------------------------------------------------------- parameters from data


def _extremes(t: Torch, x: Node, dims: list[int], keep: bool) -> tuple[Node, Node]:
    """The smallest and the largest element, and 0."""
    low, high = t.min(x, dims, keep), t.max(x, dims, keep)
    return t.minimum(low, t.like(low, 0)), t.maximum(high, t.like(high, 0))


@operator("choose_qparams.tensor(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype)", namespace=SPACE)
def choose_qparams(t: Torch, x: Node, low: int, high: int, eps: float, dtype: int) -> tuple[Node, Node]:
    """The scale and the zero point for which the range of ``x`` fits the limits (MinMaxObserver, affine)."""
    least, most = _extremes(t, t.convert(x, F32), list(range(t.rank(x))), False)
    scale = t.div(t.sub(most, least), t.array(high - low, F32))
    scale = t.maximum(scale, t.array(eps, F32))
    zero = t.sub(t.array(low, F32), t.unary("round-nearest-even", t.div(least, scale)))
    zero = t.minimum(t.maximum(zero, t.array(low, F32)), t.array(high, F32))
    return t.reshape(t.convert(scale, F64), (1,)), t.reshape(t.convert(zero, S64), (1,))


@operator("choose_qparams_symmetric.tensor(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype)", namespace=SPACE)
def choose_qparams_symmetric(t: Torch, x: Node, low: int, high: int, eps: float, dtype: int) -> tuple[Node, Node]:
    """The scale for which the largest size fits half of the limits, and 0."""
    least, most = _extremes(t, t.convert(x, F32), list(range(t.rank(x))), False)
    most = t.maximum(t.unary("negate", least), most)
    scale = t.maximum(t.div(most, t.array((high - low) / 2, F32)), t.array(eps, F32))
    zero = (low + high) // 2 if dtype == 0 else 0
    return t.reshape(t.convert(scale, F64), (1,)), t.full((1,), zero, S64)


@operator("choose_qparams_per_token(Tensor input, ScalarType dtype)", namespace=SPACE)
def choose_per_token(t: Torch, x: Node, dtype: int) -> tuple[Node, Node]:
    """A scale per row for which its largest size is 127, and 0."""
    most = t.max(t.unary("abs", x), [t.rank(x) - 1], True)
    most = t.convert(most, F32) if t.dtype(x).bits < 32 else most
    scale = t.div(t.maximum(most, t.like(most, 1e-5)), t.array(127, t.dtype(most)))
    return scale, t.like(scale, 0)


@operator("choose_qparams_per_token_asymmetric(Tensor input, ScalarType dtype)",
          "_choose_qparams_per_token_asymmetric_impl(Tensor input, ScalarType dtype)", namespace=SPACE)
def choose_per_token_asymmetric(t: Torch, x: Node, dtype: int) -> tuple[Node, Node]:
    """A scale and a zero point per row, in -128 to 127."""
    last = [t.rank(x) - 1]
    least, most = _extremes(t, x, last, True)
    scale = t.maximum(t.div(t.sub(most, least), t.array(255, t.dtype(x))), t.array(SMALLEST, t.dtype(x)))
    low_steps, high_steps = t.div(least, scale), t.div(most, scale)
    by_low = t.plus(low_steps, -128)
    by_high = t.plus(high_steps, 127)
    zero = t.select(t.compare("GT", t.add(by_low, by_high), t.like(by_low, 0)), t.sub(t.like(low_steps, -128), low_steps),
                    t.sub(t.like(high_steps, 127), high_steps))
    zero = t.minimum(t.maximum(zero, t.like(zero, -128)), t.like(zero, 127))
    return t.convert(scale, F64), t.convert(t.unary("round-nearest-even", zero), S64)


@operator("convert_element_type.no_fuse(Tensor input, ScalarType dtype)", namespace=SPACE)
def convert_element_type(t: Torch, x: Node, dtype: int) -> Node:
    return t.convert(x, t.dtype_number(dtype, t.dtype(x)))
