"""The dimension order of a tensor in a dot: the pieces of its memory, each a part of one dimension of the dot.

``f32[3,20,5]`` read as the operand ``f32[60,5]`` of a dot has the order ``1:5 - 0:20 - 0:3``, minor first: the rows of the dot,
dimension 0, are two consecutive pieces of it. XLA calls this a ``DimensionOrder`` and the strides that follow from it a
``TensorIterationSpec`` (triton_tiling_propagation.cc); a Triton kernel steps along at most two such pieces of a dimension.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from irscope.fusion.xla.instructions import Instruction


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the dot's dimension ``label``: ``count`` elements in memory, of which ``sliced`` from ``start`` on are read.

    A piece of a concatenation starts below zero: that many elements come from the preceding operands.
    """

    label: int
    count: int
    start: int
    sliced: int

    @staticmethod
    def whole(label: int, count: int) -> Piece:
        """A piece that is read completely."""
        return Piece(label, count, 0, count)

    @property
    def is_sliced(self) -> bool:
        """Whether only part of it is read."""
        return self.count != self.sliced


@dataclass(frozen=True, slots=True)
class Order:
    """The pieces of a tensor in memory, minor first, and for each dimension of the dot the numbers of its pieces, minor first."""

    pieces: tuple[Piece, ...]
    by_label: Mapping[int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Stride:
    """How a kernel steps along one contiguous run of a dimension: the stride, the number of elements, and which of them are read.

    ``parts`` are the sizes of the pieces in the run, without those of one element.
    """

    stride: int
    count: int
    start: int
    sliced: int
    parts: tuple[int, ...]


Strides = Mapping[int, tuple[Stride, ...]]
"""For each dimension of the dot its runs, minor first."""


def order_of(tensor: Instruction) -> Order:
    """The order of an operand of the dot, or of its result: each of its dimensions is one piece."""
    pieces = tuple(Piece.whole(d, tensor.dims[d]) for d in tensor.minor)
    return Order(pieces, {piece.label: (n,) for n, piece in enumerate(pieces)})


def strides_of(order: Order) -> Strides:
    """How a kernel steps along each dimension: adjacent pieces of one dimension are a single run, runs of one element are dropped.

    A dimension keeps its only run whatever its size.
    """
    found: dict[int, list[Stride]] = {}
    step, last = 1, -1
    for piece in order.pieces:
        stretches = found.setdefault(piece.label, [])
        if piece.label == last:
            stretches[-1] = _joined(stretches[-1], piece)
        else:
            stretches.append(Stride(step, piece.count, piece.start, piece.sliced, (piece.sliced,)))
        step *= piece.count
        last = piece.label
    return {label: tuple(s for s in stretches if s.count != 1 or len(stretches) == 1) for label, stretches in found.items()
            if len(stretches) == 1 or any(s.count != 1 for s in stretches)}


def _joined(stretch: Stride, piece: Piece) -> Stride:
    """A run with one more piece at its major end."""
    parts = stretch.parts[:-1] if stretch.parts and stretch.parts[-1] == 1 else stretch.parts
    if piece.count == 1:
        return Stride(stretch.stride, stretch.count, stretch.start, stretch.sliced, parts)
    return Stride(stretch.stride, stretch.count * piece.count, piece.start * stretch.count, piece.sliced * stretch.count,
                  (*parts, piece.sliced))


def frozen(strides: Strides) -> tuple[tuple[int, tuple[Stride, ...]], ...]:
    """A hashable key: two users that step alike over an instruction share it inside a kernel."""
    return tuple(sorted(strides.items()))
