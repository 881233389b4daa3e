"""Gradients of activations and of softmax: the gradient with respect to the input, from that with respect to the output."""
from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from math import pi, sqrt

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.activations import log_sigmoid
from irscope.formats.torchscript.operators.wide import computed, widened
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import F32
from irscope.ops.checked import real


def where_inside(t: Torch, inside: Node, grad: Node) -> Node:
    """The gradient where a condition holds, else zero."""
    return t.select(inside, grad, t.like(grad, 0))


@operator("sigmoid_backward(Tensor grad_output, Tensor output)")
def sigmoid_backward(t: Torch, grad: Node, y: Node) -> Node:
    return computed(t, lambda g, v: t.mul(g, t.mul(t.sub(t.like(v, 1), v), v)), grad, y)


@operator("tanh_backward(Tensor grad_output, Tensor output)")
def tanh_backward(t: Torch, grad: Node, y: Node) -> Node:
    return computed(t, lambda g, v: t.mul(g, t.sub(t.like(v, 1), t.mul(v, v))), grad, y)


def _of_pair(*schemas: str) -> Callable[[Callable[..., Node]], Callable[..., Node]]:
    """Declare operators by a function of a gradient and another tensor.

    The function receives both in their common type, half types as float32. Its result is converted to the common type.
    """
    def enter(function: Callable[..., Node]) -> Callable[..., Node]:
        @operator(*schemas)
        @wraps(function)
        def wide(t: Torch, grad: Node, x: Node, *rest: object) -> Node:
            return computed(t, lambda g, v: function(t, g, v, *rest), grad, x)
        return wide
    return enter


@_of_pair("silu_backward(Tensor grad_output, Tensor self)")
def silu_backward(t: Torch, g: Node, v: Node) -> Node:
    s = t.unary("logistic", v)
    return t.mul(g, t.mul(s, t.plus(t.mul(v, t.sub(t.like(s, 1), s)), 1)))


@_of_pair("gelu_backward(Tensor grad_output, Tensor self, *, str approximate=\"none\")")
def gelu_backward(t: Torch, g: Node, v: Node, approximate: str) -> Node:
    if approximate == "tanh":
        beta, kappa = sqrt(2 / pi), 0.044715
        square = t.mul(v, v)
        inner = t.unary("tanh", t.scale(t.mul(v, t.plus(t.scale(square, kappa), 1)), beta))
        left = t.scale(t.plus(inner, 1), 0.5)
        slope = t.scale(t.plus(t.scale(square, 3 * kappa), 1), beta)
        right = t.mul(t.scale(t.mul(v, t.sub(t.like(v, 1), t.mul(inner, inner))), 0.5), slope)
        return t.mul(g, t.add(left, right))
    below = t.scale(t.plus(t.unary("erf", t.scale(v, sqrt(0.5))), 1), 0.5)
    density = t.scale(t.unary("exponential", t.scale(t.mul(v, v), -0.5)), 1 / sqrt(2 * pi))
    return t.mul(g, t.add(below, t.mul(v, density)))


@_of_pair("mish_backward(Tensor grad_output, Tensor self)")
def mish_backward(t: Torch, g: Node, v: Node) -> Node:
    soft = t.unary("tanh", t.unary("log-plus-one", t.unary("exponential", v)))
    sigmoid = t.unary("logistic", v)
    return t.mul(g, t.add(soft, t.mul(t.mul(v, sigmoid), t.sub(t.like(soft, 1), t.mul(soft, soft)))))


@operator("elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, Tensor self_or_result)")
def elu_backward(t: Torch, grad: Node, alpha: float, scale: float, input_scale: float, of_result: bool, x: Node) -> Node:
    def slope(g: Node, v: Node) -> Node:
        if of_result:
            tail = t.scale(t.plus(v, alpha * scale), input_scale)
        else:
            tail = t.scale(t.unary("exponential", t.scale(v, input_scale)), input_scale * alpha * scale)
        return t.mul(g, t.select(t.compare("LE", v, t.like(v, 0)), tail, t.like(v, scale)))
    return computed(t, slope, grad, x)


@_of_pair("leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result)")
def leaky_relu_backward(t: Torch, g: Node, v: Node, slope: float, of_result: bool) -> Node:
    return t.select(t.compare("GT", v, t.like(v, 0)), g, t.scale(g, slope))


@operator("rrelu_with_noise_backward(Tensor grad_output, Tensor self, Tensor noise, Scalar lower, Scalar upper, bool training, "
          "bool self_is_result)")
def rrelu_backward(t: Torch, grad: Node, x: Node, noise: Node, lower: float, upper: float, training: bool, of_result: bool) -> Node:
    real("the slopes of rrelu", lower, upper)
    if training and upper - lower > 1e-6:
        return t.mul(*t.promote(grad, noise))
    return leaky_relu_backward(t, grad, x, (lower + upper) / 2, of_result)


@operator("threshold_backward(Tensor grad_output, Tensor self, Scalar threshold)")
def threshold_backward(t: Torch, grad: Node, x: Node, limit: float) -> Node:
    return computed(t, lambda g, v: t.select(t.compare("LE", v, t.like(v, limit)), t.like(g, 0), g), grad, x)


@_of_pair("hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val)")
def hardtanh_backward(t: Torch, g: Node, v: Node, low: float, high: float) -> Node:
    outside = t.binary("or", t.compare("LE", v, t.like(v, low)), t.compare("GE", v, t.like(v, high)))
    return t.select(outside, t.like(g, 0), g)


@_of_pair("hardsigmoid_backward(Tensor grad_output, Tensor self)")
def hardsigmoid_backward(t: Torch, g: Node, v: Node) -> Node:
    inside = t.binary("and", t.compare("GT", v, t.like(v, -3)), t.compare("LT", v, t.like(v, 3)))
    return where_inside(t, inside, t.scale(g, 1 / 6))


@_of_pair("hardswish_backward(Tensor grad_output, Tensor self)")
def hardswish_backward(t: Torch, g: Node, v: Node) -> Node:
    middle = t.mul(g, t.plus(t.scale(v, 1 / 3), 0.5))
    inside = t.select(t.compare("LT", v, t.like(v, 3)), middle, g)
    return t.select(t.compare("LE", v, t.like(v, -3)), t.like(g, 0), inside)


@_of_pair("hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd)",
          "softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd)")
def shrink_backward(t: Torch, g: Node, v: Node, bound: float) -> Node:
    between = t.binary("and", t.compare("GE", v, t.like(v, -bound)), t.compare("LE", v, t.like(v, bound)))
    return t.select(between, t.like(g, 0), g)


@_of_pair("softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold)")
def softplus_backward(t: Torch, g: Node, v: Node, beta: float, limit: float) -> Node:
    scaled = t.scale(v, beta)
    e = t.unary("exponential", scaled)
    return t.select(t.compare("GT", scaled, t.like(v, limit)), g, t.div(t.mul(g, e), t.plus(e, 1)))


@operator("log_sigmoid_forward(Tensor self)")
def log_sigmoid_forward(t: Torch, x: Node) -> tuple[Node, Node]:
    """The result, and exp(-|x|), which the gradient takes on the CPU."""
    wide = widened(t, x)
    small = t.unary("exponential", t.unary("negate", t.unary("abs", wide)))
    return t.convert(log_sigmoid(t, wide), t.dtype(x)), t.convert(small, t.dtype(x))


@_of_pair("log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer)")
def log_sigmoid_backward(t: Torch, g: Node, v: Node, buffer: Node) -> Node:
    e = t.unary("exponential", t.unary("negate", t.unary("abs", v)))
    negative = t.compare("LT", v, t.like(v, 0))
    most = t.select(negative, t.like(v, 1), t.like(v, 0))
    sign = t.select(negative, t.like(v, 1), t.like(v, -1))
    return t.mul(g, t.sub(most, t.mul(sign, t.div(e, t.plus(e, 1)))))


@_of_pair("logit_backward(Tensor grad_output, Tensor self, float? eps=None)")
def logit_backward(t: Torch, g: Node, v: Node, eps: float | None) -> Node:
    low, high = (0.0, 1.0) if eps is None else (eps, 1 - eps)
    inside = t.binary("and", t.compare("GE", v, t.like(v, low)), t.compare("LE", v, t.like(v, high)))
    made = t.div(g, t.mul(v, t.sub(t.like(v, 1), v)))
    return t.select(inside, made, t.like(v, float("nan") if eps is None else 0))


@operator("glu_backward(Tensor grad_output, Tensor self, int dim)")
def glu_backward(t: Torch, grad: Node, x: Node, dim: int) -> Node:
    d = t.dim(x, dim)
    half = t.shape(x)[d] // 2
    v, g = widened(t, x), widened(t, grad)
    a, gate = t.slice_dim(v, d, 0, half), t.unary("logistic", t.slice_dim(v, d, half, 2 * half))
    first = t.mul(gate, g)
    second = t.mul(t.mul(t.mul(t.sub(t.like(gate, 1), gate), gate), g), a)
    return t.convert(t.concat([first, second], d), t.dtype(x))


@operator("_prelu_kernel_backward(Tensor grad_output, Tensor self, Tensor weight)")
def prelu_backward(t: Torch, grad: Node, x: Node, w: Node) -> tuple[Node, Node]:
    x, w, grad = t.together(x, w, grad)
    positive = t.compare("GT", x, t.like(x, 0))
    return t.select(positive, grad, t.mul(w, grad)), t.select(positive, t.like(grad, 0), t.mul(x, grad))


@operator("native_dropout_backward(Tensor grad_output, Tensor mask, float scale)")
def native_dropout_backward(t: Torch, grad: Node, mask: Node, scale: float) -> Node:
    return t.scale(t.mul(grad, t.convert(mask, t.dtype(grad))), scale)


# ---------------------------------------------------------------------- softmax


def _typed(t: Torch, made: Node, number: int) -> Node:
    return t.convert(made, t.dtype_number(number, t.dtype(made)))


@operator("_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype)")
def softmax_backward(t: Torch, grad: Node, y: Node, dim: int, dtype: int) -> Node:
    d = [t.dim(y, dim)] if t.rank(y) else []
    g, v = widened(t, grad), widened(t, y)
    scaled = t.mul(g, v)
    return _typed(t, t.sub(scaled, t.mul(v, t.sum(scaled, d, True))), dtype)


@operator("_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype)")
def log_softmax_backward(t: Torch, grad: Node, y: Node, dim: int, dtype: int) -> Node:
    d = [t.dim(y, dim)] if t.rank(y) else []
    g, v = widened(t, grad), widened(t, y)
    return _typed(t, t.sub(g, t.mul(t.unary("exponential", v), t.sum(g, d, True))), dtype)


@operator("_masked_softmax(Tensor self, Tensor mask, int? dim=None, int? mask_type=None)")
def masked_softmax(t: Torch, x: Node, mask: Node, dim: int | None, kind: int | None) -> Node:
    """Softmax where the mask is true counts as -inf; a mask of type 0 is of [rows, columns], one of type 1 of [batch, columns]."""
    shape = t.shape(x)
    if kind == 0 and t.shape(mask) != shape:
        mask = t.reshape(mask, (*(1,) * (len(shape) - 2), *shape[-2:]))
    elif kind == 1 and t.shape(mask) != shape:
        mask = t.reshape(mask, (shape[0], *(1,) * (len(shape) - 2), shape[-1]))
    d = [t.dim(x, -1 if dim is None else dim)]
    v = t.select(mask, t.array(float("-inf"), F32), t.convert(x, F32))
    top = t.max(v, d, True)
    e = t.unary("exponential", t.sub(v, top))
    made = t.div(e, t.sum(e, d, True))
    return t.convert(made, t.dtype(x))
