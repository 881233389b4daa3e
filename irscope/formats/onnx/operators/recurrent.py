"""Recurrent layers in one or both directions. Long sequences become a loop, short ones are unrolled."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from irscope.formats.onnx.algebra import Onnx
from irscope.formats.onnx.declarations import Attributes
from irscope.formats.onnx.operators import operator
from irscope.formats.onnx.operators.activations import hard, plus_log
from irscope.graph import Node
from irscope.graph.dtypes import S32
from irscope.ops.faults import TypeFault
from irscope.ops.loops import counted
from irscope.ops.tensors import Tensors

UNROLLED = 8
"""Sequences of up to this length are unrolled."""
Function = Callable[[Tensors, Node], Node]
REST = ("activation_alpha: floats=None, activation_beta: floats=None, activations: strs=None, clip: float=None, direction='forward', "
        "hidden_size: int=None, layout=0, output_sequence=0")


def _line(t: Tensors, x: Node, alpha: float, beta: float) -> Node:
    return t.plus(t.scale(x, alpha), beta)


def _elu(t: Tensors, x: Node, alpha: float) -> Node:
    low = t.scale(t.unary("exponential-minus-one", t.minimum(x, t.like(x, 0))), alpha)
    return t.select(t.compare("LT", x, t.like(x, 0)), low, x)


class Activation(Protocol):
    """A function with two parameters."""

    def __call__(self, t: Tensors, x: Node, alpha: float, beta: float) -> Node: ...


FUNCTIONS: dict[str, tuple[float, float, Activation]] = {
    "sigmoid": (0, 0, lambda t, x, alpha, beta: t.unary("logistic", x)),
    "tanh": (0, 0, lambda t, x, alpha, beta: t.unary("tanh", x)),
    "relu": (0, 0, lambda t, x, alpha, beta: t.maximum(x, t.like(x, 0))),
    "affine": (1, 0, _line),
    "leakyrelu": (0.01, 0, lambda t, x, alpha, beta: t.select(t.compare("LT", x, t.like(x, 0)), t.scale(x, alpha), x)),
    "thresholdedrelu": (1, 0, lambda t, x, alpha, beta: t.select(t.compare("GT", x, t.like(x, alpha)), x, t.like(x, 0))),
    "scaledtanh": (1, 1, lambda t, x, alpha, beta: t.scale(t.unary("tanh", t.scale(x, beta)), alpha)),
    "hardsigmoid": (0.2, 0.5, hard),
    "elu": (1, 0, lambda t, x, alpha, beta: _elu(t, x, alpha)),
    "softsign": (0, 0, lambda t, x, alpha, beta: t.div(x, t.plus(t.unary("abs", x), 1))),
    "softplus": (0, 0, lambda t, x, alpha, beta: plus_log(t, x)),
}
"""Activation functions with the defaults of alpha and beta."""
WITH_ALPHA = frozenset(("affine", "leakyrelu", "thresholdedrelu", "scaledtanh", "hardsigmoid", "elu"))
WITH_BETA = frozenset(("affine", "scaledtanh", "hardsigmoid"))


@dataclass(frozen=True, slots=True)
class Cell:
    """How one step works: ``run(k, x, weights, state)`` takes the projected input and gives the next state, the hidden one first.

    ``weights`` are those that each step reads.
    """

    run: Callable[[Tensors, Node, Sequence[Node], Sequence[Node]], list[Node]]
    weights: list[Node]


def _activations(a: Attributes, defaults: Sequence[str], directions: int) -> list[list[Function]]:
    """The functions of each direction. Alphas and betas are lists of their own, in the order of the functions that have them."""
    if directions not in (1, 2):
        raise TypeFault(f"the weights have {directions} directions, not one or two")
    names = [name.lower() for name in a.activations or [*defaults] * directions]
    if len(names) != len(defaults) * directions or any(name not in FUNCTIONS for name in names):
        raise TypeFault(f"activations {names}: {len(defaults) * directions} of {', '.join(FUNCTIONS)} are needed")
    alphas, betas = iter(a.activation_alpha or ()), iter(a.activation_beta or ())
    made: list[Function] = []
    for name in names:
        alpha, beta, function = FUNCTIONS[name]
        alpha = next(alphas, alpha) if name in WITH_ALPHA else alpha
        beta = next(betas, beta) if name in WITH_BETA else beta
        made.append(partial(function, alpha=alpha, beta=beta))
    n = len(defaults)
    return [made[i * n:(i + 1) * n] for i in range(directions)]


def _clipped(k: Tensors, x: Node, limit: float | None) -> Node:
    return x if not limit else k.minimum(k.maximum(x, k.like(x, -limit)), k.like(x, limit))


def _parts(k: Tensors, x: Node, n: int) -> list[Node]:
    """``x`` cut into n equal parts along its last dimension."""
    size = k.shape(x)[-1] // n
    return [k.slice_dim(x, k.rank(x) - 1, i * size, (i + 1) * size) for i in range(n)]


# ---------------------------------------------------------------------- sequences


def _steps(t: Onnx, cell: Cell, xs: Node, state: list[Node], lengths: Node | None, reverse: bool) -> tuple[Node, list[Node]]:
    """All hidden states (T, B, H) and the last state. Past the end of a sequence the state stays, and the output is zero."""
    steps, weights = t.shape(xs)[0], cell.weights

    def one(k: Tensors, x: Node, on: Node | None, given: Sequence[Node], now: Sequence[Node]) -> tuple[list[Node], Node]:
        after = cell.run(k, x, given, now)
        if on is None:
            return after, after[0]
        return [k.select(on, new, old) for new, old in zip(after, now, strict=True)], k.select(on, after[0], k.like(after[0], 0))
    if steps <= UNROLLED:
        outs: list[Node] = [state[0]] * steps
        for i in reversed(range(steps)) if reverse else range(steps):
            on = None if lengths is None else t.compare("GT", lengths, t.like(lengths, i))
            x = t.reshape(t.slice_dim(xs, 0, i, i + 1), t.shape(xs)[1:])
            state, y = one(t, x, on, weights, state)
            outs[i] = t.reshape(y, (1, *t.shape(y)))
        return (t.concat(outs, 0) if outs else t.full((0, *t.shape(state[0])), 0, t.dtype(xs))), state
    held = [xs, *weights, *([] if lengths is None else [lengths])]
    n, m = len(held), len(state)
    zeros = t.full((steps, *t.shape(state[0])), 0, t.dtype(xs))

    def step(k: Tensors, at: Node, values: list[Node]) -> list[Node]:
        place = k.sub(k.array(steps - 1, S32), at) if reverse else at
        fixed, now, ys = values[:n], values[n:n + m], values[n + m]
        zero = k.array(0, S32)
        shape = k.shape(fixed[0])
        x = k.reshape(k.dynamic_slice(fixed[0], (place, *[zero] * (len(shape) - 1)), (1, *shape[1:])), shape[1:])
        on = None if lengths is None else k.compare("GT", fixed[-1], k.broadcast_to(place, k.shape(fixed[-1])))
        after, y = one(k, x, on, fixed[1:1 + len(weights)], now)
        ys = k.update_slice(ys, k.reshape(y, (1, *k.shape(y))), (place, zero, zero))
        return [*fixed, *after, ys]
    made = counted(t, steps, [*held, *state, zeros], step, "recurrence")
    return made[n + m], made[n:n + m]


@dataclass(frozen=True, slots=True)
class Layer:
    """The operands of a layer: (T, B, I), (D, G H, I), (D, G H, H), (D, 2 G H); initial states (D, B, H) or None."""

    x: Node
    w: Node
    r: Node
    bias: Node | None
    lengths: Node | None
    states: list[Node | None]
    gates: int


def _run(t: Onnx, a: Attributes, layer: Layer, build: Callable[[int, int], tuple[Cell, bool]]) -> list[Node]:
    """Y (T, D, B, H), and the last states (D, B, H). ``build(direction, hidden)`` gives the cell, and
    whether the bias of the hidden state belongs to the projection of the input.
    """
    directions, (x, batch_first) = t.shape(layer.w)[0], (layer.x, bool(a.layout))
    if a.direction not in ("forward", "reverse", "bidirectional") or directions != (2 if a.direction == "bidirectional" else 1):
        raise TypeFault(f"direction {a.direction!r} for weights of {directions} directions")
    if batch_first:
        x = t.transpose(x, (1, 0, 2))
    (_, batch, _), hidden = t.shape(x), t.shape(layer.r)[-1]
    lengths = None if layer.lengths is None else t.reshape(t.convert(layer.lengths, S32), (batch, 1))
    outs, last = [], []
    for d in range(directions):
        cell, together = build(d, hidden)
        projected = t.dot(x, _of(t, layer.w, d), ([2], [1]))
        if layer.bias is not None:
            first, second = _parts(t, _of(t, layer.bias, d), 2)
            projected = t.add(projected, t.add(first, second) if together else first)
        state = []
        for given in layer.states:
            if given is not None:
                given = t.transpose(given, (1, 0, 2)) if batch_first else given
            state.append(t.full((batch, hidden), 0, t.dtype(x)) if given is None else _of(t, given, d))
        ys, end = _steps(t, cell, projected, state, lengths, a.direction == "reverse" or d == 1)
        outs.append(t.reshape(ys, (t.shape(ys)[0], 1, batch, hidden)))
        last.append([t.reshape(e, (1, batch, hidden)) for e in end])
    results = [t.concat(outs, 1), *(t.concat([states[i] for states in last], 0) for i in range(len(layer.states)))]
    if batch_first:
        return [t.transpose(results[0], (2, 0, 1, 3)), *(t.transpose(s, (1, 0, 2)) for s in results[1:])]
    return results


def _of(t: Onnx, x: Node, d: int) -> Node:
    return t.reshape(t.slice_dim(x, 0, d, d + 1), t.shape(x)[1:])


# ---------------------------------------------------------------------- cells


@operator(f"RNN(X: float[3], W: float[3], R: float[3], B?: float[2], sequence_lens?: int[1], initial_h?: float[3]; {REST})")
def rnn(t: Onnx, a: Attributes, x: Node, w: Node, r: Node, bias: Node | None, lengths: Node | None, h: Node | None) -> tuple[Node, ...]:
    """``h = f(W x + R h + b)``."""
    functions = _activations(a, ("tanh",), t.shape(w)[0])

    def build(d: int, hidden: int) -> tuple[Cell, bool]:
        (f,) = functions[d]

        def run(k: Tensors, x: Node, held: Sequence[Node], state: Sequence[Node]) -> list[Node]:
            return [f(k, _clipped(k, k.add(x, k.dot(state[0], held[0], ([1], [1]))), a.clip))]
        return Cell(run, [_of(t, r, d)]), True
    return tuple(_run(t, a, Layer(x, w, r, bias, lengths, [h], 1), build))


@operator(f"GRU(X: float[3], W: float[3], R: float[3], B?: float[2], sequence_lens?: int[1], initial_h?: float[3]; "
          f"{REST}, linear_before_reset=0)")
def gru(t: Onnx, a: Attributes, x: Node, w: Node, r: Node, bias: Node | None, lengths: Node | None, h: Node | None) -> tuple[Node, ...]:
    """Gates z, r and h; the reset gate stands before or after the product with the hidden state."""
    functions = _activations(a, ("sigmoid", "tanh"), t.shape(w)[0])

    def build(d: int, hidden: int) -> tuple[Cell, bool]:
        f, g = functions[d]
        hidden_bias = t.full((3 * hidden,), 0, t.dtype(x)) if bias is None else _parts(t, _of(t, bias, d), 2)[1]

        def run(k: Tensors, x: Node, held: Sequence[Node], state: Sequence[Node]) -> list[Node]:
            weight, added = held
            xz, xr, xh = _parts(k, x, 3)
            bz, br, bh = _parts(k, added, 3)
            rz, rr, rh = (k.slice_dim(weight, 0, i * hidden, (i + 1) * hidden) for i in range(3))

            def of(v: Node, part: Node) -> Node:
                return k.dot(v, part, ([1], [1]))
            z = f(k, _clipped(k, k.add(k.add(xz, of(state[0], rz)), bz), a.clip))
            reset = f(k, _clipped(k, k.add(k.add(xr, of(state[0], rr)), br), a.clip))
            if a.linear_before_reset:
                inner = k.mul(reset, k.add(of(state[0], rh), bh))
            else:
                inner = k.add(of(k.mul(reset, state[0]), rh), bh)
            new = g(k, _clipped(k, k.add(xh, inner), a.clip))
            return [k.add(k.mul(k.sub(k.like(z, 1), z), new), k.mul(z, state[0]))]
        return Cell(run, [_of(t, r, d), hidden_bias]), False
    return tuple(_run(t, a, Layer(x, w, r, bias, lengths, [h], 3), build))


@operator(f"LSTM(X: float[3], W: float[3], R: float[3], B?: float[2], sequence_lens?: int[1], initial_h?: float[3], "
          f"initial_c?: float[3], P?: float[2]; {REST}, input_forget=0)")
def lstm(t: Onnx, a: Attributes, x: Node, w: Node, r: Node, bias: Node | None, *rest: Node | None) -> tuple[Node, ...]:
    """Gates i, o, f and c, with peepholes to the cell for the first three."""
    lengths, h, c, peep = rest
    functions = _activations(a, ("sigmoid", "tanh", "tanh"), t.shape(w)[0])

    def build(d: int, hidden: int) -> tuple[Cell, bool]:
        f, g, out = functions[d]

        def run(k: Tensors, x: Node, held: Sequence[Node], state: Sequence[Node]) -> list[Node]:
            i, o, forget, new = _parts(k, k.add(x, k.dot(state[0], held[0], ([1], [1]))), 4)
            holes = _parts(k, held[1], 3) if len(held) > 1 else None

            def gate(v: Node, place: int, cell: Node) -> Node:
                return f(k, _clipped(k, v if holes is None else k.add(v, k.mul(holes[place], cell)), a.clip))
            i = gate(i, 0, state[1])
            forget = k.sub(k.like(i, 1), i) if a.input_forget else gate(forget, 2, state[1])
            cell = k.add(k.mul(forget, state[1]), k.mul(i, g(k, _clipped(k, new, a.clip))))
            return [k.mul(gate(o, 1, cell), out(k, cell)), cell]
        return Cell(run, [_of(t, r, d), *([] if peep is None else [_of(t, peep, d)])]), True
    return tuple(_run(t, a, Layer(x, w, r, bias, lengths, [h, c], 4), build))
