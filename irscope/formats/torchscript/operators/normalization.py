"""Normalisations: batch, layer, group, instance, RMS, local response."""
from __future__ import annotations

from typing import NamedTuple

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.norms import vector_norm
from irscope.formats.torchscript.operators.wide import widened
from irscope.formats.torchscript.torch import Torch
from irscope.graph import DType, Node
from irscope.graph.dtypes import F32, F64
from irscope.lazy import np
from irscope.ops.attrs import Window
from irscope.ops.checked import at_least
from irscope.ops.faults import TypeFault


class ChannelParameters(NamedTuple):
    """What a batch normalisation has for each channel: weight, bias, running mean and variance."""

    w: Node | None
    b: Node | None
    mean: Node | None
    var: Node | None


def batch_norm(t: Torch, x: Node, channels: ChannelParameters, eps: float, training: bool = False) -> Node:
    """(x - mean) / sqrt(var + eps) * w + b, as a scale and an offset per channel. Training uses the mean and variance of the batch."""
    if 0 in t.shape(x):
        return x
    kind, wide = t.dtype(x), saved_type(t, x, *channels)
    if wide is not kind:
        return t.convert(batch_norm(t, t.convert(x, wide), channels, eps, training), kind)
    w, b, mean, var = channels
    shape = (t.shape(x)[1], *(1,) * (t.rank(x) - 2))
    if training or mean is None or var is None:
        dims = [d for d in range(t.rank(x)) if d != 1]
        mean = t.mean(x, dims)
        away = t.sub(x, t.reshape(mean, shape))
        var = t.mean(t.mul(away, away), dims)
    scale = t.unary("rsqrt", t.plus(var, eps))
    if w is not None:
        scale = t.mul(scale, w)
    offset = t.unary("negate", t.mul(mean, scale))
    if b is not None:
        offset = t.add(offset, b)
    return t.add(t.mul(x, t.reshape(scale, shape)), t.reshape(offset, shape))


def saved_type(t: Torch, x: Node, *parameters: Node | None) -> DType:
    """The type of saved statistics, in which torch computes: that of the parameters, which may be wider than that of the input."""
    return t.dtype(next((v for v in parameters if v is not None), x))


def normalized(t: Torch, x: Node, dims: list[int], eps: float) -> tuple[Node, Node, Node]:
    """``x`` with mean 0 and variance 1 along dimensions, the mean, and the applied factor; half types are computed in float32."""
    if t.dtype(x).is_float and t.dtype(x).bits < 32:
        y, mean, factor = normalized(t, t.convert(x, F32), dims, eps)
        return t.convert(y, t.dtype(x)), t.convert(mean, t.dtype(x)), t.convert(factor, t.dtype(x))
    mean = t.mean(x, dims, True)
    away = t.sub(x, mean)
    factor = t.unary("rsqrt", t.plus(t.mean(t.mul(away, away), dims, True), eps))
    return t.mul(away, factor), mean, factor


def _last(t: Torch, x: Node, shape: list[int]) -> list[int]:
    """The last dimensions, whose sizes are given. Raises TypeFault where the tensor has others."""
    if not shape or list(t.shape(x)[-len(shape):]) != shape:
        raise TypeFault(f"a tensor of the sizes {list(t.shape(x))} is not normalised over dimensions of the sizes {list(shape)}")
    return list(range(t.rank(x) - len(shape), t.rank(x)))


@operator("layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
          "bool cudnn_enable=True)")
def layer_norm(t: Torch, x: Node, shape: list[int], w: Node | None, b: Node | None, eps: float, cudnn: bool) -> Node:
    return native_layer_norm(t, x, shape, w, b, eps)[0]


@operator("native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps)")
def native_layer_norm(t: Torch, x: Node, shape: list[int], w: Node | None, b: Node | None, eps: float) -> tuple[Node, Node, Node]:
    dims, kind = _last(t, x, shape), t.dtype(x)
    y, mean, factor = normalized(t, t.convert(x, saved_type(t, x, w, b)), dims, eps)
    if w is not None:
        y = t.mul(y, w)
    return t.convert(y if b is None else t.add(y, b), kind), mean, factor


@operator("rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None)")
def rms_norm(t: Torch, x: Node, shape: list[int], w: Node | None, eps: float | None) -> Node:
    dims, kind = _last(t, x, shape), t.dtype(x)
    x = widened(t, x)  # squares of half types overflow
    small = float(np.finfo(np.float64 if kind is F64 else np.float32).eps) if eps is None else eps
    y = t.mul(x, t.unary("rsqrt", t.plus(t.mean(t.mul(x, x), dims, True), small)))
    return t.convert(y if w is None else t.mul(y, t.convert(w, t.dtype(y))), kind)


@operator("group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enabled=True)")
def group_norm(t: Torch, x: Node, groups: int, w: Node | None, b: Node | None, eps: float, cudnn: bool) -> Node:
    n, c, *rest = t.shape_of(x, 2)
    grouped = t.reshape(t.convert(x, saved_type(t, x, w, b)), (n, groups, c // at_least(1, "groups", groups), *rest))
    y = t.reshape(normalized(t, grouped, list(range(2, len(rest) + 3)), eps)[0], t.shape(x))
    return t.convert(_affine(t, y, w, b), t.dtype(x))


@operator("native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int N, int C, int HxW, int group, float eps)")
def native_group_norm(t: Torch, x: Node, w: Node | None, b: Node | None, n: int, c: int, size: int, groups: int,
                      eps: float) -> tuple[Node, Node, Node]:
    grouped = t.reshape(t.convert(x, saved_type(t, x, w, b)), (n, groups, c // at_least(1, "groups", groups) * size))
    y, mean, factor = normalized(t, grouped, [2], eps)
    y = t.convert(_affine(t, t.reshape(y, t.shape(x)), w, b), t.dtype(x))
    return y, t.reshape(mean, (n, groups)), t.reshape(factor, (n, groups))


@operator("_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, "
          "float momentum, float eps)")
def batch_norm_no_training(t: Torch, x: Node, w: Node | None, b: Node | None, mean: Node, var: Node, momentum: float,
                           eps: float) -> tuple[Node, ...]:
    """The result in evaluation, and two tensors without elements."""
    nothing = t.full((0,), 0, saved_type(t, x, w, b))
    return batch_norm(t, x, ChannelParameters(w, b, mean, var), eps), nothing, nothing


@operator("instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool use_input_stats, "
          "float momentum, float eps, bool cudnn_enabled)")
def instance_norm(t: Torch, x: Node, w: Node | None, b: Node | None, mean: Node | None, var: Node | None, own: bool, momentum: float,
                  eps: float, cudnn: bool) -> Node:
    if not own:
        return batch_norm(t, x, ChannelParameters(w, b, mean, var), eps)
    y = normalized(t, t.convert(x, saved_type(t, x, w, b)), list(range(2, t.rank(x))), eps)[0]
    return t.convert(_affine(t, y, w, b), t.dtype(x))


def _affine(t: Torch, y: Node, w: Node | None, b: Node | None) -> Node:
    """A scale and an offset per channel."""
    shape = (t.shape(y)[1], *(1,) * (t.rank(y) - 2))
    if w is not None:
        y = t.mul(y, t.reshape(w, shape))
    return y if b is None else t.add(y, t.reshape(b, shape))


@operator("local_response_norm(Tensor input, int size, float alpha=0.0001, float beta=0.75, float k=1.)")
def local_response_norm(t: Torch, x: Node, size: int, alpha: float, beta: float, k: float) -> Node:
    rank = t.rank(x)
    at_least(1, "size", size)
    window = Window.make(tuple(size if d == 1 else 1 for d in range(rank)),
                         pad=tuple((size // 2, (size - 1) // 2) if d == 1 else (0, 0) for d in range(rank)))
    total = t.scale(t.window("add", t.mul(x, x), 0, window), 1 / size)
    base = t.plus(t.scale(total, alpha), k)
    return t.div(x, t.binary("power", base, t.like(base, beta)))


@operator("renorm(Tensor self, Scalar p, int dim, Scalar maxnorm)")
def renorm(t: Torch, x: Node, p: float, dim: int, limit: float) -> Node:
    d = t.dim(x, dim)
    size = vector_norm(t, x, p, [i for i in range(t.rank(x)) if i != d], True)
    factor = t.select(t.compare("GT", size, t.like(size, limit)), t.div(t.like(size, limit), t.plus(size, 1e-7)), t.like(size, 1))
    return t.mul(x, factor)


