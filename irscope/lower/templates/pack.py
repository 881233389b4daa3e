"""The right operand in panels: [panel][sum][width], zero beyond the last column, so that the register tile reads it in order.

Weights are packed once, before the first run; computed operands are packed a panel at a time by the kernel that needs them.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

from irscope.graph.node import Index
from irscope.lazy import Array, np
from irscope.lower.build import KernelBuilder
from irscope.lower.memory import aligned_bytes
from irscope.lower.templates.affine import Axis
from irscope.lower.tile import Expr
from irscope.lower.view import Address

Packed = tuple[Address, list[Axis]]
"""A panel in scratch memory, and the sum axes with their strides in it."""


@dataclass(frozen=True, slots=True)
class Strip:
    """The data that a kernel packs into a panel: ``columns`` of an operand along one axis, in vectors of ``lanes``, and all sums.

    ``target`` is where the panel begins; None for scratch memory of its own.
    """

    source: Address
    sums: Sequence[Axis]
    column: Axis
    columns: int
    lanes: int
    target: Address | None = None

    @property
    def vectors(self) -> int:
        return -(-self.columns // self.lanes)

    @property
    def width(self) -> int:
        return self.vectors * self.lanes

    def room(self, k: KernelBuilder) -> Address:
        """The memory for it, allocated unless it is given."""
        return self.target or k.scratch(self.source.dtype, (prod(a.size for a in self.sums), self.width)).origin

    def walk(self, k: KernelBuilder, line: Callable[[Address, Address], None]) -> Packed:
        """Write ``line(source, target)`` for every element of the sums."""
        def copy(at: Address, to: Address, left: Sequence[Axis]) -> None:
            if not left:
                line(at, to)
                return
            with k.loop(0, left[0].size) as i:
                copy(at + i * left[0].rhs, to + i * (self.width * prod(a.size for a in left[1:])), left[1:])

        room = self.room(k)
        copy(self.source, room, self.sums)
        return room, in_panel(self.sums, self.width)


def panels(array: Array, outer: int, width: int, dtype: np.dtype[np.generic]) -> Array:
    """A constant operand in panels, flat. Its axes are: ``outer`` batches, the sum axes, and last the columns; any view of them will do."""
    *shape, columns = array.shape
    whole, rest = divmod(columns, width)
    batch, sums = shape[:outer], shape[outer:]
    out = aligned_zeros((*batch, whole + (rest > 0), *sums, width), dtype)
    if whole:
        split = array[..., :whole * width].reshape(*shape, whole, width)  # splitting the last axis never makes a copy
        out[(slice(None),) * outer + (slice(0, whole),)] = np.moveaxis(split, -2, outer)
    if rest:
        out[(slice(None),) * outer + (whole, ..., slice(0, rest))] = array[..., whole * width:]
    return out.reshape(-1)


def aligned_zeros(shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> Array:
    """Zeros aligned to 64 bytes, as compiled code requires of constants, so that it uses them without a copy."""
    return aligned_bytes(prod(shape) * np.dtype(dtype).itemsize, zero=True).view(dtype).reshape(shape)


def in_panel(sums: Sequence[Axis], width: int) -> list[Axis]:
    """Sum axes with their strides in a panel, the last one fastest."""
    step, out = width, []
    for axis in reversed(sums):
        out.append(replace(axis, rhs=step))
        step *= axis.size
    return out[::-1]


def is_run(sums: Sequence[Axis]) -> bool:
    """Whether sum axes, in some order, are contiguous in the right operand's memory."""
    step = 1
    for axis in sorted(sums, key=lambda a: a.rhs):
        if axis.rhs != step:
            return False
        step *= axis.size
    return True


def pack_copy(k: KernelBuilder, strip: Strip) -> Packed:
    """Copy a panel whose columns are contiguous: distant rows become contiguous."""
    lanes, last = strip.lanes, strip.vectors - 1
    mask = k.first_lanes(strip.columns - last * lanes, lanes) if strip.columns < strip.width else None

    def line(at: Address, to: Address) -> None:
        for v in range(strip.vectors):
            (to + v * lanes).store((at + v * lanes).load(lanes, mask if v == last else None))

    return strip.walk(k, line)


def pack_transpose(k: KernelBuilder, strip: Strip) -> Packed:
    """Copy a panel whose sums are contiguous: squares of lanes x lanes are transposed in registers."""
    source, lanes, width, size = strip.source, strip.lanes, strip.width, prod(a.size for a in strip.sums)
    room = strip.room(k)

    def square(at: Index, v: int, rows: int) -> None:
        steps = None if rows == lanes else k.first_lanes(rows, lanes)
        have = min(lanes, strip.columns - v * lanes)
        lines = [(source + (v * lanes + c) * strip.column.rhs + at).load(lanes, steps) if c < have
                 else k.splat(k.const(0, source.dtype), lanes) for c in range(lanes)]
        for r, line in enumerate(transposed(k, lines)[:rows]):
            (room + (at + r) * width + v * lanes).store(line)

    whole = size // lanes * lanes
    for v in range(strip.vectors):  # one vector of columns after the other, so that few streams of memory are read at a time
        with k.loop(0, whole, lanes) as i:
            square(i, v, lanes)
        if size > whole:
            square(k.index(whole), v, size - whole)
    return room, [replace(a, rhs=a.rhs * width) for a in strip.sums]


def transposed(k: KernelBuilder, lines: Sequence[Expr]) -> list[Expr]:
    """Transpose a square of vectors by log2(lanes) rounds of exchanges between pairs."""
    lanes = len(lines)
    rows, step = list(lines), lanes // 2
    while step:
        low = [lane if not lane & step else (lane ^ step) + lanes for lane in range(lanes)]
        high = [lane | step if not lane & step else lane + lanes for lane in range(lanes)]
        for a in range(lanes):
            if not a & step:
                b = a | step
                rows[a], rows[b] = k.shuffle(rows[a], rows[b], low), k.shuffle(rows[a], rows[b], high)
        step //= 2
    return rows


def pack_gather(k: KernelBuilder, strip: Strip) -> Packed:
    """Copy a panel that is contiguous in no direction, an element at a time."""
    def line(at: Address, to: Address) -> None:
        with k.loop(0, strip.columns) as c:
            (to + c).store((at + c * strip.column.rhs).load())
        if strip.columns < strip.width:
            with k.loop(strip.columns, strip.width) as c:
                (to + c).store(k.const(0, strip.source.dtype))

    return strip.walk(k, line)
