"""Rules of contractions: which axis the vectors walk, in what order the others run, and how the loops are cut."""
from __future__ import annotations

from collections.abc import Sequence
from math import ceil, prod

from irscope.graph import DType
from irscope.lower.families.affine import Affine, Axis
from irscope.lower.families.pack import is_run
from irscope.lower.schedule import ContractionSchedule, Machine, choose_tile


def vector_axis(affine: Affine, written: Sequence[tuple[int, ...]]) -> Axis | None:
    """The column axis along which results lie side by side in all that is written."""
    return next((a for a in affine.of("column") if a.out >= 0 and all(v[a.out] == 1 for v in written)), None)


def last(affine: Affine, axis: Axis) -> Affine:
    """The same with ``axis`` as the last of its role."""
    return Affine([a for a in affine.axes if a is not axis] + [axis], affine.views)


def sorted_axes(affine: Affine) -> Affine:
    """Rows in the order of the left operand's memory, so that neighbours are inner loops."""
    def key(axis: Axis) -> tuple[int, int]:
        return ("batch", "row", "column", "sum").index(axis.role), -abs(axis.lhs) if axis.role == "row" else 0
    return Affine(sorted(affine.axes, key=key), affine.views)


def choose(affine: Affine, pack: str, dtype: DType, machine: Machine, threads: int = 1) -> ContractionSchedule:
    """Tiles, blocks, prefetch and order of loops by rule, for a merged contraction whose last column axis is the vectors'."""
    lanes, size = machine.lanes(dtype), max(4, dtype.storage)
    rows = affine.of("row") or [Axis("row", 1, 0, 0)]
    columns = affine.of("column")[-1].size
    depth = prod(a.size for a in affine.of("sum"))
    inner_rows, outer_rows = rows[-1].size, rows[-2].size if len(rows) > 1 else 1
    weights = depth * columns * size
    far = pack == "load" and prod(a.size for a in affine.axes if a.role == "batch") * weights > machine.l2 // 4
    batches = prod(a.size for a in affine.axes if a.role == "batch") * prod(a.size for a in affine.of("column")[:-1])
    shared = threads if batches < 2 * threads else 1
    height, vectors, across = choose_tile(inner_rows, columns, depth, machine, lanes, outer_rows, far, shared)
    tiles = ceil(inner_rows / height) * ceil(outer_rows / across) * prod(a.size for a in rows[:-2])
    walked = prod(a.size for a in rows) * depth * size
    panel = depth * vectors * lanes * size
    block = 0
    if tiles > 1 and panel > machine.l2 // 3 and pack != "none":
        pieces = ceil(panel / (machine.l2 // 4))
        block = ceil(depth / pieces)
    rows_outer = pack in ("load", "none") and across == 1 and not block and weights <= machine.l2 // 4 and walked > machine.l2 // 2
    prefetch = min(4, ceil(vectors / tiles)) if far and not rows_outer else 0
    if pack == "copy" and tiles >= vectors and weights > machine.l2 // 4:
        prefetch = 1
    return ContractionSchedule(height, vectors, across, block, 0, pack, prefetch, rows_outer)


def packing(affine: Affine, fixed: bool, dtype: DType, machine: Machine) -> str:
    """How the right operand is to be read."""
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
