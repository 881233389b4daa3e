"""What XLA's GPU passes ask of shapes: reductions that run along memory, transposes that need a tile, bitcasts."""
from __future__ import annotations

from math import prod

from irscope.fusion.xla.instructions import Instruction

WARP = 32
MIN_TILED = 16
"""A tiled transpose swaps dimensions of at least this size (``kMinDimensionToTransposeTiled``) ..."""
MIN_TILED_SMALL = 8
"""... or of at least this size (``kMinDimensionToTransposeTiled2``), when their product is at least ``MIN_TILED_TOTAL``."""
MIN_TILED_TOTAL = 64 * 128
RACE_FREE_ROW = 1024 * 16
"""The longest row that one block reduces alone."""
RACE_FREE_BATCH = 8
RACE_FREE_COLUMN = 32 * 128


def by_memory(dims: tuple[int, ...], minor: tuple[int, ...]) -> list[int]:
    """The dimensions from the slowest to the fastest."""
    return list(reversed(minor)) if len(minor) == len(dims) else list(range(len(dims)))


def consecutive(order: list[int], chosen: set[int]) -> bool:
    """Whether some dimensions lie next to each other in memory."""
    places = [i for i, d in enumerate(order) if d in chosen]
    return not places or places[-1] - places[0] + 1 == len(places)


def _around(dims: tuple[int, ...], order: list[int], middle: set[int]) -> tuple[int, int, int]:
    """Sizes before, in and after the middle dimensions, by memory."""
    places = [i for i, d in enumerate(order) if d in middle]
    first, last = (places[0], places[-1]) if places else (0, -1)
    return (prod(dims[d] for d in order[:first]), prod(dims[d] for d in order[first:last + 1]), prod(dims[d] for d in order[last + 1:]))


def reduction_dims(reduce: Instruction) -> tuple[bool, tuple[int, int, int]]:
    """Whether a reduction is one of rows, and its three sizes: (batch, kept, row) or (kept, reduced, kept)."""
    source = reduce.operands[0]
    order = by_memory(source.dims, source.minor)
    gone = set(reduce.attrs["dimensions"])
    kept = {d for d in range(len(source.dims)) if d not in gone}
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
    """XLA's ``IsReductionFromOrToContiguousDimensions``: a reduction that deserves a kernel made for it."""
    if instruction.op != "reduce":
        return False
    source = instruction.operands[0]
    order = by_memory(source.dims, source.minor)
    gone = set(instruction.attrs["dimensions"])
    kept = {d for d in range(len(source.dims)) if d not in gone}
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


def squeezed(instruction: Instruction) -> list[int]:
    """Dimensions by memory, without those of size 1."""
    return [d for d in by_memory(instruction.dims, instruction.minor) if instruction.dims[d] != 1]


def transpose_is_bitcast(instruction: Instruction) -> bool:
    """Whether a transpose or copy leaves every element where it is in memory."""
    source = instruction.operands[0]
    if instruction.op == "transpose":
        axes = instruction.attrs["dimensions"]
        return [axes[d] for d in squeezed(instruction)] == squeezed(source)
    return squeezed(instruction) == squeezed(source)


def tiled_transpose(instruction: Instruction) -> bool:
    """Whether a transpose (or a copy into another layout) goes through tiles in shared memory."""
    if instruction.op not in ("transpose", "copy") or not instruction.is_array or transpose_is_bitcast(instruction):
        return False
    source = instruction.operands[0]
    axes = instruction.attrs["dimensions"] if instruction.op == "transpose" else tuple(range(len(source.dims)))
    mine, theirs = [axes[d] for d in squeezed(instruction)], squeezed(source)
    if not mine or mine[-1] == theirs[-1]:
        return False
    a, b = source.dims[theirs[-1]], source.dims[mine[-1]]
    for run in range(1, len(mine)):
        # Neighbours in both orders count as one dimension.
        if mine[-run - 1:] and run < len(theirs) and mine[-run] != theirs[-1] and _follows(theirs, mine[-run - 1], mine[-run]):
            b *= source.dims[mine[-run - 1]]
        else:
            break
    for run in range(1, len(theirs)):
        if _follows(mine, theirs[-run - 1], theirs[-run]):
            a *= source.dims[theirs[-run - 1]]
        else:
            break
    return (a >= MIN_TILED and b >= MIN_TILED) or (a >= MIN_TILED_SMALL and b >= MIN_TILED_SMALL and a * b >= MIN_TILED_TOTAL)


def transpose_form(instruction: Instruction) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sizes of the operand of a transpose (or copy) as they lie in memory, and where each goes."""
    source = instruction.operands[0]
    axes = instruction.attrs["dimensions"] if instruction.op == "transpose" else tuple(range(len(source.dims)))
    theirs = squeezed(source)
    return tuple(source.dims[d] for d in theirs), tuple(theirs.index(axes[d]) for d in squeezed(instruction))


def _follows(order: list[int], first: int, second: int) -> bool:
    place = order.index(first)
    return place + 1 < len(order) and order[place + 1] == second
