"""Operators that move elements: reshape with its codes, transposes, layouts, joining, repeating."""

from __future__ import annotations

from math import prod
from typing import Any

from irscope.formats.relay.algebra import Relay, shape_text
from irscope.formats.relay.operators import Attributes, operator
from irscope.formats.relay.operators.creation import sizes
from irscope.graph import DynamicDim, Kind, Node, TensorType, Type
from irscope.graph.types import Dim
from irscope.ops.faults import TypeFault

INJ, B = Kind.INJECTIVE, Kind.BROADCAST


def new_shape(old: tuple[Dim, ...], codes: list[int], allow_zero: bool = False) -> list[Dim]:
    """What ``newshape`` means: 0 keeps, -1 is inferred, -2 keeps the rest, -3 joins two, -4 splits into the next two."""
    out: list[Dim] = []
    at, i, inferred = 0, 0, -1
    while i < len(codes):
        code = codes[i]
        i += 1
        if code > 0 or (code == 0 and allow_zero):
            out.append(code)
            at += 1
        elif code == 0:
            out.append(_dim(old, at))
            at += 1
        elif code == -1:
            if inferred >= 0:
                raise TypeFault("newshape may contain one -1")
            inferred = len(out)
            out.append(1)
            at += 1
        elif code == -2:
            out += old[at:]
            at = len(old)
        elif code == -3:
            a, b = _dim(old, at), _dim(old, at + 1)
            out.append(a * b if isinstance(a, int) and isinstance(b, int) else DynamicDim())
            at += 2
        elif code == -4:
            if i + 1 >= len(codes):
                raise TypeFault("-4 in newshape needs two numbers after it")
            whole, (a, b) = _dim(old, at), (codes[i], codes[i + 1])
            out += _split(whole, a, b)
            at += 1
            i += 2
        else:
            raise TypeFault(f"{code} is not a code of newshape")
    if inferred >= 0:
        known = prod(d for d in out if isinstance(d, int))
        if all(isinstance(d, int) for d in out) and all(isinstance(d, int) for d in old):
            total = prod(d for d in old if isinstance(d, int))
            if not known or total % known:
                raise TypeFault(f"{shape_text(old)} has {total} elements, no multiple of {known}")
            out[inferred] = total // known
        else:
            out[inferred] = _rest(old, out, inferred)
    return out


def _rest(old: tuple[Dim, ...], new: list[Dim], inferred: int) -> Dim:
    """The size of -1 among open dimensions: those on both sides cancel."""
    mine, theirs = list(old), [d for i, d in enumerate(new) if i != inferred]
    for d in list(theirs):
        if not isinstance(d, int) and d in mine:
            mine.remove(d)
            theirs.remove(d)
    if all(isinstance(d, int) for d in (*mine, *theirs)):
        a, b = prod(d for d in mine if isinstance(d, int)), prod(d for d in theirs if isinstance(d, int))
        return a // b if b and a % b == 0 else DynamicDim()
    return DynamicDim()


def _dim(old: tuple[Dim, ...], at: int) -> Dim:
    if at >= len(old):
        raise TypeFault(f"newshape takes dimension {at} of {shape_text(old)}")
    return old[at]


def _split(whole: Dim, a: int, b: int) -> list[Dim]:
    if 0 in (a, b) or a < -1 or b < -1 or a == b == -1:
        raise TypeFault(f"-4 splits a dimension into two sizes from 1, one of which may be -1, not into {a} and {b}")
    if isinstance(whole, int):
        a = whole // b if a == -1 else a
        b = whole // a if b == -1 else b
        if a * b != whole:
            raise TypeFault(f"{whole} does not split into {a} and {b}")
        return [a, b]
    return [DynamicDim() if a == -1 else a, DynamicDim() if b == -1 else b]


def reshape_type(a: Attributes, x: Type) -> Type | None:
    if not isinstance(x, TensorType) or x.is_static:
        return None
    return TensorType(x.dtype, tuple(new_shape(x.shape, list(a.newshape), bool(a.allowzero))))


@operator("reshape(data; newshape!, allowzero=0)", kind=INJ, infer=reshape_type)
def reshape(t: Relay, a: Attributes, x: Node) -> Node:
    """The same elements under another shape; 0, -1, -2, -3, -4 are codes."""
    codes = list(a.newshape) if isinstance(a.newshape, list | tuple) else [a.newshape]
    return t.reshape(x, sizes(new_shape(t.shape(x), codes, bool(a.allowzero))))


@operator("contrib_reverse_reshape(data; newshape!, allowzero=0)", "reverse_reshape(data; newshape!, allowzero=0)", kind=INJ)
def reverse_reshape(t: Relay, a: Attributes, x: Node) -> Node:
    """``reshape`` with codes read from the right."""
    return t.reshape(x, tuple(reversed(sizes(new_shape(tuple(reversed(t.shape(x))), list(reversed(a.newshape)))))))


@operator("reshape_like(data, shape_like; lhs_begin=0, lhs_end=None, rhs_begin=0, rhs_end=None)", kind=INJ)
def reshape_like(t: Relay, a: Attributes, x: Node, like: Node) -> Node:
    """Some dimensions take the sizes of those of another tensor."""
    xs, ys = t.shape(x), t.shape(like)

    def place(value: Any, n: int, default: int) -> int:
        return default if value is None else value + n if value < 0 else value

    begin, end = place(a.lhs_begin, len(xs), 0), place(a.lhs_end, len(xs), len(xs))
    first, last = place(a.rhs_begin, len(ys), 0), place(a.rhs_end, len(ys), len(ys))
    return t.reshape(x, (*xs[:begin], *ys[first:last], *xs[end:]))


@operator("transpose(data; axes=None)", kind=INJ)
def transpose(t: Relay, a: Attributes, x: Node) -> Node:
    """Dimensions in another order; None reverses them."""
    rank = t.rank(x)
    axes = [t.axis(x, d) for d in a.axes] if a.axes else list(reversed(range(rank)))
    if sorted(axes) != list(range(rank)):
        raise TypeFault(f"axes {shape_text(a.axes)} are not a permutation of {rank} dimensions")
    return t.transpose(x, axes)


@operator("squeeze(data; axis=None)", kind=INJ)
def squeeze(t: Relay, a: Attributes, x: Node) -> Node:
    """Without dimensions of 1."""
    shape = t.shape(x)
    gone = [i for i, n in enumerate(shape) if n == 1] if a.axis is None else [t.axis(x, d) for d in _list(a.axis)]
    for d in gone:
        if shape[d] != 1:
            raise TypeFault(f"axis {d} is {shape[d]}, not 1")
    return t.reshape(x, tuple(n for i, n in enumerate(shape) if i not in gone))


@operator("expand_dims(data; axis: int!, num_newaxis=1)", kind=B)
def expand_dims(t: Relay, a: Attributes, x: Node) -> Node:
    """New dimensions of 1."""
    shape = t.shape(x)
    axis = a.axis if a.axis >= 0 else a.axis + len(shape) + 1
    if not 0 <= axis <= len(shape):
        raise TypeFault(f"axis {a.axis} is out of range for {len(shape)} dimensions")
    return t.reshape(x, (*shape[:axis], *new_axes(a.num_newaxis, len(shape)), *shape[axis:]))


MOST_AXES = 1024
"""More dimensions are a mistake."""


def new_axes(count: int, rank: int) -> tuple[int, ...]:
    """The sizes of new dimensions. Raises TypeFault for a negative number of them, and where there are more than MOST_AXES with the old."""
    if count < 0 or count + rank > MOST_AXES:
        raise TypeFault(f"num_newaxis is from 0 to {max(0, MOST_AXES - rank)} for {rank} dimensions, got {count}")
    return (1,) * count


@operator("concatenate(data: filled; axis=0)", kind=INJ)
def concatenate(t: Relay, a: Attributes, xs: list[Node]) -> Node:
    """The operands in order along an axis."""
    first = xs[0]
    axis = t.axis(first, a.axis)
    for x in xs[1:]:
        t.same_dtype(first, x)
        if t.rank(x) != t.rank(first):
            raise TypeFault(f"{shape_text(t.shape(first))} and {shape_text(t.shape(x))} have different ranks")
        for d, (m, n) in enumerate(zip(t.shape(first), t.shape(x), strict=True)):
            if d != axis and m != n:
                raise TypeFault(f"axis {d} is {m} and {n}; all but axis {axis} must be equal")
    return t.concat(xs, axis)


@operator("stack(data: filled; axis=0)", kind=INJ)
def stack(t: Relay, a: Attributes, xs: list[Node]) -> Node:
    """The operands along a new axis."""
    shape = t.shape(xs[0])
    axis = t.axis(len(shape) + 1, a.axis)
    for x in xs[1:]:
        if t.shape(x) != shape:
            raise TypeFault(f"{shape_text(shape)} and {shape_text(t.shape(x))} must be equal")
    return t.concat([t.reshape(x, (*shape[:axis], 1, *shape[axis:])) for x in xs], axis)


@operator("tile(data; reps!)", kind=B)
def tile(t: Relay, a: Attributes, x: Node) -> Node:
    """The whole tensor repeated along each dimension."""
    return tiled(t, x, list(_list(a.reps)))


def tiled(t: Relay, x: Node, reps: list[int]) -> Node:
    """numpy's ``tile``."""
    n = max(len(reps), t.rank(x))
    reps = [1] * (n - len(reps)) + reps
    shape = (1,) * (n - t.rank(x)) + t.shape(x)
    spread = tuple(v for r, s in zip(reps, shape, strict=True) for v in (r, s))
    wide = t.broadcast_to(t.reshape(x, tuple(v for s in shape for v in (1, s))), spread)
    return t.reshape(wide, tuple(r * s for r, s in zip(reps, shape, strict=True)))


@operator("repeat(data; repeats: int!, axis: int=None)", kind=B)
def repeat(t: Relay, a: Attributes, x: Node) -> Node:
    """Each element several times along an axis."""
    x, axis = t.flat_or_axis(x, a.axis)
    return repeated(t, x, int(a.repeats), axis)


def repeated(t: Relay, x: Node, times: int, axis: int) -> Node:
    """Each element ``times`` times along a dimension."""
    shape = t.shape(x)
    parts = t.reshape(x, (*shape[: axis + 1], 1, *shape[axis + 1 :]))
    wide = t.broadcast_to(parts, (*shape[: axis + 1], times, *shape[axis + 1 :]))
    return t.reshape(wide, (*shape[:axis], shape[axis] * times, *shape[axis + 1 :]))


@operator("reverse(data; axis=None)", kind=INJ)
def reverse(t: Relay, a: Attributes, x: Node) -> Node:
    """Backwards along an axis."""
    return t.reverse(x, [t.axis(x, d) for d in _list(0 if a.axis is None else a.axis)])


@operator("broadcast_to(data; shape!, dtype=None)", kind=B)
def broadcast_to(t: Relay, a: Attributes, x: Node) -> Node:
    """Broadcast to a shape."""
    return t.broadcast_to(x, sizes(a.shape))


@operator("broadcast_to_like(data, broadcast_type)", kind=B)
def broadcast_to_like(t: Relay, a: Attributes, x: Node, like: Node) -> Node:
    """Broadcast to the shape of another."""
    return t.broadcast_to(x, t.shape(like))


@operator("collapse_sum_like(data, collapse_type)", kind=Kind.REDUCTION)
def collapse_sum_like(t: Relay, a: Attributes, x: Node, like: Node) -> Node:
    """The sums that undo a broadcast from the shape of another."""
    return collapsed(t, x, t.shape(like))


def collapsed(t: Relay, x: Node, shape: tuple[int, ...]) -> Node:
    """Sums over what a broadcast from ``shape`` would have repeated."""
    lead = t.rank(x) - len(shape)
    over = [d for d in range(t.rank(x)) if d < lead or (shape[d - lead] == 1 and t.shape(x)[d] != 1)]
    return t.reshape(t.sum(x, over), shape)


@operator("layout_transform(data; src_layout!, dst_layout!)", "auto_scheduler_layout_transform(data; src_layout!, dst_layout!)", kind=INJ)
def layout_transform(t: Relay, a: Attributes, x: Node) -> Node:
    """The same tensor in another layout."""
    return t.to_layout(x, str(a.src_layout), str(a.dst_layout))


@operator("nn.batch_flatten(data: 1d+)", "nn.flatten(data: 1d+)", kind=INJ)
def batch_flatten(t: Relay, a: Attributes, x: Node) -> Node:
    """All dimensions but the first joined."""
    shape = t.shape(x)
    return t.reshape(x, (shape[0], prod(shape[1:])))


def _list(value: Any) -> list[int]:
    return list(value) if isinstance(value, list | tuple) else [value]


@operator("nn.fifo_buffer(data, buffer; axis=0)")
def fifo_buffer(t: Relay, a: Attributes, x: Node, buffer: Node) -> Node:
    """Appends the newest data to a buffer and drops the oldest."""
    axis = t.axis(buffer, int(a.axis))
    if t.rank(x) != t.rank(buffer):
        raise TypeFault(f"{shape_text(t.shape(x))} and {shape_text(t.shape(buffer))} have different ranks")
    new, size = t.shape(x)[axis], t.shape(buffer)[axis]
    if new >= size:
        raise TypeFault(f"data axis {axis} is {new}, the buffer has {size}")
    return t.concat([t.slice_dim(buffer, axis, new, size), x], axis)
