"""Schedules as data: the properties of a processor, and the rules by which a template chooses its tiles, blocks and prefetches.

The rules are measured ones (docs/performance.md): a register tile of ``rows`` x ``vectors`` needs rows * vectors accumulators,
``vectors`` registers for the right operand and one for the broadcast left element; one register more than there are costs a fifth
of the speed, because the compiler then folds loads or spills inside the innermost loop.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from math import ceil
from typing import Any

from irscope.graph import DType


@dataclass(frozen=True, slots=True)
class VectorMachine:
    """The properties of a processor that schedules depend on; the defaults are an x86-64 with AVX-512.

    ``registers`` counts vector registers of ``vector_bytes``, the fewest that every processor of the kind has.

    ``loads`` and ``fmas`` are instructions per cycle, ``latency`` the cycles of one fma, ``l1`` and ``l2`` bytes of a core's caches.
    """

    vector_bytes: int = 64
    registers: int = 32
    loads: float = 2.0
    fmas: float = 2.0
    latency: int = 4
    l1: int = 32 << 10
    l2: int = 1 << 20

    def lanes(self, dtype: DType) -> int:
        """Elements per vector when computing in ``dtype``: narrow floats and integers widen to four bytes."""
        return max(1, self.vector_bytes // max(4, dtype.storage))

    @property
    def words(self) -> int:
        """The number of f32 in a vector."""
        return self.vector_bytes // 4


AVX512 = VectorMachine()
AVX2 = VectorMachine(vector_bytes=32, registers=16)
SSE2 = VectorMachine(vector_bytes=16, registers=16)
NEON = VectorMachine(vector_bytes=16, registers=32)


@dataclass(frozen=True, slots=True)
class ContractionSchedule:
    """The tiling of a contraction.

    ``rows`` x ``vectors`` is the register tile; ``across`` tiles span that many steps of the next outer row axis.
    ``sum_block`` elements of the summed axis are done at a time (0: all), for ``row_block`` rows of results meanwhile (0: all).
    ``pack`` says how the right operand is read: ``load`` (packed into panels before the first run), ``copy`` and ``transpose``
    (packed by the kernel, a panel at a time), ``gather`` (that too, element by element), ``none`` (in place). ``prefetch`` is the
    number of cache lines of the next panel that are requested per step. ``rows_outer`` walks rows outside panels, for few weights and
    many rows.
    """

    rows: int
    vectors: int
    across: int = 1
    sum_block: int = 0
    row_block: int = 0
    pack: str = "none"
    prefetch: int = 0
    rows_outer: bool = False

    def data(self) -> dict[str, Any]:
        """As plain data, for printing and keeping."""
        return asdict(self)

    @staticmethod
    def of(data: Mapping[str, Any]) -> ContractionSchedule:
        """From plain data; ignores other keys (the template's name)."""
        return ContractionSchedule(**{f.name: data[f.name] for f in fields(ContractionSchedule) if f.name in data})


@cache
def tile_cycles(rows: int, vectors: int, machine: VectorMachine) -> float:
    """Cycles that one step of the summed axis takes in a register tile.

    The cycles of the busiest unit, plus a little for stalls: loads that miss, and too few chains to hide a late one.
    """
    busy = max(rows * vectors / machine.fmas, (rows + vectors) / machine.loads, float(machine.latency))
    slack = max(0.0, 2 * machine.latency * machine.fmas - rows * vectors) / (8 * machine.fmas)
    return busy + 0.05 * (rows + vectors) + slack


def fits(rows: int, vectors: int, machine: VectorMachine) -> bool:
    """Whether accumulators, right operand and one left element fit in registers. A single row folds its loads into the fma."""
    return rows * vectors + (vectors if rows > 1 else 0) + 1 <= machine.registers


Cut = tuple[int, int, int]
"""Rows of a register tile, its vectors, and how many steps of the next outer row axis it spans."""


@dataclass(frozen=True, slots=True)
class ProductSize:
    """The inputs to the choice of tiles: a result of ``rows`` x ``columns``, sums over ``depth``.

    ``rows`` counts the innermost row axis and ``outer_rows`` the next: a short innermost axis is tiled together with the next. ``far``: the
    right operand comes from beyond the second cache and is read by a few tiles only, so they must divide the prefetching of the
    next panel evenly. ``shared``: threads that divide the panels; some wait where the division is uneven.
    """

    rows: int
    columns: int
    depth: int
    outer_rows: int = 1
    far: bool = False
    shared: int = 1


@cache
def choose_tile(size: ProductSize, machine: VectorMachine, lanes: int) -> Cut:
    """The tile with the fewest cycles, tails included."""
    best: tuple[float, Cut] | None = None
    for cost, tile in _tiles(size, machine, lanes):
        if best is None or cost < best[0] * 0.999:
            best = (cost, tile)
    assert best is not None, "one row and one vector always fit"
    return best[1]


def good_tiles(count: int, size: ProductSize, machine: VectorMachine, lanes: int) -> list[Cut]:
    """The ``count`` tiles with the fewest estimated cycles, by the cost model of :func:`choose_tile`, as candidates for tuning."""
    return [tile for _, tile in sorted(_tiles(size, machine, lanes))[:count]]


def _tiles(size: ProductSize, machine: VectorMachine, lanes: int) -> Iterator[tuple[float, Cut]]:
    """Every tile that fits in registers, with the estimated cycles of the result."""
    rows, outer_rows, total_vectors = size.rows, size.outer_rows, ceil(size.columns / lanes)
    for across in range(1, min(outer_rows, 4) + 1):
        for vectors in range(1, min(total_vectors, machine.registers - 2) + 1):
            for inner in range(1, rows + 1):
                if not fits(inner * across, vectors, machine):
                    break
                if across > 1 and inner < rows:
                    continue  # a tile crosses to the next outer row only when it holds whole inner rows
                cost = _cost(size, total_vectors, (inner, vectors, across), machine)
                tiles = ceil(rows / inner) * ceil(outer_rows / across)
                if size.far and rows * outer_rows <= 32:  # bound by memory: fewer passes over it, and even shares of prefetching
                    cost *= (1 + 0.5 / inner / across) * (1.15 if tiles < vectors and vectors % tiles else 1.0)
                units = ceil(total_vectors / vectors)
                yield cost * (ceil(units / size.shared) * size.shared / units), (inner, vectors, across)


def _cost(size: ProductSize, total: int, tile: Cut, machine: VectorMachine) -> float:
    """Cycles for all tiles: a step costs ``tile_cycles``; entering and leaving a tile costs latency and one store per accumulator."""
    inner, vectors, across = tile

    def strip(height: int, width: int) -> float:
        return size.depth * tile_cycles(height, width, machine) + 12 + 1.5 * height * width

    def rows_cost(width: int) -> float:
        whole, rest = divmod(size.rows, inner)
        groups, left = divmod(size.outer_rows, across)
        one = groups * (whole * strip(inner * across, width) + (strip(rest * across, width) if rest else 0.0))
        return one + (left and (whole * strip(inner * left, width) + (strip(rest * left, width) if rest else 0.0)))

    panels, tail = divmod(total, vectors)
    return panels * rows_cost(vectors) + (rows_cost(tail) if tail else 0.0)
