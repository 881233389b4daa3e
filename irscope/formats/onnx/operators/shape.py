"""Operators that move elements: reshapes, slices, paddings, repetitions."""
from __future__ import annotations

from itertools import accumulate
from math import prod

from irscope.formats.onnx.algebra import Onnx, bounded
from irscope.formats.onnx.declarations import Attributes
from irscope.formats.onnx.operators import operator
from irscope.formats.relay.operators.slicing import depth_to_space as blocks_of_pixels
from irscope.formats.relay.operators.slicing import mirrored
from irscope.graph import Node
from irscope.graph.dtypes import S64
from irscope.ops.checked import at_least
from irscope.ops.faults import TypeFault
from irscope.source.budget import require


@operator("Identity(input: any)")
def identity(t: Onnx, a: Attributes, x: Node) -> Node:
    """The operand."""
    return x


@operator("Reshape(data, shape?: int[1]; shape: ints=None, allowzero=0)")
def reshape(t: Onnx, a: Attributes, x: Node, shape: Node | None) -> Node:
    """The same elements in another shape: 0 keeps a size (without ``allowzero``), -1 is computed."""
    wanted = list(a.shape or []) if shape is None else t.ints(shape, "the shape")
    have = t.shape(x)
    if not a.allowzero:
        wanted = [have[i] if n == 0 and i < len(have) else n for i, n in enumerate(wanted)]
    if wanted.count(-1) > 1 or any(n < -1 for n in wanted):
        raise TypeFault(f"the shape {wanted} has more than one size to compute, or a negative one")
    if -1 in wanted:
        rest = prod(n for n in wanted if n != -1)
        if not rest or prod(have) % rest:
            raise TypeFault(f"{list(have)} cannot be reshaped to {wanted}")
        wanted[wanted.index(-1)] = prod(have) // rest
    return t.reshape(x, tuple(wanted))


@operator("Flatten(input; axis=1)")
def flatten(t: Onnx, a: Attributes, x: Node) -> Node:
    """A matrix: the sizes before the axis, and those from it on."""
    rank = t.rank(x)
    if not -rank <= a.axis <= rank:
        raise TypeFault(f"axis {a.axis} is out of range for {rank} dimensions")
    axis, shape = a.axis % (rank + 1) if a.axis >= 0 else a.axis + rank, t.shape(x)
    return t.reshape(x, (prod(shape[:axis]), prod(shape[axis:])))


@operator("Squeeze(data, axes?: int[0-1]; axes: ints=None)")
def squeeze(t: Onnx, a: Attributes, x: Node, given: Node | None) -> Node:
    """Without axes of size 1; they are an attribute up to version 12."""
    axes = a.axes if given is None else t.ints(given, "the axes")
    shape = t.shape(x)
    squeezed = [d for d, n in enumerate(shape) if n == 1] if axes is None else t.given_axes(x, axes)
    if any(shape[d] != 1 for d in squeezed):
        raise TypeFault(f"the axes {squeezed} of {list(shape)} are not all of size 1")
    return t.reshape(x, tuple(n for d, n in enumerate(shape) if d not in squeezed))


@operator("Unsqueeze(data, axes?: int[0-1]; axes: ints=None)")
def unsqueeze(t: Onnx, a: Attributes, x: Node, given: Node | None) -> Node:
    """With axes of size 1 inserted; they are an attribute up to version 12."""
    axes = a.axes if given is None else t.ints(given, "the axes")
    if axes is None:
        raise TypeFault("the axes are missing")
    rank = t.rank(x) + len(axes)
    places = [t.axis(rank, d) for d in axes]
    if len(set(places)) != len(places):
        raise TypeFault(f"the axes {axes} name one axis twice")
    rest = iter(t.shape(x))
    return t.reshape(x, tuple(1 if d in places else next(rest) for d in range(rank)))


@operator("Transpose(data; perm: ints=None)")
def transpose(t: Onnx, a: Attributes, x: Node) -> Node:
    """Axes in another order, by default the reverse one."""
    rank = t.rank(x)
    order = list(reversed(range(rank))) if a.perm is None else [t.axis(x, d) for d in a.perm]
    if sorted(order) != list(range(rank)):
        raise TypeFault(f"perm {order} is not an order of {rank} axes")
    return t.transpose(x, order)


@operator("Shape(data; start=0, end: int=None)")
def shape_of(t: Onnx, a: Attributes, x: Node) -> Node:
    """The sizes, or a range of them."""
    shape, rank = t.shape(x), t.rank(x)
    low = min(max(a.start + rank if a.start < 0 else a.start, 0), rank)
    end = rank if a.end is None else a.end
    high = min(max(end + rank if end < 0 else end, 0), rank)
    return t.array(list(shape[low:max(low, high)]), S64)


@operator("Size(data)")
def size(t: Onnx, a: Attributes, x: Node) -> Node:
    """The number of elements."""
    return t.array(prod(t.shape(x)), S64)


@operator("Concat(inputs*; axis: int=None)")
def concat(t: Onnx, a: Attributes, *xs: Node) -> Node:
    """Tensors one after another along an axis; by default the second one, up to version 3."""
    if not xs:
        raise TypeFault("at least one operand is needed")
    t.alike(*xs)
    if a.axis is None and a.version >= 4:
        raise TypeFault("the attribute axis is missing")
    return t.concat(xs, t.axis(xs[0], 1 if a.axis is None else a.axis))


@operator("Split(input, split?: real[0-1]; axis=0, split: ints=None, num_outputs: int=None)")
def split(t: Onnx, a: Attributes, x: Node, given: Node | None) -> tuple[Node, ...]:
    """Parts along an axis: of given sizes, or equal ones with the rest in the last."""
    axis = t.axis(x, a.axis)
    n = t.shape(x)[axis]
    sizes = a.split if given is None else t.ints(given, "the sizes of the parts")
    if sizes is None:
        count = a.num_outputs or a.results
        if count != a.results:
            raise TypeFault(f"num_outputs is {count} for {a.results} results")
        each = -(-n // at_least(1, "the number of parts", count))
        sizes = [max(0, min(each, n - i * each)) for i in range(count)]
    if any(s < 0 for s in sizes) or sum(sizes) != n:
        raise TypeFault(f"parts of {sizes} for an axis of {n}")
    return tuple(t.slice_dim(x, axis, end - s, end) for end, s in zip(accumulate(sizes), sizes, strict=True))


@operator("Slice(data, starts?: int[0-1], ends?: int[0-1], axes?: int[0-1], steps?: int[0-1]; axes: ints=None, "
          "starts: ints=None, ends: ints=None)")
def slice_(t: Onnx, a: Attributes, x: Node, starts: Node | None, ends: Node | None, axes: Node | None, steps: Node | None) -> Node:
    """Slices as Python takes them; everything is an attribute up to version 9."""
    low = a.starts if starts is None else t.ints(starts, "the starts")
    high = a.ends if ends is None else t.ints(ends, "the ends")
    if low is None or high is None:
        raise TypeFault("the starts and ends are missing")
    chosen = a.axes if axes is None else t.ints(axes, "the axes")
    places = t.given_axes(x, list(range(len(low))) if chosen is None else chosen)
    strides = [1] * len(low) if steps is None else t.ints(steps, "the steps")
    if not len(low) == len(high) == len(places) == len(strides) or 0 in strides:
        raise TypeFault(f"starts {low}, ends {high}, axes {places} and steps {strides} do not fit each other")
    back = []
    for d, first, last, step in zip(places, low, high, strides, strict=True):
        x, reversed_ = _sliced(t, x, d, slice(first, last, step))
        back += [d] if reversed_ else []
    return t.reverse(x, back)


def _sliced(t: Onnx, x: Node, d: int, part: slice) -> tuple[Node, bool]:
    """A slice in ascending order, and whether it is to be reversed. Ends before the begin mean the whole, as ONNX clamps them."""
    n = t.shape(x)[d]
    first, last, step = int(part.start), int(part.stop), int(part.step)
    first, last = first + n if first < 0 else first, last + n if last < 0 else last
    if step > 0:
        first, last = min(max(first, 0), n), min(max(last, 0), n)
        return t.slice_dim(x, d, first, max(first, last), step), False
    first, last = min(max(first, 0), n - 1), min(max(last, -1), n - 1)
    count = max(0, -(-(last - first) // step)) if n else 0
    if not count:
        return t.slice_dim(x, d, 0, 0), False
    return t.slice_dim(x, d, first + (count - 1) * step, first + 1, -step), True


@operator("Expand(input, shape: int[0-1])")
def expand(t: Onnx, a: Attributes, x: Node, shape: Node) -> Node:
    """Broadcast to a shape, in both directions."""
    wanted = tuple(t.ints(shape, "the shape"))
    if any(n < 0 for n in wanted):
        raise TypeFault(f"the shape {list(wanted)} has a negative size")
    full = t.broadcast_shape(t.shape(x), wanted)
    require(prod(full) * t.dtype(x).storage, "expanding a tensor")
    return t.broadcast_to(x, full)


@operator("Tile(input, repeats: real[0-1], tiles?: real[0-1])")
def tile(t: Onnx, a: Attributes, x: Node, repeats: Node, axis: Node | None) -> Node:
    """Copies side by side, one number for each axis; up to version 5 a number and an axis."""
    counts = t.ints(repeats, "the repeats")
    if axis is not None:
        place = t.axis(x, t.single(axis, "the axis"))
        counts = [t.single(repeats, "the number of copies") if d == place else 1 for d in range(t.rank(x))]
    if len(counts) != t.rank(x) or any(n < 0 for n in counts):
        raise TypeFault(f"repeats {counts} for {t.rank(x)} dimensions")
    shape = t.shape(x)
    apart = [n for size, count in zip(shape, counts, strict=True) for n in (1, size) if count >= 0]
    wide = [n for size, count in zip(shape, counts, strict=True) for n in (count, size)]
    require(prod(wide) * t.dtype(x).storage, "tiling a tensor")
    whole = t.broadcast_to(t.reshape(x, tuple(apart)), tuple(wide))
    return t.reshape(whole, tuple(n * k for n, k in zip(shape, counts, strict=True)))


@operator("Pad(data, pads?: int[0-2], constant_value?, axes?: int[0-1]; mode='constant', pads: ints=None, paddings: ints=None, value=0.0)")
def pad(t: Onnx, a: Attributes, x: Node, given: Node | None, value: Node | None, axes: Node | None) -> Node:
    """A border: constant, the edge, mirrored or wrapped; negative sizes crop. All are attributes up to version 10."""
    sizes = (a.pads or a.paddings or []) if given is None else t.ints(given, "the pads")
    places = list(range(t.rank(x))) if axes is None else t.given_axes(x, t.ints(axes, "the axes"))
    if len(sizes) != 2 * len(places):
        raise TypeFault(f"{len(sizes)} pads for {len(places)} axes")
    low, high = [0] * t.rank(x), [0] * t.rank(x)
    for i, d in enumerate(places):
        low[d], high[d] = sizes[i], sizes[len(places) + i]
    if any(n + p + q < 0 for n, p, q in zip(t.shape(x), low, high, strict=True)):
        raise TypeFault(f"pads {sizes} crop more than there is of {list(t.shape(x))}")
    require(prod(n + max(p, 0) + max(q, 0) for n, p, q in zip(t.shape(x), low, high, strict=True)) * t.dtype(x).storage, "padding a tensor")
    if a.mode == "constant":
        fill = t.array(a.value if given is None else 0, t.dtype(x)) if value is None else t.reshape(value, ())
        return t.pad(x, t.convert(fill, t.dtype(x)), low, high)
    if a.mode not in ("edge", "reflect", "wrap"):
        raise TypeFault(f"mode is constant, edge, reflect or wrap, not {a.mode!r}")
    crops = [(min(p, 0), min(q, 0)) for p, q in zip(low, high, strict=True)]
    x = t.pad(x, t.array(0, t.dtype(x)), [p for p, _ in crops], [q for _, q in crops])
    widths = [(max(p, 0), max(q, 0)) for p, q in zip(low, high, strict=True)]
    return wrapped(t, x, widths) if a.mode == "wrap" else mirrored(t, x, [tuple(w) for w in widths], a.mode)


def wrapped(t: Onnx, x: Node, widths: list[tuple[int, int]]) -> Node:
    """Padded with copies of the tensor side by side."""
    for d, (low, high) in enumerate(widths):
        n = t.shape(x)[d]
        if low or high:
            bounded(low + n + high, "padding")
            x = t.take(x, t.array([k % max(n, 1) for k in range(-low, n + high)], S64), d)
    return x


@operator("DepthToSpace(input: tensor[4]; blocksize: int!, mode='DCR')")
def depth_to_space(t: Onnx, a: Attributes, x: Node) -> Node:
    """Blocks of channels as blocks of pixels."""
    c, b = t.shape(x)[1], a.blocksize
    if b < 1 or c % (b * b):
        raise TypeFault(f"blocks of {b} for {c} channels")
    return blocks_of_pixels(t, Attributes(layout="NCHW", block_size=b, mode=a.mode), x)


@operator("SpaceToDepth(input: tensor[4]; blocksize: int!, mode='DCR')")
def space_to_depth(t: Onnx, a: Attributes, x: Node) -> Node:
    """Blocks of pixels as blocks of channels."""
    (n, c, h, w), b = t.shape(x), a.blocksize
    if b < 1 or h % b or w % b:
        raise TypeFault(f"blocks of {b} for an image of {h} x {w}")
    parts = t.reshape(x, (n, c, h // b, b, w // b, b))
    order = (0, 3, 5, 1, 2, 4) if a.mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return t.reshape(t.transpose(parts, order), (n, c * b * b, h // b, w // b))


@operator("CenterCropPad(input_data, shape: int[0-1]; axes: ints=None)")
def center_crop_pad(t: Onnx, a: Attributes, x: Node, shape: Node) -> Node:
    """Cropped or padded with zeros on both sides to the given sizes."""
    sizes = t.ints(shape, "the shape")
    axes = list(range(t.rank(x))) if a.axes is None else t.given_axes(x, a.axes)
    if len(sizes) != len(axes):
        raise TypeFault(f"{len(sizes)} sizes for {len(axes)} axes")
    for d, want in zip(axes, sizes, strict=True):
        have = t.shape(x)[d]
        if have > want:
            low = (have - want) // 2
            x = t.slice_dim(x, d, low, low + want)
        elif want > have:
            low = (want - have) // 2
            edges = [[low if i == d else 0 for i in range(t.rank(x))], [want - have - low if i == d else 0 for i in range(t.rank(x))]]
            x = t.pad(x, t.array(0, t.dtype(x)), *edges)
    return x


@operator("ReverseSequence(input: tensor[2+], sequence_lens: int[1]; batch_axis=1, time_axis=0)")
def reverse_sequence(t: Onnx, a: Attributes, x: Node, lengths: Node) -> Node:
    """The first elements of each sequence in the reverse order."""
    time, batch = t.axis(x, a.time_axis), t.axis(x, a.batch_axis)
    shape = tuple(n if d in (time, batch) else 1 for d, n in enumerate(t.shape(x)))
    place = t.iota(shape, time, S64)
    length = t.reshape(t.convert(lengths, S64), tuple(n if d == batch else 1 for d, n in enumerate(shape)))
    length = t.broadcast_to(length, shape)
    place = t.select(t.compare("LT", place, length), t.plus(t.sub(length, place), -1), place)
    return t.gather_elements(x, t.broadcast_to(place, t.shape(x)), time)
