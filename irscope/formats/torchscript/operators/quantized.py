"""Quantised operators. A quantised tensor is represented by its real values: multiples of its scale.

    quantize_per_tensor(x, s, z):  clamp(round(x / s) + z, 0, 255) - z, times s
    quantized::linear(x, w, s, z): the linear layer of these numbers, brought to multiples of s

Weights are in an object that no text shows; a state dict has them as ``layer._packed_params._packed_params.0`` or ``layer.weight``.
"""
from __future__ import annotations

from typing import Any, Protocol

from irscope.formats.torchscript.abstract import ModuleRef, Tensor
from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.convolution import SpatialGeometry, convolve
from irscope.formats.torchscript.operators.linear import linear
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Module, Node
from irscope.graph.dtypes import F32
from irscope.ops.checked import nonzero
from irscope.ops.faults import TypeFault


class ProgramWeights(Protocol):
    """What quantised operators need of the running program: the builder, the given weights, and a weight by its path."""

    t: Torch
    module: Module
    given: Any

    def weight(self, path: str, node: Node) -> Tensor:
        """The weight of an object."""


RANGES = {12: (-128, 127), 13: (0, 255), 14: (-(1 << 31), (1 << 31) - 1), 1: (-128, 127), 0: (0, 255)}
"""The range of a quantised type, by torch's number."""


def range_of(dtype: int) -> tuple[int, int]:
    """The range of a quantised type. Raises TypeFault for the number of another type."""
    if dtype not in RANGES:
        raise TypeFault(f"element type number {dtype} of torch is not a quantised type")
    return RANGES[dtype]


def rounded(t: Torch, x: Node, scale: Node, zero: Node, limits: tuple[int, int]) -> Node:
    """``x`` as the nearest multiple of ``scale`` in the range of the type."""
    low, high = (t.sub(t.array(v, F32), zero) for v in limits)
    steps = t.sub(t.unary("round-nearest-even", t.add(t.div(x, scale), zero)), zero)
    return t.mul(t.minimum(t.maximum(steps, low), high), scale)


@operator("quantize_per_tensor(Tensor self, float scale, int zero_point, ScalarType dtype)",
          "quantize_per_tensor.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, ScalarType dtype)")
def quantize_per_tensor(t: Torch, x: Node, scale: object, zero: object, dtype: int) -> Node:
    scale_, zero_ = (t.reshape(t.as_tensor(v, F32), ()) for v in (scale, zero))
    made = rounded(t, x, scale_, zero_, range_of(dtype))
    t.quantized[made] = (scale_, zero_, t.dtype_number(dtype, F32))
    return made


@operator("int_repr(Tensor self)")
def int_repr(t: Torch, x: Node) -> Node:
    """The integers of a quantised tensor."""
    if x not in t.quantized:
        raise TypeFault("int_repr is supported only on results of quantize_per_tensor: the scale of other tensors is not known here")
    scale, zero, kind = t.quantized[x]
    return t.convert(t.unary("round-nearest-even", t.add(t.div(x, scale), zero)), kind)


@operator("quantize_per_channel(Tensor self, Tensor scales, Tensor zero_points, int axis, ScalarType dtype)")
def quantize_per_channel(t: Torch, x: Node, scales: Node, zeros: Node, axis: int, dtype: int) -> Node:
    shape = tuple(-1 if i == t.dim(x, axis) else 1 for i in range(t.rank(x)))
    shape = tuple(t.shape(scales)[0] if n == -1 else 1 for n in shape)
    scale, zero = (t.reshape(t.convert(v, F32), shape) for v in (scales, zeros))
    return rounded(t, x, scale, zero, range_of(dtype))


def _fake(t: Torch, x: Node, scale: Node, zero: Node, low: int, high: int) -> tuple[Node, Node]:
    """``x`` at the nearest step inside the range, and whether it was inside."""
    kind = t.dtype(x)
    wide = t.convert(x, F32)
    steps = t.add(t.unary("round-nearest-even", t.mul(wide, t.div(t.like(scale, 1), scale))), zero)
    inside = t.binary("and", t.compare("GE", steps, t.array(low, F32)), t.compare("LE", steps, t.array(high, F32)))
    kept = t.minimum(t.maximum(steps, t.array(low, F32)), t.array(high, F32))
    return t.convert(t.mul(t.sub(kept, zero), scale), kind), inside


@operator("fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int zero_point, int quant_min, int quant_max)")
def fake_quantize_masked(t: Torch, x: Node, scale: object, zero: object, low: int, high: int) -> tuple[Node, Node]:
    return _fake(t, x, t.reshape(t.as_tensor(scale, F32), ()), t.reshape(t.as_tensor(zero, F32), ()), low, high)


@operator("fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, int quant_min, int quant_max)",
          "fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, int quant_min, int quant_max)")
def fake_quantize(t: Torch, x: Node, scale: object, zero: object, low: int, high: int) -> Node:
    return fake_quantize_masked(t, x, scale, zero, low, high)[0]


@operator("fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, "
          "int quant_max)")
def fake_quantize_channels_masked(t: Torch, x: Node, scales: Node, zeros: Node, axis: int, low: int, high: int) -> tuple[Node, Node]:
    shape = tuple(n if i == t.dim(x, axis) else 1 for i, n in enumerate(t.shape(x)))
    scale, zero = (t.reshape(t.convert(v, F32), shape) for v in (scales, zeros))
    return _fake(t, x, scale, zero, low, high)


@operator("fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max)")
def fake_quantize_channels(t: Torch, x: Node, scales: Node, zeros: Node, axis: int, low: int, high: int) -> Node:
    return fake_quantize_channels_masked(t, x, scales, zeros, axis, low, high)[0]


@operator("dequantize.self(Tensor self)", "dequantize.tensor(Tensor qtensor)")
def dequantize(t: Torch, x: Node) -> Node:
    return x


@operator("dequantize.tensors(Tensor[] tensors)", "dequantize.list(Tensor[] qtensors)")
def dequantize_all(t: Torch, xs: list[Node]) -> list[Node]:
    return xs


def parameters(program: ProgramWeights, packed: object) -> tuple[Node, Node | None]:
    """Weight and bias of a packed object, by their names in state dicts."""
    if not isinstance(packed, ModuleRef):
        raise TypeFault("expected a packed object, a module with weight and bias")
    given = program.given.weights
    owner = packed.path.partition("._packed_params")[0]
    for weight, bias in ((f"{packed.path}.0", f"{packed.path}.1"), (f"{owner}.weight", f"{owner}.bias")):
        if weight in given:
            here = program.module.main().result()
            second = program.weight(bias, here).get() if bias in given else None
            return program.weight(weight, here).get(), second
    raise TypeFault(f"the weights of {owner!r} are packed in an object that no text shows: give the state dict of the quantised model "
                     "(torch.save(model.state_dict(), 'w.pt'), --weights w.pt)")


def _step(t: Torch, y: Node, scale: float, zero: int, relu: bool) -> Tensor:
    y = t.maximum(y, t.like(y, 0)) if relu else y
    return Tensor(rounded(t, y, t.array(scale, F32), t.array(zero, F32), range_of(13)))


def _linear(name: str, relu: bool) -> None:
    @operator(f"quantized::{name}(Tensor X, Any W_prepack, float Y_scale_i, int Y_zero_point_i)", style="raw")
    def static(program: ProgramWeights, x: Tensor, packed: ModuleRef, scale: float, zero: int) -> Tensor:
        w, b = parameters(program, packed)
        return _step(program.t, linear(program.t, x.get(), w, b), scale, zero, relu)

    @operator(f"quantized::{name}_dynamic(Tensor X, Any W_prepack, bool reduce_range=False)", style="raw")
    def dynamic(program: ProgramWeights, x: Tensor, packed: ModuleRef, reduce: bool) -> Tensor:
        """A linear layer that quantises its input by the input's range."""
        t = program.t
        w, b = parameters(program, packed)
        y = linear(t, _by_range(t, x.get(), 127 if reduce else 255), w, b)
        return Tensor(t.maximum(y, t.like(y, 0)) if relu else y)


def _by_range(t: Torch, x: Node, top: int) -> Node:
    """Scale and zero point from the smallest and largest element, as FBGEMM chooses them."""
    every = list(range(t.rank(x)))
    zero_ = t.array(0, F32)
    low, high = t.minimum(t.min(x, every), zero_), t.maximum(t.max(x, every), zero_)
    scale = t.scale(t.sub(high, low), 1 / top)
    scale = t.select(t.compare("EQ", scale, zero_), t.array(0.1, F32), scale)
    from_low, from_high = t.unary("negate", t.div(low, scale)), t.sub(t.array(top, F32), t.div(high, scale))
    nearer = t.compare("LT", t.unary("abs", t.div(low, scale)), t.plus(t.unary("abs", t.div(high, scale)), top))
    zero = t.unary("round-nearest-even", t.select(nearer, from_low, from_high))
    zero = t.minimum(t.maximum(zero, zero_), t.array(top, F32))
    return rounded(t, x, scale, zero, (0, top))


def _convolution(n: int, relu: bool) -> None:
    @operator(f"quantized::conv{n}d{'_relu' if relu else ''}.new(Tensor qx, Any packed_weight, float output_scale, int output_zero_point)",
              style="raw")
    def packed_conv(program: ProgramWeights, x: Tensor, packed: ModuleRef, scale: float, zero: int) -> Tensor:
        """A quantised convolution. Stride and padding are in the object too, and are inferred from the sizes in the text."""
        t = program.t
        w, b = parameters(program, packed)
        node = t.builder.at[0]
        declared = node.type.dims()[-n:] if hasattr(node.type, "dims") and getattr(node.type, "is_static", False) else None
        if declared is None:
            raise TypeFault("stride and padding of a quantised convolution are in an object that no text shows, and the text does not "
                             "say the shape of the result: print traced.inlined_graph")
        stride, pads = _window(t.shape(x.get())[-n:], declared, t.shape(w)[-n:])
        groups = t.shape(x.get())[1] // nonzero("the channels of the weight", t.shape(w)[1])
        y = convolve(t, x.get(), w, b, SpatialGeometry(stride, pads, groups=groups))
        return _step(t, y, scale, zero, relu)


def _window(size: tuple[int, ...], made: tuple[int, ...], kernel: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """The stride and symmetric padding that turn ``size`` into ``made``."""
    stride, pads = [], []
    for n, m, k in zip(size, made, kernel, strict=True):
        fits = [(abs(2 * p - (k - 1)), s, p) for s in range(1, n + 1) for p in range(k) if n + 2 * p >= k and (n + 2 * p - k) // s + 1 == m]
        if not fits:
            raise TypeFault(f"no stride and padding make {m} of {n} with a kernel of {k}")
        _, s, p = min(fits)
        stride.append(s)
        pads.append(p)
    return stride, pads


for _name, _relu in (("linear", False), ("linear_relu", True)):
    _linear(_name, _relu)
for _n in (1, 2, 3):
    for _relu in (False, True):
        _convolution(_n, _relu)


def _arithmetic(name: str, hlo: str, relu: bool) -> None:
    @operator(f"quantized::{name}(Tensor qa, Tensor qb, float scale, int zero_point)")
    def both(t: Torch, x: Node, y: Node, scale: float, zero: int) -> Node:
        return _step(t, t.binary(hlo, x, y), scale, zero, relu).get()


for _name, _hlo in (("add", "add"), ("mul", "multiply")):
    _arithmetic(_name, _hlo, False)
    _arithmetic(f"{_name}_relu", _hlo, True)


@operator("quantized::cat(Tensor[] qx, int dim, float? scale, int? zero_point)")
def cat(t: Torch, xs: list[Node], dim: int, scale: float | None, zero: int | None) -> Node:
    y = t.concat(xs, t.dim(xs[0], dim))
    return y if scale is None or zero is None else _step(t, y, scale, zero, False).get()
