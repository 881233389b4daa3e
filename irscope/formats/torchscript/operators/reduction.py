"""Sums, means, extremes, spreads along dimensions."""
from __future__ import annotations

from math import prod
from typing import Any

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.complex_numbers import conjugate
from irscope.formats.torchscript.operators.logic import truth
from irscope.formats.torchscript.operators.matrices import diagonal
from irscope.formats.torchscript.operators.wide import rounded_once, widened
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import PRED, S64, U8
from irscope.ops.faults import TypeFault
from irscope.ops.tensors import Tensors


def accumulating(t: Torch, x: Node, dtype: int | None) -> Node:
    """``x`` in torch's accumulation type: the given one, else Long for integers and bools."""
    if dtype is not None:
        return t.convert(x, t.dtype_number(dtype, t.dtype(x)))
    return t.convert(x, S64) if t.dtype(x).is_integer or t.dtype(x) is PRED else x


@operator("sum(Tensor self, *, ScalarType? dtype=None)",
          "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None)")
def sum_dim(t: Torch, x: Node, *, dim: list[int] | None = None, keepdim: bool = False, dtype: int | None) -> Node:
    return t.sum(accumulating(t, x, dtype), t.dims(x, dim), keepdim)


@operator("nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)")
def nansum(t: Torch, x: Node, dim: list[int] | None, keep: bool, dtype: int | None) -> Node:
    return sum_dim(t, t.select(t.compare("NE", x, x), t.like(x, 0), x), dim=dim, keepdim=keep, dtype=dtype)


@operator("mean(Tensor self, *, ScalarType? dtype=None)",
          "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None)")
def mean_dim(t: Torch, x: Node, *, dim: list[int] | None = None, keepdim: bool = False, dtype: int | None) -> Node:
    if dtype is not None:
        x = t.convert(x, t.dtype_number(dtype, t.dtype(x)))
    if not (t.dtype(x).is_float or t.dtype(x).is_complex):
        raise TypeFault("the mean of integers needs dtype=")
    return mean_of(t, x, t.dims(x, dim), keepdim)


@rounded_once
def mean_of(t: Torch, x: Node, dims: list[int], keep: bool) -> Node:
    """The mean; that of half types in float32, where neither the sum nor the count overflows."""
    return t.mean(x, dims, keep)


def _require_elements(t: Torch, x: Node, dims: list[int]) -> None:
    """Raise TypeFault where a dimension has no elements, and so no extreme."""
    if 0 in [t.shape(x)[d] for d in dims]:
        raise TypeFault(f"the extreme of no elements: the sizes are {list(t.shape(x))}")


@operator("nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)")
def nanmean(t: Torch, x: Node, dim: list[int] | None, keep: bool, dtype: int | None) -> Node:
    total = nansum(t, x, dim, keep, dtype)
    count = t.sum(t.convert(t.compare("EQ", x, x), S64), t.dims(x, dim), keep)
    return t.div(total, t.convert(count, t.dtype(total)))


@operator("prod(Tensor self, *, ScalarType? dtype=None)",
          "prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None)")
def prod_dim(t: Torch, x: Node, *, dim: int | None = None, keepdim: bool = False, dtype: int | None) -> Node:
    return t.product(accumulating(t, x, dtype), t.dims(x, dim), keepdim)


@operator("aminmax(Tensor self, *, int? dim=None, bool keepdim=False)")
def aminmax(t: Torch, x: Node, dim: int | None, keep: bool) -> tuple[Node, Node]:
    dims = t.dims(x, dim)
    _require_elements(t, x, dims)
    return t.min(x, dims, keep), t.max(x, dims, keep)


def extreme(t: Torch, x: Node, dim: int | None, keep: bool, largest: bool) -> tuple[Node, Node]:
    """Value and Long index of the first extreme along a dimension, or of all elements."""
    if t.dtype(x) is PRED:
        value, at = extreme(t, t.convert(x, S64), dim, keep, largest)
        return t.convert(value, PRED), at
    flat = dim is None
    rank = t.rank(x)
    if dim is not None:
        t.dim(x, dim)
    if dim is None or rank == 0:
        x, dim = t.reshape(x, (prod(t.shape(x)),)), 0
    d = t.dim(x, dim)
    _require_elements(t, x, [d])
    value, at = t.arg_extreme(x, d, largest, S64)
    if keep and rank:
        shape = (1,) * rank if flat else (*t.shape(x)[:d], 1, *t.shape(x)[d + 1:])
        return t.reshape(value, shape), t.reshape(at, shape)
    return value, at


def _extremes(name: str, largest: bool) -> None:
    @operator(f"{name}(Tensor self)", f"a{name}(Tensor self, int[1] dim=[], bool keepdim=False)")
    def value(t: Torch, x: Node, dim: list[int] | None = None, keep: bool = False) -> Node:
        dims = t.dims(x, dim)
        _require_elements(t, x, dims)
        return (t.max if largest else t.min)(x, dims, keep)

    @operator(f"{name}.dim(Tensor self, int dim, bool keepdim=False)")
    def value_and_place(t: Torch, x: Node, dim: int, keep: bool) -> tuple[Node, Node]:
        return extreme(t, x, dim, keep, largest)

    @operator(f"arg{name}(Tensor self, int? dim=None, bool keepdim=False)")
    def place(t: Torch, x: Node, dim: int | None, keep: bool) -> Node:
        return extreme(t, x, dim, keep, largest)[1]


_extremes("max", True)
_extremes("min", False)


def _logical(name: str) -> None:
    @operator(f"{name}(Tensor self)", f"{name}.dim(Tensor self, int dim, bool keepdim=False)",
              f"{name}.dims(Tensor self, int[]? dim=None, bool keepdim=False)")
    def reduced(t: Torch, x: Node, dim: Any = None, keep: bool = False) -> Node:
        dims = [] if dim == [] else t.dims(x, dim)  # unlike a sum, it reduces no dimension where the list is empty
        y = (t.any if name == "any" else t.all)(truth(t, x), dims, keep)
        return t.convert(y, U8) if t.dtype(x) is U8 else y  # torch keeps uint8, as old programs expect


for _name in ("any", "all"):
    _logical(_name)


@operator("count_nonzero(Tensor self, int? dim=None)", "count_nonzero.dim_IntList(Tensor self, int[] dim)")
def count_nonzero(t: Torch, x: Node, dim: Any) -> Node:
    return t.sum(t.convert(truth(t, x), S64), t.dims(x, dim))


@operator("logsumexp(Tensor self, int[1] dim, bool keepdim=False)",
          "special_logsumexp(Tensor self, int[1] dim, bool keepdim=False)")
def logsumexp(t: Torch, x: Node, dim: list[int], keep: bool) -> Node:
    x = t.floating(x)
    return log_sum_exp(t, x, t.dims(x, dim), keep)


def log_sum_exp(t: Tensors, x: Node, dims: list[int], keep: bool) -> Node:
    """The logarithm of the sum of exponentials. A finite maximum is subtracted first, so that no exponential overflows."""
    top = t.max(x, dims, True)
    top = t.select(t.unary("is-finite", top), top, t.like(top, 0))
    total = t.add(t.unary("log", t.sum(t.unary("exponential", t.sub(x, top)), dims, True)), top)
    return total if keep else t.reshape(total, tuple(n for i, n in enumerate(t.shape(x)) if i not in dims))


def variance(t: Torch, x: Node, dim: Any, correction: float, keep: bool) -> Node:
    """The mean of squared distances from the mean, with Bessel's ``correction``."""
    dims = t.dims(x, dim)
    n = prod(t.shape(x)[d] for d in dims)
    away = t.sub(x, t.mean(x, dims, True))
    if t.dtype(x).is_complex:
        away = t.unary("abs", away)
    total = t.sum(t.mul(away, away), dims, keep)
    if not isinstance(correction, int | float):
        raise TypeFault("the correction of a variance is a real number that is known")
    return t.div(total, t.like(total, max(0, n - correction)))


def _spread(name: str, root: bool, mean: bool) -> None:
    @operator(f"{name}(Tensor self, bool unbiased=True)",
              f"{name}.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False)",
              f"{name}.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False)")
    def made(t: Torch, x: Node, *, dim: list[int] | None = None, unbiased: bool = True, correction: float | None = None,
             keepdim: bool = False) -> Node | tuple[Node, Node]:
        wide = widened(t, x)
        y = variance(t, wide, dim, int(unbiased) if correction is None else correction, keepdim)
        y = t.unary("sqrt", y) if root else y
        y = t.convert(y, t.dtype(x)) if wide is not x else y
        return (y, mean_of(t, x, t.dims(x, dim), keepdim)) if mean else y


for _name, _root in (("var", False), ("std", True)):
    _spread(_name, _root, False)
    _spread(f"{_name}_mean", _root, True)


@operator("cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None)")
def cov(t: Torch, x: Node, correction: int, counts: Node | None, weights: Node | None) -> Node:
    """The covariance of the rows."""
    t.shape_of(x, 0, 2)
    single = t.rank(x) < 2 or t.shape(x)[0] == 1
    x = t.floating(t.reshape(x, (1, prod(t.shape(x)))) if single else x)
    if weights is not None:
        x = t.convert(x, t.result_type(x, weights))
    n, dtype = t.shape(x)[1], t.dtype(x)
    w: Node | None = None
    if counts is not None or weights is not None:
        parts = [t.convert(v, dtype) for v in (counts, weights) if v is not None]
        w = parts[0] if len(parts) == 1 else t.mul(*parts)
    total = t.array(n, dtype) if w is None else t.sum(w, [0])
    mean = t.mean(x, [1], True) if w is None else t.div(t.sum(t.mul(x, w), [1], True), total)
    away = t.sub(x, mean)
    scaled = away if w is None else t.mul(away, w)
    if w is not None and weights is not None and correction:
        assert w is not None
        spread = t.div(t.sum(t.mul(w, t.convert(weights, dtype)), [0]), total)
        norm_ = t.sub(total, t.scale(spread, correction))
    else:
        norm_ = t.plus(total, -correction)
    made = t.div(t.dot(scaled, conjugate(t, away), ([1], [1])), t.maximum(norm_, t.array(0, dtype)) if dtype.is_float else norm_)
    return t.reshape(made, ()) if single else made


@operator("corrcoef(Tensor self)")
def corrcoef(t: Torch, x: Node) -> Node:
    c = cov(t, x, 1, None, None)
    if t.rank(c) == 0:
        return t.div(c, c)
    spread = t.unary("sqrt", diagonal(t, c, 0, 0, 1).read(c))
    made = t.div(t.div(c, t.unsqueeze(spread, 1)), t.unsqueeze(spread, 0))
    return t.minimum(t.maximum(made, t.like(made, -1)), t.like(made, 1)) if t.dtype(made).is_float else made


@operator("trace(Tensor self)")
def trace(t: Torch, x: Node) -> Node:
    shape = t.shape_of(x, 2, 2)
    on = t.compare("EQ", t.iota(shape, 0, S64), t.iota(shape, 1, S64))
    return t.sum(accumulating(t, t.select(on, x, t.like(x, 0)), None), [0, 1])
