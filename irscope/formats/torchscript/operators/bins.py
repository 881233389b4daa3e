"""Classes and bins: one-hot vectors, search in sorted values, counts."""
from __future__ import annotations

from math import prod

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import F32, F64, S32, S64
from irscope.ops.checked import at_least, real
from irscope.ops.faults import TypeFault


@operator("one_hot(Tensor self, int num_classes=-1)")
def one_hot(t: Torch, x: Node, classes: int) -> Node:
    if t.dtype(x) is not S64:
        raise TypeFault(f"it takes classes as int64, not {t.dtype(x).name}")
    if classes < -1 or classes == 0 or (classes == -1 and prod(t.shape(x)) == 0):
        raise TypeFault("the number of classes must be positive, or -1 where there are elements to infer it from")
    if classes == -1:
        classes = t.size_from_data(t.plus(t.max(x, list(range(t.rank(x)))), 1))
    shape = (*t.shape(x), classes)
    return t.convert(t.compare("EQ", t.unsqueeze(x, -1), t.iota(shape, len(shape) - 1, t.dtype(x))), S64)


@operator("bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False)")
def bucketize(t: Torch, x: Node, edges: Node, narrow: bool, right: bool) -> Node:
    t.shape_of(edges, 1, 1)
    return _passed(t, x, edges, narrow, right)


def _passed(t: Torch, x: Node, edges: Node, narrow: bool, right: bool) -> Node:
    """How many edges lie before each value. NaN sorts last, so all that a value does not reach or pass are counted."""
    below = t.unary("not", t.compare("GT" if right else "GE", *t.promote(edges, t.unsqueeze(x, -1))))
    kind = S32 if narrow else S64
    return t.sum(t.convert(below, kind), [t.rank(below) - 1])


@operator("searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? side=None, "
          "Tensor? sorter=None)")
def searchsorted(t: Torch, edges: Node, x: Node, narrow: bool, right: bool, side: str | None, sorter: Node | None) -> Node:
    if side not in (None, "left", "right"):
        raise TypeFault(f"the sides of a search are left and right, not {side!r}")
    right = right or side == "right"
    if t.shape(edges)[-1] == 0:
        return t.full(t.shape(x), 0, S32 if narrow else S64)
    if sorter is not None:
        edges = t.gather_elements(edges, sorter, t.rank(edges) - 1)
    if t.rank(edges) > 1:
        edges = t.unsqueeze(edges, -2)
    return _passed(t, x, edges, narrow, right)


@operator("bincount(Tensor self, Tensor? weights=None, int minlength=0)")
def bincount(t: Torch, x: Node, weights: Node | None, least: int) -> Node:
    if t.rank(x) != 1 or not t.dtype(x).is_integer:
        raise TypeFault(f"it takes a tensor of one dimension of integers, not {t.type(x)}")
    if weights is not None and t.shape(weights) != t.shape(x):
        raise TypeFault(f"it takes a weight for each of {t.shape(x)[0]} elements, not weights of the sizes {list(t.shape(weights))}")
    n = max(at_least(0, "minlength", least), t.size_from_data(t.plus(t.max(x, [0]), 1)) if prod(t.shape(x)) else 0)
    hits = t.compare("EQ", t.unsqueeze(x, 1), t.iota((t.shape(x)[0], n), 1, t.dtype(x)))
    if weights is None:
        return t.sum(t.convert(hits, S64), [0])
    if t.dtype(weights) is not F32:
        weights = t.convert(weights, F64)
    return t.sum(t.select(hits, t.unsqueeze(weights, 1), t.array(0, t.dtype(weights))), [0])


@operator("histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0)")
def histc(t: Torch, x: Node, bins: int, low: float, high: float) -> Node:
    """Counts of elements in equal bins; with equal ends the bins reach from the smallest to the largest element."""
    at_least(1, "bins", bins)
    real("the ends of the bins", low, high)
    if low > high:
        raise TypeFault(f"the bins reach from {low} to {high}")
    if not t.dtype(x).is_float:
        raise TypeFault(f"it counts floating point numbers, not {t.dtype(x).name}")
    flat = t.floating(t.reshape(x, (prod(t.shape(x)),)))
    if low == high:
        first, last = t.min(flat, [0]), t.max(flat, [0])
        equal = t.compare("EQ", first, last)
        first, last = t.select(equal, t.plus(first, -1), first), t.select(equal, t.plus(last, 1), last)
    else:
        first, last = t.array(low, t.dtype(flat)), t.array(high, t.dtype(flat))
    place = t.div(t.scale(t.sub(flat, first), bins), t.sub(last, first))
    at = t.convert(t.unary("floor", place), S64)
    at = t.select(t.compare("EQ", flat, last), t.like(at, bins - 1), at)
    inside = t.binary("and", t.compare("GE", flat, first), t.compare("LE", flat, last))
    hits = t.binary("and", t.compare("EQ", t.unsqueeze(at, 1), t.iota((t.shape(flat)[0], bins), 1, S64)), t.unsqueeze(inside, 1))
    counts = t.sum(t.convert(hits, F32), [0])
    return t.convert(counts, t.dtype(x))
