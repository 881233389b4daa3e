"""Order: sort, topk, medians."""
from __future__ import annotations

from math import prod
from typing import Any

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import PRED, S64


def ordered(t: Torch, x: Node, dim: int, descending: bool) -> tuple[Node, Node]:
    """Values and Long indices along a dimension; equal values keep their order."""
    if t.rank(x) == 0:
        return x, t.array(0, S64)
    d = t.dim(x, dim)
    values = t.convert(x, S64) if t.dtype(x) is PRED else x
    values, at = t.sort([values, t.iota(t.shape(x), d, S64)], d, descending)
    return t.convert(values, t.dtype(x)), at


@operator("sort(Tensor self, int dim=-1, bool descending=False)")
def sort(t: Torch, x: Node, dim: int, descending: bool) -> tuple[Node, Node]:
    return ordered(t, x, dim, descending)


@operator("sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False)")
def sort_stable(t: Torch, x: Node, stable: Any, dim: int, descending: bool) -> tuple[Node, Node]:
    return ordered(t, x, dim, descending)


@operator("argsort(Tensor self, int dim=-1, bool descending=False)")
def argsort(t: Torch, x: Node, dim: int, descending: bool) -> Node:
    return ordered(t, x, dim, descending)[1]


@operator("argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False)")
def argsort_stable(t: Torch, x: Node, stable: bool, dim: int, descending: bool) -> Node:
    return ordered(t, x, dim, descending)[1]


@operator("msort(Tensor self)")
def msort(t: Torch, x: Node) -> Node:
    return ordered(t, x, 0, False)[0]


@operator("topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True)")
def topk(t: Torch, x: Node, k: int, dim: int, largest: bool, in_order: bool) -> tuple[Node, Node]:
    if t.rank(x) == 0:
        return x, t.array(0, S64)
    d = t.dim(x, dim)
    values, at = ordered(t, x, d, largest)
    return t.slice_dim(values, d, 0, k), t.slice_dim(at, d, 0, k)


@operator("kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False)")
def kthvalue(t: Torch, x: Node, k: int, dim: int, keep: bool) -> tuple[Node, Node]:
    d = t.dim(x, dim)
    values, at = ordered(t, x, d, False)
    return _at(t, values, d, k - 1, keep), _at(t, at, d, k - 1, keep)


def _at(t: Torch, x: Node, d: int, i: int, keep: bool) -> Node:
    part = t.slice_dim(x, d, i, i + 1)
    return part if keep else t.reshape(part, tuple(n for j, n in enumerate(t.shape(x)) if j != d))


@operator("median(Tensor self)")
def median_all(t: Torch, x: Node) -> Node:
    n = prod(t.shape(x))
    flat = t.reshape(x, (n,))
    return _with_nan(t, flat, _at(t, ordered(t, flat, 0, False)[0], 0, (n - 1) // 2, False), [0], False)


@operator("median.dim(Tensor self, int dim, bool keepdim=False)")
def median(t: Torch, x: Node, dim: int, keep: bool) -> tuple[Node, Node]:
    """The lower of the two middle values."""
    d = t.dim(x, dim)
    values, at = ordered(t, x, d, False)
    middle = (t.shape(x)[d] - 1) // 2
    return _with_nan(t, x, _at(t, values, d, middle, keep), [d], keep), _at(t, at, d, middle, keep)


def _with_nan(t: Torch, x: Node, value: Node, dims: list[int], keep: bool) -> Node:
    if not t.dtype(x).is_float:
        return value
    broken = t.any(t.compare("NE", x, x), dims, keep)
    return t.select(broken, t.like(value, float("nan")), value)


@operator("quantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\")")
def quantile(t: Torch, x: Node, q: float, dim: int | None, keep: bool, interpolation: str) -> Node:
    from math import ceil, floor
    if dim is None:
        x, dim = t.reshape(x, (prod(t.shape(x)),)), 0
    d = t.dim(x, dim)
    values = ordered(t, x, d, False)[0]
    place = q * (t.shape(x)[d] - 1)
    low, high = _at(t, values, d, floor(place), keep), _at(t, values, d, ceil(place), keep)
    match interpolation:
        case "lower":
            return low
        case "higher":
            return high
        case "nearest":
            return _at(t, values, d, round(place), keep)
        case "midpoint":
            return t.scale(t.add(low, high), 0.5)
    return _with_nan(t, x, t.add(low, t.scale(t.sub(high, low), place - floor(place))), [d], keep)
