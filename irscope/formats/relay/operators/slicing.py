"""Operators that cut and pad: slices, splits, padding of every mode, blocks of space."""

from __future__ import annotations

from itertools import pairwise
from math import prod

from irscope.formats.relay.algebra import Relay, shape_text, steps_of, table_of
from irscope.formats.relay.operators import Attributes, operator
from irscope.graph import Kind, Node
from irscope.graph.dtypes import PRED, S64
from irscope.lazy import np
from irscope.ops.faults import TypeFault

INJ = Kind.INJECTIVE


@operator("split(data; indices_or_sections!, axis=0)", kind=INJ)
def split(t: Relay, a: Attributes, x: Node) -> list[Node]:
    """Equal parts along an axis, or parts between cuts."""
    axis = t.axis(x, a.axis)
    n = t.shape(x)[axis]
    if isinstance(a.indices_or_sections, list | tuple):
        cuts = [0, *(int(c) for c in a.indices_or_sections), n]
    else:
        parts = int(a.indices_or_sections)
        if steps_of(parts) < 1 or n % parts:
            raise TypeFault(f"axis {axis} is {n}, which {parts} parts do not divide")
        cuts = [n // parts * i for i in range(parts + 1)]
    return [t.slice_dim(x, axis, low, max(low, high)) for low, high in pairwise(cuts)]


@operator('strided_slice(data; begin!, end!, strides: places=[1], slice_mode="end", axes=None)', kind=INJ)
def strided_slice(t: Relay, a: Attributes, x: Node) -> Node:
    """From begin to below end in steps; negative places count from the end, negative steps go back."""
    return sliced(t, x, a, list(a.begin), list(a.end), list(a.strides or [1]))


def sliced(t: Relay, x: Node, a: Attributes, begin: list[int], end: list[int], strides: list[int]) -> Node:
    """Slices as in Python, each along its axis; without ``axes`` along the first ones, as many as the longest list has."""
    mode, axes = a.slice_mode, a.axes
    axes = [t.axis(x, d) for d in axes] if axes else list(range(max(len(begin), len(end), len(strides) if len(strides) > 1 else 0)))
    if len(axes) > t.rank(x):
        raise TypeFault(f"{len(axes)} places for data of {shape_text(t.shape(x))}")
    back = []
    for i, d in enumerate(axes):
        n = t.shape(x)[d]
        step = 1 if mode == "size" else strides[i] if i < len(strides) else 1 if len(strides) != 1 else strides[0]
        if step is None or (i < len(end) and end[i] is None):
            raise TypeFault("ends and strides are numbers")
        if step == 0:
            raise TypeFault("strides are not 0")
        first = begin[i] if i < len(begin) and begin[i] is not None else 0 if step > 0 else n - 1
        stop = end[i] if i < len(end) else n
        if mode == "size":
            first = first + n if first < 0 else first
            stop = n if stop < 0 else first + stop
        bounds = slice(_within(first, n, step), _within(stop, n, step, True), step).indices(n)
        count = max(0, -(-(bounds[1] - bounds[0]) // step))
        if step < 0:
            # Backwards: the same range forwards, then reversed.
            last = bounds[0] + (count - 1) * step
            x = t.slice_dim(x, d, last if count else 0, bounds[0] + 1 if count else 0, -step)
            back.append(d)
        else:
            x = t.slice_dim(x, d, min(bounds[0], n), max(min(bounds[0], n), min(bounds[1], n)), step)
    return t.reverse(x, back)


def _within(place: int, n: int, step: int, stop: bool = False) -> int | None:
    """An index as Python's slices clamp it."""
    if place < -n and step < 0 and stop:
        return None
    return max(place, -n) if place < 0 else place


@operator("strided_set(data, v, begin, end, strides)", kind=INJ, values=True)
def strided_set(t: Relay, a: Attributes, x: Node, v: Node, begin: Node, end: Node, strides: Node) -> Node:
    """Writes another tensor into a slice."""
    starts, stops, steps = t.ints(begin, "begin"), t.ints(end, "end"), t.ints(strides, "strides") if t.shape(strides) else [1]
    steps = steps * len(starts) if len(steps) == 1 else steps
    if 0 in steps:
        raise TypeFault("strides are not 0")
    ranges = [range(*slice(b, e, s).indices(n)) for b, e, s, n in zip(starts, stops, steps, t.shape(x), strict=False)]
    ranges += [range(n) for n in t.shape(x)[len(ranges) :]]
    if any(r.step < 0 for r in ranges):
        raise TypeFault("negative strides are not written")
    v = t.broadcast_to(v, tuple(len(r) for r in ranges))
    low = [r.start for r in ranges]
    inner = [r.step - 1 for r in ranges]
    high = [n - (r.start + (len(r) - 1) * r.step + 1) for n, r in zip(t.shape(x), ranges, strict=True)]
    spread = t.pad(v, t.array(0, t.dtype(x)), low, high, inner)
    mask = t.pad(t.full(t.shape(v), True, PRED), t.array(False, PRED), low, high, inner)
    return t.select(mask, spread, x)


@operator("slice_like(data, shape_like; axes=None)", kind=INJ)
def slice_like(t: Relay, a: Attributes, x: Node, like: Node) -> Node:
    """The first elements of each axis, as many as in another tensor."""
    axes = [t.axis(x, d) for d in a.axes] if a.axes else list(range(min(t.rank(x), t.rank(like))))
    for d in axes:
        x = t.slice_dim(x, d, 0, t.shape(like)[t.axis(like, d)])
    return x


# ---------------------------------------------------------------------- padding


@operator('nn.pad(data, pad_value?; pad_width!, pad_mode="constant", pad_value=0.0)', kind=INJ)
def pad(t: Relay, a: Attributes, x: Node, value: Node | None = None) -> Node:
    """Pads with one value, the edge, or a mirror image."""
    widths = [tuple(int(v) for v in pair) for pair in a.pad_width]
    if len(widths) != t.rank(x):
        raise TypeFault(f"pad_width has {len(widths)} pairs, the data is {shape_text(t.shape(x))}")
    if a.pad_mode in ("edge", "reflect"):
        return mirrored(t, x, widths, a.pad_mode)
    fill = t.array(a.pad_value, t.dtype(x)) if value is None else t.convert(t.reshape(value, ()), t.dtype(x))
    return t.pad(x, fill, [w[0] for w in widths], [w[1] for w in widths])


@operator('nn.mirror_pad(data; mode="SYMMETRIC", pad_width!)', kind=INJ)
def mirror_pad(t: Relay, a: Attributes, x: Node) -> Node:
    """A mirror image around, with the edge twice (SYMMETRIC) or once (REFLECT)."""
    mode = str(a.mode).lower()
    if mode not in ("symmetric", "reflect"):
        raise TypeFault(f"mode {a.mode!r} is not one of SYMMETRIC, REFLECT")
    return mirrored(t, x, [tuple(int(v) for v in pair) for pair in a.pad_width], mode)


def mirrored(t: Relay, x: Node, widths: list[tuple[int, ...]], mode: str) -> Node:
    """Pads with mirrored elements. Raises TypeFault where there are none."""
    if len(widths) != t.rank(x):
        raise TypeFault(f"pad_width has {len(widths)} pairs, the data is {shape_text(t.shape(x))}")
    for d, (low, high) in enumerate(widths):
        if not (low or high):
            continue
        n = t.shape(x)[d]
        if not n:
            raise TypeFault(f"axis {d} has no elements to repeat")
        table_of(low + n + high)
        at = np.arange(-low, n + high)
        if mode == "edge":
            at = np.clip(at, 0, n - 1)
        elif mode == "reflect":
            period = max(1, 2 * (n - 1))
            at = np.minimum(at % period, period - at % period)
        else:
            at = np.minimum(at % (2 * n), 2 * n - 1 - at % (2 * n))
        x = t.take(x, t.array(at, S64), d)
    return x


@operator("nn.dilate(data; strides: sizes=[1, 1], dilation_value=0.0)", kind=INJ)
def dilate(t: Relay, a: Attributes, x: Node) -> Node:
    """Inserts a value between the elements."""
    if len(a.strides) != t.rank(x):
        raise TypeFault(f"strides are {shape_text(a.strides)}, the data is {shape_text(t.shape(x))}")
    zero = [0] * t.rank(x)
    return t.pad(x, t.array(a.dilation_value, t.dtype(x)), zero, zero, [int(s) - 1 for s in a.strides])


# ---------------------------------------------------------------------- blocks of space


@operator('nn.depth_to_space(data; block_size=1, layout="NCHW", mode="DCR")', kind=INJ)
def depth_to_space(t: Relay, a: Attributes, x: Node) -> Node:
    """Moves channels into blocks of the plane."""
    x = t.to_layout(x, a.layout, "NCHW")
    n, c, h, w = t.shape(x)
    b = int(a.block_size)
    if c % (b * b):
        raise TypeFault(f"axis C is {c}, no multiple of {b * b}")
    if a.mode == "DCR":
        parts = t.transpose(t.reshape(x, (n, b, b, c // (b * b), h, w)), (0, 3, 4, 1, 5, 2))
    else:
        parts = t.transpose(t.reshape(x, (n, c // (b * b), b, b, h, w)), (0, 1, 4, 2, 5, 3))
    return t.to_layout(t.reshape(parts, (n, c // (b * b), h * b, w * b)), "NCHW", a.layout)


@operator('nn.space_to_depth(data; block_size=1, layout="NCHW", mode="DCR")', kind=INJ)
def space_to_depth(t: Relay, a: Attributes, x: Node) -> Node:
    """Moves blocks of the plane into channels."""
    x = t.to_layout(x, a.layout, "NCHW")
    n, c, h, w = t.shape(x)
    b = int(a.block_size)
    if h % b or w % b:
        raise TypeFault(f"a plane of {h} x {w} has no blocks of {b}")
    parts = t.transpose(t.reshape(x, (n, c, h // b, b, w // b, b)), (0, 3, 5, 1, 2, 4))
    return t.to_layout(t.reshape(parts, (n, c * b * b, h // b, w // b)), "NCHW", a.layout)


@operator("nn.space_to_batch_nd(data; block_shape=[1, 1], paddings!, pad_value=0.0)", kind=INJ)
def space_to_batch_nd(t: Relay, a: Attributes, x: Node) -> Node:
    """Blocks of space become batches."""
    block, pads = a.block_shape, a.paddings
    m, rest = len(block), t.rank(x) - 1 - len(block)
    if len(pads) != m or rest < 0:
        raise TypeFault(f"blocks {shape_text(block)} with {len(pads)} paddings for data of {shape_text(t.shape(x))}")
    x = t.pad(x, t.array(a.pad_value, t.dtype(x)), [0, *(p[0] for p in pads), *[0] * rest], [0, *(p[1] for p in pads), *[0] * rest])
    n, *space = t.shape(x)
    split = [v for s, b in zip(space[:m], block, strict=True) for v in (s // b, b)]
    x = t.reshape(x, (n, *split, *space[m:]))
    order = [2 + 2 * i for i in range(m)] + [0] + [1 + 2 * i for i in range(m)] + list(range(1 + 2 * m, t.rank(x)))
    return t.reshape(t.transpose(x, order), (n * prod(block), *(s // b for s, b in zip(space[:m], block, strict=True)), *space[m:]))


@operator("nn.batch_to_space_nd(data; block_shape=[1, 1], crops!)", kind=INJ)
def batch_to_space_nd(t: Relay, a: Attributes, x: Node) -> Node:
    """Batches become blocks of space."""
    block = a.block_shape
    m = len(block)
    if len(a.crops) != m or m > t.rank(x) - 1:
        raise TypeFault(f"blocks {shape_text(block)} with {len(a.crops)} crops for data of {shape_text(t.shape(x))}")
    n, *space = t.shape(x)
    if n % prod(block):
        raise TypeFault(f"axis 0 is {n}, no multiple of {prod(block)}")
    x = t.reshape(x, (*block, n // prod(block), *space))
    order = [m] + [v for i in range(m) for v in (m + 1 + i, i)] + list(range(2 * m + 1, t.rank(x)))
    wide = [s * b for s, b in zip(space[:m], block, strict=True)]
    x = t.reshape(t.transpose(x, order), (n // prod(block), *wide, *space[m:]))
    for i, (low, high) in enumerate(a.crops):
        x = t.slice_dim(x, 1 + i, int(low), t.shape(x)[1 + i] - int(high))
    return x
