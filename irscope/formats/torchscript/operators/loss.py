"""Losses, with torch's reductions: 0 none, 1 mean, 2 sum."""
from __future__ import annotations

from math import pi, prod

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.activations import log_sigmoid
from irscope.formats.torchscript.operators.linear import pairwise_distance
from irscope.formats.torchscript.operators.reduction import mean_of
from irscope.formats.torchscript.operators.softmax import log_softmax
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import S64
from irscope.ops.checked import nonzero
from irscope.ops.faults import TypeFault


def reduced(t: Torch, x: Node, reduction: int) -> Node:
    if reduction == 0:
        return x
    dims = list(range(t.rank(x)))
    return mean_of(t, x, dims, False) if reduction == 1 else t.sum(x, dims)


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
        log = t.select(t.compare("EQ", y, t.like(y, 0)), t.like(y, 0), t.unary("log", y))
        loss = t.mul(y, t.sub(log, x))
    return reduced(t, loss, reduction)


def picked(t: Torch, log: Node, target: Node, w: Node | None, reduction: int, ignored: int) -> Node:
    """Negative log likelihood at class indices in dimension 1 (or 0 of a vector)."""
    d = 1 if t.rank(log) > 1 else 0
    sizes = t.shape_of(log, 1)
    if t.shape(target) != (*sizes[:d], *sizes[d + 1:]):
        raise TypeFault(f"targets of the sizes {list(t.shape(target))} do not fit predictions of the sizes {list(sizes)}")
    if w is not None and t.shape(w) != (sizes[d],):
        raise TypeFault(f"{sizes[d]} classes have weights of the sizes {list(t.shape(w))}")
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


@operator(*(f"nll_loss{form}(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, int ignore_index=-100)"
            for form in ("", "_nd", "2d")))
def nll_loss(t: Torch, x: Node, y: Node, w: Node | None, reduction: int, ignored: int) -> Node:
    return picked(t, x, y, w, reduction, ignored)


@operator("cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, int ignore_index=-100, "
          "float label_smoothing=0.)")
def cross_entropy(t: Torch, x: Node, y: Node, w: Node | None, reduction: int, ignored: int, smoothing: float) -> Node:
    d = 1 if t.rank(x) > 1 else 0
    log = log_softmax(t, x, d, None)
    if t.dtype(y).is_float:
        if smoothing:
            y = t.plus(t.scale(y, 1 - smoothing), smoothing / nonzero("the number of classes", t.shape(x)[d]))
        factor = y if w is None else t.mul(y, t.reshape(w, (t.shape(w)[0], *(1,) * (t.rank(x) - 2))))
        loss = t.unary("negate", t.sum(t.mul(log, factor), [d]))
        return t.div(t.sum(loss, list(range(t.rank(loss)))), t.array(max(1, _count(t, loss)), t.dtype(x))) if reduction == 1 else reduced(
            t, loss, reduction)
    plain = picked(t, log, y, w, reduction, ignored)
    if not smoothing:
        return plain
    return t.add(t.scale(plain, 1 - smoothing), t.scale(_smooth(t, log, y, w, reduction, ignored), smoothing))


def _smooth(t: Torch, log: Node, y: Node, w: Node | None, reduction: int, ignored: int) -> Node:
    """The mean of the loss over all classes, each times its weight; a mean over rows divides by the sum of the
    weights of their targets."""
    d = 1 if t.rank(log) > 1 else 0
    valid = t.compare("NE", y, t.like(y, ignored))
    factor = None if w is None else t.reshape(w, (t.shape(w)[0], *(1,) * (t.rank(log) - d - 1)))
    spread = t.unary("negate", t.mean(log if factor is None else t.mul(log, factor), [d]))
    spread = t.select(valid, spread, t.array(0, t.dtype(log)))
    if reduction != 1:
        return reduced(t, spread, reduction)
    counted = t.convert(valid, t.dtype(log))
    if w is not None:
        counted = t.mul(counted, t.take(w, t.select(valid, y, t.like(y, 0)), 0))
    dims = list(range(t.rank(spread)))
    return t.div(t.sum(spread, dims), t.sum(counted, dims))


def _count(t: Torch, x: Node) -> int:
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
    away = t.mul(*t.promote(t.unary("negate", y), t.sub(*t.promote(a, b))))
    loss = t.plus(t.floating(away), margin)
    return reduced(t, t.maximum(loss, t.like(loss, 0)), reduction)


@operator("poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction)")
def poisson_nll_loss(t: Torch, x: Node, y: Node, log_input: bool, full: bool, eps: float, reduction: int) -> Node:
    x, y = t.together(*t.promote(x, y))
    if log_input:
        loss = t.sub(*t.promote(t.unary("exponential", t.floating(x)), t.mul(y, x)))
    else:
        loss = t.sub(t.floating(x), t.mul(t.floating(y), t.unary("log", t.plus(t.floating(x), eps))))
    if full:
        z = t.floating(y)
        stirling = t.add(t.sub(t.mul(z, t.unary("log", z)), z), t.scale(t.unary("log", t.scale(z, 2 * pi)), 0.5))
        loss = t.add(t.floating(loss), t.select(t.compare("LE", z, t.like(z, 1)), t.like(z, 0), stirling))
    return reduced(t, loss, reduction)


@operator("cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=Mean)")
def cosine_embedding_loss(t: Torch, a: Node, b: Node, y: Node, margin: float, reduction: int) -> Node:
    """1 - cosine for pairs that belong together (1), what exceeds the margin for the others (-1)."""
    d = [t.rank(a) - 1] if t.rank(a) > t.rank(y) else [0]
    a, b = t.together(*t.promote_floating(a, b))
    small = 1e-8 * 1e-8
    size = t.unary("sqrt", t.mul(t.plus(t.sum(t.mul(a, a), d), 1e-12), t.plus(t.sum(t.mul(b, b), d), 1e-12)))
    cosine = t.div(t.sum(t.mul(a, b), d), t.maximum(size, t.like(size, small)))
    apart = t.maximum(t.plus(cosine, -margin), t.like(cosine, 0))
    zero = t.like(cosine, 0)
    loss = t.add(t.select(t.compare("EQ", y, t.like(y, 1)), t.sub(t.like(cosine, 1), cosine), zero),
                 t.select(t.compare("EQ", y, t.like(y, -1)), apart, zero))
    return reduced(t, loss, reduction)


@operator("triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2., float eps=1e-06, "
          "bool swap=False, int reduction=Mean)")
def triplet_margin_loss(t: Torch, anchor: Node, positive: Node, negative: Node, margin: float, p: float, eps: float, swap: bool,
                        reduction: int) -> Node:
    """The anchor should be nearer to the positive than to the negative, by the margin."""
    near = pairwise_distance(t, anchor, positive, p, eps, False)
    far = pairwise_distance(t, anchor, negative, p, eps, False)
    if swap:
        far = t.minimum(far, pairwise_distance(t, positive, negative, p, eps, False))
    loss = t.plus(t.sub(near, far), margin)
    return reduced(t, t.maximum(loss, t.like(loss, 0)), reduction)


def named_labels(t: Torch, y: Node) -> tuple[Node, Node, Node]:
    """For rows of labels that end at the first -1: which entries are labels, the labels (0 elsewhere), and pred[n, c]: whether
    each class is among the labels of a row."""
    named = t.compare("EQ", t.cumulative("add", t.convert(t.compare("LT", y, t.like(y, 0)), S64), 1, 0), t.array(0, S64))
    safe = t.select(named, y, t.like(y, 0))
    n, c = t.shape_of(y, 2, 2)
    same = t.compare("EQ", t.unsqueeze(safe, 2), t.iota((n, c, c), 2, t.dtype(y)))
    return named, safe, t.any(t.binary("and", same, t.unsqueeze(named, 2)), [1])


@operator("multilabel_margin_loss(Tensor self, Tensor target, int reduction=1)")
def multilabel_margin_loss(t: Torch, x: Node, y: Node, reduction: int) -> Node:
    """Margin loss of the other classes against each of the right ones, which are listed up to the first -1."""
    single = t.rank(x) < 2
    if single:
        x, y = t.reshape(x, (1, prod(t.shape(x)))), t.reshape(y, (1, prod(t.shape(y))))
    named, safe, right = named_labels(t, y)
    c = t.shape(x)[1]
    own = t.gather_elements(x, safe, 1)
    short = t.maximum(t.plus(t.sub(t.unsqueeze(x, 1), t.unsqueeze(own, 2)), 1), t.array(0, t.dtype(x)))
    counted = t.binary("and", t.unsqueeze(named, 2), t.unsqueeze(t.unary("not", right), 1))
    total = t.scale(t.sum(t.select(counted, short, t.like(short, 0)), [1, 2]), 1 / nonzero("the number of classes", c))
    return reduced(t, t.reshape(total, ()) if single and reduction == 0 else total, reduction)


@operator("multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int reduction=Mean)")
def multi_margin_loss(t: Torch, x: Node, y: Node, p: int, margin: float, w: Node | None, reduction: int) -> Node:
    """Margin loss of the other classes against the right one."""
    single = t.rank(y) == 0
    x = t.reshape(x, (1, prod(t.shape(x)))) if t.rank(x) < 2 else x
    y = t.reshape(y, (1,)) if single else y
    own = t.gather_elements(x, t.unsqueeze(y, 1), 1)
    short = t.maximum(t.plus(t.sub(x, own), margin), t.like(x, 0))
    loss = short if p == 1 else t.mul(short, short)
    if w is not None:
        loss = t.mul(loss, t.unsqueeze(t.take(w, y, 0), 1))
    others = t.compare("NE", t.iota(t.shape(x), 1, t.dtype(y)), t.unsqueeze(y, 1))
    total = t.scale(t.sum(t.select(others, loss, t.like(loss, 0)), [1]), 1 / nonzero("the number of classes", t.shape(x)[1]))
    return reduced(t, t.reshape(total, ()) if single and reduction == 0 else total, reduction)
