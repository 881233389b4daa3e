"""Normalisations as AOT graphs write them, with the statistics that they save, and their gradients."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod

from irscope.formats.torchscript.abstract import Written
from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.normalization import ChannelParameters, batch_norm, normalized, saved_type
from irscope.formats.torchscript.operators.wide import widened
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import U8
from irscope.lazy import np
from irscope.ops.checked import at_least, nonzero
from irscope.ops.faults import TypeFault

Gradients = tuple["Node | None", "Node | None", "Node | None"]


def _channels(t: Torch, x: Node) -> tuple[int, ...]:
    """The shape that aligns a value per channel with ``x``."""
    return (t.shape(x)[1], *(1,) * (t.rank(x) - 2))


def _others(t: Torch, x: Node) -> list[int]:
    return [d for d in range(t.rank(x)) if d != 1]


def normal_gradient(t: Torch, grad: Node, scaled: Node, factor: Node, dims: Sequence[int]) -> Node:
    """The gradient with respect to x of y = (x - mean) * factor along dimensions, where mean and factor depend on x; ``scaled`` is y."""
    n = prod(t.shape(grad)[d] for d in dims)
    first = t.scale(t.sum(grad, dims, True), 1 / n)
    second = t.scale(t.sum(t.mul(grad, scaled), dims, True), 1 / n)
    return t.mul(factor, t.sub(t.sub(grad, first), t.mul(scaled, second)))


# ---------------------------------------------------------------------- layers and groups


@operator("native_layer_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape, Tensor mean, Tensor rstd, Tensor? weight, "
          "Tensor? bias, bool[3] output_mask)")
def layer_norm_backward(t: Torch, grad: Node, x: Node, shape: list[int], mean: Node, factor: Node, w: Node | None, b: Node | None,
                        wanted: list[bool]) -> Gradients:
    lead = t.rank(x) - len(shape)
    inner, outer = list(range(lead, t.rank(x))), list(range(lead))
    g, v, m, f = (widened(t, n) for n in (grad, x, mean, factor))
    scaled = t.mul(t.sub(v, m), f)
    weighted = g if w is None else t.mul(g, widened(t, w))
    kind = t.dtype(x)
    return (t.convert(normal_gradient(t, weighted, scaled, f, inner), kind) if wanted[0] else None,
            t.convert(t.sum(t.mul(g, scaled), outer), t.dtype(w)) if wanted[1] and w is not None else None,
            t.convert(t.sum(g, outer), t.dtype(b)) if wanted[2] and b is not None else None)


@operator("native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, int N, int C, int HxW, "
          "int group, bool[3] output_mask)")
def group_norm_backward(t: Torch, grad: Node, x: Node, mean: Node, factor: Node, w: Node | None, n: int, c: int, size: int, groups: int,
                        wanted: list[bool]) -> Gradients:
    cut = (n, groups, c // at_least(1, "groups", groups), size)
    g, v = (t.reshape(widened(t, node), cut) for node in (grad, x))
    m, f = (t.reshape(widened(t, node), (n, groups, 1, 1)) for node in (mean, factor))
    scaled = t.mul(t.sub(v, m), f)
    weighted = g if w is None else t.mul(g, t.reshape(widened(t, w), (1, groups, c // groups, 1)))
    kind = t.dtype(x)
    by_weight = t.reshape(t.sum(t.mul(g, scaled), [0, 3]), (c,))
    return (t.convert(t.reshape(normal_gradient(t, weighted, scaled, f, [2, 3]), t.shape(x)), kind) if wanted[0] else None,
            t.convert(by_weight, kind if w is None else t.dtype(w)) if wanted[1] else None,
            t.convert(t.reshape(t.sum(g, [0, 3]), (c,)), kind if w is None else t.dtype(w)) if wanted[2] else None)


@operator("_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps)")
def fused_rms_norm(t: Torch, x: Node, shape: list[int], w: Node | None, eps: float | None) -> tuple[Node, Node]:
    """The result, and the factor that it applied."""
    v = t.floating(widened(t, x))
    dims = list(range(len(t.shape_of(x, len(shape))) - len(shape), t.rank(x)))
    small = float(np.finfo(t.dtype(v).numpy()).eps) if eps is None else eps
    factor = t.unary("rsqrt", t.plus(t.mean(t.mul(v, v), dims, True), small))
    y = t.mul(v, factor)
    return t.convert(y if w is None else t.mul(y, widened(t, w)), t.dtype(x)), factor


@operator("_fused_rms_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape, Tensor rstd, Tensor? weight, "
          "bool[2] output_mask)")
def rms_norm_backward(t: Torch, grad: Node, x: Node, shape: list[int], factor: Node, w: Node | None,
                      wanted: list[bool]) -> tuple[Node | None, Node | None]:
    lead = t.rank(x) - len(shape)
    dims = list(range(lead, t.rank(x)))
    g, v, f = (widened(t, n) for n in (grad, x, factor))
    scaled = t.mul(v, f)
    weighted = g if w is None else t.mul(g, widened(t, w))
    second = t.scale(t.sum(t.mul(weighted, scaled), dims, True), 1 / nonzero("the number of elements", prod(shape)))
    return (t.convert(t.mul(f, t.sub(weighted, t.mul(scaled, second))), t.dtype(x)) if wanted[0] else None,
            t.convert(t.sum(t.mul(g, scaled), list(range(lead))), t.dtype(w)) if wanted[1] and w is not None else None)


# ---------------------------------------------------------------------- batches


def trained(t: Torch, x: Node, w: Node | None, b: Node | None, eps: float) -> tuple[Node, Node, Node]:
    """The result normalised by the statistics of the batch, the mean, and 1 / sqrt(variance + eps)."""
    wide = widened(t, x)
    y, mean, factor = normalized(t, wide, _others(t, x), eps)
    shape = _channels(t, x)
    y = y if w is None else t.mul(y, t.reshape(t.convert(w, t.dtype(y)), shape))
    y = y if b is None else t.add(y, t.reshape(t.convert(b, t.dtype(y)), shape))
    channels, kind = (t.shape(x)[1],), saved_type(t, x, w, b)
    return t.convert(y, t.dtype(x)), t.convert(t.reshape(mean, channels), kind), t.convert(t.reshape(factor, channels), kind)


def running(t: Torch, x: Node, mean: Node, var: Node, momentum: float) -> tuple[Node, Node]:
    """The running mean and (unbiased) variance after a batch."""
    v, dims = widened(t, x), _others(t, x)
    n = prod(t.shape(x)[d] for d in dims)
    own = t.mean(v, dims, True)
    away = t.sub(v, own)
    spread = t.scale(t.sum(t.mul(away, away), dims), 1 / max(n - 1, 1))

    def mixed(old: Node, new: Node) -> Node:
        return t.add(t.scale(old, 1 - momentum), t.scale(t.convert(t.reshape(new, t.shape(old)), t.dtype(old)), momentum))
    return mixed(mean, own), mixed(var, spread)


BATCH = "Tensor input, Tensor? weight, Tensor? bias"


@operator(f"_native_batch_norm_legit.no_stats({BATCH}, bool training, float momentum, float eps)")
def batch_norm_no_stats(t: Torch, x: Node, w: Node | None, b: Node | None, training: bool, momentum: float,
                        eps: float) -> tuple[Node, Node, Node]:
    return trained(t, x, w, b, eps)


@operator(f"_native_batch_norm_legit_functional({BATCH}, Tensor running_mean, Tensor running_var, bool training, float momentum, "
          "float eps)")
def batch_norm_functional(t: Torch, x: Node, w: Node | None, b: Node | None, mean: Node, var: Node, training: bool, momentum: float,
                          eps: float) -> tuple[Node, ...]:
    """The result, the statistics that the gradient takes, and the running ones after it."""
    if not training:
        nothing = t.full((0,), 0, saved_type(t, x, w, b))
        return batch_norm(t, x, ChannelParameters(w, b, mean, var), eps), nothing, nothing, mean, var
    return (*trained(t, x, w, b, eps), *running(t, x, mean, var, momentum))


@operator(f"_native_batch_norm_legit({BATCH}, Tensor running_mean, Tensor running_var, bool training, float momentum, float eps)",
          f"native_batch_norm({BATCH}, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps)")
def batch_norm_stateful(t: Torch, x: Node, w: Node | None, b: Node | None, mean: Node | None, var: Node | None, training: bool,
                        momentum: float, eps: float) -> tuple[Node, ...] | Written:
    """The result and the statistics that the gradient takes. Training writes the running ones."""
    if mean is None or var is None:
        return trained(t, x, w, b, eps)
    *made, after, spread = batch_norm_functional(t, x, w, b, mean, var, training, momentum, eps)
    return Written(tuple(made), {3: after, 4: spread}) if training else tuple(made)


@operator(f"_batch_norm_with_update({BATCH}, Tensor running_mean, Tensor running_var, float momentum, float eps)")
def batch_norm_update(t: Torch, x: Node, w: Node | None, b: Node | None, mean: Node, var: Node, momentum: float, eps: float) -> Written:
    *made, after, spread = batch_norm_update_functional(t, x, w, b, mean, var, momentum, eps)
    return Written(tuple(made), {3: after, 4: spread})


@operator(f"batch_norm({BATCH}, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps, bool cudnn_enabled)")
def batch_norm_layer(t: Torch, x: Node, w: Node | None, b: Node | None, mean: Node | None, var: Node | None, training: bool,
                     momentum: float, eps: float, cudnn: bool) -> Node | Written:
    """(x - mean) / sqrt(var + eps) * w + b, as a scale and an offset per channel. Training uses the statistics of the batch, and mixes
    them into the running ones."""
    made = batch_norm(t, x, ChannelParameters(w, b, mean, var), eps, training)
    if not training or mean is None or var is None or 0 in t.shape(x):
        return made
    return Written(made, dict(zip((3, 4), running(t, x, mean, var, momentum), strict=True)))


@operator(f"_batch_norm_with_update_functional({BATCH}, Tensor running_mean, Tensor running_var, float momentum, float eps)")
def batch_norm_update_functional(t: Torch, x: Node, w: Node | None, b: Node | None, mean: Node, var: Node, momentum: float,
                                 eps: float) -> tuple[Node, ...]:
    y, own, factor, after, spread = batch_norm_functional(t, x, w, b, mean, var, True, momentum, eps)
    return y, own, factor, t.full((0,), 0, U8), after, spread


@operator(f"_batch_norm_no_update({BATCH}, Tensor? running_mean, Tensor? running_var, float momentum, float eps)")
def batch_norm_no_update(t: Torch, x: Node, w: Node | None, b: Node | None, mean: Node, var: Node, momentum: float,
                         eps: float) -> tuple[Node, ...]:
    nothing = t.full((0,), 0, saved_type(t, x, w, b))
    return batch_norm(t, x, ChannelParameters(w, b, mean, var), eps), nothing, nothing, t.full((0,), 0, U8)


@operator("native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, Tensor? running_var, "
          "Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask)",
          "batch_norm_backward(Tensor grad_out, Tensor input, Tensor weight, Tensor? running_mean, Tensor? running_var, "
          "Tensor? save_mean, Tensor? save_var, bool update, float eps, bool[3] output_mask, Tensor reserve)")
def batch_norm_backward(t: Torch, grad: Node, x: Node, w: Node | None, running_mean: Node | None, running_var: Node | None,
                        mean: Node | None, factor: Node | None, train: bool, eps: float, wanted: list[bool],
                        *rest: object) -> Gradients:
    shape, dims, kind = _channels(t, x), _others(t, x), t.dtype(x)
    g, v = widened(t, grad), widened(t, x)
    if not train:
        if running_mean is None or running_var is None:
            raise TypeFault("it takes running statistics, unless train is True")
        mean, factor = running_mean, t.unary("rsqrt", t.plus(widened(t, running_var), eps))
    if mean is None or factor is None:
        raise TypeFault("it takes the statistics of its batch, where train is True")
    m, f = (t.reshape(t.convert(n, t.dtype(v)), shape) for n in (mean, factor))
    scaled = t.mul(t.sub(v, m), f)
    by_x = normal_gradient(t, g, scaled, f, dims) if train else t.mul(g, f)
    if w is not None:
        by_x = t.mul(by_x, t.reshape(widened(t, w), shape))
    own = t.dtype(v) if w is None else t.dtype(w)
    return (t.convert(by_x, kind) if wanted[0] else None,
            t.convert(t.sum(t.mul(g, scaled), dims), own) if wanted[1] else None,
            t.convert(t.sum(g, dims), own) if wanted[2] else None)


@operator("cudnn_batch_norm_backward(Tensor input, Tensor grad_output, Tensor weight, Tensor? running_mean, Tensor? running_var, "
          "Tensor? save_mean, Tensor? save_var, float epsilon, Tensor reserveSpace)",
          "miopen_batch_norm_backward(Tensor input, Tensor grad_output, Tensor weight, Tensor? running_mean, Tensor? running_var, "
          "Tensor? save_mean, Tensor? save_var, float epsilon)")
def cudnn_batch_norm_backward(t: Torch, x: Node, grad: Node, w: Node, running_mean: Node | None, running_var: Node | None,
                              mean: Node | None, factor: Node | None, eps: float, reserve: object = None) -> Gradients:
    return batch_norm_backward(t, grad, x, w, running_mean, running_var, mean, factor, True, eps, [True, True, True])
