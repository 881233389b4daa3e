"""Normalisation, softmax, dropout, and losses."""

from __future__ import annotations

from irscope.formats.relay.algebra import Relay
from irscope.formats.relay.operators import Attributes, operator
from irscope.graph import Kind, Node
from irscope.graph.dtypes import S64
from irscope.ops.attrs import Window
from irscope.ops.faults import TypeFault

C, E = Kind.CONTRACTION, Kind.ELEMENTWISE


@operator("nn.batch_norm(data, gamma, beta, moving_mean, moving_var; axis=1, epsilon=1e-05, center=True, scale=True)", kind=C)
def batch_norm(t: Relay, a: Attributes, x: Node, gamma: Node, beta: Node, mean: Node, var: Node) -> list[Node]:
    """Normalises each channel by its mean and variance; returns the data and both statistics unchanged."""
    factor = t.unary("rsqrt", t.plus(var, float(a.epsilon)))
    if a.scale:
        factor = t.mul(factor, gamma)
    shift = t.unary("negate", t.mul(mean, factor))
    if a.center:
        shift = t.add(shift, beta)
    made = t.add(t.mul(x, t.along(factor, x, a.axis)), t.along(shift, x, a.axis))
    return [made, mean, var]


def normalized(t: Relay, x: Node, axes: list[int], epsilon: float) -> tuple[Node, Node, Node]:
    """``x`` with mean 0 and variance 1 over some axes, the mean, and the inverse of the standard deviation."""
    mean = t.mean(x, axes, True)
    away = t.sub(x, mean)
    inverse = t.unary("rsqrt", t.plus(t.mean(t.mul(away, away), axes, True), epsilon))
    return t.mul(away, inverse), mean, inverse


def _affine(t: Relay, a: Attributes, x: Node, gamma: Node, beta: Node, axis: int) -> Node:
    if a.scale:
        x = t.mul(x, t.along(gamma, x, axis))
    return t.add(x, t.along(beta, x, axis)) if a.center else x


@operator("nn.layer_norm(data, gamma, beta; axis=-1, epsilon=1e-05, center=True, scale=True)")
def layer_norm(t: Relay, a: Attributes, x: Node, gamma: Node, beta: Node) -> Node:
    """Mean 0 and variance 1 along an axis, then a scale and a shift."""
    return _affine(t, a, normalized(t, x, [t.axis(x, a.axis)], float(a.epsilon))[0], gamma, beta, a.axis)


@operator("nn.instance_norm(data, gamma, beta; axis=1, epsilon=1e-05, center=True, scale=True)")
def instance_norm(t: Relay, a: Attributes, x: Node, gamma: Node, beta: Node) -> Node:
    """Mean 0 and variance 1 in each plane."""
    axes = [d for d in range(1, t.rank(x)) if d != t.axis(x, a.axis)]
    return _affine(t, a, normalized(t, x, axes, float(a.epsilon))[0], gamma, beta, a.axis)


@operator("nn.group_norm(data, gamma, beta; num_groups=0, axis=1, epsilon=1e-05, center=True, scale=True)")
def group_norm(t: Relay, a: Attributes, x: Node, gamma: Node, beta: Node) -> Node:
    """Mean 0 and variance 1 in each group of channels."""
    axis, shape, groups = t.axis(x, a.axis), t.shape(x), int(a.num_groups)
    if not groups or shape[axis] % groups:
        raise TypeFault(f"axis {axis} is {shape[axis]}, which {groups} groups do not divide")
    parts = t.reshape(x, (*shape[:axis], groups, shape[axis] // groups, *shape[axis + 1 :]))
    axes = [d for d in range(1, t.rank(parts)) if d != axis]
    return _affine(t, a, t.reshape(normalized(t, parts, axes, float(a.epsilon))[0], shape), gamma, beta, axis)


@operator("nn.l2_normalize(data; eps!, axis=None)")
def l2_normalize(t: Relay, a: Attributes, x: Node) -> Node:
    """Length 1 along some axes."""
    total = t.sum(t.mul(x, x), t.axes(x, a.axis), True)
    return t.div(x, t.unary("sqrt", t.maximum(total, t.like(total, float(a.eps)))))


@operator("nn.lrn(data; size: size=5, axis=1, bias=2.0, alpha=0.0001, beta=0.75)")
def lrn(t: Relay, a: Attributes, x: Node) -> Node:
    """Each element divided by a power of the sum of squares in nearby channels."""
    axis, n = t.axis(x, a.axis), int(a.size)
    size = tuple(n if d == axis else 1 for d in range(t.rank(x)))
    pad = tuple(((n - 1) // 2, n // 2) if d == axis else (0, 0) for d in range(t.rank(x)))
    total = t.window("add", t.mul(x, x), 0, Window.make(size, pad=pad))
    base = t.plus(t.scale(total, float(a.alpha) / n), float(a.bias))
    return t.div(x, t.binary("power", base, t.like(base, float(a.beta))))


def softmax(t: Relay, x: Node, axis: int) -> Node:
    """``exp(x)`` divided by its sum, after subtracting the maximum."""
    powers = t.unary("exponential", t.sub(x, t.max(x, [axis], True)))
    return t.div(powers, t.sum(powers, [axis], True))


@operator("nn.softmax(data; axis=-1)", "nn.fast_softmax(data; axis=-1)", kind=C)
def soft(t: Relay, a: Attributes, x: Node) -> Node:
    """``exp(x)`` divided by its sum along an axis."""
    return softmax(t, x, t.axis(x, a.axis))


@operator("nn.log_softmax(data; axis=-1)", kind=C)
def log_softmax(t: Relay, a: Attributes, x: Node) -> Node:
    """The logarithm of softmax."""
    return log_of(t, x, t.axis(x, a.axis))


def log_of(t: Relay, x: Node, axis: int) -> Node:
    """The logarithm of softmax along an axis."""
    away = t.sub(x, t.max(x, [axis], True))
    return t.sub(away, t.unary("log", t.sum(t.unary("exponential", away), [axis], True)))


@operator("nn.dropout(data; rate=0.5)", work="elementwise")
def dropout(t: Relay, a: Attributes, x: Node) -> list[Node]:
    """The data unchanged, as in inference, and a mask of ones."""
    return [x, t.like(x, 1)]


@operator("nn.cross_entropy(predictions: 1d+, targets)")
def cross_entropy(t: Relay, a: Attributes, x: Node, y: Node) -> Node:
    """Minus the mean over the batch of the targets times the logarithms."""
    return _cross(t, t.unary("log", x), x, y)


@operator("nn.cross_entropy_with_logits(predictions: 1d+, targets)")
def cross_entropy_with_logits(t: Relay, a: Attributes, x: Node, y: Node) -> Node:
    """Minus the mean over the batch of the targets times the predictions."""
    return _cross(t, x, x, y)


def _cross(t: Relay, logs: Node, x: Node, y: Node) -> Node:
    total = t.sum(t.mul(logs, y), list(range(t.rank(x))))
    return t.unary("negate", t.div(total, t.like(total, t.shape(x)[0])))


@operator("nn.nll_loss(predictions: 1d+, targets: int, weights: 1d; reduction='mean', ignore_index!)", kind=C)
def nll_loss(t: Relay, a: Attributes, x: Node, targets: Node, weights: Node) -> Node:
    """Minus the weighted log probability of the right class."""
    shape = t.shape(x)
    ignored = int(a.ignore_index if a.ignore_index is not None else -100)
    wide = t.convert(targets, S64)
    used = t.compare("NE", wide, t.like(wide, ignored))
    safe = t.select(used, wide, t.like(wide, 0))
    spot = t.reshape(safe, (shape[0], 1, *shape[2:])) if len(shape) > 1 else t.reshape(safe, (1,))
    picked = t.reshape(t.gather_elements(x, spot, 1 if len(shape) > 1 else 0), t.shape(targets))
    weight = t.select(used, t.take(weights, safe, 0), t.array(0, t.dtype(x)))
    loss = t.unary("negate", t.mul(picked, weight))
    axes = list(range(t.rank(loss)))
    if a.reduction == "none":
        return loss
    total = t.sum(loss, axes)
    return t.div(total, t.sum(weight, axes)) if a.reduction == "mean" else total


