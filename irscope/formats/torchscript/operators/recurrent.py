"""Recurrent layers: unrolls every step, and computes the products with the inputs as one product for all steps."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.ops.faults import TypeFault

State = tuple[Node, ...]
Cell = Callable[[Torch, Node, Node, State, int], State]
"""(projected input, projected hidden state, state, hidden size) -> the next state, the hidden state first."""


def lstm_step(t: Torch, x: Node, h: Node, state: State, n: int) -> State:
    """Gates in the order i, f, g, o."""
    gates = t.add(x, h)
    i, f, g, o = (t.slice_dim(gates, 1, k * n, (k + 1) * n) for k in range(4))
    c = t.add(t.mul(t.unary("logistic", f), state[1]), t.mul(t.unary("logistic", i), t.unary("tanh", g)))
    return t.mul(t.unary("logistic", o), t.unary("tanh", c)), c


def gru_step(t: Torch, x: Node, h: Node, state: State, n: int) -> State:
    """Gates in the order r, z, n; n takes r times the projected hidden state with its bias."""
    (xr, xz, xn), (hr, hz, hn) = ([t.slice_dim(v, 1, k * n, (k + 1) * n) for k in range(3)] for v in (x, h))
    r, z = t.unary("logistic", t.add(xr, hr)), t.unary("logistic", t.add(xz, hz))
    new = t.unary("tanh", t.add(xn, t.mul(r, hn)))
    return (t.add(new, t.mul(z, t.sub(state[0], new))),)


def tanh_step(t: Torch, x: Node, h: Node, state: State, n: int) -> State:
    return (t.unary("tanh", t.add(x, h)),)


def relu_step(t: Torch, x: Node, h: Node, state: State, n: int) -> State:
    y = t.add(x, h)
    return (t.maximum(y, t.like(y, 0)),)


GATES: dict[Cell, int] = {lstm_step: 4, gru_step: 3, tanh_step: 1, relu_step: 1}
"""The number of parts in the projections of each cell."""


@dataclass(frozen=True, slots=True)
class Network:
    """Layers of one or two directions. The parameters of a direction are w_ih, w_hh, perhaps the two biases, and perhaps w_hr, which
    projects the hidden state."""

    params: list[Node]
    has_biases: bool
    layers: int
    both: bool
    cell: Cell

    @property
    def directions(self) -> int:
        """How many directions a layer has."""
        return 2 if self.both else 1

    def weights(self, k: int) -> list[Node]:
        """The parameters of direction ``k``, counted over all layers. Raises TypeFault where a direction has too few or too many."""
        least, runs = 4 if self.has_biases else 2, self.layers * self.directions
        each = len(self.params) // runs
        if not least <= each <= least + (self.cell is lstm_step):
            raise TypeFault(f"{self.layers} layers in {self.directions} directions have {'more' if each < least else 'fewer'} than "
                             f"{len(self.params)} parameters")
        return self.params[k * each:(k + 1) * each]

    def run(self, t: Torch, x: Node, states: list[Node], inside: Node | None = None) -> tuple[Node, ...]:
        """Run over [time, batch, features]. A state does not change at steps where ``inside`` [time, batch] is false."""
        last: list[list[Node]] = [[] for _ in states]
        for i in range(self.layers):
            outs = []
            for k in range(i * self.directions, (i + 1) * self.directions):
                start = tuple(t.reshape(t.slice_dim(s, 0, k, k + 1), t.shape(s)[1:]) for s in states)
                y, end = self._direction(t, x, start, k, inside)
                outs.append(y)
                for store, value in zip(last, end, strict=True):
                    store.append(t.unsqueeze(value, 0))
            x = t.concat(outs, 2)
        return (x, *(t.concat(store, 0) for store in last))

    def run_batched(self, t: Torch, x: Node, states: list[Node], batch_first: bool) -> tuple[Node, ...]:
        """Run with a missing batch dimension added and removed again."""
        single, batch = t.rank(x) == 2, 0 if batch_first else 1
        if single:
            x = t.unsqueeze(x, batch)
            states = [t.unsqueeze(s, 1) for s in states]
        x, *finals = self.run(t, t.swap(x, 0, 1) if batch_first else x, states)
        if batch_first:
            x = t.swap(x, 0, 1)
        if single:
            x = t.reshape(x, tuple(s for i, s in enumerate(t.shape(x)) if i != batch))
            finals = [t.reshape(f, (t.shape(f)[0], t.shape(f)[2])) for f in finals]
        return (x, *finals)

    def _direction(self, t: Torch, x: Node, state: State, k: int, inside: Node | None) -> tuple[Node, State]:
        weights, reverse = self.weights(k), k % self.directions == 1
        steps, batch, _ = t.shape_of(x, 3, 3)
        w_ih, w_hh, n = weights[0], weights[1], t.shape(weights[1])[0] // GATES[self.cell]
        projection = weights[-1] if len(weights) % 2 else None
        projected = t.dot(x, w_ih, ([2], [1]))
        if self.has_biases:
            projected = t.add(projected, weights[2])
        outs: list[Node] = []
        for step in reversed(range(steps)) if reverse else range(steps):
            now = t.reshape(t.slice_dim(projected, 0, step, step + 1), (batch, t.shape(w_ih)[0]))
            h = t.dot(state[0], w_hh, ([1], [1]))
            if self.has_biases:
                h = t.add(h, weights[3])
            after = self.cell(t, now, h, state, n)
            if projection is not None:
                after = (t.dot(after[0], projection, ([1], [1])), *after[1:])
            if inside is not None:
                on = t.reshape(t.slice_dim(inside, 0, step, step + 1), (batch, 1))
                after = tuple(t.select(on, new, old) for new, old in zip(after, state, strict=True))
            state = after
            outs.append(t.unsqueeze(state[0], 0))
        if reverse:
            outs.reverse()
        return t.concat(outs, 0), state


def check_training(dropout: float, train: bool) -> None:
    """Raise TypeFault for dropout in training mode."""
    if dropout > 0 and train:
        raise TypeFault("dropout in training mode draws from torch's generator: call model.eval() before the graph is made")


REST = "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first"


def _plain(name: str, cell: Cell, state: str = "Tensor") -> None:
    @operator(f"{name}.input(Tensor input, {state} hx, {REST})", draws=True)
    def recurrent(t: Torch, x: Node, hx: Node | list[Node], params: list[Node], biases: bool, layers: int, dropout: float, train: bool,
                  both: bool, batch_first: bool) -> tuple[Node, ...]:
        check_training(dropout, train)
        return Network(params, biases, layers, both, cell).run_batched(t, x, [hx] if isinstance(hx, Node) else hx, batch_first)


_plain("lstm", lstm_step, "Tensor[]")
_plain("gru", gru_step)
_plain("rnn_tanh", tanh_step)
_plain("rnn_relu", relu_step)


@operator("lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None)")
def lstm_cell(t: Torch, x: Node, hx: list[Node], w_ih: Node, w_hh: Node, b_ih: Node | None, b_hh: Node | None) -> tuple[Node, ...]:
    if len(hx) != 2:
        raise TypeFault(f"it takes two tensors of state, not {len(hx)}")
    return _cell(t, x, tuple(hx), (w_ih, w_hh), (b_ih, b_hh), lstm_step)


def _single(name: str, cell: Cell) -> None:
    @operator(f"{name}(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None)")
    def step(t: Torch, x: Node, hx: Node, w_ih: Node, w_hh: Node, b_ih: Node | None, b_hh: Node | None) -> Node:
        return _cell(t, x, (hx,), (w_ih, w_hh), (b_ih, b_hh), cell)[0]


_single("gru_cell", gru_step)
_single("rnn_tanh_cell", tanh_step)
_single("rnn_relu_cell", relu_step)


def _cell(t: Torch, x: Node, state: State, weights: tuple[Node, Node], biases: tuple[Node | None, Node | None], cell: Cell) -> State:
    projected = [t.dot(v, w, ([1], [1])) for v, w in zip((x, state[0]), weights, strict=True)]
    a, b = (v if bias is None else t.add(v, bias) for v, bias in zip(projected, biases, strict=True))
    return cell(t, a, b, state, t.shape(state[0])[1])
