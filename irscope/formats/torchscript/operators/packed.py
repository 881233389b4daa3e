"""Packed sequences: the rows of sequences of different lengths, longest first, step by step, and their number at each step.

    lengths 3 2 1:   a0 b0 c0  a1 b1  a2    batch_sizes 3 2 1
"""
from __future__ import annotations

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.recurrent import Cell, Network, check_training, gru_step, lstm_step, relu_step, tanh_step
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import S64
from irscope.ops.faults import TypeFault


def _inside(t: Torch, batch_sizes: Node, batch: int) -> Node:
    """pred[time, batch]: whether a sequence has this step."""
    steps = t.shape(batch_sizes)[0]
    return t.compare("LT", t.iota((steps, batch), 1, S64), t.unsqueeze(batch_sizes, 1))


def _row_of_place(t: Torch, batch_sizes: Node, batch: int) -> Node:
    """s64[time, batch]: the row of the packed data; arbitrary where there is none."""
    steps = t.shape(batch_sizes)[0]
    first = t.sub(t.cumulative("add", batch_sizes, 0, 0), batch_sizes)
    return t.add(t.unsqueeze(first, 1), t.iota((steps, batch), 1, S64))


def _place_of_row(t: Torch, inside: Node, rows: int) -> Node:
    """s64[rows]: the occupied positions, numbered step by step, as in the packed data."""
    steps, batch = t.shape(inside)
    outside = t.convert(t.unary("not", t.reshape(inside, (steps * batch,))), S64)
    order = t.sort([outside, t.iota((steps * batch,), 0, S64)], 0)[1]
    return t.slice_dim(order, 0, 0, rows)


@operator("_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first)")
def pack(t: Torch, x: Node, lengths: Node, batch_first: bool) -> tuple[Node, Node]:
    """Packs padded sequences. The numbers of rows and steps are computed from the inputs."""
    x = t.swap(x, 0, 1) if batch_first else x
    lengths = t.convert(lengths, S64)
    batch = t.shape(lengths)[0]
    steps = t.size_from_data(t.max(lengths, [0]))
    rows = t.size_from_data(t.sum(lengths, [0]))
    inside = t.compare("LT", t.iota((steps, batch), 0, S64), t.unsqueeze(lengths, 0))
    batch_sizes = t.sum(t.convert(inside, S64), [1])
    flat = t.reshape(t.slice_dim(x, 0, 0, steps), (steps * batch, *t.shape(x)[2:]))
    return t.take(flat, _place_of_row(t, inside, rows), 0), batch_sizes


@operator("_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, Scalar padding_value, int total_length)")
def pad(t: Torch, data: Node, batch_sizes: Node, batch_first: bool, value: float, total: int) -> tuple[Node, Node]:
    steps = t.shape(batch_sizes)[0]
    batch = t.size_from_data(t.reshape(t.slice_dim(batch_sizes, 0, 0, 1), ()))
    if 0 < total < steps:
        raise TypeFault(f"the total length {total} is less than the {steps} steps of the longest sequence")
    inside = _inside(t, batch_sizes, batch)
    wide = t.take(data, _row_of_place(t, batch_sizes, batch), 0)
    filler = t.array(value, t.dtype(data))
    shown = t.reshape(inside, (steps, batch, *(1,) * (t.rank(data) - 1)))
    y = t.select(shown, wide, filler)
    if total > steps:
        y = t.pad(y, filler, [0] * t.rank(y), [total - steps, *[0] * (t.rank(y) - 1)])
    return t.swap(y, 0, 1) if batch_first else y, t.sum(t.convert(inside, S64), [0])


REST = "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional"


def _run(t: Torch, data: Node, batch_sizes: Node, states: list[Node], network: Network) -> tuple[Node, ...]:
    """Run over padded steps, in which ended sequences keep their state; the backward direction starts at the end of each sequence."""
    batch, rows = t.shape(states[0])[1], t.shape(data)[0]
    inside = _inside(t, batch_sizes, batch)
    wide = t.take(data, _row_of_place(t, batch_sizes, batch), 0)
    y, *finals = network.run(t, wide, states, inside)
    flat = t.reshape(y, (t.shape(y)[0] * batch, t.shape(y)[2]))
    return (t.take(flat, _place_of_row(t, inside, rows), 0), *finals)


def _plain(name: str, cell: Cell, state: str = "Tensor") -> None:
    @operator(f"{name}.data(Tensor data, Tensor batch_sizes, {state} hx, {REST})", draws=True)
    def recurrent(t: Torch, data: Node, batch_sizes: Node, hx: Node | list[Node], params: list[Node], biases: bool, layers: int,
                  dropout: float, train: bool, both: bool) -> tuple[Node, ...]:
        check_training(dropout, train)
        return _run(t, data, batch_sizes, [hx] if isinstance(hx, Node) else hx, Network(params, biases, layers, both, cell))


_plain("lstm", lstm_step, "Tensor[]")
_plain("gru", gru_step)
_plain("rnn_tanh", tanh_step)
_plain("rnn_relu", relu_step)


@operator("pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0., str padding_side=\"right\")")
def pad_sequence(t: Torch, sequences: list[Node], batch_first: bool, value: float, side: str) -> Node:
    """Stacks sequences of different lengths, padded on one side."""
    if not sequences:
        raise TypeFault("it takes at least one sequence")
    longest = max(t.shape(x)[0] for x in sequences)
    rows = []
    for x in sequences:
        missing, rest = longest - t.shape(x)[0], [0] * (t.rank(x) - 1)
        low, high = (missing, 0) if side == "left" else (0, missing)
        rows.append(t.unsqueeze(t.pad(x, t.array(value, t.dtype(x)), [low, *rest], [high, *rest]), 0))
    y = t.concat(rows, 0)
    return y if batch_first else t.swap(y, 0, 1)
