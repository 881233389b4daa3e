"""Convolutions over any number of dimensions, and their gradients."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from irscope.formats.onnx.algebra import Onnx, bounded
from irscope.formats.onnx.declarations import Attributes
from irscope.formats.onnx.operators import operator
from irscope.formats.relay.operators.deformable import summed
from irscope.formats.relay.operators.image import sampled
from irscope.graph import DType, Node, without_array
from irscope.graph.dtypes import S64
from irscope.lazy import np
from irscope.ops.attrs import ConvDims, Window
from irscope.ops.faults import TypeFault

Pads = list[tuple[int, int]]
WINDOW = "auto_pad='NOTSET', dilations: ints=None, kernel_shape: ints=None, pads: ints=None, strides: ints=None"


@dataclass(frozen=True, slots=True)
class Geometry:
    """Sizes, strides, dilations and padding of windows, one entry a spatial dimension."""

    size: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: Pads

    @property
    def reach(self) -> tuple[int, ...]:
        """The sizes with their gaps."""
        return tuple((k - 1) * d + 1 for k, d in zip(self.size, self.dilations, strict=True))


def each(values: Sequence[int] | None, n: int, what: str, least: int = 1) -> tuple[int, ...]:
    """One number a spatial dimension; ones where none are given."""
    given = tuple(values) if values is not None else (1,) * n
    if len(given) != n or any(v < least for v in given):
        raise TypeFault(f"{what} is {list(given)}: {n} numbers from {least} on are needed")
    return given


def geometry(a: Attributes, spatial: Sequence[int], size: Sequence[int]) -> Geometry:
    """The windows that the attributes describe over these sizes. ``SAME_UPPER`` puts the odd element at the end, ``SAME_LOWER`` first."""
    n = len(spatial)
    if len(size) != n:
        raise TypeFault(f"the windows have {len(size)} sizes for {n} spatial dimensions")
    strides, dilations = each(a.strides, n, "strides"), each(a.dilations, n, "dilations")
    made = Geometry(tuple(size), strides, dilations, [(0, 0)] * n)
    if a.auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        totals = [max(0, (-(-have // s) - 1) * s + reach - have) for have, s, reach in zip(spatial, strides, made.reach, strict=True)]
        return replace(made, pads=_halves(a, totals))
    if a.auto_pad not in ("NOTSET", "VALID", ""):
        raise TypeFault(f"auto_pad {a.auto_pad!r} is not known")
    return replace(made, pads=_given(a, n))


def _halves(a: Attributes, totals: Sequence[int]) -> Pads:
    return [(v // 2, v - v // 2) if a.auto_pad == "SAME_UPPER" else (v - v // 2, v // 2) for v in totals]


def _given(a: Attributes, n: int) -> Pads:
    given = a.pads if a.pads is not None and a.auto_pad != "VALID" else [0] * (2 * n)
    if len(given) != 2 * n:
        raise TypeFault(f"{len(given)} pads for {n} spatial dimensions")
    return [(given[i], given[n + i]) for i in range(n)]


def dims_of(n: int, transposed: bool = False) -> ConvDims:
    """Batch, channels, spatial dimensions; the weight is (out, in, ...), of a gradient (in, out, ...)."""
    spatial = tuple(range(2, 2 + n))
    return ConvDims(0, 1, spatial, 0 if transposed else 1, 1 if transposed else 0, spatial, 0, 1, spatial)


def convolve(t: Onnx, a: Attributes, x: Node, w: Node, dtype: DType | None = None) -> Node:
    """The convolution without a bias. ``dtype`` is the element type in which it is computed."""
    n = t.rank(x) - 2
    shape = t.shape(w)
    if n < 1 or len(shape) != n + 2 or a.group < 1 or t.shape(x)[1] != shape[1] * a.group or shape[0] % a.group:
        raise TypeFault(f"data {list(t.shape(x))} and weight {list(shape)} in {a.group} groups")
    if a.kernel_shape is not None and tuple(a.kernel_shape) != shape[2:]:
        raise TypeFault(f"kernel_shape is {a.kernel_shape}, the weight has {list(shape[2:])}")
    at = geometry(a, t.shape(x)[2:], shape[2:])
    if dtype is not None:
        x, w = t.convert(x, dtype), t.convert(w, dtype)
    t.alike(x, w)
    return t.conv(x, w, dims_of(n), Window.make(at.size, at.strides, tuple(at.pads), rhs_dilate=at.dilations), a.group)


def biased(t: Onnx, y: Node, bias: Node | None) -> Node:
    """A bias for each channel added."""
    return y if bias is None else t.add(y, t.along(bias, y, 1))


@operator(f"Conv(X: tensor[3+], W: tensor[3+], B?: tensor[1]; {WINDOW}, group=1)")
def conv(t: Onnx, a: Attributes, x: Node, w: Node, bias: Node | None) -> Node:
    """A convolution."""
    return biased(t, convolve(t, a, x, w), bias)


@operator(f"ConvTranspose(X: tensor[3+], W: tensor[3+], B?: tensor[1]; {WINDOW}, group=1, output_padding: ints=None, "
          "output_shape: ints=None)")
def conv_transpose(t: Onnx, a: Attributes, x: Node, w: Node, bias: Node | None) -> Node:
    """The gradient of a convolution with respect to its data: strides dilate the data, the kernel is reversed."""
    n, shape = t.rank(x) - 2, t.shape(w)
    if n < 1 or len(shape) != n + 2 or a.group < 1 or t.shape(x)[1] != shape[0] or shape[0] % a.group:
        raise TypeFault(f"data {list(t.shape(x))} and weight {list(shape)} in {a.group} groups")
    t.alike(x, w)
    strides, dilations = each(a.strides, n, "strides"), each(a.dilations, n, "dilations")
    extra = each(a.output_padding or [0] * n, n, "output_padding", 0)
    reach = [(k - 1) * d + 1 for k, d in zip(shape[2:], dilations, strict=True)]
    pads = []
    for (low, high), k, more in zip(_cropped(a, t.shape(x)[2:], reach, strides, extra), reach, extra, strict=True):
        pads.append((k - 1 - low, k - 1 - high + more))
    if a.group > 1:
        inner, outer = shape[0] // a.group, shape[1]
        parts = t.transpose(t.reshape(w, (a.group, inner, outer, *shape[2:])), [1, 0, 2, *range(3, 3 + n)])
        w = t.reshape(parts, (inner, a.group * outer, *shape[2:]))
    w = t.reverse(w, list(range(2, 2 + n)))
    window = Window.make(shape[2:], pad=tuple(pads), lhs_dilate=strides, rhs_dilate=dilations)
    return biased(t, t.conv(x, w, dims_of(n, True), window, a.group), bias)


def _cropped(a: Attributes, spatial: Sequence[int], reach: Sequence[int], strides: Sequence[int], extra: Sequence[int]) -> Pads:
    """What is cut off from the whole gradient: as given, or for a given shape of the result."""
    n = len(spatial)
    whole = [s * (have - 1) + more + k for have, s, more, k in zip(spatial, strides, extra, reach, strict=True)]
    if a.output_shape is not None and len(a.output_shape) < n:
        raise TypeFault(f"output_shape has {len(a.output_shape)} sizes for {n} spatial dimensions")
    if a.output_shape is not None or a.auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        wanted = a.output_shape[-n:] if a.output_shape is not None else [have * s for have, s in zip(spatial, strides, strict=True)]
        totals = [max(0, have - want) if a.output_shape is None else have - want for have, want in zip(whole, wanted, strict=True)]
        return _halves(a, totals)
    return _given(a, n)


@operator("DeformConv(X: float[4], W: float[4], offset: float[4], B?: float[1], mask?: float[4]; dilations: ints=None, group=1, "
          "kernel_shape: ints=None, offset_group=1, pads: ints=None, strides: ints=None)")
def deform_conv(t: Onnx, a: Attributes, x: Node, w: Node, offset: Node, bias: Node | None, mask: Node | None) -> Node:
    """A convolution that reads each position of its windows at an offset, between pixels, times a mask (J. Dai et al., 2017)."""
    a.auto_pad = "NOTSET"
    (n, c, height, width), (o, inner, kh, kw) = t.shape(x), t.shape(w)
    at = geometry(a, (height, width), (kh, kw))
    oh, ow = t.shape(offset)[2:]
    bends, taps = a.offset_group, kh * kw
    if a.group < 1 or inner * a.group != c or o % a.group or not 1 <= bends <= max(c, 1) or c % bends \
            or t.shape(offset)[1] != 2 * taps * bends:
        raise TypeFault(f"{c} channels, weight {list(t.shape(w))} in {a.group} groups, offset {list(t.shape(offset))}")
    bounded(taps * oh * ow // 4, "the places of a deformable convolution")
    tap = np.arange(taps)
    rows = np.arange(oh)[None, :, None] * at.strides[0] - at.pads[0][0] + (tap // kw)[:, None, None] * at.dilations[0]
    columns = np.arange(ow)[None, None, :] * at.strides[1] - at.pads[1][0] + (tap % kw)[:, None, None] * at.dilations[1]
    moved = t.reshape(offset, (n, bends, taps, 2, oh, ow))
    weights = None if mask is None else t.reshape(mask, (n, bends, 1, taps * oh, ow))
    parts = []
    for g in range(bends):
        mine = t.slice_dim(moved, 1, g, g + 1)
        y, z = (t.reshape(t.add(t.reshape(t.slice_dim(mine, 3, i, i + 1), (n, taps, oh, ow)), t.array(base, t.dtype(offset))),
                          (n, taps * oh, ow)) for i, base in enumerate((rows, columns)))
        seen = sampled(t, t.slice_dim(x, 1, g * (c // bends), (g + 1) * (c // bends)), y, z, "bilinear", "zeros")
        parts.append(seen if weights is None else t.mul(seen, t.reshape(t.slice_dim(weights, 1, g, g + 1), (n, 1, taps * oh, ow))))
    return biased(t, summed(t, t.concat(parts, 1), w, a.group, (oh, ow), t.dtype(x)), bias)


@operator("Col2Im(input: tensor[3], image_shape: int[1], block_shape: int[1]; dilations: ints=None, pads: ints=None, strides: ints=None)")
def col2im(t: Onnx, a: Attributes, x: Node, image: Node, block: Node) -> Node:
    """The image whose blocks are the columns; overlapping ones add up."""
    a.auto_pad = "NOTSET"
    sizes, window = t.ints(image, "the image shape"), t.ints(block, "the block shape")
    n, columns, _ = t.shape(x)
    at = geometry(a, sizes, each(window, len(sizes), "the block shape"))
    c = columns // prod(window)
    padded = [have + low + high for have, (low, high) in zip(sizes, at.pads, strict=True)]
    counts = [(have - reach) // s + 1 for have, reach, s in zip(padded, at.reach, at.strides, strict=True)]
    if min(counts, default=1) < 1:
        raise TypeFault(f"blocks of {window} for an image of {sizes}")
    bounded(prod(counts) * prod(window) // 8, "the places of the columns")
    if why := without_array(t.type(x).with_shape((prod(padded),))):
        raise TypeFault(f"the image with its padding {why}")
    # The place of each element in the padded image, by the element of its block and the block.
    lines = [np.arange(k)[:, None] * d + np.arange(count)[None] * s
             for k, d, count, s in zip(window, at.dilations, counts, at.strides, strict=True)]
    places = np.zeros((1, 1), np.int64)
    for line, have in zip(lines, padded, strict=True):
        places = (places[:, None, :, None] * have + line[None, :, None, :]).reshape(places.shape[0] * line.shape[0], -1)
    flat = t.transpose(t.reshape(x, (n * c, places.size)), (1, 0))
    total = t.scatter(t.full((prod(padded), n * c), 0, t.dtype(x)), t.array(places.reshape(-1, 1), S64), flat, "add",
                      window_dims=[1], inserted=[0])
    whole = t.reshape(t.transpose(total, (1, 0)), (n, c, *padded))
    lows = [low for low, _ in at.pads]
    return t.slice(whole, [0, 0, *lows], [n, c, *(low + have for low, have in zip(lows, sizes, strict=True))])
