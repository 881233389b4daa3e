"""Operators that read at computed places."""
from __future__ import annotations

from irscope.formats.onnx.algebra import Onnx
from irscope.formats.onnx.declarations import Attributes
from irscope.formats.onnx.operators import operator
from irscope.formats.relay.operators.indexing import at_vectors, wrapped
from irscope.formats.torchscript.operators.unique import unique, unique_dim
from irscope.graph import Node
from irscope.graph.dtypes import PRED, S64
from irscope.ops.faults import TypeFault


@operator("Gather(data, indices: int; axis=0)")
def gather(t: Onnx, a: Attributes, x: Node, indices: Node) -> Node:
    """Slices along an axis at the given indices; negative ones count from the end."""
    axis = t.axis(x, a.axis)
    return t.take(x, wrapped(t, indices, t.shape(x)[axis]), axis)


@operator("GatherElements(data: tensor[1+], indices: int[1+]; axis=0)")
def gather_elements(t: Onnx, a: Attributes, x: Node, indices: Node) -> Node:
    """``result[i, j] = data[indices[i, j], j]`` for axis 0."""
    axis = t.axis(x, a.axis)
    if t.rank(indices) != t.rank(x):
        raise TypeFault(f"data has {t.rank(x)} dimensions, indices {t.rank(indices)}")
    return t.gather_elements(x, wrapped(t, indices, t.shape(x)[axis]), axis)


@operator("GatherND(data: tensor[1+], indices: int[1+]; batch_dims=0)")
def gather_nd(t: Onnx, a: Attributes, x: Node, indices: Node) -> Node:
    """Slices at index vectors, which are in the last dimension of the indices."""
    shape, places, batch = t.shape(x), t.shape(indices), a.batch_dims
    if not 0 <= batch < min(len(places), len(shape)) or shape[:batch] != places[:batch] or batch + places[-1] > len(shape):
        raise TypeFault(f"indices {list(places)} with {batch} batch dimensions for data {list(shape)}")
    rest = places[:-1]
    if 0 in rest or 0 in shape:
        return t.full((*rest, *shape[batch + places[-1]:]), 0, t.dtype(x))
    wide = t.convert(indices, S64)
    parts = [t.reshape(t.iota(rest, d, S64), (*rest, 1)) for d in range(batch)]
    parts += [wrapped(t, t.slice_dim(wide, len(rest), i, i + 1), shape[batch + i]) for i in range(places[-1])]
    return at_vectors(t, x, t.concat(parts, len(rest))) if parts else t.broadcast_to(x, (*rest, *shape))


@operator("Compress(input, condition: bool[1]; axis: int=None)")
def compress(t: Onnx, a: Attributes, x: Node, condition: Node) -> Node:
    """The slices along an axis, or the elements, at which a condition holds."""
    x, axis = t.flat_or_axis(x, a.axis)
    n = min(t.shape(condition)[0], t.shape(x)[axis])
    return t.take(x, places_of(t, t.slice_dim(condition, 0, 0, n)), axis)


def places_of(t: Onnx, condition: Node) -> Node:
    """The places, in order, at which a vector of booleans is true. Their number is computed from the inputs."""
    n = t.shape(condition)[0]
    whole = t.convert(condition, S64)
    count = int(t.value(t.sum(whole, [0]), "the number of elements that are chosen").item()) if n else 0
    order = t.sort([t.sub(t.like(whole, 1), whole), t.iota((n,), 0, S64)], 0)[1]
    return t.slice_dim(order, 0, 0, count)


@operator("NonZero(X)")
def non_zero(t: Onnx, a: Attributes, x: Node) -> Node:
    """The places of the elements that are not 0, one row a dimension."""
    shape, elements = t.shape(x), t.type(x).elements
    flat = t.reshape(x, (elements,))
    found = places_of(t, flat if t.dtype(x) is PRED else t.compare("NE", flat, t.like(flat, 0)))
    count, rows, step = t.shape(found)[0], [], elements
    for n in shape:
        step //= max(n, 1)
        place = t.binary("divide", found, t.like(found, max(step, 1)))
        rows.append(t.reshape(t.binary("remainder", place, t.like(place, max(n, 1))), (1, count)))
    if not rows:
        return t.full((0, count), 0, S64)
    return t.concat(rows, 0)


@operator("TopK(X: real, K?: int[0-1]; axis=-1, k: int=None, largest=1, sorted=1)")
def top_k(t: Onnx, a: Attributes, x: Node, k: Node | None) -> tuple[Node, Node]:
    """The greatest or least elements along an axis, in order, and their places; of equal ones the first."""
    axis = t.axis(x, a.axis)
    count = a.k if k is None else t.single(k, "K")
    if count is None or not 0 <= count <= t.shape(x)[axis]:
        raise TypeFault(f"K is {count} for an axis of {t.shape(x)[axis]}")
    values, places = t.sort([x, t.iota(t.shape(x), axis, S64)], axis, bool(a.largest))
    return t.slice_dim(values, axis, 0, count), t.slice_dim(places, axis, 0, count)


@operator("Unique(X; axis: int=None, sorted=1)")
def unique_values(t: Onnx, a: Attributes, x: Node) -> tuple[Node, ...]:
    """The different elements or slices: they, their first places, the place of each element among them, and how many there are."""
    n = t.type(x).elements if a.axis is None else t.shape(x)[t.axis(x, a.axis)]
    if a.axis is None:
        values, kind, counts = t.by_torch(unique, t.reshape(x, (n,)), True, True, True)
    else:
        values, kind, counts = t.by_torch(unique_dim, x, t.axis(x, a.axis), True, True, True)
    count = t.shape(counts)[0]
    first = t.scatter(t.full((count,), n, S64), t.reshape(kind, (n, 1)), t.iota((n,), 0, S64), "minimum", inserted=[0])
    if not a.sorted and count:
        order = t.sort([first, t.iota((count,), 0, S64)], 0)[1]
        values = t.take(values, order, 0 if a.axis is None else t.axis(x, a.axis))
        first, counts = t.take(first, order, 0), t.take(counts, order, 0)
        kind = t.take(t.sort([order, t.iota((count,), 0, S64)], 0)[1], kind, 0)
    return values, first, kind, counts
