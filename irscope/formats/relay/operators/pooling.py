"""Pooling: sliding, global and adaptive windows."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from irscope.formats.relay.algebra import Relay, each, paddings, plain_layout
from irscope.formats.relay.operators import Attributes, operator
from irscope.formats.relay.operators.convolution import SPATIAL
from irscope.formats.sampling import adaptive
from irscope.graph import Builder, DType, Graph, Kind, Node, TensorType
from irscope.ops import get
from irscope.ops.attrs import Window
from irscope.ops.faults import TypeFault
from irscope.ops.tensors import Tensors

C = Kind.CONTRACTION
LAYOUT = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


def _window(t: Relay, a: Attributes, x: Node, n: int) -> tuple[Window, list[tuple[int, int]]]:
    """The window over ``NC...`` data, and the padding as declared; with ``ceil_mode`` the padding at the end grows."""
    size = each(1 if a.pool_size is None else a.pool_size, n)
    strides, dilation, declared = each(a.strides, n), each(a.dilation, n), paddings(a.padding, n)
    pads = []
    for d in range(n):
        have, reach = t.shape(x)[2 + d], dilation[d] * (size[d] - 1) + 1
        low, high = declared[d]
        out = (have + low + high - reach + (strides[d] - 1 if a.ceil_mode else 0)) // strides[d] + 1
        if out <= 0:
            raise TypeFault(f"the window of {reach} is larger than data axis {2 + d}, which is {have}")
        pads.append((low, max(high, (out - 1) * strides[d] + reach - have - low) if a.ceil_mode else high))
    return Window.make((1, 1, *size), (1, 1, *strides), ((0, 0), (0, 0), *pads), rhs_dilate=(1, 1, *dilation)), declared


def max_pool(t: Relay, a: Attributes, x: Node, n: int) -> Node:
    window, _ = _window(t, a, x, n)
    return t.window("maximum", x, t.dtype(x).lowest, window)


def avg_pool(t: Relay, a: Attributes, x: Node, n: int) -> Node:
    """Sums divided by the number of elements: those inside, and the declared padding with ``count_include_pad``."""
    window, declared = _window(t, a, x, n)
    total = t.window("add", x, 0, window)
    if not any(v for pair in zip(window.pad_low, window.pad_high, strict=True) for v in pair):
        return t.div(total, t.like(total, prod(window.size)))
    ones = t.full((1, 1, *t.shape(x)[2:]), 1, t.dtype(x))
    if a.count_include_pad:
        low, high = [0, 0, *(p[0] for p in declared)], [0, 0, *(p[1] for p in declared)]
        ones = t.pad(ones, t.array(1, t.dtype(x)), low, high)
        less_low = tuple(p - d for p, d in zip(window.pad_low, low, strict=True))
        less_high = tuple(p - d for p, d in zip(window.pad_high, high, strict=True))
        window = Window(window.size, window.stride, less_low, less_high, window.lhs_dilate, window.rhs_dilate, window.rhs_reversal)
    count = t.window("add", ones, 0, window)
    return t.div(total, t.maximum(count, t.like(count, 1)))


def _planes(n: int, schema: str, doc: str, reduce: Callable[[Relay, Attributes, Node, int], Node]) -> None:
    """Declare a pooling operator over ``n`` spatial dimensions. ``reduce`` takes ``NC...`` data; other layouts are converted."""

    def build(t: Relay, a: Attributes, x: Node) -> Node:
        plain = "NC" + SPATIAL[n]
        return t.to_layout(reduce(t, a, t.to_layout(x, a.layout, plain), n), plain, a.out_layout or a.layout)

    build.__doc__ = doc
    operator(schema, kind=C)(build)


def _pool(n: int, kind: str) -> None:
    ones, zeros = ", ".join(["1"] * n), ", ".join(["0"] * n)
    tail = ", count_include_pad=False" if kind == "avg" else ""
    _planes(n, f"nn.{kind}_pool{n}d(data; pool_size=None, strides=[{ones}], dilation=[{ones}], padding=[{zeros}], layout={LAYOUT[n]!r}, "
            f"out_layout='', ceil_mode=False{tail})", f"The {'largest' if kind == 'max' else 'average'} element under each window.",
            max_pool if kind == "max" else avg_pool)


_planes(2, "nn.global_max_pool2d(data; layout='NCHW', out_layout='')", "The largest element of each plane.",
        lambda t, a, x, n: t.max(x, [2, 3], True))
_planes(2, "nn.global_avg_pool2d(data; layout='NCHW', out_layout='')", "The average element of each plane.",
        lambda t, a, x, n: t.mean(x, [2, 3], True))


def _adaptive(n: int, kind: str) -> None:
    def build(t: Relay, a: Attributes, x: Node) -> Node:
        plain = "NC" + SPATIAL[n]
        size = each(a.output_size, n) if a.output_size else (None,) * n
        made = adaptive(t, t.to_layout(x, a.layout, plain), size, kind == "avg")
        return t.to_layout(made, plain, a.out_layout or a.layout)

    build.__doc__ = "Adaptive pooling into a given number of windows."
    rest = f"(data; output_size=[], layout={LAYOUT[n]!r}, out_layout='')"
    schemas = [f"nn.adaptive_{kind}_pool{n}d{rest}"] + ([f"contrib.adaptive_{kind}_pool2d{rest}"] if n == 2 else [])
    operator(*schemas, kind=C)(build)


for _n in (1, 2, 3):
    for _kind in ("max", "avg"):
        _pool(_n, _kind)
        _adaptive(_n, _kind)


# ---------------------------------------------------------------------- upsampling by whole numbers and gradients


@operator("nn.avg_pool2d_grad(out_grad: 4d, data: 4d; pool_size!, strides=[1, 1], dilation=[1, 1], padding=[0, 0], layout='NCHW', "
          "out_layout='', ceil_mode=False, count_include_pad=False)", kind=C)
def avg_pool2d_grad(t: Relay, a: Attributes, grad: Node, x: Node) -> Node:
    """The gradient of average pooling: each element gets its share of every window that contains it."""
    if plain_layout(a.layout) != "NCHW" or (any(p for pair in paddings(a.padding, 2) for p in pair) and not a.count_include_pad):
        raise TypeFault("only NCHW without padding, or with padding that counts")
    window, _ = _window(t, a, x, 2)
    size, strides, dilation = window.size[2:], window.stride[2:], window.rhs_dilate[2:]
    share = t.scale(grad, 1 / prod(size))
    pads = []
    for d in range(2):
        reach, low = dilation[d] * (size[d] - 1) + 1, window.pad_low[2 + d]
        spread = (t.shape(grad)[2 + d] - 1) * strides[d] + 1
        pads.append((reach - 1 - low, t.shape(x)[2 + d] + low - spread))
    back = Window.make((1, 1, *size), pad=((0, 0), (0, 0), *pads), lhs_dilate=(1, 1, *strides), rhs_dilate=(1, 1, *dilation))
    return t.window("add", share, 0, back)


@operator("nn.max_pool2d_grad(out_grad, data; pool_size!, strides=[1, 1], dilation=[1, 1], padding=[0, 0], layout='NCHW', out_layout='', "
          "ceil_mode=False)", kind=C)
def max_pool2d_grad(t: Relay, a: Attributes, grad: Node, x: Node) -> Node:
    """The gradient of max pooling: that of each window, at the first of its largest elements."""
    if any(d != 1 for d in each(a.dilation, 2)):
        raise TypeFault("the gradient of a dilated pooling is not defined")
    inner, back = t.to_layout(x, a.layout, "NCHW"), t.to_layout(grad, str(a.out_layout or a.layout), "NCHW")
    window, _ = _window(t, a, inner, 2)
    dtype = t.dtype(inner)
    bodies = (_larger(dtype), t.combiners["add", dtype])
    made = t.emit("select-and-scatter", (inner, back, t.array(0, dtype)), {"window": window}, bodies)
    return t.to_layout(made, "NCHW", a.layout)


def _larger(dtype: DType) -> Graph:
    """Whether the first of two elements stays the largest."""
    graph = Graph(f"larger_{dtype.name}")
    builder = Builder(graph)
    a, b = (builder.param(get("parameter"), TensorType(dtype, ()), name) for name in "ab")
    graph.root = Tensors(builder).compare("GE", a, b)
    return graph
