"""Cells of recurrent layers after their products, as torch's kernels write them: the gates of one step, and their gradients."""
from __future__ import annotations

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node


def _summed(t: Torch, x: Node, h: Node, b: Node | None, c: Node | None) -> Node:
    total = t.add(x, h)
    for bias in (b, c):
        total = total if bias is None else t.add(total, bias)
    return total


def _parts(t: Torch, x: Node, count: int) -> list[Node]:
    """Equal parts of the last dimension."""
    d = t.rank(x) - 1
    size = t.shape(x)[d] // count
    return [t.slice_dim(x, d, i * size, (i + 1) * size) for i in range(count)]


def _slope(t: Torch, sigmoid: Node) -> Node:
    return t.mul(sigmoid, t.sub(t.like(sigmoid, 1), sigmoid))


def _bend(t: Torch, tanh: Node) -> Node:
    return t.sub(t.like(tanh, 1), t.mul(tanh, tanh))


@operator("_thnn_fused_lstm_cell(Tensor input_gates, Tensor hidden_gates, Tensor cx, Tensor? input_bias=None, Tensor? hidden_bias=None)")
def lstm_cell(t: Torch, x: Node, h: Node, cell: Node, b: Node | None, c: Node | None) -> tuple[Node, Node, Node]:
    """The output, the cell, and the gates that the gradient takes."""
    i, f, g, o = _parts(t, _summed(t, x, h, b, c), 4)
    i, f, g, o = t.unary("logistic", i), t.unary("logistic", f), t.unary("tanh", g), t.unary("logistic", o)
    after = t.add(t.mul(f, cell), t.mul(i, g))
    return t.mul(o, t.unary("tanh", after)), after, t.concat([i, f, g, o], t.rank(x) - 1)


@operator("_thnn_fused_lstm_cell_backward(Tensor? grad_hy, Tensor? grad_cy, Tensor cx, Tensor cy, Tensor workspace, bool has_bias)")
def lstm_cell_backward(t: Torch, grad: Node | None, grad_cell: Node | None, before: Node, after: Node, gates: Node,
                       bias: bool) -> tuple[Node | None, ...]:
    """The gradients by both sums of gates, the cell before, and the biases."""
    by_gates, by_cell, _ = lstm_cell_backward_gates(t, grad, grad_cell, before, after, gates, bias)
    by_bias = t.sum(by_gates, [0]) if bias else None
    return by_gates, by_gates, by_cell, by_bias, by_bias


@operator("_thnn_fused_lstm_cell_backward_impl(Tensor? grad_hy, Tensor? grad_cy, Tensor cx, Tensor cy, Tensor workspace, bool has_bias)")
def lstm_cell_backward_gates(t: Torch, grad: Node | None, grad_cell: Node | None, before: Node, after: Node, gates: Node,
                             bias: bool) -> tuple[Node, Node, Node | None]:
    """The gradients by the gates, the cell before, and the biases."""
    i, f, g, o = _parts(t, gates, 4)
    bent = t.unary("tanh", after)
    grad = t.like(after, 0) if grad is None else grad
    inner = t.mul(t.mul(grad, o), _bend(t, bent))
    inner = inner if grad_cell is None else t.add(inner, grad_cell)
    by_gates = t.concat([t.mul(t.mul(inner, g), _slope(t, i)), t.mul(t.mul(inner, before), _slope(t, f)),
                         t.mul(t.mul(inner, i), _bend(t, g)), t.mul(t.mul(grad, bent), _slope(t, o))], t.rank(gates) - 1)
    return by_gates, t.mul(inner, f), t.sum(by_gates, [0]) if bias else None


@operator("_thnn_fused_gru_cell(Tensor input_gates, Tensor hidden_gates, Tensor hx, Tensor? input_bias=None, Tensor? hidden_bias=None)")
def gru_cell(t: Torch, x: Node, h: Node, state: Node, b: Node | None, c: Node | None) -> tuple[Node, Node]:
    """The state, and what the gradient takes: the gates, the state before, and the hidden part of the new one."""
    x = x if b is None else t.add(x, b)
    h = h if c is None else t.add(h, c)
    (xr, xz, xn), (hr, hz, hn) = _parts(t, x, 3), _parts(t, h, 3)
    r, z = t.unary("logistic", t.add(xr, hr)), t.unary("logistic", t.add(xz, hz))
    n = t.unary("tanh", t.add(xn, t.mul(r, hn)))
    after = t.add(t.mul(t.sub(state, n), z), n)
    return after, t.concat([r, z, n, state, hn], t.rank(x) - 1)


@operator("_thnn_fused_gru_cell_backward(Tensor grad_hy, Tensor workspace, bool has_bias)")
def gru_cell_backward(t: Torch, grad: Node, saved: Node, bias: bool) -> tuple[Node | None, ...]:
    """The gradients by both sums of gates, the state before, and the biases."""
    r, z, n, state, hidden = _parts(t, saved, 5)
    by_n = t.mul(t.mul(grad, t.sub(t.like(z, 1), z)), _bend(t, n))
    by_z = t.mul(t.mul(grad, t.sub(state, n)), _slope(t, z))
    by_r = t.mul(t.mul(by_n, hidden), _slope(t, r))
    d = t.rank(saved) - 1
    by_x, by_h = t.concat([by_r, by_z, by_n], d), t.concat([by_r, by_z, t.mul(by_n, r)], d)
    return by_x, by_h, t.mul(grad, z), t.sum(by_x, [0]) if bias else None, t.sum(by_h, [0]) if bias else None
