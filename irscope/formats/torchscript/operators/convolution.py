"""Convolutions of one to three dimensions, plain and transposed."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.ops.attrs import ConvDims, Window
from irscope.ops.checked import nonzero
from irscope.ops.faults import TypeFault

SPATIAL = "012"


def _dims(n: int, transposed: bool) -> ConvDims:
    s = SPATIAL[:n]
    return ConvDims.parse(f"bf{s}_{'io' if transposed else 'oi'}{s}->bf{s}")


@dataclass(frozen=True, slots=True)
class SpatialGeometry:
    """The geometry of a convolution. Each list has a number for every spatial dimension, or one for all; a pair pads asymmetrically."""

    stride: Sequence[int]
    padding: Sequence[int | tuple[int, int]]
    dilation: Sequence[int] = (1,)
    groups: int = 1


def convolve(t: Torch, x: Node, w: Node, bias: Node | None, at: SpatialGeometry) -> Node:
    """A convolution over the last dimensions; a missing batch dimension is added and removed again."""
    x, n, single = _begin(t, x, w, bias)
    pads = tuple((p, p) if isinstance(p, int) else p for p in each(at.padding, n))
    window = Window.make(t.shape(w)[2:], each(at.stride, n), pads, rhs_dilate=each(at.dilation, n))
    y = t.conv(x, w, _dims(n, False), window, at.groups)
    return _finish(t, y, bias, n, single)


def convolve_back(t: Torch, x: Node, w: Node, bias: Node | None, at: SpatialGeometry, output_padding: Sequence[int]) -> Node:
    """A transposed convolution: the input is dilated by the stride, the kernel reversed. ``w`` is [in, out / groups, k...]."""
    x, n, single = _begin(t, x, w, bias)
    stride, padding, dilation, extra = (each(v, n) for v in (at.stride, at.padding, at.dilation, output_padding))
    size, groups = t.shape(w)[2:], at.groups
    pads = tuple((d * (k - 1) - p, d * (k - 1) - p + o) for k, p, d, o in zip(size, padding, dilation, extra, strict=True))
    if groups > 1:
        i, o, *k = t.shape(w)
        w = t.reshape(w, (groups, i // nonzero("groups", groups), o, *k))
        w = t.reshape(t.swap(w, 0, 1), (i // groups, groups * o, *k))
    window = Window.make(size, (1,) * n, pads, stride, dilation, (True,) * n)
    return _finish(t, t.conv(x, w, _dims(n, True), window, groups), bias, n, single)


def _begin(t: Torch, x: Node, w: Node, bias: Node | None) -> tuple[Node, int, bool]:
    """The input with a batch dimension, the number of spatial dimensions, and whether the batch dimension was missing."""
    t.alike(x, w, bias)
    n = len(t.shape_of(w, 2)) - 2
    single = t.rank(x) == n + 1
    return t.unsqueeze(x, 0) if single else x, n, single


def _finish(t: Torch, y: Node, bias: Node | None, n: int, single: bool) -> Node:
    if bias is not None:
        y = t.add(y, t.reshape(bias, (t.shape(bias)[0], *(1,) * n)))
    return t.reshape(y, t.shape(y)[1:]) if single else y


def each(values: Sequence[Any], n: int) -> tuple[Any, ...]:
    """A value for each of ``n`` dimensions; a single value applies to all. Raises TypeFault for any other number of values."""
    if len(values) not in (1, n):
        raise TypeFault(f"it takes one number or {n} for the dimensions of a window, not {len(values)}")
    return tuple(values) * n if len(values) == 1 else tuple(values)


CONVOLUTION = ("Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, bool transposed, "
               "int[] output_padding, int groups")


@operator(f"_convolution({CONVOLUTION}, bool benchmark, bool deterministic, bool cudnn_enabled, bool allow_tf32)",
          f"_convolution.deprecated({CONVOLUTION}, bool benchmark, bool deterministic, bool cudnn_enabled)", f"convolution({CONVOLUTION})",
          *(f"conv{n}d(Tensor input, Tensor weight, Tensor? bias=None, int[{n}] stride=1, int[{n}] padding=0, int[{n}] dilation=1, "
            "int groups=1)" for n in (1, 2, 3)),
          "mkldnn_convolution(Tensor self, Tensor weight, Tensor? bias, int[] padding, int[] stride, int[] dilation, int groups)")
def convolution(t: Torch, x: Node, w: Node, *, bias: Node | None, stride: list[int], padding: list[int], dilation: list[int], groups: int,
                transposed: bool = False, output_padding: Sequence[int] = ()) -> Node:
    at = SpatialGeometry(stride, padding, dilation, groups)
    return convolve_back(t, x, w, bias, at, output_padding) if transposed else convolve(t, x, w, bias, at)


@operator(*(f"conv_transpose{n}d{'.input' if n > 1 else ''}(Tensor input, Tensor weight, Tensor? bias=None, int[{n}] stride=1, "
            f"int[{n}] padding=0, int[{n}] output_padding=0, int groups=1, int[{n}] dilation=1)" for n in (1, 2, 3)))
def conv_transpose(t: Torch, x: Node, w: Node, bias: Node | None, stride: list[int], padding: list[int], output_padding: list[int],
                   groups: int, dilation: list[int]) -> Node:
    return convolve_back(t, x, w, bias, SpatialGeometry(stride, padding, dilation, groups), output_padding)


@operator("_convolution_mode(Tensor input, Tensor weight, Tensor? bias, int[] stride, str padding, int[] dilation, int groups)",
          *(f"conv{n}d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[{n}] stride=1, str padding=\"valid\", "
            f"int[{n}] dilation=1, int groups=1)" for n in (1, 2, 3)))
def convolution_mode(t: Torch, x: Node, w: Node, bias: Node | None, stride: list[int], padding: str, dilation: list[int],
                     groups: int) -> Node:
    """``same`` puts the odd element of padding at the end."""
    n = len(t.shape_of(w, 2)) - 2
    if padding == "valid":
        pads = [(0, 0)] * n
    else:
        totals = [d * (k - 1) for d, k in zip(each(dilation, n), t.shape_of(w, 2)[2:], strict=True)]
        pads = [(total // 2, total - total // 2) for total in totals]
    return convolve(t, x, w, bias, SpatialGeometry(stride, pads, dilation, groups))


@operator("cudnn_convolution_relu(Tensor self, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, int groups)")
def convolution_relu(t: Torch, x: Node, w: Node, bias: Node | None, stride: list[int], padding: list[int], dilation: list[int],
                     groups: int) -> Node:
    """A convolution followed by relu: ``torch.jit.freeze`` fuses the two."""
    made = convolve(t, x, w, bias, SpatialGeometry(stride, padding, dilation, groups))
    return t.maximum(made, t.like(made, 0))


@operator("cudnn_convolution_add_relu(Tensor self, Tensor weight, Tensor z, Scalar? alpha, Tensor? bias, int[] stride, int[] padding, "
          "int[] dilation, int groups)")
def convolution_add_relu(t: Torch, x: Node, w: Node, z: Node, alpha: float | None, bias: Node | None, stride: list[int],
                         padding: list[int], dilation: list[int], groups: int) -> Node:
    """The relu of a convolution plus ``alpha`` (default 1) times another tensor."""
    made = convolve(t, x, w, bias, SpatialGeometry(stride, padding, dilation, groups))
    made = t.add(made, z if alpha is None else t.scale(z, alpha))
    return t.maximum(made, t.like(made, 0))


@operator("prim::mkldnn_convolution(Tensor self, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, int groups)")
def frozen_mkldnn_convolution(t: Torch, x: Node, w: Node, bias: Node | None, stride: list[int], padding: list[int], dilation: list[int],
                              groups: int) -> Node:
    """What ``optimize_for_inference`` makes of a convolution: the stride comes before the padding (frozen_ops_to_mkldnn.cpp)."""
    return convolve(t, x, w, bias, SpatialGeometry(stride, padding, dilation, groups))
