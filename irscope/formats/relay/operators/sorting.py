"""Sorting: sort, argsort, topk, searchsorted and unique."""

from __future__ import annotations

from irscope.formats.relay.algebra import Relay
from irscope.formats.relay.operators import Attributes, operator
from irscope.graph import Kind, Node
from irscope.graph.dtypes import S32
from irscope.ops.faults import TypeFault


@operator("sort(data; axis=-1, is_ascend=True, dtype='float32')", work="reduction")
def sort(t: Relay, a: Attributes, x: Node) -> Node:
    """The elements in sorted order along an axis."""
    return t.sort([x], t.axis(x, a.axis), not a.is_ascend)[0]


@operator("argsort(data; axis=-1, is_ascend=True, dtype='int32')", work="reduction")
def argsort(t: Relay, a: Attributes, x: Node) -> Node:
    """The indices of the elements in sorted order."""
    axis = t.axis(x, a.axis)
    places = t.sort([x, t.iota(t.shape(x), axis, S32)], axis, not a.is_ascend)[1]
    return t.convert(places, t.dtype_word(a.dtype, S32))


@operator("topk(data; k=1, axis=-1, ret_type='both', is_ascend=False, dtype='int32')", work="reduction")
def topk(t: Relay, a: Attributes, x: Node) -> object:
    """The first k elements in sorted order, their indices, or both."""
    return top(t, x, a.k, a)


def top(t: Relay, x: Node, k: object, a: Attributes) -> object:
    """``topk`` for a known ``k``; less than 1 means all."""
    if k is not None and not isinstance(k, int):
        raise TypeFault("k is left open")
    axis = t.axis(x, a.axis)
    values, places = t.sort([x, t.iota(t.shape(x), axis, S32)], axis, not a.is_ascend)
    n = t.shape(x)[axis]
    keep = n if k is None or k < 1 else min(int(k), n)
    values = t.slice_dim(values, axis, 0, keep)
    places = t.convert(t.slice_dim(places, axis, 0, keep), t.dtype_word(a.dtype, S32))
    match a.ret_type:
        case "values":
            return values
        case "indices":
            return places
    return [values, places]


@operator("searchsorted(sorted_sequence: 1d+, values: 1d+; right=False, dtype='int32')")
def searchsorted(t: Relay, a: Attributes, order: Node, values: Node) -> Node:
    """The insertion point of each value: the number of elements before it."""
    dtype = t.dtype_word(a.dtype, S32)
    n = t.shape(order)[-1]
    shape = (*t.shape(values), n)
    if t.rank(order) == 1:
        wide = t.broadcast_to(order, shape)
    else:
        lead = t.shape(order)[:-1]
        wide = t.broadcast_to(t.reshape(order, (*lead, 1, n)), shape)
    each = t.broadcast_to(t.reshape(values, (*t.shape(values), 1)), shape)
    before = t.compare("LE" if a.right else "LT", wide, each)
    return t.sum(t.convert(before, dtype), [len(shape) - 1])


@operator("shape_of(data; dtype='int32')", "vm.shape_of(tensor; dtype='int64')")
def shape_of(t: Relay, a: Attributes, x: Node) -> Node:
    """The sizes of a tensor."""
    return t.array(list(t.shape(x)), t.dtype_word(a.dtype, S32))


@operator("ndarray_size(data; dtype='int32')", kind=Kind.INJECTIVE)
def ndarray_size(t: Relay, a: Attributes, x: Node) -> Node:
    """How many elements a tensor has."""
    return t.array(t.type(x).elements, t.dtype_word(a.dtype, S32))


@operator("unique(data: 1d; sorted=True, return_counts=False)")
def unique(t: Relay, a: Attributes, x: Node) -> list[Node]:
    """The distinct values, their first indices, the inverse indices, their number, and their counts.

    All but the number have the length of the data; values are padded with zeros, indices with that length.
    """
    n = t.shape(x)[0]
    value, place = t.sort([x, t.iota((n,), 0, S32)], 0)
    differs = t.convert(t.compare("NE", t.slice_dim(value, 0, 1, n), t.slice_dim(value, 0, 0, n - 1)), S32)
    number = t.cumulative("add", t.pad(differs, t.array(0, S32), [1], [0]), 0, 0)

    def put(base: Node, at: Node, what: Node, combine: str | None) -> Node:
        return t.scatter(base, t.reshape(at, (n, 1)), what, combine, inserted=(0,))

    first = put(t.full((n,), n, S32), number, place, "minimum")
    if not a.sorted:
        # In the order of their first indices; the inverse index of each is then its rank in that order.
        order = t.sort([first, t.iota((n,), 0, S32)], 0)[1]
        rank = t.sort([order, t.iota((n,), 0, S32)], 0)[1]
        first, number = t.take(first, order, 0), t.take(rank, number, 0)
    found = put(t.like(x, 0), number, value, None)
    inverse = put(t.full((n,), 0, S32), place, number, None)
    count = t.plus(t.reduce("maximum", number, [0], 0, True), 1)
    made = [found, first, inverse, count]
    return [*made, put(t.full((n,), 0, S32), number, t.full((n,), 1, S32), "add")] if a.return_counts else made
