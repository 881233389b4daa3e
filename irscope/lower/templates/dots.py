"""Rules of contractions: the vector axis, the order of the other axes, and the tiling of the loops."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, prod

from irscope.graph import DType
from irscope.lower.schedule import ContractionSchedule, Cut, ProductSize, VectorMachine, choose_tile, good_tiles
from irscope.lower.templates.affine import Affine, Axis
from irscope.lower.templates.micro import DEPTH_BLOCK, total_type
from irscope.lower.templates.pack import is_run


def vector_axis(affine: Affine, written: Sequence[tuple[int, ...]]) -> Axis | None:
    """The column axis along which all outputs are contiguous."""
    return next((a for a in affine.of("column") if a.out >= 0 and all(v[a.out] == 1 for v in written)), None)


def last(affine: Affine, axis: Axis) -> Affine:
    """The same with ``axis`` as the last of its role."""
    return Affine([a for a in affine.axes if a is not axis] + [axis], affine.views)


def sorted_axes(affine: Affine) -> Affine:
    """Rows in the order of the left operand's memory, so that neighbours are inner loops."""
    def key(axis: Axis) -> tuple[int, int]:
        return ("batch", "row", "column", "sum").index(axis.role), -abs(axis.lhs) if axis.role == "row" else 0
    return Affine(sorted(affine.axes, key=key), affine.views)


def size_of(affine: Affine, pack: str, dtype: DType, machine: VectorMachine, threads: int) -> ProductSize:
    """The extents of a merged contraction whose last column axis is the vectors'."""
    rows = affine.of("row") or [Axis("row", 1, 0, 0)]
    columns = affine.of("column")[-1].size
    depth = prod(a.size for a in affine.of("sum"))
    batches = prod(a.size for a in affine.axes if a.role == "batch")
    far = pack == "load" and batches * depth * columns * max(4, dtype.storage) > machine.l2 // 4
    shared = threads if batches * prod(a.size for a in affine.of("column")[:-1]) < 2 * threads else 1
    return ProductSize(rows[-1].size, columns, depth, rows[-2].size if len(rows) > 1 else 1, far, shared)


def choose(affine: Affine, pack: str, dtype: DType, machine: VectorMachine, threads: int = 1) -> ContractionSchedule:
    """Tiles, blocks, prefetch and order of loops by rule, for a merged contraction whose last column axis is the vectors'."""
    size = size_of(affine, pack, dtype, machine, threads)
    return _around(affine, pack, dtype, machine, size, choose_tile(size, machine, machine.lanes(dtype)))


def alternatives(affine: Affine, chosen: ContractionSchedule, dtype: DType, machine: VectorMachine,
                 threads: int = 1) -> list[ContractionSchedule]:
    """Other schedules that may be faster than the chosen one where its cost model is inexact: similar tiles, more or less prefetching."""
    size = size_of(affine, chosen.pack, dtype, machine, threads)
    found = [_around(affine, chosen.pack, dtype, machine, size, tile) for tile in good_tiles(6, size, machine, machine.lanes(dtype))]
    if chosen.pack == "load":
        found += [replace(chosen, prefetch=lines) for lines in (0, 1, 2, 4)]
    if chosen.pack in ("load", "none") and chosen.across == 1 and not chosen.sum_block:
        found.append(replace(chosen, rows_outer=not chosen.rows_outer, prefetch=0))
    return [schedule for schedule in dict.fromkeys(found) if schedule != chosen]


def _around(affine: Affine, pack: str, dtype: DType, machine: VectorMachine, size: ProductSize, tile: Cut) -> ContractionSchedule:
    """The schedule of a tile."""
    height, vectors, across = tile
    lanes, width = machine.lanes(dtype), max(4, dtype.storage)
    rows = affine.of("row") or [Axis("row", 1, 0, 0)]
    weights = size.depth * size.columns * width
    tiles = ceil(size.rows / height) * ceil(size.outer_rows / across) * prod(a.size for a in rows[:-2])
    walked = prod(a.size for a in rows) * size.depth * width
    panel = size.depth * vectors * lanes * width
    block = 0
    if tiles > 1 and panel > machine.l2 // 3 and pack != "none":
        pieces = ceil(panel / (machine.l2 // 4))
        block = ceil(size.depth / pieces)
    if total_type(dtype, size.depth) is not None:
        block = min(block or size.depth, DEPTH_BLOCK)
    rows_outer = pack in ("load", "none") and across == 1 and not block and weights <= machine.l2 // 4 and walked > machine.l2 // 2
    prefetch = min(4, ceil(vectors / tiles)) if size.far and not rows_outer else 0
    if pack == "copy" and tiles >= vectors and weights > machine.l2 // 4:
        prefetch = 1
    return ContractionSchedule(height, vectors, across, block, 0, pack, prefetch, rows_outer)


def packing(affine: Affine, fixed: bool, dtype: DType, machine: VectorMachine) -> str:
    """How to read the right operand."""
    if fixed:
        return "load"
    column, sums = affine.of("column")[-1], affine.of("sum")
    if column.rhs != 1:
        return "transpose" if is_run(sums) else "gather"
    rows, deep = prod(a.size for a in affine.of("row")), prod(a.size for a in sums)
    size = max(4, dtype.storage)
    spread = deep * min((abs(a.rhs) for a in sums if a.rhs), default=0) * size
    # Read in place, a panel touches a line or a page of its own at every step: too many for the caches once rows come again and again.
    return "copy" if rows >= 24 and spread > machine.l2 // 4 and deep >= 32 else "none"
