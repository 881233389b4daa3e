"""Order: sort, topk, medians."""
from __future__ import annotations

from math import ceil, floor, prod

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import F32, F64, PRED, S64
from irscope.ops.faults import TypeFault


def ordered(t: Torch, x: Node, dim: int, descending: bool) -> tuple[Node, Node]:
    """Values and Long indices along a dimension; equal values keep their order."""
    d = t.dim(x, dim)
    if t.rank(x) == 0:
        return x, t.array(0, S64)
    values = t.convert(x, S64) if t.dtype(x) is PRED else x
    values, at = t.sort([values, t.iota(t.shape(x), d, S64)], d, descending)
    return t.convert(values, t.dtype(x)), at


@operator("sort(Tensor self, int dim=-1, bool descending=False)",
          "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False)")
def sort(t: Torch, x: Node, *, dim: int, descending: bool) -> tuple[Node, Node]:
    return ordered(t, x, dim, descending)


@operator("argsort(Tensor self, int dim=-1, bool descending=False)",
          "argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False)")
def argsort(t: Torch, x: Node, *, dim: int, descending: bool) -> Node:
    return ordered(t, x, dim, descending)[1]


@operator("msort(Tensor self)")
def msort(t: Torch, x: Node) -> Node:
    return ordered(t, x, 0, False)[0]


@operator("topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True)")
def topk(t: Torch, x: Node, k: int, dim: int, largest: bool, in_order: bool) -> tuple[Node, Node]:
    d = t.dim(x, dim)
    _check_rank(t, x, d, k, 0)
    if t.rank(x) == 0:
        return x, t.array(0, S64)
    values, at = ordered(t, x, d, largest)
    return t.slice_dim(values, d, 0, k), t.slice_dim(at, d, 0, k)


@operator("kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False)")
def kthvalue(t: Torch, x: Node, k: int, dim: int, keep: bool) -> tuple[Node, Node]:
    d = t.dim(x, dim)
    _check_rank(t, x, d, k, 1)
    if t.rank(x) == 0:
        return x, t.array(0, S64)
    values, at = ordered(t, x, d, False)
    return _at(t, values, d, k - 1, keep), _at(t, at, d, k - 1, keep)


def _check_rank(t: Torch, x: Node, d: int, k: int, least: int) -> None:
    """Raise TypeFault where a dimension has fewer than ``k`` elements, or ``k`` is less than ``least``; a scalar is one element."""
    n = t.shape(x)[d] if t.rank(x) else 1
    if not least <= k <= n:
        raise TypeFault(f"k is {k}, and the dimension has {n} elements")


def _at(t: Torch, x: Node, d: int, i: int, keep: bool) -> Node:
    part = t.slice_dim(x, d, i, i + 1)
    return part if keep else t.reshape(part, tuple(n for j, n in enumerate(t.shape(x)) if j != d))


@operator("median(Tensor self)")
def median_all(t: Torch, x: Node) -> Node:
    n = prod(t.shape(x))
    if n == 0 and t.dtype(x).is_float:
        return t.array(float("nan"), t.dtype(x))
    flat = t.reshape(x, (n,))
    return _with_nan(t, flat, _at(t, ordered(t, flat, 0, False)[0], 0, (n - 1) // 2, False), [0], False)


@operator("median.dim(Tensor self, int dim, bool keepdim=False)")
def median(t: Torch, x: Node, dim: int, keep: bool) -> tuple[Node, Node]:
    """The lower of the two middle values."""
    d = t.dim(x, dim)
    if t.rank(x) == 0:
        return x, t.array(0, S64)
    values, at = ordered(t, x, d, False)
    middle = (t.shape(x)[d] - 1) // 2
    value, place = _with_nan(t, x, _at(t, values, d, middle, keep), [d], keep), _at(t, at, d, middle, keep)
    if not t.dtype(x).is_float:
        return value, place
    broken = t.compare("NE", x, x)
    first = t.arg_extreme(t.convert(broken, S64), d, True, S64)[1]
    return value, t.select(t.any(broken, [d], keep), t.reshape(first, t.shape(place)), place)


def _with_nan(t: Torch, x: Node, value: Node, dims: list[int], keep: bool) -> Node:
    if not t.dtype(x).is_float:
        return value
    broken = t.any(t.compare("NE", x, x), dims, keep)
    return t.select(broken, t.like(value, float("nan")), value)


@operator("quantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\")")
def quantile(t: Torch, x: Node, q: float, dim: int | None, keep: bool, interpolation: str) -> Node:
    if not 0 <= q <= 1:
        raise TypeFault(f"a quantile is between 0 and 1, not {q}")
    _check_quantile(t, x, interpolation)
    if dim is None:
        x, dim = t.reshape(x, (prod(t.shape(x)),)), 0
    d = t.dim(x, dim)
    if t.rank(x) == 0:
        x = t.reshape(x, (1,))
        return quantile(t, x, q, 0, False, interpolation)
    values = ordered(t, x, d, False)[0]
    place = q * (t.shape(x)[d] - 1)
    low, high = _at(t, values, d, floor(place), keep), _at(t, values, d, ceil(place), keep)
    match interpolation:
        case "lower":
            y = low
        case "higher":
            y = high
        case "nearest":
            y = _at(t, values, d, round(place), keep)
        case "midpoint":
            y = t.scale(t.add(low, high), 0.5)
        case _:
            y = t.add(low, t.scale(t.sub(high, low), place - floor(place)))
    return _with_nan(t, x, y, [d], keep)


@operator("quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\")")
def quantiles(t: Torch, x: Node, q: Node, dim: int | None, keep: bool, interpolation: str) -> Node:
    """Several quantiles, in a new first dimension; NaN where a value is NaN."""
    y = nanquantiles(t, x, q, dim, keep, interpolation)
    dims = t.dims(x, dim)
    broken = t.any(t.compare("NE", x, x), dims, keep)
    return t.select(t.broadcast_to(broken, t.shape(y)), t.like(y, float("nan")), y)


def _check_quantile(t: Torch, x: Node, interpolation: str) -> None:
    """Raise TypeFault for an element type or an interpolation that torch's quantiles do not have."""
    if t.dtype(x) not in (F32, F64):
        raise TypeFault(f"it takes float32 or float64, not {t.dtype(x).name}")
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise TypeFault(f"the interpolations of a quantile are linear, lower, higher, midpoint and nearest, not {interpolation!r}")


@operator("nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\")",
          "nanquantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\")")
def nanquantiles(t: Torch, x: Node, q: object, dim: int | None, keep: bool, interpolation: str) -> Node:
    """Several quantiles, in a new first dimension; NaN sort last, so they do not affect the others."""
    _check_quantile(t, x, interpolation)
    rank = t.rank(x)
    if dim is None or rank == 0:
        x, dim = t.reshape(x, (prod(t.shape(x)),)), 0
        flat = True
    else:
        flat = False
    d = t.dim(x, dim)
    values = ordered(t, x, d, False)[0]
    points = t.as_tensor(q, t.dtype(x))
    many = t.rank(points)
    points = t.reshape(points, (prod(t.shape(points)),))
    last = t.plus(t.convert(t.sum(t.convert(t.compare("EQ", x, x), S64), [d], True), t.dtype(x)), -1)
    column = (t.shape(points)[0], *(1,) * t.rank(x))
    place = t.maximum(t.mul(t.reshape(points, column), t.unsqueeze(last, 0)), t.array(0, t.dtype(x)))
    low, high = t.unary("floor", place), t.unary("ceil", place)
    match interpolation:
        case "lower":
            high = low
        case "higher":
            low = high
        case "nearest":
            low = high = t.unary("round-nearest-even", place)
    wide = t.broadcast_to(t.unsqueeze(values, 0), (column[0], *t.shape(x)))
    a, b = (t.gather_elements(wide, t.convert(v, S64), d + 1) for v in (low, high))
    part = t.sub(place, low) if interpolation != "midpoint" else t.like(place, 0.5)
    y = t.select(t.compare("EQ", low, high), a, t.add(a, t.mul(t.sub(b, a), part)))
    lead = (column[0],) if many else ()
    kept = (1,) * rank if flat else tuple(1 if i == d else n for i, n in enumerate(t.shape(x)))
    gone = () if flat else tuple(n for i, n in enumerate(t.shape(x)) if i != d)
    return t.reshape(y, (*lead, *(kept if keep else gone)))


@operator("nanmedian(Tensor self)")
def nanmedian_all(t: Torch, x: Node) -> Node:
    if 0 in t.shape(x):
        return median_all(t, x)
    return nanmedian(t, t.reshape(x, (prod(t.shape(x)),)), 0, False)[0]


@operator("nanmedian.dim(Tensor self, int dim, bool keepdim=False)")
def nanmedian(t: Torch, x: Node, dim: int, keep: bool) -> tuple[Node, Node]:
    """The lower of the two middle values among those that are numbers."""
    d = t.dim(x, dim)
    if t.rank(x) == 0:
        return x, t.array(0, S64)
    if not t.dtype(x).is_float:
        return median(t, x, dim, keep)
    values, at = ordered(t, x, d, False)
    count = t.sum(t.convert(t.compare("EQ", x, x), S64), [d], True)
    middle = t.div(t.maximum(t.plus(count, -1), t.like(count, 0)), t.like(count, 2))
    return picked(t, values, at, middle, d, keep)


def picked(t: Torch, values: Node, at: Node, place: Node, d: int, keep: bool) -> tuple[Node, Node]:
    """The value and the index at ``place``, which has one element along dimension ``d``. The dimension is removed unless ``keep``."""
    value, index = t.gather_elements(values, place, d), t.gather_elements(at, place, d)
    shape = tuple(n for i, n in enumerate(t.shape(values)) if i != d)
    return (value, index) if keep else (t.reshape(value, shape), t.reshape(index, shape))
