"""Sums, means, extremes and what is made of them, along dimensions; cumulative forms."""
from __future__ import annotations

from math import prod
from typing import Any

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.pointwise import truth
from irscope.formats.torchscript.torch import Torch
from irscope.graph import DType, Node
from irscope.graph.dtypes import F32, PRED, S64, U8
from irscope.ops.tensors import highest, lowest


def accumulating(t: Torch, x: Node, dtype: int | None) -> Node:
    """``x`` in the type in which torch sums: the given one, else Long for integers and bools."""
    if dtype is not None:
        return t.convert(x, t.dtype_number(dtype, t.dtype(x)))
    return t.convert(x, S64) if t.dtype(x).is_integer or t.dtype(x) is PRED else x


@operator("sum(Tensor self, *, ScalarType? dtype=None)")
def sum_all(t: Torch, x: Node, dtype: int | None) -> Node:
    return t.sum(accumulating(t, x, dtype), t.dims(x, None))


@operator("sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None)")
def sum_dim(t: Torch, x: Node, dim: list[int] | None, keep: bool, dtype: int | None) -> Node:
    return t.sum(accumulating(t, x, dtype), t.dims(x, dim), keep)


@operator("nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)")
def nansum(t: Torch, x: Node, dim: list[int] | None, keep: bool, dtype: int | None) -> Node:
    return sum_dim(t, t.select(t.compare("NE", x, x), t.like(x, 0), x), dim, keep, dtype)


@operator("mean(Tensor self, *, ScalarType? dtype=None)")
def mean_all(t: Torch, x: Node, dtype: int | None) -> Node:
    return mean_dim(t, x, None, False, dtype)


@operator("mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None)")
def mean_dim(t: Torch, x: Node, dim: list[int] | None, keep: bool, dtype: int | None) -> Node:
    if dtype is not None:
        x = t.convert(x, t.dtype_number(dtype, t.dtype(x)))
    if not (t.dtype(x).is_float or t.dtype(x).is_complex):
        raise ValueError("the mean of integers needs dtype=")
    return t.mean(x, t.dims(x, dim), keep)


@operator("nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)")
def nanmean(t: Torch, x: Node, dim: list[int] | None, keep: bool, dtype: int | None) -> Node:
    total = nansum(t, x, dim, keep, dtype)
    count = t.sum(t.convert(t.compare("EQ", x, x), S64), t.dims(x, dim), keep)
    return t.div(total, t.convert(count, t.dtype(total)))


@operator("prod(Tensor self, *, ScalarType? dtype=None)")
def prod_all(t: Torch, x: Node, dtype: int | None) -> Node:
    return t.product(accumulating(t, x, dtype), t.dims(x, None))


@operator("prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None)")
def prod_dim(t: Torch, x: Node, dim: int, keep: bool, dtype: int | None) -> Node:
    return t.product(accumulating(t, x, dtype), t.dims(x, dim), keep)


@operator("max(Tensor self)")
def max_all(t: Torch, x: Node) -> Node:
    return t.max(x, t.dims(x, None))


@operator("min(Tensor self)")
def min_all(t: Torch, x: Node) -> Node:
    return t.min(x, t.dims(x, None))


@operator("amax(Tensor self, int[1] dim=[], bool keepdim=False)")
def amax(t: Torch, x: Node, dim: list[int], keep: bool) -> Node:
    return t.max(x, t.dims(x, dim), keep)


@operator("amin(Tensor self, int[1] dim=[], bool keepdim=False)")
def amin(t: Torch, x: Node, dim: list[int], keep: bool) -> Node:
    return t.min(x, t.dims(x, dim), keep)


@operator("aminmax(Tensor self, *, int? dim=None, bool keepdim=False)")
def aminmax(t: Torch, x: Node, dim: int | None, keep: bool) -> tuple[Node, Node]:
    dims = t.dims(x, dim)
    return t.min(x, dims, keep), t.max(x, dims, keep)


def extreme(t: Torch, x: Node, dim: int | None, keep: bool, largest: bool) -> tuple[Node, Node]:
    """Value and Long index of the first extreme along a dimension, or of all elements."""
    if t.dtype(x) is PRED:
        value, at = extreme(t, t.convert(x, S64), dim, keep, largest)
        return t.convert(value, PRED), at
    flat = dim is None
    rank = t.rank(x)
    if dim is None or rank == 0:
        x, dim = t.reshape(x, (prod(t.shape(x)),)), 0
    d = t.dim(x, dim)
    value, at = t.arg_extreme(x, d, largest, S64)
    if keep and rank:
        shape = (1,) * rank if flat else (*t.shape(x)[:d], 1, *t.shape(x)[d + 1:])
        return t.reshape(value, shape), t.reshape(at, shape)
    return value, at


@operator("max.dim(Tensor self, int dim, bool keepdim=False)")
def max_dim(t: Torch, x: Node, dim: int, keep: bool) -> tuple[Node, Node]:
    return extreme(t, x, dim, keep, True)


@operator("min.dim(Tensor self, int dim, bool keepdim=False)")
def min_dim(t: Torch, x: Node, dim: int, keep: bool) -> tuple[Node, Node]:
    return extreme(t, x, dim, keep, False)


@operator("argmax(Tensor self, int? dim=None, bool keepdim=False)")
def argmax(t: Torch, x: Node, dim: int | None, keep: bool) -> Node:
    return extreme(t, x, dim, keep, True)[1]


@operator("argmin(Tensor self, int? dim=None, bool keepdim=False)")
def argmin(t: Torch, x: Node, dim: int | None, keep: bool) -> Node:
    return extreme(t, x, dim, keep, False)[1]


def _logical(name: str) -> None:
    def reduced(t: Torch, x: Node, dim: Any, keep: bool) -> Node:
        y = truth(t, x)
        dims = t.dims(x, dim)
        y = t.any(y, dims, keep) if name == "any" else t.all(y, dims, keep)
        return t.convert(y, U8) if t.dtype(x) is U8 else y  # torch keeps bytes, as old programs expect

    @operator(f"{name}(Tensor self)")
    def over_all(t: Torch, x: Node) -> Node:
        return reduced(t, x, None, False)

    @operator(f"{name}.dim(Tensor self, int dim, bool keepdim=False)", f"{name}.dims(Tensor self, int[]? dim=None, bool keepdim=False)")
    def over_dim(t: Torch, x: Node, dim: Any, keep: bool) -> Node:
        return reduced(t, x, dim, keep)


for _name in ("any", "all"):
    _logical(_name)


@operator("count_nonzero(Tensor self, int? dim=None)", "count_nonzero.dim_IntList(Tensor self, int[] dim)")
def count_nonzero(t: Torch, x: Node, dim: Any) -> Node:
    return t.sum(t.convert(truth(t, x), S64), t.dims(x, dim))


@operator("logsumexp(Tensor self, int[1] dim, bool keepdim=False)")
def logsumexp(t: Torch, x: Node, dim: list[int], keep: bool) -> Node:
    x = t.floating(x)
    dims = t.dims(x, dim)
    top = t.max(x, dims, True)
    top = t.select(t.unary("is-finite", top), top, t.like(top, 0))
    total = t.add(t.unary("log", t.sum(t.unary("exponential", t.sub(x, top)), dims, True)), top)
    return total if keep else t.reshape(total, tuple(n for i, n in enumerate(t.shape(x)) if i not in dims))


# ---------------------------------------------------------------------- spread


def variance(t: Torch, x: Node, dim: Any, correction: float, keep: bool) -> Node:
    """The mean of squared distances from the mean, with Bessel's ``correction``."""
    dims = t.dims(x, dim)
    n = prod(t.shape(x)[d] for d in dims)
    away = t.sub(x, t.mean(x, dims, True))
    if t.dtype(x).is_complex:
        away = t.unary("abs", away)
    total = t.sum(t.mul(away, away), dims, keep)
    return t.div(total, t.like(total, max(n - correction, 0)))


def _spread(name: str, root: bool) -> None:
    def made(t: Torch, x: Node, dim: Any, correction: float, keep: bool) -> Node:
        y = variance(t, x, dim, correction, keep)
        return t.unary("sqrt", y) if root else y

    @operator(f"{name}(Tensor self, bool unbiased=True)")
    def over_all(t: Torch, x: Node, unbiased: bool) -> Node:
        return made(t, x, None, int(unbiased), False)

    @operator(f"{name}.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False)")
    def over_dim(t: Torch, x: Node, dim: Any, unbiased: bool, keep: bool) -> Node:
        return made(t, x, dim, int(unbiased), keep)

    @operator(f"{name}_mean(Tensor self, bool unbiased=True)")
    def with_mean_all(t: Torch, x: Node, unbiased: bool) -> tuple[Node, Node]:
        return made(t, x, None, int(unbiased), False), t.mean(x, t.dims(x, None))

    @operator(f"{name}_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False)")
    def with_mean(t: Torch, x: Node, dim: Any, unbiased: bool, keep: bool) -> tuple[Node, Node]:
        return made(t, x, dim, int(unbiased), keep), t.mean(x, t.dims(x, dim), keep)

    @operator(f"{name}.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False)")
    def over_correction(t: Torch, x: Node, dim: Any, correction: float | None, keep: bool) -> Node:
        return made(t, x, dim, 1 if correction is None else correction, keep)

    @operator(f"{name}_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False)")
    def with_mean_correction(t: Torch, x: Node, dim: Any, correction: float | None, keep: bool) -> tuple[Node, Node]:
        return made(t, x, dim, 1 if correction is None else correction, keep), t.mean(x, t.dims(x, dim), keep)


_spread("var", False)
_spread("std", True)


# ---------------------------------------------------------------------- norms


def vector_norm(t: Torch, x: Node, order: float, dims: list[int], keep: bool) -> Node:
    """The ``order``-norm along dimensions."""
    size = t.unary("abs", t.floating(x))
    if order == float("inf"):
        return t.max(size, dims, keep)
    if order == float("-inf"):
        return t.min(size, dims, keep)
    if order == 0:
        return t.sum(t.convert(truth(t, x), t.dtype(size)), dims, keep)
    if order == 1:
        return t.sum(size, dims, keep)
    if order == 2:
        return t.unary("sqrt", t.sum(t.mul(size, size), dims, keep))
    total = t.sum(t.binary("power", size, t.like(size, order)), dims, keep)
    return t.binary("power", total, t.like(total, 1 / order))


@operator("linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)")
def linalg_vector_norm(t: Torch, x: Node, order: float, dim: Any, keep: bool, dtype: int | None) -> Node:
    return vector_norm(t, t.convert(x, t.dtype_number(dtype, t.dtype(x))), order, t.dims(x, dim), keep)


@operator("linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)")
def linalg_norm(t: Torch, x: Node, order: float | None, dim: list[int] | None, keep: bool, dtype: int | None) -> Node:
    """Of vectors, or of matrices where two dimensions are meant."""
    x = t.convert(x, t.dtype_number(dtype, t.dtype(x)))
    if order is None:
        return vector_norm(t, x, 2, t.dims(x, dim), keep)
    if (dim is not None and len(dim) == 1) or (dim is None and t.rank(x) == 1):
        return vector_norm(t, x, order, t.dims(x, dim), keep)
    return matrix_norm(t, x, order, dim or [-2, -1], keep, None)


@operator("linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)")
def linalg_norm_named(t: Torch, x: Node, order: str, dim: list[int] | None, keep: bool, dtype: int | None) -> Node:
    return matrix_norm(t, x, order, dim or [-2, -1], keep, dtype)


@operator("linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2,-1], bool keepdim=False, *, ScalarType? dtype=None)",
          "linalg_matrix_norm.str_ord(Tensor self, str ord=\"fro\", int[] dim=[-2,-1], bool keepdim=False, *, ScalarType? dtype=None)")
def matrix_norm(t: Torch, x: Node, order: Any, dim: list[int], keep: bool, dtype: int | None) -> Node:
    """Frobenius, or the largest or smallest sum of a column (1) or row (inf). The others need singular values."""
    x = t.convert(x, t.dtype_number(dtype, t.dtype(x)))
    rows, columns = t.dims(x, dim)
    if order == "fro":
        return vector_norm(t, x, 2, [rows, columns], keep)
    if order not in (1, -1, float("inf"), float("-inf")):
        raise ValueError(f"the matrix norm {order!r} needs singular values, which irscope does not work out; fro, 1 and inf are supported")
    if 0 in t.shape(x):
        kind = t.dtype(t.unary("abs", x))
        found = t.full(tuple(1 if i in (rows, columns) else n for i, n in enumerate(t.shape(x))), 0, kind)
        return found if keep else t.reshape(found, tuple(n for i, n in enumerate(t.shape(x)) if i not in (rows, columns)))
    inner, outer = (rows, columns) if abs(order) == 1 else (columns, rows)
    sums = t.sum(t.unary("abs", x), [inner], True)
    found = t.max(sums, [outer], True) if order > 0 else t.min(sums, [outer], True)
    return found if keep else t.reshape(found, tuple(n for i, n in enumerate(t.shape(x)) if i not in (rows, columns)))


@operator("cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None)")
def cov(t: Torch, x: Node, correction: int, counts: Node | None, weights: Node | None) -> Node:
    """The covariance of the rows."""
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
    from irscope.formats.torchscript.operators.complex_numbers import conjugate
    made = t.div(t.dot(scaled, conjugate(t, away), ([1], [1])), t.maximum(norm_, t.array(0, dtype)) if dtype.is_float else norm_)
    return t.reshape(made, ()) if single else made


@operator("corrcoef(Tensor self)")
def corrcoef(t: Torch, x: Node) -> Node:
    c = cov(t, x, 1, None, None)
    if t.rank(c) == 0:
        return t.div(c, c)
    from irscope.formats.torchscript.operators.matrices import diagonal
    spread = t.unary("sqrt", diagonal(t, c, 0, 0, 1))
    made = t.div(t.div(c, t.unsqueeze(spread, 1)), t.unsqueeze(spread, 0))
    return t.minimum(t.maximum(made, t.like(made, -1)), t.like(made, 1)) if t.dtype(made).is_float else made


@operator("norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False)", "norm.Scalar(Tensor self, Scalar p=2)",
          "frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False)")
def norm(t: Torch, x: Node, *rest: Any) -> Node:
    if rest and isinstance(rest[0], list):
        return vector_norm(t, x, 2, t.dims(x, rest[0]), rest[1])
    p = 2 if rest[0] is None else rest[0]
    return vector_norm(t, x, p, t.dims(x, rest[1] if len(rest) > 1 else None), rest[2] if len(rest) > 2 else False)


@operator("norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype)")
def norm_dtype(t: Torch, x: Node, p: float | None, dim: Any, keep: bool, dtype: int) -> Node:
    return vector_norm(t, t.convert(x, t.dtype_number(dtype, t.dtype(x))), 2 if p is None else p, t.dims(x, dim), keep)


@operator("dist(Tensor self, Tensor other, Scalar p=2)")
def dist(t: Torch, x: Node, y: Node, p: float) -> Node:
    away = t.sub(*t.promote(x, y))
    return vector_norm(t, away, p, t.dims(away, None), False)


# ---------------------------------------------------------------------- cumulative


@operator("cumsum(Tensor self, int dim, *, ScalarType? dtype=None)")
def cumsum(t: Torch, x: Node, dim: int, dtype: int | None) -> Node:
    x = accumulating(t, x, dtype)
    return t.cumulative("add", x, t.dim(x, dim), 0) if t.rank(x) else x


@operator("cumprod(Tensor self, int dim, *, ScalarType? dtype=None)")
def cumprod(t: Torch, x: Node, dim: int, dtype: int | None) -> Node:
    x = accumulating(t, x, dtype)
    return t.cumulative("multiply", x, t.dim(x, dim), 1) if t.rank(x) else x


def _cumulative_extreme(name: str, hlo: str, largest: bool) -> None:
    @operator(f"{name}(Tensor self, int dim)")
    def cumulative(t: Torch, x: Node, dim: int) -> tuple[Node, Node]:
        """Values, and the last index at which each was reached."""
        if t.rank(x) == 0:
            return x, t.array(0, S64)
        d = t.dim(x, dim)
        values = t.cumulative(hlo, x, d, lowest(t.dtype(x)) if largest else highest(t.dtype(x)))
        reached = t.compare("EQ", x, values)
        at = t.select(reached, t.iota(t.shape(x), d, S64), t.full(t.shape(x), 0, S64))
        return values, t.cumulative("maximum", at, d, 0)


_cumulative_extreme("cummax", "maximum", True)
_cumulative_extreme("cummin", "minimum", False)


@operator("logcumsumexp(Tensor self, int dim)")
def logcumsumexp(t: Torch, x: Node, dim: int) -> Node:
    if t.rank(x) == 0:
        return x
    d = t.dim(x, dim)
    top = t.max(x, [d], True)
    return t.add(t.unary("log", t.cumulative("add", t.unary("exponential", t.sub(x, top)), d, 0)), top)


@operator("diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None)")
def diff(t: Torch, x: Node, n: int, dim: int, prepend: Node | None, append: Node | None) -> Node:
    d = t.dim(x, dim)
    if n == 0:
        return x
    parts = [p for p in (prepend, x, append) if p is not None]
    x = t.concat(t.promote(*parts), d)
    for _ in range(n):
        size = t.shape(x)[d]
        if size == 0:
            return x
        later, earlier = t.slice_dim(x, d, 1, size), t.slice_dim(x, d, 0, size - 1)
        x = t.binary("xor", later, earlier) if t.dtype(x) is PRED else t.sub(later, earlier)
    return x


@operator("trace(Tensor self)")
def trace(t: Torch, x: Node) -> Node:
    shape = t.shape(x)
    on = t.compare("EQ", t.iota(shape, 0, S64), t.iota(shape, 1, S64))
    return t.sum(accumulating(t, t.select(on, x, t.like(x, 0)), None), [0, 1])


@operator("softmax.int(Tensor self, int dim, ScalarType? dtype=None)", "_softmax(Tensor self, int dim, bool half_to_float)",
          "special_softmax(Tensor self, int dim, ScalarType? dtype=None)")
def softmax(t: Torch, x: Node, dim: int, dtype: Any) -> Node:
    x = _cast(t, x, dtype)
    d = [t.dim(x, dim)] if t.rank(x) else []
    e = t.unary("exponential", t.sub(x, t.max(x, d, True)))
    return t.div(e, t.sum(e, d, True))


@operator("log_softmax.int(Tensor self, int dim, ScalarType? dtype=None)", "_log_softmax(Tensor self, int dim, bool half_to_float)",
          "special_log_softmax(Tensor self, int dim, ScalarType? dtype=None)")
def log_softmax(t: Torch, x: Node, dim: int, dtype: Any) -> Node:
    x = _cast(t, x, dtype)
    d = [t.dim(x, dim)] if t.rank(x) else []
    away = t.sub(x, t.max(x, d, True))
    return t.sub(away, t.unary("log", t.sum(t.unary("exponential", away), d, True)))


@operator("_safe_softmax(Tensor self, int dim, ScalarType? dtype=None)")
def safe_softmax(t: Torch, x: Node, dim: int, dtype: Any) -> Node:
    """Rows that are -inf everywhere give 0."""
    y = softmax(t, x, dim, dtype)
    d = [t.dim(x, dim)] if t.rank(x) else []
    hidden = t.all(t.compare("EQ", x, t.like(x, float("-inf"))), d, True)
    return t.select(hidden, t.like(y, 0), y)


@operator("softmin.int(Tensor self, int dim, ScalarType? dtype=None)")
def softmin(t: Torch, x: Node, dim: int, dtype: Any) -> Node:
    return softmax(t, t.unary("negate", x), dim, dtype)


def _cast(t: Torch, x: Node, dtype: Any) -> Node:
    if isinstance(dtype, bool) or dtype is None:
        return t.convert(x, F32) if dtype is True else t.floating(x)
    kind: DType = t.dtype_number(dtype, F32)
    return t.convert(x, kind)
