"""Shape queries of XLA's GPU passes: reductions of contiguous dimensions, transposes that need a tile, bitcasts."""
from __future__ import annotations

from math import prod

from irscope.fusion.xla.instructions import Instruction
from irscope.ops import hlo
from irscope.ops.attributes import Reduce, ReduceWindow

WARP = 32
RACE_FREE_ROW = 1024 * 16
"""The longest row that a single block reduces."""
RACE_FREE_BATCH = 8
RACE_FREE_COLUMN = 32 * 128


def by_memory(dims: tuple[int, ...], minor: tuple[int, ...]) -> list[int]:
    """The dimensions from the slowest to the fastest."""
    return list(reversed(minor)) if len(minor) == len(dims) else list(range(len(dims)))


def consecutive(order: list[int], chosen: set[int]) -> bool:
    """Whether some dimensions are adjacent in memory."""
    places = [i for i, d in enumerate(order) if d in chosen]
    return not places or places[-1] - places[0] + 1 == len(places)


def _around(dims: tuple[int, ...], order: list[int], middle: set[int]) -> tuple[int, int, int]:
    """Sizes before, in and after the middle dimensions, in memory order."""
    places = [i for i, d in enumerate(order) if d in middle]
    first, last = (places[0], places[-1]) if places else (0, -1)
    return (prod(dims[d] for d in order[:first]), prod(dims[d] for d in order[first:last + 1]), prod(dims[d] for d in order[last + 1:]))


def _sides(reduce: Instruction) -> tuple[list[int], set[int], set[int]]:
    """The dimensions of the operand from the slowest to the fastest; the kept ones and the reduced ones."""
    source, gone = reduce.operands[0], set(Reduce.of(reduce).dimensions)
    return by_memory(source.dims, source.minor), {d for d in range(len(source.dims)) if d not in gone}, gone


def reduction_dims(reduce: Instruction) -> tuple[bool, tuple[int, int, int]]:
    """Whether a reduction is one of rows, and its three sizes: (batch, kept, row) or (kept, reduced, kept)."""
    source = reduce.operands[0]
    order, kept, gone = _sides(reduce)
    if not kept:
        return True, (1, 1, prod(source.dims))
    if consecutive(order, kept):
        a, b, c = _around(source.dims, order, kept)
        if b == 1:
            return True, (1, 1, a * c)
        if c == 1:
            return False, (1, a, b)
        return True, (a, b, c)
    a, b, c = _around(source.dims, order, gone)
    if c == 1:
        return True, (1, a, b)
    return False, (a, b, c)


def is_unnested_reduction(instruction: Instruction) -> bool:
    """XLA's ``IsReductionFromOrToContiguousDimensions``: a reduction that gets a reduction kernel."""
    if instruction.op is not hlo.reduce:
        return False
    order, kept, gone = _sides(instruction)
    if not consecutive(order, kept) and not consecutive(order, gone):
        return False
    rows, (_, middle, minor) = reduction_dims(instruction)
    if rows:
        return minor >= WARP or (minor > 0 and WARP % minor == 0)
    elemental = middle < WARP or (middle < 2 * WARP and minor < WARP) or (middle < 4 * WARP and minor < 8) \
        or (middle < 8 * WARP and minor < 3)
    return not elemental


def is_race_free(reduce: Instruction) -> bool:
    """Whether one block computes each result, without atomic additions."""
    rows, (batch, middle, minor) = reduction_dims(reduce)
    if rows:
        return minor <= RACE_FREE_ROW and batch <= RACE_FREE_BATCH
    return middle <= RACE_FREE_COLUMN


def window_reductions(instruction: Instruction, out: int) -> tuple[int, int]:
    """The number of elements of a window, and how often it is reduced in total.

    A window of one dimension that covers all of it for every result counts as a reduction that is repeated along it.
    """
    window = ReduceWindow.of(instruction).window
    count = prod(window.size)
    wide = [d for d, n in enumerate(window.size) if n != 1]
    padded = [d for d in range(len(window.size)) if window.pad_low[d] or window.pad_high[d]]
    if len(wide) == len(padded) == 1 and wide == padded and instruction.is_array:
        low, high, whole = window.pad_low[wide[0]], window.pad_high[wide[0]], instruction.dims[wide[0]]
        if low and low == high and count == 2 * low + 1 and low == whole - 1:
            return whole, out // whole + whole - 1
    return count, (count - 1) * out
