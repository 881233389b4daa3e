"""Gradients of convolutions, which are convolutions too."""
from __future__ import annotations

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.convolution import CONVOLUTION, SPATIAL, SpatialGeometry, convolve, convolve_back, each
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.ops.attrs import Window

CUDNN = "bool benchmark, bool deterministic, bool allow_tf32"
Sizes = tuple[int, ...]


@operator("convolution_backward(Tensor grad_output, Tensor input, Tensor weight, int[]? bias_sizes, int[] stride, int[] padding, "
          "int[] dilation, bool transposed, int[] output_padding, int groups, bool[3] output_mask)")
def convolution_backward(t: Torch, grad: Node, x: Node, w: Node, bias: list[int] | None, stride: list[int], padding: list[int],
                         dilation: list[int], back: bool, output_padding: list[int], groups: int,
                         wanted: list[bool]) -> tuple[Node | None, Node | None, Node | None]:
    """The gradients by the input, the weight and the bias; None where the mask does not ask for them."""
    n = len(t.shape_of(w, 2)) - 2
    t.shape_of(x, n + 2, n + 2)
    t.shape_of(grad, n + 2, n + 2)
    at = SpatialGeometry(each(stride, n), each(padding, n), each(dilation, n), groups)
    by_x = by_w = by_b = None
    if wanted[0]:
        by_x = convolve(t, grad, w, None, at) if back else convolve_back(t, grad, w, None, at, _left_over(t, grad, x, w, at))
    if wanted[1]:
        by_w = weight_gradient(t, grad, x, t.shape(w), at) if back else weight_gradient(t, x, grad, t.shape(w), at)
    if wanted[2]:
        by_b = t.sum(grad, [d for d in range(t.rank(grad)) if d != 1])
    return by_x, by_w, by_b


def _left_over(t: Torch, grad: Node, x: Node, w: Node, at: SpatialGeometry) -> Sizes:
    """The number of elements at the end of each spatial dimension of ``x`` that no window of the convolution reaches."""
    rows = zip(t.shape(x)[2:], t.shape(grad)[2:], t.shape(w)[2:], at.stride, symmetric(at), at.dilation, strict=True)
    return tuple(n - ((m - 1) * s - 2 * p + d * (k - 1) + 1) for n, m, k, s, p, d in rows)


def symmetric(at: SpatialGeometry) -> list[int]:
    """The padding of each dimension, which gradients have equally on both sides."""
    return [p for p in at.padding if isinstance(p, int)]


def weight_gradient(t: Torch, x: Node, grad: Node, shape: Sizes, at: SpatialGeometry) -> Node:
    """``result[o, i, k] = sum x[n, i, y * stride + k * dilation - padding] * grad[n, o, y]``: a convolution whose features are n."""
    n = len(shape) - 2
    s = SPATIAL[:n]
    pads = []
    for size, made, k, step, p, d in zip(t.shape(x)[2:], t.shape(grad)[2:], shape[2:], at.stride, symmetric(at), at.dilation, strict=True):
        pads.append((p, (k - 1) * d + (made - 1) * step + 1 - size - p))
    window = Window.make(t.shape(grad)[2:], tuple(at.dilation), tuple(pads), rhs_dilate=tuple(at.stride))
    return t.conv(x, grad, f"fb{s}_io{s}->fb{s}", window, batch_groups=at.groups)


@operator(f"convolution_overrideable({CONVOLUTION})")
def convolution_overrideable(t: Torch, x: Node, w: Node, bias: Node | None, stride: list[int], padding: list[int], dilation: list[int],
                             back: bool, output_padding: list[int], groups: int) -> Node:
    """The convolution of devices that torch does not know."""
    at = SpatialGeometry(stride, padding, dilation, groups)
    return convolve_back(t, x, w, bias, at, output_padding) if back else convolve(t, x, w, bias, at)


@operator("slow_conv3d(Tensor self, Tensor weight, int[3] kernel_size, Tensor? bias=None, int[3] stride=1, int[3] padding=0)",
          "slow_conv3d_forward(Tensor self, Tensor weight, int[3] kernel_size, Tensor? bias, int[3] stride, int[3] padding)",
          "thnn_conv2d(Tensor self, Tensor weight, int[2] kernel_size, Tensor? bias=None, int[2] stride=1, int[2] padding=0)",
          "_slow_conv2d_forward(Tensor self, Tensor weight, int[2] kernel_size, Tensor? bias, int[2] stride, int[2] padding)")
def slow_conv(t: Torch, x: Node, w: Node, kernel: list[int], bias: Node | None, stride: list[int], padding: list[int]) -> Node:
    if t.rank(w) == 2:  # the weight as a matrix
        w = t.reshape(w, (t.shape(w)[0], t.shape(x)[-len(kernel) - 1], *kernel))
    return convolve(t, x, w, bias, SpatialGeometry(stride, padding))


@operator(*(f"slow_conv_dilated{n}d(Tensor self, Tensor weight, int[{n}] kernel_size, Tensor? bias=None, int[{n}] stride=1, "
            f"int[{n}] padding=0, int[{n}] dilation=1)" for n in (2, 3)),
          f"cudnn_convolution(Tensor self, Tensor weight, int[] padding, int[] stride, int[] dilation, int groups, {CUDNN})")
def slow_conv_dilated(t: Torch, x: Node, w: Node, *, bias: Node | None = None, stride: list[int], padding: list[int], dilation: list[int],
                      groups: int = 1) -> Node:
    return convolve(t, x, w, bias, SpatialGeometry(stride, padding, dilation, groups))


@operator("_conv_depthwise2d(Tensor self, Tensor weight, int[2] kernel_size, Tensor? bias, int[2] stride, int[2] padding, "
          "int[2] dilation)",
          "conv_depthwise3d(Tensor self, Tensor weight, int[3] kernel_size, Tensor? bias, int[3] stride, int[3] padding, int[3] dilation)")
def conv_depthwise(t: Torch, x: Node, w: Node, kernel: list[int], bias: Node | None, stride: list[int], padding: list[int],
                   dilation: list[int]) -> Node:
    return convolve(t, x, w, bias, SpatialGeometry(stride, padding, dilation, t.shape(x)[-len(kernel) - 1]))


@operator(*(f"slow_conv_transpose{n}d(Tensor self, Tensor weight, int[{n}] kernel_size, Tensor? bias=None, int[{n}] stride=1, "
            f"int[{n}] padding=0, int[{n}] output_padding=0, int[{n}] dilation=1)" for n in (2, 3)),
          "cudnn_convolution_transpose(Tensor self, Tensor weight, int[] padding, int[] output_padding, int[] stride, int[] dilation, "
          f"int groups, {CUDNN})")
def slow_conv_transpose(t: Torch, x: Node, w: Node, *, bias: Node | None = None, stride: list[int], padding: list[int],
                        output_padding: list[int], dilation: list[int], groups: int = 1) -> Node:
    return convolve_back(t, x, w, bias, SpatialGeometry(stride, padding, dilation, groups), output_padding)


@operator("conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0)")
def conv_tbc(t: Torch, x: Node, w: Node, bias: Node, pad: int) -> Node:
    """A convolution of [time, batch, channels] with weights [width, in, out]."""
    y = convolve(t, t.transpose(x, (1, 2, 0)), t.transpose(w, (2, 1, 0)), bias, SpatialGeometry([1], [pad]))
    return t.transpose(y, (2, 0, 1))
