"""Operators that read and write at positions given by index tensors."""

from __future__ import annotations

from math import prod

from irscope.formats.relay.algebra import Relay, shape_text, steps_of
from irscope.formats.relay.operators import Attributes, operator
from irscope.graph import Kind, Node
from irscope.graph.dtypes import S32, S64
from irscope.ops.faults import TypeFault

INJ = Kind.INJECTIVE


def wrapped(t: Relay, indices: Node, n: int) -> Node:
    """Indices with negative ones counted from the end."""
    wide = t.convert(indices, S64)
    return t.select(t.compare("LT", wide, t.like(wide, 0)), t.plus(wide, n), wide)


@operator("take(data, indices: int; batch_dims=0, axis: int=None, mode='clip')", kind=INJ)
def take(t: Relay, a: Attributes, x: Node, indices: Node) -> Node:
    """The elements, or slices along an axis, at the given indices."""
    wide = t.convert(indices, S64)
    batch = int(a.batch_dims)
    x, axis = t.flat_or_axis(x, a.axis)
    n = t.shape(x)[axis]
    if a.mode == "wrap":
        rest = t.binary("remainder", wide, t.like(wide, n))
        wide = t.select(t.compare("LT", rest, t.like(rest, 0)), t.plus(rest, n), rest)
    if batch == 0:
        return t.take(x, wide, axis)
    return _take_batched(t, x, wide, axis, batch + t.rank(indices) if batch < 0 else batch)


def _take_batched(t: Relay, x: Node, indices: Node, axis: int, batch: int) -> Node:
    """``take`` with batch dimensions: indices refer to the flattened batch."""
    shape, places = t.shape(x), t.shape(indices)
    if shape[:batch] != places[:batch]:
        raise TypeFault(f"the first {batch} axes are {shape_text(shape[:batch])} and {shape_text(places[:batch])}")
    n = shape[axis]
    rows = prod(shape[:batch])
    clamped = t.minimum(t.maximum(indices, t.like(indices, 0)), t.like(indices, n - 1))
    moved = t.transpose(x, [*range(batch), axis, *(d for d in range(batch, len(shape)) if d != axis)])
    flat = t.reshape(moved, (rows * n, *t.shape(moved)[batch + 1 :]))
    inner = places[batch:]
    count = prod(inner)
    at = t.add(t.reshape(clamped, (rows, count)), t.scale(t.iota((rows, count), 0, S64), n))
    made = t.reshape(t.take(flat, at, 0), (*shape[:batch], *inner, *t.shape(flat)[1:]))
    between = axis - batch
    rank = len(t.shape(made))
    first = list(range(batch + len(inner), batch + len(inner) + between))
    order = [*range(batch), *first, *range(batch, batch + len(inner)), *range(batch + len(inner) + between, rank)]
    return t.transpose(made, order)


@operator("gather(data, indices: int; axis: int=None)", kind=INJ)
def gather(t: Relay, a: Attributes, x: Node, indices: Node) -> Node:
    """``result[i, j] = x[indices[i, j], j]`` for axis 0."""
    axis = t.axis(x, int(a.axis or 0))
    if t.rank(indices) != t.rank(x):
        raise TypeFault(f"data has {t.rank(x)} axes, indices {t.rank(indices)}")
    return t.gather_elements(x, wrapped(t, indices, t.shape(x)[axis]), axis)


@operator("gather_nd(data: 1d+, indices: int 1d+; batch_dims=0, index_rank=None)", kind=INJ)
def gather_nd(t: Relay, a: Attributes, x: Node, indices: Node) -> Node:
    """Slices at index vectors, which are along the first axis of the indices."""
    shape, places, batch = t.shape(x), t.shape(indices), int(a.batch_dims)
    n = places[0]
    if not 0 <= batch < len(places):
        raise TypeFault(f"batch_dims is {batch}, the indices are {shape_text(places)}")
    if batch + n > len(shape):
        raise TypeFault(f"index vectors of {n} for data of {shape_text(shape)}")
    wide = t.convert(indices, S64)
    rest = places[1:]
    parts = [t.reshape(t.iota(rest, d, S64), (*rest, 1)) for d in range(batch)]
    for i in range(n):
        part = t.reshape(t.slice_dim(wide, 0, i, i + 1), (*rest, 1))
        parts.append(wrapped(t, part, shape[batch + i]))
    starts = t.concat(parts, len(rest))
    return at_vectors(t, x, starts)


def at_vectors(t: Relay, x: Node, starts: Node) -> Node:
    """Slices of ``x`` at vectors in the last dimension of ``starts``."""
    shape, n, rank = t.shape(x), t.shape(starts)[-1], t.rank(starts) - 1
    attrs = {
        "offset_dims": tuple(range(rank, rank + len(shape) - n)),
        "collapsed_slice_dims": tuple(range(n)),
        "start_index_map": tuple(range(n)),
        "index_vector_dim": rank,
        "slice_sizes": (1,) * n + shape[n:],
    }
    return t.emit("gather", (x, starts), attrs)


@operator("adv_index(inputs: filled)", kind=INJ)
def adv_index(t: Relay, a: Attributes, xs: list[Node]) -> Node:
    """numpy's indexing by several tensors, broadcast to one shape."""
    if not 1 < len(xs) <= t.rank(xs[0]) + 1:
        raise TypeFault(f"the data and from 1 to as many indices as it has dimensions are needed, got {len(xs)} tensors")
    x, indices = xs[0], [t.convert(i, S64) for i in xs[1:]]
    indices = t.together(*indices)
    shape = t.shape(indices[0])
    parts = [t.reshape(wrapped(t, i, t.shape(x)[d]), (*shape, 1)) for d, i in enumerate(indices)]
    return at_vectors(t, x, t.concat(parts, len(shape)))


COMBINE = {"update": None, "add": "add", "mul": "multiply", "min": "minimum", "max": "maximum"}


@operator("scatter_elements(data, indices: int, updates; axis=0, reduction='update')",
          "scatter(data, indices: int, updates; axis=0, reduction='update')", work="reduction")
def scatter_elements(t: Relay, a: Attributes, x: Node, indices: Node, updates: Node) -> Node:
    """``x[indices[i, j], j] = updates[i, j]`` for axis 0, or combined with the present value."""
    axis = t.axis(x, a.axis)
    if a.reduction == "mean":
        return _scatter_mean(t, x, indices, updates, axis)
    if a.reduction not in COMBINE:
        raise TypeFault(f"reduction {a.reduction!r} is not one of update, add, mul, mean, min, max")
    return scattered(t, x, wrapped(t, indices, t.shape(x)[axis]), updates, axis, COMBINE[a.reduction])


def scattered(t: Relay, x: Node, indices: Node, updates: Node, axis: int, combine: str | None) -> Node:
    """Updates written at indices (s64) along an axis. ``combine`` is the primitive that joins them with present values; None replaces."""
    shape = t.shape(indices)
    parts = [indices if d == axis else t.iota(shape, d, S64) for d in range(len(shape))]
    starts = t.concat([t.reshape(p, (*shape, 1)) for p in parts], len(shape))
    axes = range(len(shape))
    return t.scatter(x, starts, updates, combine, inserted=axes)


def _scatter_mean(t: Relay, x: Node, indices: Node, updates: Node, axis: int) -> Node:
    """The mean of the present value and all updates."""
    places = wrapped(t, indices, t.shape(x)[axis])
    total = scattered(t, x, places, updates, axis, "add")
    count = scattered(t, t.like(x, 1), places, t.like(updates, 1), axis, "add")
    return t.div(total, count)


@operator("scatter_add(data, indices: int, updates; axis=0)", work="reduction")
def scatter_add(t: Relay, a: Attributes, x: Node, indices: Node, updates: Node) -> Node:
    """``scatter_elements`` that adds."""
    return scatter_elements(t, Attributes(axis=a.axis, reduction="add"), x, indices, updates)


@operator("scatter_nd(data: 1d+, indices: int 1d+, updates; mode='update')", work="reduction")
def scatter_nd(t: Relay, a: Attributes, x: Node, indices: Node, updates: Node) -> Node:
    """Slices written at index vectors, which are along the first axis of the indices."""
    if a.mode not in COMBINE:
        raise TypeFault(f"mode {a.mode!r} is not one of {', '.join(COMBINE)}")
    places = t.shape(indices)
    n, rest = places[0], places[1:]
    if n > t.rank(x):
        raise TypeFault(f"index vectors of {n} for data of {shape_text(t.shape(x))}")
    starts = t.transpose(t.convert(indices, S64), [*range(1, len(places)), 0])
    window = range(len(rest), t.rank(updates))
    return t.scatter(x, starts, updates, COMBINE[a.mode], window_dims=window, inserted=range(n))


@operator("sequence_mask(data: 2d+, valid_length: 1d; mask_value=0.0, axis=0)", kind=INJ)
def sequence_mask(t: Relay, a: Attributes, x: Node, length: Node) -> Node:
    """Masks the elements beyond the length of their sequence; the batch is the other of the first two axes."""
    axis = t.axis(x, a.axis)
    if axis > 1:
        raise TypeFault(f"axis is 0 or 1, got {axis}")
    batch = 1 - axis
    if t.shape(length) != (t.shape(x)[batch],):
        raise TypeFault(f"data axis {batch} is {t.shape(x)[batch]}, valid_length is {shape_text(t.shape(length))}")
    wide = t.convert(length, S64)
    bound = t.emit("broadcast", (wide,), {"dimensions": (batch,)}, type=t.type(x).with_dtype(S64))
    keep = t.compare("LT", t.iota(t.shape(x), axis, S64), bound)
    return t.select(keep, x, t.like(x, a.mask_value))


@operator("reverse_sequence(data, seq_lengths: int; seq_axis=1, batch_axis=0)", kind=INJ)
def reverse_sequence(t: Relay, a: Attributes, x: Node, length: Node) -> Node:
    """Reverses the first elements of each sequence."""
    axis, batch = t.axis(x, a.seq_axis), t.axis(x, a.batch_axis)
    if t.shape(length) != (t.shape(x)[batch],):
        raise TypeFault(f"data axis {batch} is {t.shape(x)[batch]}, seq_lengths is {shape_text(t.shape(length))}")
    bound = t.emit("broadcast", (t.convert(length, S64),), {"dimensions": (batch,)}, type=t.type(x).with_dtype(S64))
    at = t.iota(t.shape(x), axis, S64)
    turned = t.plus(t.sub(bound, at), -1)
    return t.gather_elements(x, t.select(t.compare("LT", at, bound), turned, at), axis)


@operator("matrix_set_diag(input: 2d+, diagonal: 1d+; k1=0, k2=0, super_diag_right_align=True, sub_diag_right_align=False)", kind=INJ)
def matrix_set_diag(t: Relay, a: Attributes, x: Node, diagonal: Node) -> Node:
    """Replaces diagonals of the last two axes."""
    shape = t.shape(x)
    rows, columns = shape[-2:]
    low, high = int(a.k1), int(a.k2)
    where = t.sub(t.iota(shape, len(shape) - 1, S64), t.iota(shape, len(shape) - 2, S64))
    lead = shape[:-2]
    banded = high > low
    if low > high or low <= -rows or high >= columns or t.rank(diagonal) != len(lead) + 1 + banded:
        raise TypeFault(f"diagonals {low} to {high} of {shape_text(shape)} are not {shape_text(t.shape(diagonal))}")
    width = t.shape(diagonal)[-1]
    steps_of(high + 1 - low)
    for k in range(low, high + 1):
        row = diagonal
        if banded:
            place = len(lead)
            row = t.reshape(t.slice_dim(diagonal, place, high - k, high - k + 1), (*lead, width))
        length = min(rows + min(k, 0), columns - max(k, 0))
        right = a.super_diag_right_align if k >= 0 else a.sub_diag_right_align
        offset = width - length if banded and right else 0
        values = t.slice_dim(row, len(lead), offset, offset + length)
        # Along the columns the diagonal begins at max(k, 0).
        before = max(k, 0)
        zero = [0] * len(lead)
        spread = t.pad(values, t.array(0, t.dtype(x)), [*zero, before], [*zero, columns - before - length])
        spread = t.broadcast_to(t.reshape(spread, (*lead, 1, columns)), shape)
        x = t.select(t.compare("EQ", where, t.like(where, k)), spread, x)
    return x


@operator("unravel_index(data: int, shape: int)", kind=INJ, values=True)
def unravel_index(t: Relay, a: Attributes, x: Node, shape: Node) -> Node:
    """Flat indices as coordinates, one row per dimension."""
    sizes = t.ints(shape, "the shape")
    if not sizes:
        raise TypeFault("the shape has no dimension")
    rows, flat = [], x
    for n in reversed(sizes):
        rows.append(t.reshape(t.binary("remainder", flat, t.like(flat, n)), (1, *t.shape(x))))
        flat = t.div(flat, t.like(flat, n))
    return t.concat(list(reversed(rows)), 0)


@operator("sparse_to_dense(sparse_indices: int, sparse_values, default_value; output_shape!)")
def sparse_to_dense(t: Relay, a: Attributes, indices: Node, values: Node, default: Node) -> Node:
    """Values at their positions in a tensor filled with another value."""
    shape = tuple(int(n) for n in a.output_shape)
    base = t.broadcast_to(t.reshape(default, ()), shape)
    rank = len(shape)
    if not rank:
        raise TypeFault("output_shape has no dimension")
    wide = t.convert(indices, S64)
    if t.rank(wide) < 2:
        wide = t.reshape(wide, (prod(t.shape(wide)) // rank, rank))
    updates = t.broadcast_to(values, t.shape(wide)[:1])
    return t.scatter(base, wide, updates, None, inserted=range(rank))


@operator("invert_permutation(data: int 1d)", kind=INJ)
def invert_permutation(t: Relay, a: Attributes, x: Node) -> Node:
    """The position of each number."""
    n = t.shape(x)[0]
    places = t.reshape(t.convert(x, S64), (n, 1))
    return t.scatter(t.like(x, 0), places, t.iota((n,), 0, t.dtype(x)), None, inserted=[0])


@operator("sliding_window(data; axis: int!, window_shape!, strides: sizes!)")
def sliding_window(t: Relay, a: Attributes, x: Node) -> Node:
    """Every window over the axes from ``axis`` on, as new trailing axes."""
    axis, size, strides = t.axis(x, a.axis), [int(w) for w in a.window_shape], [int(s) for s in a.strides]
    if len(size) != len(strides) or axis + len(size) > t.rank(x):
        raise TypeFault(f"windows {shape_text(size)} in steps of {shape_text(strides)} from axis {axis} of {shape_text(t.shape(x))}")
    for i, (w, s) in enumerate(zip(size, strides, strict=True)):
        d = axis + i
        if w > t.shape(x)[d]:
            raise TypeFault(f"the window of {w} is larger than data axis {d}, which is {t.shape(x)[d]}")
        count = (t.shape(x)[d] - w) // s + 1
        at = t.add(t.scale(t.iota((count, w), 0, S32), s), t.iota((count, w), 1, S32))
        x = t.take(x, at, d)  # the axis becomes (windows, position in the window)
        order = [k for k in range(t.rank(x)) if k != d + 1]
        x = t.transpose(x, [*order, d + 1])
    return x
