"""Distances of rows, as AOT graphs write them, and their gradients."""
from __future__ import annotations

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.linear import cdist, pdist
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import S64
from irscope.lazy import np


@operator("_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode)")
def cdist_forward(t: Torch, x: Node, y: Node, p: float, mode: object) -> Node:
    return cdist(t, x, y, p, mode)


@operator("_euclidean_dist(Tensor x1, Tensor x2)")
def euclidean_dist(t: Torch, x: Node, y: Node) -> Node:
    return cdist(t, x, y, 2.0, None)


@operator("_pdist_forward(Tensor self, float p=2)")
def pdist_forward(t: Torch, x: Node, p: float) -> Node:
    return pdist(t, x, p)


def slopes(t: Torch, away: Node, distance: Node, p: float) -> Node:
    """The derivative of the p-norm of ``away`` by its elements (ATen's Dist::backward); 0 where the norm is."""
    sign, size = t.unary("sign", away), t.unary("abs", away)
    if p == 0:
        return t.like(away, 0)
    if p == 1:
        return sign
    if p == float("inf"):
        return t.select(t.compare("EQ", size, distance), sign, t.like(away, 0))
    zero = t.compare("EQ", distance, t.like(distance, 0))
    safe = t.select(zero, t.like(distance, 1), distance)
    if p == 2:
        made = t.div(away, safe)
    else:
        power = t.binary("power", size, t.like(size, p - 1))
        if p < 1:
            power = t.select(t.compare("EQ", size, t.like(size, 0)), t.like(size, 0), power)
        made = t.mul(sign, t.div(power, t.binary("power", safe, t.like(safe, p - 1))))
    return t.select(zero, t.like(made, 0), made)


@operator("_cdist_backward(Tensor grad, Tensor x1, Tensor x2, float p, Tensor cdist)")
def cdist_backward(t: Torch, grad: Node, x: Node, y: Node, p: float, distance: Node) -> Node:
    """The gradient by the first rows."""
    if 0 in t.shape(x) or 0 in t.shape(y):
        return t.like(x, 0)
    away = t.sub(t.unsqueeze(x, -2), t.unsqueeze(y, -3))
    made = t.mul(slopes(t, away, t.unsqueeze(distance, -1), p), t.unsqueeze(grad, -1))
    return t.sum(made, [t.rank(made) - 2])


@operator("_pdist_backward(Tensor grad, Tensor self, float p, Tensor pdist)")
def pdist_backward(t: Torch, grad: Node, x: Node, p: float, distance: Node) -> Node:
    """Each pair pulls its first row, and pushes its second one."""
    rows = t.shape(x)[0]
    first, second = np.triu_indices(rows, 1)
    if not len(first):
        return t.like(x, 0)
    away = t.sub(t.take(x, t.array(first, S64), 0), t.take(x, t.array(second, S64), 0))
    made = t.mul(slopes(t, away, t.unsqueeze(distance, 1), p), t.unsqueeze(grad, 1))
    signs = np.zeros((rows, len(first)))
    signs[first, np.arange(len(first))], signs[second, np.arange(len(first))] = 1, -1
    return t.matmul(t.array(signs, t.dtype(x)), made)
