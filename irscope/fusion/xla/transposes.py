"""Transposes and copies into another layout in XLA's GPU emitters: which need a tile in shared memory, and which tile.

``GetDescriptionForTiledTransposeEmitter``, ``GetPackedTransposeTileSizes`` (ir_emission_utils.cc).
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod

from irscope.fusion.xla.instructions import Instruction
from irscope.fusion.xla.shapes import WARP, by_memory
from irscope.graph import TensorType
from irscope.ops import hlo
from irscope.ops.attributes import Transpose

CACHED = 4096
"""Forms of transposes whose answers are kept: a kernel asks for each of its transposes whenever something is fused into it."""
MIN_TILED = 16
"""A tiled transpose swaps dimensions of at least this size (``kMinDimensionToTransposeTiled``) ..."""
MIN_TILED_SMALL = 8
"""... or of at least this size (``kMinDimensionToTransposeTiled2``), if their product is at least ``MIN_TILED_TOTAL``."""
MIN_TILED_TOTAL = 64 * 128
"""``kMinTotalDimensionsToTransposeTiled``."""
MAX_MINOR_BITS = 64
"""A minor dimension that keeps its position becomes part of the tile up to this size (``kMaxBitsInMostMinorDimension``)."""
BANK_BITS = 32
"""The width of a bank of shared memory: narrower elements are packed."""
MIN_PACKED = 10
"""Rows and columns, in words of a bank, from which on elements are packed (``kNumMinPopulatedRowsOrColumns``)."""


@dataclass(frozen=True, slots=True)
class TiledTranspose:
    """A tiled transpose: ``dims`` of the result in memory order, with dimensions that stay adjacent merged; result dimension ``i`` is
    operand dimension ``axes[i]``; ``tile`` along each; ``shared_memory`` in bytes for a block."""

    dims: tuple[int, ...]
    axes: tuple[int, ...]
    tile: tuple[int, ...]
    shared_memory: int

    @property
    def form(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The properties that all tiled transposes of one kernel must share."""
        return self.dims, self.axes

    @property
    def blocks(self) -> int:
        """The number of tiles that cover the result."""
        return prod(-(-size // by) for size, by in zip(self.dims, self.tile, strict=True))


def squeezed(instruction: Instruction) -> list[int]:
    """Dimensions in memory order, without those of size 1."""
    return _squeezed(instruction.dims, instruction.minor)


@lru_cache(maxsize=CACHED)
def _squeezed(dims: tuple[int, ...], minor: tuple[int, ...]) -> list[int]:
    return [d for d in by_memory(dims, minor) if dims[d] != 1]


def axes_of(instruction: Instruction) -> tuple[int, ...]:
    """The operand dimension of each result dimension of a transpose or copy."""
    return Transpose.of(instruction).dimensions if instruction.op is hlo.transpose else tuple(range(len(instruction.dims)))


def transpose_is_bitcast(instruction: Instruction) -> bool:
    """Whether a transpose or copy keeps every element where it is in memory."""
    axes = axes_of(instruction)
    return [axes[d] for d in squeezed(instruction)] == squeezed(instruction.operands[0])


def moves_minor(instruction: Instruction) -> bool:
    """Whether a transpose or copy puts another dimension last in memory (``TransposesMinorDimension``)."""
    if instruction.op not in (hlo.transpose, hlo.copy) or not instruction.is_array:
        return False
    source = instruction.operands[0]
    if instruction.op is hlo.copy:
        return squeezed(instruction)[-1:] != squeezed(source)[-1:]
    order, axes = by_memory(source.dims, source.minor), axes_of(instruction)
    last = next((d for d in reversed(by_memory(instruction.dims, instruction.minor)) if instruction.dims[d] != 1), None)
    return last is not None and any(source.dims[d] != 1 for d in order[order.index(axes[last]) + 1:])


def tiled_transpose(instruction: Instruction) -> TiledTranspose | None:
    """The tiles of a transpose (or of a copy into another layout) in shared memory; None if it does not use any."""
    if instruction.op not in (hlo.transpose, hlo.copy) or not isinstance(instruction.type, TensorType) or transpose_is_bitcast(instruction):
        return None
    bits = max(8, instruction.type.dtype.bits) if instruction.type.dtype.name == "pred" else instruction.type.dtype.bits
    return _tiles(*normalised(instruction), bits)


@lru_cache(maxsize=CACHED)
def _tiles(dims: tuple[int, ...], axes: tuple[int, ...], bits: int) -> TiledTranspose | None:
    packed = _packed(dims, axes, bits)
    if packed is not None:
        return packed
    last = len(dims) - 1
    below = axes[last] == last
    source = axes.index(last - 1 if below else last)
    width = bits * (dims[last] if below else 1)
    a, b = dims[source], dims[last - 1 if below else last]
    if below:
        tiled = width <= MAX_MINOR_BITS and width * min(a, b) >= 8 * MIN_TILED
    else:
        tiled = bits != 4 and ((a >= MIN_TILED and b >= MIN_TILED)
                               or (a >= MIN_TILED_SMALL and b >= MIN_TILED_SMALL and a * b >= MIN_TILED_TOTAL))
    if not tiled:
        return None
    tile = [1] * len(dims)
    tile[source] = tile[last - 1 if below else last] = WARP
    if below:
        tile[last] = dims[last]
    return TiledTranspose(dims, axes, tuple(tile), -(-WARP * (WARP + 1) * width // 8))


def normalised(instruction: Instruction) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sizes of the result in memory order and the operand dimension of each; without sizes of 1, dimensions adjacent in both merged."""
    source = instruction.operands[0]
    return _normalised(axes_of(instruction), instruction.dims, instruction.minor, source.dims, source.minor)


@lru_cache(maxsize=CACHED)
def _normalised(axes: tuple[int, ...], dims: tuple[int, ...], minor: tuple[int, ...], source_dims: tuple[int, ...],
                source_minor: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    place = {d: i for i, d in enumerate(_squeezed(source_dims, source_minor))}
    runs: list[tuple[int, int, int]] = []
    for d in _squeezed(dims, minor):
        at, size = place[axes[d]], dims[d]
        if runs and runs[-1][1] + 1 == at:
            runs[-1] = (runs[-1][0], at, runs[-1][2] * size)
        else:
            runs.append((at, at, size))
    rank = {start: i for i, start in enumerate(sorted(run[0] for run in runs))}
    return tuple(run[2] for run in runs), tuple(rank[run[0]] for run in runs)


def _packed(dims: tuple[int, ...], axes: tuple[int, ...], bits: int) -> TiledTranspose | None:
    """The tile for elements narrower than a bank, packed: the transpose moves the last dimension, and the one before it may stay."""
    last = len(dims) - 1
    if bits >= BANK_BITS or axes[last] == last:
        return None
    vector = BANK_BITS // bits
    side = WARP * vector
    source = axes.index(last)
    between = last > 0 and axes[last - 1] == last - 1
    columns = min(dims[source], side)
    beside = min(dims[last - 1], side // columns) if between else 1
    rows = min(dims[last], side)
    if min(rows, columns * beside) < MIN_PACKED * vector or rows % vector or columns * beside % vector or dims[last] % rows % vector:
        return None
    tile = [1] * len(dims)
    tile[source], tile[last] = columns, rows
    if between:
        tile[last - 1] = beside
    return TiledTranspose(dims, axes, tuple(tile), WARP * (BANK_BITS // 8) * WARP * vector)
