"""Pooling over windows, and over whole planes."""
from __future__ import annotations

from math import prod

from irscope.formats.onnx.algebra import Onnx, bounded
from irscope.formats.onnx.declarations import Attributes
from irscope.formats.onnx.operators import operator
from irscope.formats.onnx.operators.convolution import Geometry, each, geometry
from irscope.graph import Node
from irscope.graph.dtypes import PRED, S64
from irscope.lazy import Array, np
from irscope.ops.attrs import Window
from irscope.ops.checked import nonzero
from irscope.ops.faults import TypeFault
from irscope.source.budget import require

POOL = "auto_pad='NOTSET', ceil_mode=0, dilations: ints=None, kernel_shape: ints!, pads: ints=None, strides: ints=None"


def windows(t: Onnx, a: Attributes, x: Node) -> tuple[Geometry, list[int]]:
    """The windows over the spatial dimensions, and what ``ceil_mode`` adds to the padding at the end.

    A window that would begin in the padding at the end is left out.
    """
    n = t.rank(x) - 2
    if n < 1:
        raise TypeFault(f"data {list(t.shape(x))} has no spatial dimensions")
    at = geometry(a, t.shape(x)[2:], each(a.kernel_shape, n, "kernel_shape"))
    more = []
    for have, (low, high), reach, stride in zip(t.shape(x)[2:], at.pads, at.reach, at.strides, strict=True):
        room = have + low + high - reach
        if room < 0 and not (a.ceil_mode and room + stride > 0):
            raise TypeFault(f"a window of {reach} is larger than {have} with {low} and {high} around it")
        count = room // stride + 1
        if a.ceil_mode and room % stride and count * stride < have + low:
            more.append((count * stride + reach) - (have + low + high))
        else:
            more.append(0)
    return at, more


def window_of(at: Geometry, more: list[int]) -> Window:
    """The window over data (N, C, ...)."""
    pads = [(low, high + extra) for (low, high), extra in zip(at.pads, more, strict=True)]
    return Window.make((1, 1, *at.size), (1, 1, *at.strides), ((0, 0), (0, 0), *pads), rhs_dilate=(1, 1, *at.dilations))


@operator(f"MaxPool(X: tensor[3+]; {POOL}, storage_order=0)")
def max_pool(t: Onnx, a: Attributes, x: Node) -> tuple[Node, ...]:
    """The greatest element under each window, and its place in the whole tensor."""
    at, more = windows(t, a, x)
    if a.results < 2:
        return (t.window("maximum", x, t.dtype(x).lowest, window_of(at, more)),)
    return _with_places(t, a, x, at, more)


def _with_places(t: Onnx, a: Attributes, x: Node, at: Geometry, more: list[int]) -> tuple[Node, ...]:
    n, c, *spatial = t.shape(x)
    counts = [window_of(at, more).output_size(2 + d, have) for d, have in enumerate(spatial)]
    bounded(prod(counts) * prod(at.size), "the places of a pooling")
    table = places_under(at, spatial, counts)
    flat = t.reshape(x, (n * c, prod(spatial)))
    picked = t.take(flat, t.array(np.maximum(table, 0), S64), 1)
    inside = t.broadcast_to(t.array(table >= 0, PRED), t.shape(picked))
    values, which = t.arg_extreme(t.select(inside, picked, t.like(picked, t.dtype(x).lowest)), 2, True, S64)
    rows = t.broadcast_to(t.array(np.maximum(table, 0), S64), (n * c, *table.shape))
    place = t.reshape(t.gather_elements(rows, t.reshape(which, (*t.shape(which), 1)), 2), t.shape(which))
    if a.storage_order:
        place = _column_major(t, place, spatial)
    place = t.add(place, t.scale(t.iota(t.shape(place), 0, S64), prod(spatial)))
    return t.reshape(values, (n, c, *counts)), t.reshape(place, (n, c, *counts))


def places_under(at: Geometry, spatial: list[int], counts: list[int]) -> Array:
    """For each window and each of its elements the place in the plane, -1 in the padding."""
    table = np.zeros((1, 1), np.int64)
    for d, have in enumerate(spatial):
        line = np.arange(counts[d])[:, None] * at.strides[d] - at.pads[d][0] + np.arange(at.size[d])[None] * at.dilations[d]
        line = np.where((line >= 0) & (line < have), line, -1)
        outer, inner = table[:, None, :, None], line[None, :, None, :]
        both = np.where((outer < 0) | (inner < 0), -1, outer * have + inner)
        table = both.reshape(table.shape[0] * counts[d], table.shape[1] * at.size[d])
    return table


def _column_major(t: Onnx, place: Node, spatial: list[int]) -> Node:
    """Places counted with the first spatial dimension fastest."""
    total, rest, factor = t.like(place, 0), place, prod(spatial)
    for n in reversed(spatial):
        factor //= max(n, 1)
        total = t.add(total, t.scale(t.binary("remainder", rest, t.like(rest, n)), factor))
        rest = t.binary("divide", rest, t.like(rest, n))
    return total


@operator(f"AveragePool(X: float[3+]; {POOL}, count_include_pad=0)")
def average_pool(t: Onnx, a: Attributes, x: Node) -> Node:
    """The mean of the elements under each window; with ``count_include_pad`` the padding counts as zeros."""
    at, more = windows(t, a, x)
    total = t.window("add", t.widened(x), 0, window_of(at, more))
    spatial = t.shape(x)[2:]
    lines = []
    for d, have in enumerate(spatial):
        count = t.shape(total)[2 + d]
        bounded(count * at.size[d] // 4, "the counts of a pooling")
        line = np.arange(count)[:, None] * at.strides[d] - at.pads[d][0] + np.arange(at.size[d])[None] * at.dilations[d]
        low, high = (-at.pads[d][0], have + at.pads[d][1]) if a.count_include_pad else (0, have)
        lines.append(((line >= low) & (line < high)).sum(1))
    counts = np.ones(())
    bounded(prod(t.shape(total)[2:]) // 4, "the counts of a pooling")
    for line in lines:
        counts = counts[..., None] * line
    return t.convert(t.div(total, t.array(np.maximum(counts, 1), t.dtype(total))), t.dtype(x))


@operator(f"LpPool(X: float[3+]; {POOL.replace('kernel_shape: ints!', 'kernel_shape: ints=None')}, p: int|float=2)")
def lp_pool(t: Onnx, a: Attributes, x: Node) -> Node:
    """The p-norm of the elements under each window."""
    at, more = windows(t, a, x)
    return _root(t, t.window("add", _powers(t, x, a.p), 0, window_of(at, more)), a.p)


def _powers(t: Onnx, x: Node, p: float) -> Node:
    size = t.unary("abs", x)
    return size if p == 1 else t.mul(x, x) if p == 2 else t.binary("power", size, t.like(x, p))


def _root(t: Onnx, x: Node, p: float) -> Node:
    return x if p == 1 else t.unary("sqrt", x) if p == 2 else t.binary("power", x, t.like(x, 1 / nonzero("p", p)))


@operator("GlobalAveragePool(X: float[2+])")
def global_average_pool(t: Onnx, a: Attributes, x: Node) -> Node:
    """The mean of each plane."""
    return t.convert(t.mean(t.widened(x), list(range(2, t.rank(x))), True), t.dtype(x))


@operator("GlobalMaxPool(X: float[2+])")
def global_max_pool(t: Onnx, a: Attributes, x: Node) -> Node:
    """The greatest element of each plane."""
    return t.max(x, list(range(2, t.rank(x))), True)


@operator("GlobalLpPool(X: float[2+]; p: int|float=2)")
def global_lp_pool(t: Onnx, a: Attributes, x: Node) -> Node:
    """The p-norm of each plane."""
    return _root(t, t.sum(_powers(t, x, a.p), list(range(2, t.rank(x))), True), a.p)


@operator("MaxUnpool(X: float[3+], I: int, output_shape?: int[1]; kernel_shape: ints!, pads: ints=None, strides: ints=None)")
def max_unpool(t: Onnx, a: Attributes, x: Node, places: Node, shape: Node | None) -> Node:
    """Elements put back to the places that ``MaxPool`` gave, zeros elsewhere."""
    n, c, *spatial = t.shape(x)
    count = len(spatial)
    strides, sizes, pads = each(a.strides, count, "strides"), each(a.kernel_shape, count, "kernel_shape"), a.pads or [0] * (2 * count)
    if len(pads) != 2 * count:
        raise TypeFault(f"{len(pads)} pads for {count} spatial dimensions")
    inner = [(have - 1) * strides[d] + sizes[d] - pads[d] - pads[count + d] for d, have in enumerate(spatial)]
    require(n * c * prod(inner) * t.dtype(x).storage, "an unpooled tensor")
    made = t.full((n * c * prod(inner),), 0, t.dtype(x))
    starts = t.reshape(t.convert(places, S64), (t.type(x).elements, 1))
    made = t.scatter(made, starts, t.reshape(x, (t.type(x).elements,)), None, inserted=[0])
    made = t.reshape(made, (n, c, *inner))
    if shape is None:
        return made
    wanted = t.ints(shape, "the output shape")
    if len(wanted) != t.rank(x) or any(n < 0 for n in wanted):
        raise TypeFault(f"the output shape {wanted} for data {list(t.shape(x))}")
    require(prod(wanted) * t.dtype(x).storage, "an unpooled tensor")
    return t.pad(made, t.array(0, t.dtype(x)), [0] * len(wanted), [m - n for m, n in zip(wanted, t.shape(made), strict=True)])
