"""Losses, with torch's reductions: 0 none, 1 mean, 2 sum."""
from __future__ import annotations

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.reduction import log_softmax
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node


def reduced(t: Torch, x: Node, reduction: int) -> Node:
    if reduction == 0:
        return x
    dims = list(range(t.rank(x)))
    return t.mean(x, dims) if reduction == 1 else t.sum(x, dims)


@operator("mse_loss(Tensor self, Tensor target, int reduction=Mean)")
def mse_loss(t: Torch, x: Node, y: Node, reduction: int) -> Node:
    d = t.sub(*t.promote(x, y))
    return reduced(t, t.mul(d, d), reduction)


@operator("l1_loss(Tensor self, Tensor target, int reduction=Mean)")
def l1_loss(t: Torch, x: Node, y: Node, reduction: int) -> Node:
    return reduced(t, t.unary("abs", t.sub(*t.promote(x, y))), reduction)


@operator("smooth_l1_loss(Tensor self, Tensor target, int reduction=Mean, float beta=1.)")
def smooth_l1_loss(t: Torch, x: Node, y: Node, reduction: int, beta: float) -> Node:
    d = t.unary("abs", t.sub(*t.promote(x, y)))
    if beta == 0:
        return reduced(t, d, reduction)
    near = t.scale(t.mul(d, d), 0.5 / beta)
    return reduced(t, t.select(t.compare("LT", d, t.like(d, beta)), near, t.plus(d, -0.5 * beta)), reduction)


@operator("huber_loss(Tensor self, Tensor target, int reduction=Mean, float delta=1.)")
def huber_loss(t: Torch, x: Node, y: Node, reduction: int, delta: float) -> Node:
    d = t.unary("abs", t.sub(*t.promote(x, y)))
    far = t.scale(t.plus(d, -0.5 * delta), delta)
    return reduced(t, t.select(t.compare("LE", d, t.like(d, delta)), t.scale(t.mul(d, d), 0.5), far), reduction)


@operator("binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean)")
def binary_cross_entropy(t: Torch, x: Node, y: Node, w: Node | None, reduction: int) -> Node:
    one = t.like(x, 1)
    log, log1m = (t.maximum(t.unary("log", v), t.like(x, -100)) for v in (x, t.sub(one, x)))
    loss = t.unary("negate", t.add(t.mul(y, log), t.mul(t.sub(one, y), log1m)))
    return reduced(t, loss if w is None else t.mul(loss, w), reduction)


@operator("binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int reduction=Mean)")
def bce_with_logits(t: Torch, x: Node, y: Node, w: Node | None, positive: Node | None, reduction: int) -> Node:
    from irscope.formats.torchscript.operators.pointwise import log_sigmoid
    rest = t.sub(t.like(y, 1), y)
    log = log_sigmoid(t, x)
    if positive is not None:
        factor = t.add(t.mul(t.plus(positive, -1), y), t.like(y, 1))
        loss = t.sub(t.mul(rest, x), t.mul(factor, log))
    else:
        loss = t.sub(t.mul(rest, x), log)
    return reduced(t, loss if w is None else t.mul(loss, w), reduction)


@operator("kl_div(Tensor self, Tensor target, int reduction=Mean, *, bool log_target=False)")
def kl_div(t: Torch, x: Node, y: Node, reduction: int, log_target: bool) -> Node:
    if log_target:
        loss = t.mul(t.unary("exponential", y), t.sub(y, x))
    else:
        log = t.select(t.compare("GT", y, t.like(y, 0)), t.unary("log", y), t.like(y, 0))
        loss = t.mul(y, t.sub(log, x))
    return reduced(t, loss, reduction)


def picked(t: Torch, log: Node, target: Node, w: Node | None, reduction: int, ignored: int) -> Node:
    """Negative log likelihood at class indices in dimension 1 (or 0 of a vector)."""
    d = 1 if t.rank(log) > 1 else 0
    valid = t.compare("NE", target, t.like(target, ignored))
    safe = t.select(valid, target, t.like(target, 0))
    value = t.gather_elements(log, t.unsqueeze(safe, d), d)
    loss = t.unary("negate", t.reshape(value, t.shape(target)))
    weight = t.convert(valid, t.dtype(log)) if w is None else t.mul(t.take(w, safe, 0), t.convert(valid, t.dtype(log)))
    loss = t.select(valid, t.mul(loss, weight), t.like(loss, 0))
    if reduction != 1:
        return reduced(t, loss, reduction)
    dims = list(range(t.rank(loss)))
    return t.div(t.sum(loss, dims), t.sum(weight, dims))


@operator("nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, int ignore_index=-100)",
          "nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, int ignore_index=-100)",
          "nll_loss2d(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, int ignore_index=-100)")
def nll_loss(t: Torch, x: Node, y: Node, w: Node | None, reduction: int, ignored: int) -> Node:
    return picked(t, x, y, w, reduction, ignored)


@operator("cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, int ignore_index=-100, "
          "float label_smoothing=0.)")
def cross_entropy(t: Torch, x: Node, y: Node, w: Node | None, reduction: int, ignored: int, smoothing: float) -> Node:
    d = 1 if t.rank(x) > 1 else 0
    log = log_softmax(t, x, d, None)
    if t.dtype(y).is_float:
        if smoothing:
            y = t.plus(t.scale(y, 1 - smoothing), smoothing / t.shape(x)[d])
        factor = y if w is None else t.mul(y, t.reshape(w, (t.shape(w)[0], *(1,) * (t.rank(x) - 2))))
        loss = t.unary("negate", t.sum(t.mul(log, factor), [d]))
        return t.div(t.sum(loss, list(range(t.rank(loss)))), t.array(max(1, _count(t, loss)), t.dtype(x))) if reduction == 1 else reduced(
            t, loss, reduction)
    plain = picked(t, log, y, w, reduction, ignored)
    if not smoothing:
        return plain
    if w is not None:
        raise ValueError("cross entropy with both class weights and label smoothing is not supported")
    valid = t.compare("NE", y, t.like(y, ignored))
    spread = t.select(valid, t.unary("negate", t.mean(log, [d])), t.array(0, t.dtype(x)))
    if reduction == 1:
        dims = list(range(t.rank(spread)))
        spread = t.div(t.sum(spread, dims), t.sum(t.convert(valid, t.dtype(x)), dims))
    else:
        spread = reduced(t, spread, reduction)
    return t.add(t.scale(plain, 1 - smoothing), t.scale(spread, smoothing))


def _count(t: Torch, x: Node) -> int:
    from math import prod
    return prod(t.shape(x))


@operator("soft_margin_loss(Tensor self, Tensor target, int reduction=Mean)")
def soft_margin_loss(t: Torch, x: Node, y: Node, reduction: int) -> Node:
    z = t.unary("exponential", t.unary("negate", t.mul(*t.promote(x, y))))
    return reduced(t, t.unary("log-plus-one", z), reduction)


@operator("hinge_embedding_loss(Tensor self, Tensor target, float margin=1., int reduction=Mean)")
def hinge_embedding_loss(t: Torch, x: Node, y: Node, margin: float, reduction: int) -> Node:
    zero = t.like(x, 0)
    away = t.maximum(t.sub(t.like(x, margin), x), zero)
    loss = t.add(t.select(t.compare("NE", y, t.like(y, 1)), away, zero), t.select(t.compare("NE", y, t.like(y, -1)), x, zero))
    return reduced(t, loss, reduction)


@operator("margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=Mean)")
def margin_ranking_loss(t: Torch, a: Node, b: Node, y: Node, margin: float, reduction: int) -> Node:
    loss = t.plus(t.mul(t.unary("negate", y), t.sub(a, b)), margin)
    return reduced(t, t.maximum(loss, t.like(loss, 0)), reduction)
