"""Prefix sums: computes windows that begin where the array begins in tiles of the last dimension (XLA's ``ReduceWindowRewriter``)."""
from __future__ import annotations

from irscope.fusion.canonicalise.computation import HloComputation, HloInstruction, tensor_type
from irscope.ops import hlo
from irscope.ops.attributes import ReduceWindow, Windowed
from irscope.ops.attrs import Window

BASE = 16
"""Elements of a tile (``xla_reduce_window_rewrite_base_length``)."""


def rewrite_windows(rewriter: HloComputation) -> None:
    """Rewrite the prefix sums of one computation, and give windows over vectors a second dimension."""
    pending = [t for t in rewriter.instructions if t.op is hlo.reduce_window]
    while pending:
        instr = rewriter.at = pending.pop()
        if len(instr.operands) != 2 or not instr.is_array or not instr.rank or Windowed.of(instr).window is None:
            continue
        axis = _axis(instr)
        if axis is not None and axis != instr.rank - 1:
            pending.append(_move_last(rewriter, instr, axis))
        elif axis is not None:
            pending.append(_tile(rewriter, instr, axis))
        elif instr.rank == 1:
            _widen(rewriter, instr)


def _axis(instr: HloInstruction) -> int | None:
    """The dimension along which a window computes a prefix sum; None if it does not, or if the array is short."""
    window = ReduceWindow.of(instr).window
    source = instr.operands[0]
    wide = [d for d, n in enumerate(window.size) if n > 1]
    if len(wide) != 1 or any(s != 1 for s in (*window.stride, *window.lhs_dilate, *window.rhs_dilate)):
        return None
    axis = wide[0]
    length = source.dims[axis]
    pads = [(window.pad_low[d], window.pad_high[d]) for d in range(source.rank)]
    if any(pad != (0, 0) for d, pad in enumerate(pads) if d != axis) or window.size[axis] != length or length <= BASE:
        return None
    return axis if pads[axis] in ((length - 1, 0), (0, length - 1), (length, 0), (0, length)) else None


def _move_last(rewriter: HloComputation, instr: HloInstruction, axis: int) -> HloInstruction:
    """Transpose so that a sum runs along the last dimension, and transpose its result back. Returns the window along the last."""
    order = list(range(instr.rank))
    order[axis], order[-1] = order[-1], order[axis]
    window = ReduceWindow.of(instr).window
    source, init = instr.operands
    pads = list(zip(window.pad_low, window.pad_high, strict=True))
    along = Window.make(tuple(window.size[d] for d in order), None, tuple(pads[d] for d in order))
    made = rewriter.like(instr, (rewriter.transpose(source, order), init), [instr.dims[d] for d in order], {"window": along})
    rewriter.replace(instr, rewriter.transpose(made, order))
    return made


def _tile(rewriter: HloComputation, instr: HloInstruction, axis: int) -> HloInstruction:
    """Sum within tiles, then over whole tiles, and add both. Returns the window over whole tiles."""
    source, init = instr.operands
    window = ReduceWindow.of(instr).window
    forward, length = window.pad_low[axis] > 0, source.dims[axis]
    exclusive = max(window.pad_low[axis], window.pad_high[axis]) == length
    columns = -(-length // BASE)
    dims = list(source.dims)

    def with_axis(*sizes: int) -> list[int]:
        return [*dims[:axis], *sizes, *dims[axis + 1:]]

    def pad(array: HloInstruction, low: int, high: int) -> HloInstruction:
        return rewriter.pad(array, init, [(low, high, 0) if d == axis else (0, 0, 0) for d in range(array.rank)])

    def sum_windows(array: HloInstruction, along: int, low: int, high: int) -> HloInstruction:
        n = array.dims[along]
        size = tuple(n if d == along else 1 for d in range(array.rank))
        pads = tuple((low, high) if d == along else (0, 0) for d in range(array.rank))
        sizes = [k + low + high - n + 1 if d == along else k for d, k in enumerate(array.dims)]
        return rewriter.make(hlo.reduce_window, tensor_type(array.dtype, sizes), (array, init), {"window": Window.make(size, None, pads)},
                             instr.bodies)

    padded = source if columns * BASE == length else pad(source, 0, columns * BASE - length)
    tiles = rewriter.reshape(padded, with_axis(columns, BASE))
    inner = sum_windows(tiles, axis + 1, *((BASE - 1, 0) if forward else (0, BASE - 1)))
    last = rewriter.slice_along(inner, axis + 1, *((BASE - 1, BASE) if forward else (0, 1)))
    outer = sum_windows(rewriter.reshape(last, with_axis(columns)), axis, *((columns, 0) if forward else (0, columns)))
    before = rewriter.slice_along(outer, axis, *((0, columns) if forward else (1, columns + 1)))
    spread = rewriter.broadcast(before, inner.dims, [d for d in range(inner.rank) if d != axis + 1])
    total = rewriter.make(hlo.map, inner.type, (inner, spread), {"dimensions": tuple(range(inner.rank))}, instr.bodies)
    flat = rewriter.reshape(total, with_axis(columns * BASE))
    result = flat if columns * BASE == length else rewriter.slice_along(flat, axis, 0, length)
    if exclusive:
        result = pad(result, *((1, 0) if forward else (0, 1)))
    rewriter.replace(instr, result)
    return outer


def _widen(rewriter: HloComputation, instr: HloInstruction) -> None:
    """Make a window over a vector one over a matrix of one column."""
    source, init = instr.operands
    window = ReduceWindow.of(instr).window
    two = Window.make((*window.size, 1), (*window.stride, 1), ((window.pad_low[0], window.pad_high[0]), (0, 0)),
                      (*window.lhs_dilate, 1), (*window.rhs_dilate, 1), (*window.rhs_reversal, False))
    wide = rewriter.like(instr, (rewriter.reshape(source, (*source.dims, 1)), init), (*instr.dims, 1), {"window": two})
    rewriter.replace(instr, rewriter.reshape(wide, instr.dims))
