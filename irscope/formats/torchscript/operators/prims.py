"""``prims``: the operators into which torch decomposes its own.

They neither broadcast nor promote. The functions of torch's own operators do both, so they also compute these.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irscope.formats.torchscript.abstract import TensorView
from irscope.formats.torchscript.operators import (
    alias,
    casts,
    complex_numbers,
    decompositions,
    fourier,
    function_of,
    indexing,
    joining,
    operator,
    reduction,
    shape,
    view,
)
from irscope.formats.torchscript.operators.pooling import PoolWindow, max_pool, offsets, places
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import F32, F64, S8, S64

SPACE = "prims"
MADE = "ScalarType dtype, Device device, bool requires_grad"
Declared = Callable[..., object]
UNARY = """
    abs acos acosh asin asinh atan atanh cos cosh bessel_j0=special_bessel_j0 bessel_j1=special_bessel_j1 bessel_i0=i0
    bessel_i0e=special_i0e bessel_i1=special_i1 bessel_i1e=special_i1e bitwise_not ceil digamma erf erf_inv=erfinv erfc erfcx=special_erfcx
    exp expm1 exp2 floor isfinite lgamma log log1p log2 log10 reciprocal ndtri=special_ndtri neg round rsqrt sign signbit sin sinh
    spherical_bessel_j0=special_spherical_bessel_j0 sqrt tan tanh trunc
"""
"""Operators of one tensor: prims' name, and torch's where it is another one."""
BINARY = """
    add atan2 bitwise_and bitwise_or bitwise_xor eq fmax fmin fmod gcd ge gt hypot le lt maximum minimum mul ne nextafter pow remainder
    shift_left=bitwise_left_shift shift_right_arithmetic=bitwise_right_shift sub zeta=special_zeta
"""
"""Operators of two tensors."""


def _pairs(text: str) -> list[tuple[str, str]]:
    return [(name, of or name) for name, _, of in (word.partition("=") for word in text.split())]


def _same(declared: Callable[[Declared], Declared], function: Callable[..., Any]) -> None:
    """Declare an operator of prims that computes what ``function`` does, with the same arguments in the same order."""
    @declared
    def forwarded(t: Torch, *given: object) -> object:
        return function(t, *given)


HOME = ("arithmetic", "unary", "logic", "special", "bessel", "numbers")
"""The families that declare torch's operators of these names."""
for _name, _of in _pairs(UNARY):
    _same(operator(f"{_name}(Tensor self)", namespace=SPACE), function_of(f"aten::{_of}", *HOME))
for _name, _of in _pairs(BINARY):
    _function = function_of(f"aten::{_of}", *HOME)
    _same(operator(f"{_name}(Tensor self, Tensor other)", namespace=SPACE),
          (lambda t, x, y, function=_function: function(t, x, y, 1)) if _name in ("add", "sub") else _function)

_same(operator("cbrt(Tensor self)", namespace=SPACE), lambda t, x: t.unary("cbrt", x))
_same(operator("conj_physical(Tensor self)", namespace=SPACE), complex_numbers.conjugate)


@operator("div(Tensor self, Tensor other)", namespace=SPACE)
def div(t: Torch, x: Node, y: Node) -> Node:
    """A quotient of integers is rounded to zero."""
    return t.div(x, y)


@operator("fma(Tensor a, Tensor b, Tensor c)", namespace=SPACE)
def fma(t: Torch, a: Node, b: Node, c: Node) -> Node:
    """A product and a sum, which torch rounds once."""
    a, b, c = t.promote(a, b, c)
    if t.dtype(a) is F32:  # a product of float32 is exact in float64
        return t.convert(t.add(t.mul(t.convert(a, F64), t.convert(b, F64)), t.convert(c, F64)), F32)
    return t.add(t.mul(a, b), c)


@operator("where(Tensor pred, Tensor a, Tensor b)", namespace=SPACE)
def where(t: Torch, condition: Node, a: Node, b: Node) -> Node:
    return t.select(condition, *t.promote(a, b))


@operator("clone(Tensor self, *, MemoryFormat? memory_format=None)", "copy_strided(Tensor a, SymInt[] stride)",
          "inductor_force_stride_order(Tensor input, SymInt[] stride)", "device_put(Tensor a, Device device, bool non_blocking=False)",
          namespace=SPACE, work="movement")
def clone(t: Torch, x: Node, *rest: object) -> Node:
    return x


_same(operator("fill(Tensor self, Scalar value)", namespace=SPACE), casts.fill)


@operator("convert_element_type(Tensor a, ScalarType dtype)", namespace=SPACE, traits="cast")
def convert_element_type(t: Torch, x: Node, dtype: int) -> Node:
    return casts.converted(t, x, t.dtype_number(dtype, t.dtype(x)))


# ---------------------------------------------------------------------- views and movement


_same(view("prims::view_of(Tensor(a) a)"), casts.same)
_same(view("prims::view_of_dtype(Tensor(a) a, ScalarType dtype)"), shape.view_dtype)
_same(alias("prims::as_strided(Tensor(a!) a, SymInt[] size, SymInt[] stride, SymInt storage_offset)", traits="view"), shape.as_strided)
_same(view("prims::squeeze(Tensor(a) a, int[] dimensions)"), shape.squeeze)
_same(view("prims::transpose(Tensor(a) a, int[] permutation)"), shape.permute)
_same(alias("prims::real(Tensor(a) self)", traits="view"), complex_numbers.real)
_same(view("prims::imag(Tensor(a) self)"), complex_numbers.imag)
_same(alias("prims::conj(Tensor(a) a)", traits="view"), complex_numbers.conj)
_same(operator("prims::reshape(Tensor a, SymInt[] shape)", work="movement"), lambda t, x, size: t.reshape(x, tuple(size)))
_same(operator("prims::cat(Tensor[] tensors, int dim)", work="movement"), joining.cat)
_same(operator("prims::rev(Tensor a, int[] dims)", work="movement"), lambda t, x, dims: t.reverse(x, [t.dim(x, d) for d in dims]))


@view("prims::broadcast_in_dim(Tensor(a) a, SymInt[] shape, int[] broadcast_dimensions)")
def broadcast_in_dim(t: Torch, x: Node, size: list[int], dims: list[int]) -> TensorView:
    """Dimension i of the operand becomes dimension dims[i] of the result; the others repeat it."""
    old = t.shape(x)
    aligned = tuple(old[dims.index(d)] if d in dims else 1 for d in range(len(size)))
    return shape.composed(shape.reshaped(t, aligned), shape.stretched(t, aligned, tuple(size)))


@view("prims::collapse_view(Tensor(a) a, int start, int end)")
def collapse_view(t: Torch, x: Node, start: int, end: int) -> TensorView:
    """The dimensions from start to end (inclusive) as one."""
    return shape.reshaped(t, _collapsed(t, x, start, end))


@operator("prims::collapse(Tensor a, int start, int end)", work="movement")
def collapse(t: Torch, x: Node, start: int, end: int) -> Node:
    return t.reshape(x, _collapsed(t, x, start, end))


def _collapsed(t: Torch, x: Node, start: int, end: int) -> tuple[int, ...]:
    old = t.shape(x)
    if not old:
        return (1,)
    length = 1
    for n in old[start:end + 1]:
        length *= n
    return (*old[:start], length, *old[end + 1:])


@view("prims::split_dim(Tensor(a) a, int dim, SymInt outer_length)")
def split_dim(t: Torch, x: Node, dim: int, outer: int) -> TensorView:
    old = t.shape(x)
    return shape.reshaped(t, (*old[:dim], outer, old[dim] // max(outer, 1), *old[dim + 1:]))


# ---------------------------------------------------------------------- reductions


def _reduction(name: str, function: Callable[[Torch, Node, list[int]], Node]) -> None:
    @operator(f"prims::{name}(Tensor inp, int[]? dims, *, ScalarType? output_dtype=None)", work="reduction")
    def reduced(t: Torch, x: Node, dims: list[int] | None, dtype: int | None) -> Node:
        made = function(t, x, t.dims(x, dims) if dims is None else [t.dim(x, d) for d in dims])
        return t.convert(made, t.dtype_number(dtype, t.dtype(made)))


_reduction("sum", lambda t, x, dims: t.sum(x, dims))
_reduction("prod", lambda t, x, dims: t.product(x, dims))
_reduction("amax", lambda t, x, dims: t.max(x, dims))
_reduction("amin", lambda t, x, dims: t.min(x, dims))
_reduction("xor_sum", lambda t, x, dims: t.reduce("xor", x, dims, 0))


@operator("prims::var(Tensor inp, int[]? dims, float? correction=1, *, ScalarType? output_dtype=None)", work="reduction")
def var(t: Torch, x: Node, dims: list[int] | None, correction: float | None, dtype: int | None) -> Node:
    made = reduction.variance(t, x, t.dims(x, dims), 1 if correction is None else correction, False)
    return t.convert(made, t.dtype_number(dtype, t.dtype(made)))


@operator("prims::prepare_softmax_online(Tensor a, int dim)", work="reduction")
def prepare_softmax_online(t: Torch, x: Node, dim: int) -> tuple[Node, Node]:
    """The largest element along a dimension, and the sum of the exponentials of the distances from it."""
    d = [t.dim(x, dim)]
    top = t.max(x, d, True)
    return top, t.sum(t.unary("exponential", t.sub(x, top)), d, True)


# ---------------------------------------------------------------------- new tensors


@operator("prims::iota(SymInt length, *, SymInt start, SymInt step, ScalarType dtype, Device device, bool requires_grad)", work="movement")
def iota(t: Torch, n: int, start: int, step: int, dtype: int, device: object, grad: bool) -> Node:
    kind = t.dtype_number(dtype, S64)
    return t.plus(t.scale(t.iota((n,), 0, kind), step), start)


@operator(f"prims::empty(SymInt[] shape, *, {MADE})", f"prims::empty_strided(SymInt[] shape, SymInt[] strides, *, {MADE})",
          f"prims::empty_permuted(SymInt[] shape, int[] physical_layout, *, {MADE})", work="movement")
def empty(t: Torch, size: list[int], *, dtype: int) -> Node:
    return t.full(tuple(size), 0, t.dtype_number(dtype, F32))


@operator(f"prims::full(SymInt[] shape, Scalar fill_value, *, {MADE})", work="movement")
def full(t: Torch, size: list[int], value: object, dtype: int, device: object, grad: bool) -> Node:
    return t.broadcast_to(t.as_tensor(value, t.dtype_number(dtype, F32)), tuple(size))


@operator(f"prims::full_like(Tensor a, Scalar fill_value, *, {MADE})", work="movement")
def full_like(t: Torch, x: Node, value: object, dtype: int, device: object, grad: bool) -> Node:
    return t.broadcast_to(t.as_tensor(value, t.dtype_number(dtype, t.dtype(x))), t.shape(x))


@operator("prims::scalar_tensor(Scalar s, *, ScalarType? dtype=None, Device? device=None)", work="movement")
def scalar_tensor(t: Torch, value: object, dtype: int | None, device: object) -> Node:
    return t.as_tensor(value, t.dtype_number(dtype, t.result_type(value)))


# ---------------------------------------------------------------------- libraries


_same(operator("prims::svd(Tensor A, *, bool full_matrices)", work="contraction"), decompositions.svd)
_same(operator("prims::fft_r2c(Tensor self, *, int[] dim, bool onesided)", work="contraction"),
      lambda t, x, dims, onesided: fourier.r2c(t, x, dims, 0, onesided))
_same(operator("prims::fft_c2c(Tensor self, *, int[] dim, bool forward)", work="contraction"),
      lambda t, x, dims, forward: fourier.c2c(t, x, dims, 0, forward))
_same(operator("prims::fft_c2r(Tensor self, *, int[] dim, SymInt last_dim_size)", work="contraction"),
      lambda t, x, dims, size: fourier.c2r(t, x, dims, 0, size))


@operator("prims::_low_memory_max_pool_with_offsets(Tensor self, SymInt[] kernel_size, SymInt[] stride, SymInt[] padding, "
          "SymInt[] dilation, bool ceil_mode)", work="reduction")
def max_pool_with_offsets(t: Torch, x: Node, kernel: list[int], stride: list[int], padding: list[int], dilation: list[int],
                          ceil: bool) -> tuple[Node, Node]:
    """The largest element of each window, and its place in the window."""
    pool = PoolWindow(len(kernel), kernel, stride, padding, dilation, ceil)
    return max_pool(t, x, pool), t.convert(offsets(t, x, pool), S8)


@operator("prims::_low_memory_max_pool_offsets_to_indices(Tensor self, SymInt[] kernel_size, SymInt[] input_size, SymInt[] stride, "
          "SymInt[] padding, SymInt[] dilation)", work="elementwise")
def max_pool_places(t: Torch, x: Node, kernel: list[int], size: list[int], stride: list[int], padding: list[int],
                    dilation: list[int]) -> Node:
    """Places in windows as places in the plane."""
    return places(t, x, PoolWindow(len(kernel), kernel, stride, padding, dilation), size)


_same(operator("prims::_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False)", work="movement"),
      indexing.index_put)
