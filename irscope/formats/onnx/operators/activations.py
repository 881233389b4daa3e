"""Activation functions."""
from __future__ import annotations

from math import pi, sqrt

from irscope.formats.onnx.algebra import Onnx
from irscope.formats.onnx.declarations import Attributes
from irscope.formats.onnx.operators import operator
from irscope.graph import Node
from irscope.graph.dtypes import F32
from irscope.ops.faults import TypeFault
from irscope.ops.tensors import Tensors


@operator("Relu(X)")
def relu(t: Onnx, a: Attributes, x: Node) -> Node:
    """``max(x, 0)``. NaN stays NaN."""
    return t.maximum(x, t.like(x, 0))


@operator("LeakyRelu(X; alpha=0.01)")
def leaky_relu(t: Onnx, a: Attributes, x: Node) -> Node:
    """``x`` where it is not negative, else ``alpha x``."""
    return t.select(t.compare("LT", x, t.like(x, 0)), t.scale(x, a.alpha), x)


@operator("PRelu(X, slope)")
def prelu(t: Onnx, a: Attributes, x: Node, slope: Node) -> Node:
    """``x`` where it is not negative, else ``x`` times the slope. Up to version 6 one slope a channel."""
    if a.version < 7 and t.rank(slope) == 1 and t.shape(slope) != (1,):
        slope = t.along(slope, x, 1)
    return t.select(t.compare("LT", x, t.like(x, 0)), t.mul(x, t.broadcast_to(slope, t.shape(x))), x)


@operator("ThresholdedRelu(X; alpha=1.0)")
def thresholded_relu(t: Onnx, a: Attributes, x: Node) -> Node:
    """``x`` where it is above ``alpha``, else 0."""
    return t.select(t.compare("GT", x, t.like(x, a.alpha)), x, t.like(x, 0))


@operator("Elu(X; alpha=1.0)")
def elu(t: Onnx, a: Attributes, x: Node) -> Node:
    """``x`` where it is not negative, else ``alpha (exp(x) - 1)``."""
    return t.select(t.compare("LT", x, t.like(x, 0)), t.scale(t.unary("exponential-minus-one", x), a.alpha), x)


@operator("Selu(X; alpha: float=None, gamma: float=None)")
def selu(t: Onnx, a: Attributes, x: Node) -> Node:
    """The scaled ``Elu``. Its constants were rounded otherwise up to version 5."""
    old = a.version < 6
    alpha = a.alpha if a.alpha is not None else 1.6732 if old else 1.67326319217681884765625
    gamma = a.gamma if a.gamma is not None else 1.0507 if old else 1.05070102214813232421875
    return t.scale(t.select(t.compare("GT", x, t.like(x, 0)), x, t.scale(t.unary("exponential-minus-one", x), alpha)), gamma)


@operator("Celu(X; alpha=1.0)")
def celu(t: Onnx, a: Attributes, x: Node) -> Node:
    """``max(0, x) + min(0, alpha (exp(x / alpha) - 1))``."""
    low = t.minimum(t.like(x, 0), t.scale(t.unary("exponential-minus-one", t.div(x, t.like(x, a.alpha))), a.alpha))
    return t.add(t.maximum(x, t.like(x, 0)), low)


@operator("HardSigmoid(X; alpha=0.2, beta=0.5)")
def hard_sigmoid(t: Onnx, a: Attributes, x: Node) -> Node:
    """``max(0, min(1, alpha x + beta))``."""
    return hard(t, x, a.alpha, a.beta)


def hard(t: Tensors, x: Node, alpha: float, beta: float) -> Node:
    """A line clamped to 0 and 1."""
    return t.maximum(t.like(x, 0), t.minimum(t.like(x, 1), t.plus(t.scale(x, alpha), beta)))


@operator("HardSwish(X)")
def hard_swish(t: Onnx, a: Attributes, x: Node) -> Node:
    """``x`` times its hard sigmoid of slope 1/6."""
    return t.mul(x, hard(t, x, 1 / 6, 0.5))


@operator("Softplus(X)")
def softplus(t: Onnx, a: Attributes, x: Node) -> Node:
    """``log(exp(x) + 1)``, without overflow."""
    return plus_log(t, x)


def plus_log(t: Tensors, x: Node) -> Node:
    """``max(x, 0) + log(1 + exp(-|x|))``."""
    return t.add(t.maximum(x, t.like(x, 0)), t.unary("log-plus-one", t.unary("exponential", t.unary("negate", t.unary("abs", x)))))


@operator("Softsign(X)")
def softsign(t: Onnx, a: Attributes, x: Node) -> Node:
    """``x / (1 + |x|)``."""
    return t.div(x, t.plus(t.unary("abs", x), 1))


@operator("Mish(X)")
def mish(t: Onnx, a: Attributes, x: Node) -> Node:
    """``x tanh(softplus(x))``."""
    return t.mul(x, t.unary("tanh", plus_log(t, x)))


@operator("Swish(X; alpha=1.0)", "com.microsoft.QuickGelu(X; alpha=1.702)")
def swish(t: Onnx, a: Attributes, x: Node) -> Node:
    """``x`` times the logistic function of ``alpha x``."""
    return t.mul(x, t.unary("logistic", t.scale(x, a.alpha)))


@operator("Shrink(input; bias=0.0, lambd=0.5)")
def shrink(t: Onnx, a: Attributes, x: Node) -> Node:
    """Moved towards 0 by ``bias`` outside of ``lambd``, 0 inside."""
    dtype = t.dtype(x)
    wide = x if dtype.is_float else t.convert(x, F32)
    low, high = t.compare("LT", wide, t.like(wide, -a.lambd)), t.compare("GT", wide, t.like(wide, a.lambd))
    made = t.select(low, t.plus(wide, a.bias), t.select(high, t.plus(wide, -a.bias), t.like(wide, 0)))
    return t.convert(made, dtype)


@operator("Gelu(X; approximate='none')")
def gelu(t: Onnx, a: Attributes, x: Node) -> Node:
    """``x`` times the cumulative normal distribution at ``x``, or its approximation by ``tanh``."""
    if a.approximate == "tanh":
        return by_tanh(t, x)
    if a.approximate != "none":
        raise TypeFault(f"approximate is none or tanh, not {a.approximate!r}")
    return exact(t, x)


def exact(t: Onnx, x: Node) -> Node:
    """``x / 2 (1 + erf(x / sqrt 2))``."""
    return t.mul(t.scale(x, 0.5), t.plus(t.unary("erf", t.scale(x, 1 / sqrt(2))), 1))


def by_tanh(t: Onnx, x: Node) -> Node:
    """``x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))``."""
    cubic = t.add(x, t.scale(t.mul(t.mul(x, x), x), 0.044715))
    return t.mul(t.scale(x, 0.5), t.plus(t.unary("tanh", t.scale(cubic, sqrt(2 / pi))), 1))


@operator("com.microsoft.Gelu(X)")
def microsoft_gelu(t: Onnx, a: Attributes, x: Node) -> Node:
    """``Gelu`` by the error function."""
    return exact(t, x)


@operator("com.microsoft.FastGelu(X, bias?)")
def fast_gelu(t: Onnx, a: Attributes, x: Node, bias: Node | None) -> Node:
    """``Gelu`` by ``tanh``, of the sum of two operands."""
    return by_tanh(t, x if bias is None else t.add(x, bias))


@operator("com.microsoft.BiasGelu(A, B)")
def bias_gelu(t: Onnx, a: Attributes, x: Node, bias: Node) -> Node:
    """``Gelu`` of the sum of two operands."""
    return exact(t, t.add(x, bias))
