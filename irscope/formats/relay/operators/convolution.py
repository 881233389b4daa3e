"""Convolutions of one to three dimensions, in any layout, packed ones included."""

from __future__ import annotations

from functools import reduce
from itertools import product, starmap

from irscope.formats.relay.algebra import Relay, each, paddings, plain_layout, shape_text, steps_of
from irscope.formats.relay.operators import Attributes, operator
from irscope.graph import DType, Kind, Node
from irscope.ops.attrs import ConvDims, Window
from irscope.ops.faults import TypeFault

C = Kind.CONTRACTION
SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


def _dims(data: str, kernel: str, spatial: str) -> ConvDims:
    """``dim_labels`` of plain layouts; the result has the layout of the data."""

    def places(layout: str, first: str, second: str) -> tuple[int, int, tuple[int, ...]]:
        if sorted(layout) != sorted(first + second + spatial):
            raise TypeFault(f"layout {layout} must contain each of {first}{second}{spatial}")
        return layout.index(first), layout.index(second), tuple(layout.index(c) for c in spatial)

    n, c, where = places(data, "N", "C")
    i, o, kernel_where = places(kernel, "I", "O")
    return ConvDims(n, c, where, i, o, kernel_where, n, c, where)


def convolve(t: Relay, a: Attributes, x: Node, w: Node, n: int, dtype: DType | None = None) -> Node:
    """The convolution that the attributes of ``nn.conv*`` describe."""
    data, kernel = str(a.data_layout), str(a.kernel_layout)
    plain, plain_kernel = plain_layout(data), plain_layout(kernel)
    x, w = t.to_layout(x, data, plain), t.to_layout(w, kernel, plain_kernel)
    dtype = dtype or t.dtype_word(a.out_dtype, t.dtype(x))
    groups = int(a.groups)
    dims = _dims(plain, plain_kernel, SPATIAL[n])
    if t.rank(x) != n + 2 or t.rank(w) != n + 2:
        raise TypeFault(f"data and weight need {n + 2} axes, they are {shape_text(t.shape(x))} and {shape_text(t.shape(w))}")
    channels, inner = t.shape(x)[dims.lhs_feature], t.shape(w)[dims.rhs_input]
    if groups > 1 and inner * groups != channels and t.shape(w)[dims.rhs_output] == channels and groups == channels:
        # Depthwise: TVM writes the kernel as (channels, multiplier, ...), the result's channels being their product.
        w = _depthwise(t, w, dims)
        inner = 1
    if inner * groups != channels:
        times = f" times {groups} groups" if groups > 1 else ""
        raise TypeFault(f"data axis {dims.lhs_feature} is {channels}, weight axis {dims.rhs_input} is {inner}{times}")
    if isinstance(a.channels, int) and a.channels != t.shape(w)[dims.rhs_output]:
        raise TypeFault(f"channels is {a.channels}, weight axis {dims.rhs_output} is {t.shape(w)[dims.rhs_output]}")
    size = tuple(t.shape(w)[d] for d in dims.rhs_spatial)
    if a.kernel_size is not None and each(a.kernel_size, n) != size:
        raise TypeFault(f"kernel_size is {shape_text(each(a.kernel_size, n))}, the weight has {shape_text(size)}")
    window = Window.make(size, each(a.strides, n), tuple(paddings(a.padding, n)), rhs_dilate=each(a.dilation, n))
    for d, place in enumerate(dims.lhs_spatial):
        if window.output_size(d, t.shape(x)[place]) <= 0:
            reach = (size[d] - 1) * window.rhs_dilate[d] + 1
            raise TypeFault(f"the kernel of {reach} is larger than data axis {place}, which is {t.shape(x)[place]}")
    made = t.conv(t.convert(x, dtype), t.convert(w, dtype), dims, window, groups)
    return t.to_layout(made, plain, str(a.out_layout or data))


def _depthwise(t: Relay, w: Node, dims: ConvDims) -> Node:
    """Channels and their multiplier joined into the result's channels."""
    shape = t.shape(w)
    order = [dims.rhs_output, dims.rhs_input, *(d for d in range(len(shape)) if d not in (dims.rhs_output, dims.rhs_input))]
    joined = t.reshape(t.transpose(w, order), (shape[dims.rhs_output] * shape[dims.rhs_input], 1, *(shape[d] for d in order[2:])))
    return t.transpose(joined, [order.index(d) for d in range(len(shape))])


def attributes(n: int, data: str, kernel: str, out: str = "None") -> str:
    """The attributes of a convolution over ``n`` dimensions as text of a schema; ``out`` is the default of ``out_dtype``."""
    ones, zeros = ", ".join(["1"] * n), ", ".join(["0"] * n)
    return (f"strides=[{ones}], padding=[{zeros}], dilation=[{ones}], groups=1, channels=None, kernel_size=None, data_layout={data!r}, "
            f"kernel_layout={kernel!r}, out_layout='', out_dtype={out}")


def _convolution(name: str, n: int, data: str, kernel: str) -> None:
    def build(t: Relay, a: Attributes, x: Node, w: Node) -> Node:
        return convolve(t, a, x, w, n)

    build.__doc__ = f"A convolution over {n} dimension{'s' if n > 1 else ''}."
    operator(f"{name}(data, weight; {attributes(n, data, kernel)})", kind=C)(build)


_convolution("nn.conv1d", 1, "NCW", "OIW")
_convolution("nn.conv2d", 2, "NCHW", "OIHW")
_convolution("nn.conv3d", 3, "NCDHW", "OIDHW")
for _name in ("nn.contrib_conv2d_NCHWc", "nn.contrib_depthwise_conv2d_NCHWc", "nn.contrib_conv2d_nchwc"):
    _convolution(_name, 2, "NCHW", "OIHW")


def _transposed(n: int, data: str, kernel: str) -> None:
    def build(t: Relay, a: Attributes, x: Node, w: Node) -> Node:
        return transposed(t, a, x, w, n)

    ones, zeros = ", ".join(["1"] * n), ", ".join(["0"] * n)
    build.__doc__ = "The gradient of a convolution with respect to its input: strides dilate the data."
    operator(f"nn.conv{n}d_transpose(data, weight; channels=None, kernel_size=None, strides=[{ones}], output_padding=[{zeros}], "
             f"padding=[{zeros}], dilation=[{ones}], groups=1, data_layout={data!r}, kernel_layout={kernel!r}, out_layout='', "
             "out_dtype=None)", kind=C)(build)


def transposed(t: Relay, a: Attributes, x: Node, w: Node, n: int, dtype: DType | None = None) -> Node:
    """The data is dilated by the strides; the kernel is reversed."""
    data, kernel = str(a.data_layout), str(a.kernel_layout)
    spatial = SPATIAL[n]
    x = t.to_layout(x, data, "NC" + spatial)
    # Texts of 0.6 to 0.9 write OIHW, and mean IOHW: the channels of the data decide.
    letters = plain_layout(kernel)
    if sorted(letters) != sorted("IO" + spatial):
        raise TypeFault(f"layout {kernel} must contain each of IO{spatial}")
    w = t.to_layout(w, kernel, letters)
    i, o = letters.index("I"), letters.index("O")
    if t.shape(w)[i] != t.shape(x)[1] and t.shape(w)[o] == t.shape(x)[1]:
        i, o = o, i
    where = [letters.index(c) for c in spatial]
    w = t.transpose(w, [i, o, *where])
    groups = int(a.groups)
    if t.shape(w)[0] != t.shape(x)[1]:
        raise TypeFault(f"data has {t.shape(x)[1]} channels, weight axis {i} is {t.shape(w)[0]}")
    dtype = dtype or t.dtype_word(a.out_dtype, t.dtype(x))
    size, strides, dilation = t.shape(w)[2:], each(a.strides, n), each(a.dilation, n)
    extra = each(a.output_padding, n)
    pads = []
    for k, d, (low, high), more in zip(size, dilation, paddings(a.padding, n), extra, strict=True):
        reach = d * (k - 1)
        pads.append((reach - low, reach - high + more))
    if groups > 1:
        # (in, out/groups) becomes (in/groups, out), group by group.
        c, m = t.shape(w)[0] // groups, t.shape(w)[1]
        parts = t.reshape(w, (groups, c, m, *size))
        w = t.reshape(t.transpose(parts, [1, 0, 2, *range(3, 3 + n)]), (c, groups * m, *size))
    w = t.reverse(w, list(range(2, 2 + n)))
    window = Window.make(size, pad=tuple(pads), lhs_dilate=strides, rhs_dilate=dilation)
    dims = ConvDims(0, 1, tuple(range(2, 2 + n)), 0, 1, tuple(range(2, 2 + n)), 0, 1, tuple(range(2, 2 + n)))
    made = t.conv(t.convert(x, dtype), t.convert(w, dtype), dims, window, groups)
    return t.to_layout(made, "NC" + spatial, str(a.out_layout or data))


_transposed(1, "NCW", "IOW")
_transposed(2, "NCHW", "IOHW")
_transposed(3, "NCDHW", "IODHW")


@operator(f"nn.conv2d_backward_weight(grad, data; {attributes(2, 'NCHW', 'OIHW')})", kind=C)
def conv2d_backward_weight(t: Relay, a: Attributes, grad: Node, x: Node) -> Node:
    """The gradient of a convolution with respect to its weight."""
    if int(a.groups) != 1:
        raise TypeFault("groups are not computed here")
    x, grad = t.to_layout(x, a.data_layout, "NCHW"), t.to_layout(grad, a.out_layout or a.data_layout, "NCHW")
    size, strides, dilation = each(a.kernel_size, 2), each(a.strides, 2), each(a.dilation, 2)
    pads = []
    for d, (low, _) in enumerate(paddings(a.padding, 2)):
        reach = (t.shape(grad)[2 + d] - 1) * strides[d] + 1
        pads.append((low, (size[d] - 1) * dilation[d] + reach - t.shape(x)[2 + d] - low))
    window = Window.make(t.shape(grad)[2:], dilation, tuple(pads), rhs_dilate=strides)
    # Batches are summed over: they take the place of channels.
    dims = ConvDims(1, 0, (2, 3), 0, 1, (2, 3), 1, 0, (2, 3))
    made = t.conv(x, grad, dims, window)
    return t.to_layout(made, "OIHW", str(a.kernel_layout))


@operator("image.dilation2d(data, weight; strides=[1, 1], padding=[0, 0], dilations=[1, 1], data_layout='NCHW', kernel_layout='IHW', "
          "out_dtype=None)", kind=C)
def dilation2d(t: Relay, a: Attributes, x: Node, w: Node) -> Node:
    """Morphological dilation: the largest sum of data and weight under the window."""
    x, w = t.to_layout(x, a.data_layout, "NCHW"), t.to_layout(w, a.kernel_layout, "IHW")
    pads, strides, dilation = paddings(a.padding, 2), each(a.strides, 2), each(a.dilations, 2)
    least = t.array(-3.4e38 if t.dtype(x).bits >= 32 else -65504.0, t.dtype(x))
    x = t.pad(x, least, [0, 0, pads[0][0], pads[1][0]], [0, 0, pads[0][1], pads[1][1]])
    n, c, h, width = t.shape(x)
    kh, kw = t.shape(w)[1:]
    oh, ow = ((s - d * (k - 1) - 1) // st + 1 for s, k, d, st in zip((h, width), (kh, kw), dilation, strides, strict=True))
    if not steps_of(kh * kw):
        raise TypeFault(f"the weight has no elements: {shape_text(t.shape(w))}")

    def sums(i: int, j: int) -> Node:
        top, left = i * dilation[0], j * dilation[1]
        end = [n, c, top + (oh - 1) * strides[0] + 1, left + (ow - 1) * strides[1] + 1]
        part = t.slice(x, [0, 0, top, left], end, [1, 1, *strides])
        return t.add(part, t.reshape(t.slice(w, [0, i, j], [c, i + 1, j + 1]), (c, 1, 1)))
    best = reduce(t.maximum, starmap(sums, product(range(kh), range(kw))))
    return t.to_layout(best, "NCHW", a.data_layout)


