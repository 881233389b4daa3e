"""Normalisation layers and dropout."""
from __future__ import annotations

from irscope.formats.onnx.algebra import Onnx
from irscope.formats.onnx.declarations import Attributes
from irscope.formats.onnx.operators import operator
from irscope.formats.relay.operators.normalization import normalized
from irscope.graph import Node
from irscope.graph.dtypes import F32, PRED
from irscope.ops.attrs import Window
from irscope.ops.faults import TypeFault


@operator("BatchNormalization(X: float[2+], scale: float[1], B: float[1], input_mean: float[1], input_var: float[1]; "
          "epsilon=1e-05, momentum=0.9, training_mode=0, spatial=1, is_test=1)")
def batch_normalization(t: Onnx, a: Attributes, x: Node, scale: Node, bias: Node, mean: Node, var: Node) -> tuple[Node, ...]:
    """Normalises each channel by its statistics; in training by those of the batch, which also move the running ones."""
    if a.version < 9 and not a.spatial:
        raise TypeFault("spatial=0 is not supported")
    results: tuple[Node, ...] = ()
    if a.training_mode:
        axes = [d for d in range(t.rank(x)) if d != 1]
        wide = t.widened(x)
        now_mean = t.mean(wide, axes)
        away = t.sub(wide, t.along(now_mean, wide, 1))
        now_var = t.mean(t.mul(away, away), axes)
        results = tuple(t.add(t.scale(old, a.momentum), t.scale(t.convert(new, t.dtype(old)), 1 - a.momentum))
                        for old, new in ((mean, now_mean), (var, now_var)))
        mean, var = t.convert(now_mean, t.dtype(mean)), t.convert(now_var, t.dtype(var))
    wide = x if t.dtype(x) is t.dtype(var) else t.convert(x, t.dtype(var))
    factor = t.mul(t.convert(scale, t.dtype(var)), t.unary("rsqrt", t.plus(var, a.epsilon)))
    made = t.mul(t.sub(wide, t.along(mean, wide, 1)), t.along(factor, wide, 1))
    return (t.convert(t.add(made, t.along(t.convert(bias, t.dtype(var)), wide, 1)), t.dtype(x)), *results)


@operator("InstanceNormalization(input: float[2+], scale: float[1], B: float[1]; epsilon=1e-05)")
def instance_normalization(t: Onnx, a: Attributes, x: Node, scale: Node, bias: Node) -> Node:
    """Mean 0 and variance 1 in each plane, then a scale and a shift by channel."""
    made, _, _ = normalized(t, t.widened(x), list(range(2, t.rank(x))), a.epsilon)
    return t.add(t.mul(t.convert(made, t.dtype(x)), t.along(scale, x, 1)), t.along(bias, x, 1))


@operator("GroupNormalization(X: float[2+], scale: float[1], bias: float[1]; epsilon=1e-05, num_groups: int!, stash_type=1)")
def group_normalization(t: Onnx, a: Attributes, x: Node, scale: Node, bias: Node) -> Node:
    """Mean 0 and variance 1 in each group of channels, then a scale and a shift by channel, up to version 20 by group."""
    shape, groups = t.shape(x), a.num_groups
    if groups < 1 or shape[1] % groups:
        raise TypeFault(f"{groups} groups of {shape[1]} channels")
    wide = t.convert(x, F32) if a.stash_type == 1 else x
    parts = t.reshape(wide, (shape[0], groups, shape[1] // groups, *shape[2:]))
    made, _, _ = normalized(t, parts, list(range(2, t.rank(parts))), a.epsilon)
    made = t.convert(made, t.dtype(x))
    if t.shape(scale) != (groups,) or a.version >= 21:
        made = t.reshape(made, shape)
    return t.reshape(t.add(t.mul(made, t.along(scale, made, 1)), t.along(bias, made, 1)), shape)


def _layer(t: Onnx, a: Attributes, x: Node, scale: Node, bias: Node | None) -> tuple[Node, Node, Node]:
    wide = t.convert(x, F32) if a.stash_type == 1 and t.dtype(x).bits < 32 else x
    made, mean, inverse = normalized(t, wide, list(range(t.axis(x, a.axis), t.rank(x))), a.epsilon)
    made = t.mul(t.convert(made, t.dtype(scale)), t.broadcast_to(scale, t.shape(x)))
    if bias is not None:
        made = t.add(made, t.broadcast_to(t.convert(bias, t.dtype(made)), t.shape(x)))
    return made, mean, inverse


@operator("LayerNormalization(X, Scale, B?; axis=-1, epsilon=1e-05, stash_type=1)")
def layer_normalization(t: Onnx, a: Attributes, x: Node, scale: Node, bias: Node | None) -> tuple[Node, ...]:
    """Mean 0 and variance 1 over the last axes, then a scale and a shift; also the mean and the inverse deviation."""
    return _layer(t, a, x, scale, bias)


@operator("RMSNormalization(X, scale; axis=-1, epsilon=1e-05, stash_type=1)")
def rms_normalization(t: Onnx, a: Attributes, x: Node, scale: Node) -> Node:
    """Divided by the root of the mean square over the last axes, times a scale."""
    return _rms(t, a, x, scale)[0]


@operator("com.microsoft.SimplifiedLayerNormalization(X, scale; axis=-1, epsilon=1e-05, stash_type=1)",
          "SimplifiedLayerNormalization(X, scale; axis=-1, epsilon=1e-05, stash_type=1)")
def simplified(t: Onnx, a: Attributes, x: Node, scale: Node) -> tuple[Node, ...]:
    """``RMSNormalization``, and the inverse of the root."""
    return _rms(t, a, x, scale)


def _rms(t: Onnx, a: Attributes, x: Node, scale: Node) -> tuple[Node, Node]:
    wide = t.convert(x, F32) if a.stash_type == 1 and t.dtype(x).bits < 32 else x
    inverse = t.unary("rsqrt", t.plus(t.mean(t.mul(wide, wide), list(range(t.axis(x, a.axis), t.rank(x))), True), a.epsilon))
    made = t.convert(t.mul(wide, inverse), t.dtype(scale))
    return t.mul(made, t.broadcast_to(scale, t.shape(x))), inverse


@operator("com.microsoft.SkipLayerNormalization(input, skip, gamma, beta?, bias?; epsilon=1e-12)")
def skip_layer_normalization(t: Onnx, a: Attributes, x: Node, skip: Node, gamma: Node, *rest: Node | None) -> tuple[Node, ...]:
    """``LayerNormalization`` of a sum, which is the last result."""
    beta, bias = rest
    total = t.add(x, skip if bias is None else t.add(skip, bias))
    a.axis, a.stash_type = -1, 1
    return (*_layer(t, a, total, gamma, beta), total)


@operator("com.microsoft.SkipSimplifiedLayerNormalization(input, skip, gamma, bias?; epsilon=1e-12)")
def skip_simplified(t: Onnx, a: Attributes, x: Node, skip: Node, gamma: Node, bias: Node | None) -> tuple[Node, ...]:
    """``RMSNormalization`` of a sum, which is the last result."""
    total = t.add(x, skip if bias is None else t.add(skip, bias))
    a.axis, a.stash_type = -1, 1
    made, inverse = _rms(t, a, total, gamma)
    return made, inverse, inverse, total


@operator("LRN(X: float[2+]; alpha=0.0001, beta=0.75, bias=1.0, size: int!)")
def lrn(t: Onnx, a: Attributes, x: Node) -> Node:
    """Each element divided by a power of the sum of squares in nearby channels."""
    n = a.size
    if n < 1:
        raise TypeFault(f"the size is {n}")
    low, high = (min(side, t.shape(x)[1]) for side in ((n - 1) // 2, n // 2))  # there are no channels farther away
    size = tuple(low + 1 + high if d == 1 else 1 for d in range(t.rank(x)))
    pad = tuple((low, high) if d == 1 else (0, 0) for d in range(t.rank(x)))
    total = t.window("add", t.mul(x, x), 0, Window.make(size, pad=pad))
    base = t.plus(t.scale(total, a.alpha / n), a.bias)
    return t.div(x, t.binary("power", base, t.like(base, a.beta)))


@operator("LpNormalization(input; axis=-1, p=2)")
def lp_normalization(t: Onnx, a: Attributes, x: Node) -> Node:
    """Length 1 along an axis in the 1-norm or the 2-norm; zeros stay zeros."""
    axis = t.axis(x, a.axis)
    if a.p not in (1, 2):
        raise TypeFault(f"p is 1 or 2, not {a.p}")
    size = t.sum(t.unary("abs", x), [axis], True) if a.p == 1 else t.unary("sqrt", t.sum(t.mul(x, x), [axis], True))
    return t.select(t.compare("EQ", size, t.like(size, 0)), t.like(x, 0), t.div(x, size))


@operator("MeanVarianceNormalization(X; axes: ints=None)")
def mean_variance_normalization(t: Onnx, a: Attributes, x: Node) -> Node:
    """Mean 0 and variance 1 over axes, by default all but the channels."""
    axes = t.given_axes(x, [0, 2, 3] if a.axes is None else a.axes)
    away = t.sub(x, t.mean(x, axes, True))
    deviation = t.unary("sqrt", t.sub(t.mean(t.mul(x, x), axes, True), t.mul(t.mean(x, axes, True), t.mean(x, axes, True))))
    return t.div(away, t.plus(deviation, 1e-9))


@operator("Dropout(data, ratio?, training_mode?; ratio=0.5, seed: int=None, is_test=0)", work="elementwise")
def dropout(t: Onnx, a: Attributes, x: Node, ratio: Node | None, training: Node | None) -> tuple[Node, ...]:
    """The operand, and a mask of ones: as in inference."""
    if training is not None and t.single(training, "training_mode") \
            and (ratio is None or t.number(ratio, "the ratio") > 0):
        raise TypeFault("dropout in training draws random numbers by a generator that ONNX does not define", "export it in eval mode")
    return x, t.full(t.shape(x), True, PRED) if a.version >= 10 else t.like(x, 1)
