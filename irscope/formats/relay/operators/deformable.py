"""Deformable convolutions, and correlations of two images."""

from __future__ import annotations

from math import prod

from irscope.formats.relay.algebra import Relay, each, paddings, steps_of, table_of
from irscope.formats.relay.convolution_types import deformable
from irscope.formats.relay.operators import Attributes, operator
from irscope.formats.relay.operators.image import sampled
from irscope.graph import DType, Kind, Node, TensorType, Type
from irscope.lazy import np
from irscope.ops.attrs import Window
from irscope.ops.faults import TypeFault

C = Kind.CONTRACTION


def deformable_type(a: Attributes, data: Type, offset: Type, weight: Type) -> Type | None:
    """The type of a deformable convolution; it has an offset for each position of each window."""
    if not isinstance(data, TensorType):
        return None
    found = deformable(a, data, weight if isinstance(weight, TensorType) else None)
    if found is None:
        return None
    if isinstance(offset, TensorType) and offset.shape != found.offset.shape:
        raise TypeFault(f"offset is {offset}, the data and the kernel require {found.offset}")
    return found.result


@operator("nn.deformable_conv2d(data, offset, weight; strides=[1, 1], padding=[0, 0], dilation=[1, 1], deformable_groups=1, groups=1, "
          "channels=None, kernel_size=None, data_layout='NCHW', kernel_layout='OIHW', out_layout='', out_dtype=None)", kind=C,
          infer=deformable_type)
def deformable_conv2d(t: Relay, a: Attributes, x: Node, offset: Node, w: Node) -> Node:
    """A convolution that reads each position of its window at an offset, between pixels (J. Dai et al., 2017)."""
    layout = str(a.data_layout)
    x, offset, w = t.to_layout(x, layout, "NCHW"), t.to_layout(offset, layout, "NCHW"), t.to_layout(w, str(a.kernel_layout), "OIHW")
    (n, c, height, width), (_, inner, kh, kw) = t.shape(x), t.shape(w)
    oh, ow = t.shape(offset)[2:]
    bends, groups, taps = int(a.deformable_groups), int(a.groups), kh * kw
    if inner * groups != c or t.shape(offset)[1] != 2 * taps * bends:
        raise TypeFault(f"data has {c} channels, the weight {inner} times {groups}, and the offset {t.shape(offset)[1]} for {taps} places")
    (top, _), (left, _) = paddings(a.padding, 2)
    (sh, sw), (dh, dw) = each(a.strides, 2), each(a.dilation, 2)
    table_of(taps * max(oh, ow))
    rows = np.arange(oh)[None, :, None] * sh - top + (np.arange(taps) // kw)[:, None, None] * dh
    columns = np.arange(ow)[None, None, :] * sw - left + (np.arange(taps) % kw)[:, None, None] * dw
    parts = []
    moved = t.reshape(offset, (n, bends, taps, 2, oh, ow))
    for g in range(steps_of(bends)):
        mine = t.slice_dim(moved, 1, g, g + 1)
        y = t.add(t.reshape(t.slice_dim(mine, 3, 0, 1), (n, taps, oh, ow)), t.array(rows, t.dtype(offset)))
        z = t.add(t.reshape(t.slice_dim(mine, 3, 1, 2), (n, taps, oh, ow)), t.array(columns, t.dtype(offset)))
        y, z = t.reshape(y, (n, taps * oh, ow)), t.reshape(z, (n, taps * oh, ow))
        image = t.slice_dim(x, 1, g * (c // bends), (g + 1) * (c // bends))
        inside = t.binary("and", _within(t, y, height), _within(t, z, width))
        seen = sampled(t, image, y, z, "bilinear", "zeros")
        parts.append(t.select(t.reshape(inside, (n, 1, taps * oh, ow)), seen, t.like(seen, 0)))
    made = summed(t, t.concat(parts, 1), w, groups, (oh, ow), t.dtype_word(a.out_dtype, t.dtype(x)))
    return t.to_layout(made, "NCHW", str(a.out_layout or layout))


def summed(t: Relay, whole: Node, w: Node, groups: int, out: tuple[int, int], dtype: DType) -> Node:
    """The sums of a grouped convolution, computed in ``dtype``: (N, O, *out).

    ``whole`` has the values that the windows read, (N, C, positions in the window * H, W), and ``w`` is (O, C / groups, ...).
    """
    (o, inner, *_), n = t.shape(w), t.shape(whole)[0]
    taps, pixels = prod(t.shape(w)[2:]), prod(out)
    # (groups, N, pixels, channels and places) with (groups, O, channels and places)
    whole = t.reshape(whole, (n, groups, inner, taps, pixels))
    whole = t.reshape(t.transpose(whole, (1, 0, 4, 2, 3)), (groups, n * pixels, inner * taps))
    made = t.dot(t.convert(whole, dtype), t.convert(t.reshape(w, (groups, o // groups, inner * taps)), dtype), ([2], [2]), ([0], [0]))
    made = t.reshape(made, (groups, n, *out, o // groups))
    return t.reshape(t.transpose(made, (1, 0, 4, 2, 3)), (n, o, *out))


def _within(t: Relay, place: Node, size: int) -> Node:
    return t.binary("and", t.compare("GE", place, t.like(place, 0)), t.compare("LT", place, t.like(place, size)))


@operator("nn.correlation(data1: 4d, data2: 4d; kernel_size: size=1, max_displacement=1, stride1=1, stride2=1, padding=[0, 0], "
          "is_multiply=True, layout='NCHW')", kind=C)
def correlation(t: Relay, a: Attributes, x: Node, y: Node) -> Node:
    """The similarity of two images around each pixel, for every displacement of the second (A. Dosovitskiy et al., FlowNet, 2015)."""
    if a.layout != "NCHW":
        raise TypeFault(f"a correlation works on NCHW, not {a.layout}")
    (top, bottom), (left, right) = paddings(a.padding, 2)
    x, y = (t.pad(image, t.array(0, t.dtype(image)), [0, 0, top, left], [0, 0, bottom, right]) for image in (x, y))
    _, c, height, width = t.shape(x)
    k, far, stride, apart = int(a.kernel_size), int(a.max_displacement), int(a.stride1), int(a.stride2)
    border = far + (k - 1) // 2
    out = [-(-(size - 2 * border) // stride) for size in (height, width)]
    if min(out) <= 0:
        raise TypeFault(f"the images are {height} x {width} with their padding, and the border is {border} on each side")
    reach = [(size - 1) * stride + k for size in out]
    radius = far // apart

    def part(image: Node, dy: int, dx: int) -> Node:
        return t.slice_dim(t.slice_dim(image, 2, far + dy, far + dy + reach[0]), 3, far + dx, far + dx + reach[1])
    steps_of((2 * radius + 1) ** 2)
    first, found = part(x, 0, 0), []
    window = Window.make((1, 1, k, k), (1, 1, stride, stride))
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            second = part(y, dy * apart, dx * apart)
            alike = t.mul(first, second) if a.is_multiply else t.unary("abs", t.sub(first, second))
            found.append(t.window("add", t.sum(alike, [1], True), 0, window))
    return t.scale(t.concat(found, 1), 1.0 / (k * k * c))
