"""Gradients of losses, and the losses that also return what their gradient takes. Reductions are 0 none, 1 mean, 2 sum."""
from __future__ import annotations

from collections.abc import Callable
from math import prod

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.loss import multilabel_margin_loss, named_labels, picked
from irscope.formats.torchscript.operators.wide import computed, widened
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import S64
from irscope.ops.checked import nonzero


def _elementwise(t: Torch, grad: Node, x: Node, y: Node, reduction: int, slope: Callable[[Node, Node], Node]) -> Node:
    """The gradient of an elementwise loss with respect to ``x``: the ``slope`` of each pair times the gradient of the loss."""
    n = prod(t.broadcast_shape(t.shape(x), t.shape(y)))

    def whole(g: Node, a: Node, b: Node) -> Node:
        made = t.mul(slope(a, b), g)
        return t.scale(made, 1 / max(n, 1)) if reduction == 1 else made
    return computed(t, whole, grad, x, y)


def _sign(t: Torch, d: Node, size: float) -> Node:
    """``size`` with the sign of each element."""
    return t.select(t.compare("GT", d, t.like(d, 0)), t.like(d, size), t.like(d, -size))


@operator("mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction)")
def mse_loss_backward(t: Torch, grad: Node, x: Node, y: Node, reduction: int) -> Node:
    return _elementwise(t, grad, x, y, reduction, lambda a, b: t.scale(t.sub(a, b), 2))


@operator("smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float beta)")
def smooth_l1_loss_backward(t: Torch, grad: Node, x: Node, y: Node, reduction: int, beta: float) -> Node:
    def slope(a: Node, b: Node) -> Node:
        d = t.sub(a, b)
        far = t.compare("GE", t.unary("abs", d), t.like(d, beta))
        return t.select(far, _sign(t, d, 1), t.div(d, t.like(d, beta)) if beta else t.like(d, 0))
    return _elementwise(t, grad, x, y, reduction, slope)


@operator("huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float delta)")
def huber_loss_backward(t: Torch, grad: Node, x: Node, y: Node, reduction: int, delta: float) -> Node:
    def slope(a: Node, b: Node) -> Node:
        d = t.sub(a, b)
        near = t.compare("LE", t.unary("abs", d), t.like(d, delta))
        return t.select(near, d, _sign(t, d, delta))
    return _elementwise(t, grad, x, y, reduction, slope)


@operator("binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean)")
def binary_cross_entropy_backward(t: Torch, grad: Node, x: Node, y: Node, w: Node | None, reduction: int) -> Node:
    def slope(a: Node, b: Node) -> Node:
        spread = t.mul(t.sub(t.like(a, 1), a), a)
        made = t.div(t.sub(a, b), t.maximum(spread, t.like(a, 1e-12)))
        return made if w is None else t.mul(made, t.convert(w, t.dtype(made)))
    return _elementwise(t, grad, x, y, reduction, slope)


@operator("soft_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction)")
def soft_margin_loss_backward(t: Torch, grad: Node, x: Node, y: Node, reduction: int) -> Node:
    def slope(a: Node, b: Node) -> Node:
        z = t.unary("exponential", t.unary("negate", t.mul(a, b)))
        return t.div(t.mul(t.unary("negate", b), z), t.plus(z, 1))
    return _elementwise(t, grad, x, y, reduction, slope)


# ---------------------------------------------------------------------- negative log likelihood


def _total_weight(t: Torch, x: Node, y: Node, w: Node | None, ignored: int) -> Node:
    """The weights of all targets that are not ignored."""
    valid = t.compare("NE", y, t.like(y, ignored))
    dims = list(range(t.rank(y)))
    if w is None:
        return t.sum(t.convert(valid, t.dtype(x)), dims)
    weight = t.take(w, t.select(valid, y, t.like(y, 0)), 0)
    return t.sum(t.select(valid, weight, t.like(weight, 0)), dims)


@operator("nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index)",
          "nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index)")
def nll_loss_forward(t: Torch, x: Node, y: Node, w: Node | None, reduction: int, ignored: int) -> tuple[Node, Node]:
    """The loss, and the sum of the weights; 0 where the loss is not reduced."""
    loss = picked(t, x, y, w, reduction, ignored)
    total = t.array(0, t.dtype(x)) if reduction == 0 else _total_weight(t, x, y, w, ignored)
    return loss, total


@operator(*(f"nll_loss{form}_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index, "
            "Tensor total_weight)" for form in ("", "2d")))
def nll_loss_backward(t: Torch, grad: Node, x: Node, y: Node, w: Node | None, reduction: int, ignored: int, total: Node) -> Node:
    d = 1 if t.rank(x) > 1 else 0
    at = t.unsqueeze(y, d) if t.rank(x) > t.rank(y) else y
    hit = t.compare("EQ", at, t.iota(t.shape(x), d, t.dtype(y)))
    hit = t.binary("and", *t.together(hit, t.compare("NE", at, t.like(at, ignored))))
    g = t.unary("negate", grad)
    if reduction == 1:
        g = t.div(g, total)
    g = t.unsqueeze(g, d) if t.rank(g) and t.rank(g) < t.rank(x) else g
    if w is not None:
        g = t.mul(g, t.reshape(w, tuple(n if i == d else 1 for i, n in enumerate(t.shape(x)))))
    g = t.broadcast_to(g, t.shape(x))
    return t.select(hit, g, t.like(g, 0))


# ---------------------------------------------------------------------- margins


@operator("multi_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, Scalar p, Scalar margin, Tensor? weight=None, "
          "int reduction=Mean)")
def multi_margin_loss_backward(t: Torch, grad: Node, x: Node, y: Node, p: int, margin: float, w: Node | None, reduction: int) -> Node:
    shape = t.shape(x)
    v = t.reshape(widened(t, x), (1, prod(shape))) if t.rank(x) < 2 else widened(t, x)
    y = t.reshape(y, (t.shape(v)[0],))
    n, c = t.shape_of(v, 2, 2)
    short = t.plus(t.sub(v, t.gather_elements(v, t.unsqueeze(y, 1), 1)), margin)
    slope = t.like(short, 1 / nonzero("the number of classes", c)) if p == 1 else t.scale(short, 2 / c)
    if w is not None:
        slope = t.mul(slope, t.unsqueeze(t.take(t.convert(w, t.dtype(v)), y, 0), 1))
    own = t.compare("EQ", t.iota((n, c), 1, t.dtype(y)), t.unsqueeze(y, 1))
    counted = t.binary("and", t.compare("GT", short, t.like(short, 0)), t.unary("not", own))
    others = t.select(counted, slope, t.like(slope, 0))
    made = t.select(own, t.unary("negate", t.sum(others, [1], True)), others)
    return t.convert(t.reshape(_times(t, made, grad, reduction, n), shape), t.dtype(x))


def _times(t: Torch, made: Node, grad: Node, reduction: int, n: int) -> Node:
    """The gradients of ``n`` rows times the gradient of the loss, divided by ``n`` for a mean."""
    g = widened(t, grad)
    if reduction == 0:
        g = t.reshape(g, (n, 1))
    made = t.mul(made, g)
    return t.scale(made, 1 / max(n, 1)) if reduction == 1 else made


@operator("multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction)")
def multilabel_margin_loss_forward(t: Torch, x: Node, y: Node, reduction: int) -> tuple[Node, Node]:
    """The loss, and 1 for each class that is right, which the gradient takes."""
    rows = t.reshape(y, (1, prod(t.shape(y)))) if t.rank(y) < 2 else y
    right = named_labels(t, rows)[2]
    return multilabel_margin_loss(t, x, y, reduction), t.reshape(t.convert(right, t.dtype(x)), t.shape(y))


@operator("multilabel_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, Tensor is_target)")
def multilabel_margin_loss_backward(t: Torch, grad: Node, x: Node, y: Node, reduction: int, right: Node) -> Node:
    shape = t.shape(x)
    n, c = shape if len(shape) == 2 else (1, prod(shape))
    v, y = t.reshape(widened(t, x), (n, c)), t.reshape(y, (n, c))
    named, safe, among = named_labels(t, y)
    own = t.gather_elements(v, safe, 1)
    short = t.plus(t.sub(t.unsqueeze(v, 1), t.unsqueeze(own, 2)), 1)  # [row, right one, other class]
    counted = t.binary("and", *t.together(t.unsqueeze(named, 2), t.unsqueeze(t.unary("not", among), 1)))
    counted = t.binary("and", counted, t.compare("GT", short, t.like(short, 0)))
    ones = t.convert(counted, t.dtype(v))
    same = t.compare("EQ", t.unsqueeze(safe, 2), t.iota((n, c, c), 2, S64 if t.dtype(safe) is S64 else t.dtype(safe)))
    lost = t.select(same, t.sum(ones, [2], True), t.array(0, t.dtype(v)))
    made = t.scale(t.sub(t.sum(ones, [1]), t.sum(lost, [1])), 1 / nonzero("the number of classes", c))
    return t.convert(t.reshape(_times(t, made, grad, reduction, n), shape), t.dtype(x))
