"""Activations: the elementwise functions between layers."""
from __future__ import annotations

from math import pi, sqrt

from irscope.formats.torchscript.abstract import ITSELF, Decision
from irscope.formats.torchscript.operators import alias, operator
from irscope.formats.torchscript.operators.wide import rounded_once
from irscope.formats.torchscript.strides import Strided
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.ops.checked import nonzero
from irscope.ops.faults import TypeFault


@operator("relu(Tensor self)")
def relu(t: Torch, x: Node) -> Node:
    return t.maximum(x, t.like(x, 0))


@operator("relu6(Tensor self)")
def relu6(t: Torch, x: Node) -> Node:
    return hardtanh(t, x, 0, 6)


@operator("hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1)")
def hardtanh(t: Torch, x: Node, low: object, high: object) -> Node:
    return t.minimum(t.maximum(x, t.like(x, low)), t.like(x, high))


@operator("leaky_relu(Tensor self, Scalar negative_slope=0.01)")
def leaky_relu(t: Torch, x: Node, slope: float) -> Node:
    return t.select(t.compare("GT", x, t.like(x, 0)), x, t.scale(x, slope))


@operator("rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, Generator? generator=None)",
          draws=True)
def rrelu(t: Torch, x: Node, lower: float, upper: float, training: bool, generator: object) -> Node:
    """In evaluation the slope is the middle of the range."""
    if training:
        raise TypeFault("rrelu in training mode draws from torch's generator: call model.eval() before the graph is made")
    return leaky_relu(t, x, (lower + upper) / 2)


@operator("rrelu_with_noise(Tensor self, Tensor noise, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, "
          "Generator? generator=None)", draws=True)
def rrelu_with_noise(t: Torch, x: Node, noise: Node, lower: float, upper: float, training: bool, generator: object) -> Node:
    return rrelu(t, x, lower, upper, training, generator)


@operator("rrelu_with_noise_functional(Tensor self, Tensor noise, Scalar lower=0.125, Scalar upper=0.33333333333333331, "
          "bool training=False, Generator? generator=None)", draws=True)
def rrelu_with_noise_functional(t: Torch, x: Node, noise: Node, lower: float, upper: float, training: bool,
                                generator: object) -> tuple[Node, Node]:
    """Beside the result the noise, which is written in training alone."""
    return rrelu(t, x, lower, upper, training, generator), noise


@operator("prelu(Tensor self, Tensor weight)", "_prelu_kernel(Tensor self, Tensor weight)")
def prelu(t: Torch, x: Node, weight: Node) -> Node:
    n = t.shape(weight)[0] if t.rank(weight) else 1
    if n > 1:
        if t.shape_of(x, 2)[1] != n:
            raise TypeFault(f"{n} weights for {t.shape(x)[1]} channels")
        weight = t.reshape(weight, (1, n, *(1,) * (t.rank(x) - 2)))
    elif t.rank(weight):
        weight = t.reshape(weight, ())
    return t.select(t.compare("GT", x, t.like(x, 0)), x, t.mul(x, weight))


@operator("elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1)")
@rounded_once
def elu(t: Torch, x: Node, alpha: float, scale: float, input_scale: float) -> Node:
    tail = t.scale(t.unary("exponential-minus-one", t.scale(x, input_scale)), alpha * scale)
    return t.select(t.compare("GT", x, t.like(x, 0)), t.scale(x, scale), tail)


@operator("selu(Tensor self)")
def selu(t: Torch, x: Node) -> Node:
    return elu(t, x, 1.6732632423543772, 1.0507009873554805, 1)


@operator("celu(Tensor self, Scalar alpha=1.)")
def celu(t: Torch, x: Node, alpha: float) -> Node:
    return elu(t, x, alpha, 1, 1 / nonzero("the alpha of celu", alpha))


@operator("silu(Tensor self)")
@rounded_once
def silu(t: Torch, x: Node) -> Node:
    return t.mul(x, t.unary("logistic", x))


@operator("mish(Tensor self)")
@rounded_once
def mish(t: Torch, x: Node) -> Node:
    return t.mul(x, t.unary("tanh", softplus(t, x, 1, 20)))


@operator("softplus(Tensor self, Scalar beta=1, Scalar threshold=20)")
@rounded_once
def softplus(t: Torch, x: Node, beta: float, limit: float) -> Node:
    scaled = t.scale(x, nonzero("the beta of softplus", beta))
    soft = t.scale(t.unary("log-plus-one", t.unary("exponential", scaled)), 1 / beta)
    return t.select(t.compare("GT", scaled, t.like(x, limit)), x, soft)


@operator("log_sigmoid(Tensor self)")
@rounded_once
def log_sigmoid(t: Torch, x: Node) -> Node:
    tail = t.unary("log-plus-one", t.unary("exponential", t.unary("negate", t.unary("abs", x))))
    return t.sub(t.minimum(x, t.like(x, 0)), tail)


@operator("gelu(Tensor self, *, str approximate=\"none\")")
@rounded_once
def gelu(t: Torch, x: Node, approximate: str) -> Node:
    half = t.scale(x, 0.5)
    if approximate == "tanh":
        inner = t.scale(t.add(x, t.scale(t.mul(t.mul(x, x), x), 0.044715)), sqrt(2 / pi))
        return t.mul(half, t.plus(t.unary("tanh", inner), 1))
    return t.mul(half, t.plus(t.unary("erf", t.scale(x, sqrt(0.5))), 1))


@operator("hardsigmoid(Tensor self)")
@rounded_once
def hardsigmoid(t: Torch, x: Node) -> Node:
    return t.scale(hardtanh(t, t.plus(x, 3), 0, 6), 1 / 6)


@operator("hardswish(Tensor self)")
@rounded_once
def hardswish(t: Torch, x: Node) -> Node:
    return t.mul(x, hardsigmoid(t, x))


@operator("softshrink(Tensor self, Scalar lambd=0.5)")
def softshrink(t: Torch, x: Node, bound: float) -> Node:
    above, below = t.compare("GT", x, t.like(x, bound)), t.compare("LT", x, t.like(x, -bound))
    between = t.select(t.compare("NE", x, x), x, t.like(x, 0))
    return t.select(above, t.plus(x, -bound), t.select(below, t.plus(x, bound), between))


@operator("hardshrink(Tensor self, Scalar lambd=0.5)")
def hardshrink(t: Torch, x: Node, bound: float) -> Node:
    return t.select(t.compare("LE", t.unary("abs", x), t.like(x, bound)), t.like(x, 0), x)


@operator("glu(Tensor self, int dim=-1)")
@rounded_once
def glu(t: Torch, x: Node, dim: int) -> Node:
    d = t.dim(x, dim)
    half, rest = divmod(t.shape(x)[d], 2)
    if rest:
        raise TypeFault(f"dimension {dim} of {list(t.shape(x))} has no halves")
    return t.mul(t.slice_dim(x, d, 0, half), t.unary("logistic", t.slice_dim(x, d, half, 2 * half)))


@alias("dropout(Tensor(a) input, float p, bool train)", "feature_dropout(Tensor(a) input, float p, bool train)",
       "alpha_dropout(Tensor(a) input, float p, bool train)", "feature_alpha_dropout(Tensor(a) input, float p, bool train)",
       traits="dropout", draws=True)
def dropout(t: Torch, x: Node, at: Strided | None, p: float, train: bool) -> Decision:
    """In evaluation the input itself. In training the result depends on torch's generator, which is not in the text."""
    if train and p > 0 and 0 not in t.shape(x):
        raise TypeFault("dropout in training mode draws from torch's generator: call model.eval() before the graph is made")
    return ITSELF

