"""Equal elements: unique values with their places and counts, and the most frequent value.

The number of unique values depends on data: it is computed from the inputs.
"""
from __future__ import annotations

from math import prod

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.sorting import ordered, picked
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import PRED, S64
from irscope.ops.faults import TypeFault

MOST_COLUMNS = 256
"""The most columns of rows that are sorted: each column takes a stable sort."""


def _begins(t: Torch, rows: Node) -> Node:
    """pred[n]: whether a row of [n, k] differs from the one before it."""
    n = t.shape(rows)[0]
    first = t.full((min(n, 1),), True, PRED)
    if n < 2:
        return first
    differs = t.any(t.compare("NE", t.slice_dim(rows, 0, 1, n), t.slice_dim(rows, 0, 0, n - 1)), [1])
    return t.concat([first, differs], 0)


def _unique(t: Torch, rows: Node, order: Node | None) -> tuple[Node, Node, Node]:
    """For rows in which equal ones are adjacent: the first row of each kind, the kind of every row, and the number of rows of each kind.

    ``order`` has the original positions of the rows; None: the rows are in their original order.
    """
    n = t.shape(rows)[0]
    if n == 0:
        return rows, t.full((0,), 0, S64), t.full((0,), 0, S64)
    begins = t.convert(_begins(t, rows), S64)
    kind = t.plus(t.cumulative("add", begins, 0, 0), -1)
    count = t.size_from_data(t.sum(begins, [0]))
    places = t.sort([t.sub(t.like(begins, 1), begins), t.iota((n,), 0, S64)], 0)[1]
    places = t.slice_dim(places, 0, 0, count)
    ends = t.concat([t.slice_dim(places, 0, 1, count), t.array([n], S64)], 0)
    if order is not None:
        kind = t.sort([order, kind], 0)[1]
    return t.take(rows, places, 0), kind, t.sub(ends, places)


def _flat(t: Torch, x: Node, in_order: bool) -> tuple[Node, Node, Node]:
    """Unique elements; the positions have the shape of ``x``."""
    column = t.reshape(x, (prod(t.shape(x)), 1))
    order = None
    if in_order:
        column, order = ordered(t, column, 0, False)
        order = t.reshape(order, t.shape(order)[:1])
    values, kind, counts = _unique(t, column, order)
    return t.reshape(values, t.shape(values)[:1]), t.reshape(kind, t.shape(x)), counts


def _along(t: Torch, x: Node, dim: int, in_order: bool) -> tuple[Node, Node, Node]:
    """Unique slices along a dimension, sorted column by column."""
    d = t.dim(x, dim)
    others = [i for i in range(t.rank(x)) if i != d]
    moved = t.transpose(x, [d, *others])
    n, k = t.shape(moved)[0], prod(t.shape(moved)[1:])
    rows = t.reshape(moved, (n, k))
    order = None
    if in_order:
        if k > MOST_COLUMNS:
            raise TypeFault(f"unique of slices of {k} elements is not supported (up to {MOST_COLUMNS})")
        order = t.iota((n,), 0, S64)
        for c in reversed(range(k)):
            key = t.take(t.reshape(t.slice_dim(rows, 1, c, c + 1), (n,)), order, 0)
            order = t.sort([t.convert(key, S64) if t.dtype(key) is PRED else key, order], 0)[1]
        rows = t.take(rows, order, 0)
    values, kind, counts = _unique(t, rows, order)
    values = t.reshape(values, (t.shape(values)[0], *t.shape(moved)[1:]))
    back = [0] * t.rank(x)
    for place, i in enumerate([d, *others]):
        back[i] = place
    return t.transpose(values, back), kind, counts


def _wanted(t: Torch, found: tuple[Node, Node, Node], places: bool, counts: bool) -> tuple[Node, Node, Node]:
    """Replace results that were not requested by empty ones."""
    nothing = t.full((0,), 0, S64)
    return found[0], found[1] if places else nothing, found[2] if counts else nothing


@operator("_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False)")
def unique(t: Torch, x: Node, in_order: bool, places: bool, counts: bool) -> tuple[Node, Node, Node]:
    """Unique elements in sorted order, as torch's CPU kernel returns even without ``sorted``."""
    return _wanted(t, _flat(t, x, True), places, counts)


@operator("_unique(Tensor self, bool sorted=True, bool return_inverse=False)")
def unique_old(t: Torch, x: Node, in_order: bool, places: bool) -> tuple[Node, Node]:
    return _wanted(t, _flat(t, x, True), places, False)[:2]


@operator("unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False)")
def unique_dim(t: Torch, x: Node, dim: int, in_order: bool, places: bool, counts: bool) -> tuple[Node, Node, Node]:
    return _wanted(t, _along(t, x, dim, True), places, counts)


@operator("unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None)")
def unique_consecutive(t: Torch, x: Node, places: bool, counts: bool, dim: int | None) -> tuple[Node, Node, Node]:
    """The first element of each run of equal elements."""
    return _wanted(t, _flat(t, x, False) if dim is None else _along(t, x, dim, False), places, counts)


@operator("unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, bool return_counts=False)")
def unique_dim_consecutive(t: Torch, x: Node, dim: int, places: bool, counts: bool) -> tuple[Node, Node, Node]:
    return _wanted(t, _along(t, x, dim, False), places, counts)


@operator("mode(Tensor self, int dim=-1, bool keepdim=False)")
def mode(t: Torch, x: Node, dim: int, keep: bool) -> tuple[Node, Node]:
    """The most frequent value along a dimension, the smallest of several, and its last index."""
    d = t.dim(x, dim)
    if t.rank(x) == 0:
        return x, t.array(0, S64)
    n = t.shape(x)[d]
    values, at = ordered(t, x, d, False)
    place = t.iota(t.shape(x), d, S64)
    before = t.pad(t.slice_dim(values, d, 0, n - 1), t.array(0, t.dtype(x)), [int(i == d) for i in range(t.rank(x))], [0] * t.rank(x))
    begins = t.binary("or", t.compare("NE", values, before), t.compare("EQ", place, t.like(place, 0)))
    start = t.cumulative("maximum", t.select(begins, place, t.like(place, 0)), d, 0)
    _, last = t.arg_extreme(t.sub(place, start), d, True, S64)
    last = t.unsqueeze(last, d)
    return picked(t, values, at, last, d, keep)
