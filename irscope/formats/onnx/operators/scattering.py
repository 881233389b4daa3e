"""Operators that write at computed places."""
from __future__ import annotations

from irscope.formats.onnx.algebra import Onnx
from irscope.formats.onnx.declarations import Attributes
from irscope.formats.onnx.operators import operator
from irscope.formats.relay.operators.indexing import scattered, wrapped
from irscope.graph import Node
from irscope.graph.dtypes import S64
from irscope.ops.faults import TypeFault

COMBINE = {"none": None, "add": "add", "mul": "multiply", "max": "maximum", "min": "minimum"}


def _combined(a: Attributes) -> str | None:
    """The primitive that combines the present value and an update; None: the update replaces it."""
    if a.reduction not in COMBINE:
        raise TypeFault(f"reduction is one of {', '.join(COMBINE)}, not {a.reduction!r}")
    return COMBINE[a.reduction]


@operator("Scatter(data: tensor[1+], indices: int[1+], updates: tensor[1+]; axis=0)")
def scatter(t: Onnx, a: Attributes, x: Node, indices: Node, updates: Node) -> Node:
    """``ScatterElements`` up to version 10."""
    a.reduction = "none"
    return scatter_elements(t, a, x, indices, updates)


@operator("ScatterElements(data: tensor[1+], indices: int[1+], updates: tensor[1+]; axis=0, reduction='none')")
def scatter_elements(t: Onnx, a: Attributes, x: Node, indices: Node, updates: Node) -> Node:
    """``data[indices[i, j], j] = updates[i, j]`` for axis 0, or combined with the present value."""
    axis, shape = t.axis(x, a.axis), t.shape(indices)
    if len(shape) != t.rank(x) or t.shape(updates) != shape:
        raise TypeFault(f"indices {list(shape)} and updates {list(t.shape(updates))} for data {list(t.shape(x))}")
    t.alike(x, updates)
    return scattered(t, x, wrapped(t, indices, t.shape(x)[axis]), updates, axis, _combined(a))


@operator("ScatterND(data: tensor[1+], indices: int[1+], updates; reduction='none')")
def scatter_nd(t: Onnx, a: Attributes, x: Node, indices: Node, updates: Node) -> Node:
    """Slices written at index vectors, which are in the last dimension of the indices, or combined with the present ones."""
    *rest, n = t.shape(indices)
    shape = t.shape(x)
    if n > len(shape) or t.shape(updates) != (*rest, *shape[n:]):
        raise TypeFault(f"indices {[*rest, n]} and updates {list(t.shape(updates))} for data {list(shape)}")
    t.alike(x, updates)
    wide = t.convert(indices, S64)
    starts = t.concat([wrapped(t, t.slice_dim(wide, len(rest), i, i + 1), shape[i]) for i in range(n)], len(rest)) if n else wide
    return t.scatter(x, starts, updates, _combined(a), window_dims=range(len(rest), t.rank(updates)), inserted=range(n))


@operator("TensorScatter(past_cache: tensor[2+], update: tensor[2+], write_indices?: int[1]; axis=-2, mode='linear')")
def tensor_scatter(t: Onnx, a: Attributes, x: Node, update: Node, indices: Node | None) -> Node:
    """A cache with an update written from a place on, one for each batch; ``circular`` wraps around."""
    axis, shape = t.axis(x, a.axis), t.shape(update)
    if a.mode not in ("linear", "circular") or axis == 0:
        raise TypeFault("mode is linear or circular, and the axis is not the first")
    start = t.full((shape[0],), 0, S64) if indices is None else t.convert(indices, S64)
    place = t.add(t.iota(shape, axis, S64), t.broadcast_to(t.reshape(start, (shape[0], *(1,) * (len(shape) - 1))), shape))
    if a.mode == "circular":
        place = t.binary("remainder", place, t.like(place, t.shape(x)[axis]))
    return scattered(t, x, place, update, axis, None)


@operator("OneHot(indices: real, depth: real[0-1], values: tensor[1]; axis=-1)")
def one_hot(t: Onnx, a: Attributes, indices: Node, depth: Node, values: Node) -> Node:
    """Two values: one at the index, the other elsewhere."""
    n = t.single(depth, "the depth")
    axis = t.axis(t.rank(indices) + 1, a.axis)
    shape = (*t.shape(indices)[:axis], n, *t.shape(indices)[axis:])
    wide = t.reshape(wrapped(t, indices, n), (*t.shape(indices)[:axis], 1, *t.shape(indices)[axis:]))
    off, on = (t.reshape(t.slice_dim(values, 0, i, i + 1), ()) for i in (0, 1))
    return t.select(t.compare("EQ", t.iota(shape, axis, S64), wide), on, off)
