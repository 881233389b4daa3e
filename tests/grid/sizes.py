"""The sizes and element types of the grid: the edges of vectors and tiles, as the schedules of every processor level give them."""
from __future__ import annotations

from collections.abc import Iterable

from irscope.backends import llvm_compile
from irscope.graph import DTYPES
from irscope.lower.schedule import ProductSize, choose_tile
from tests.grid.text import Shape

LEVELS = ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "native")
"""Processors that code is made for."""

TRIPLE = "x86_64-unknown-linux-gnu"
MACHINES = sorted({llvm_compile.cross(TRIPLE, cpu).vectors for cpu in LEVELS[:-1]}, key=lambda machine: machine.words)
LANES = [machine.words for machine in MACHINES]
"""How many f32 a vector holds, level by level."""

EDGES = sorted({0, 1, *(n for lanes in LANES for n in (lanes - 1, lanes, lanes + 1, 2 * lanes + 1))})
"""Where vectors begin, end, and leave one element over."""

TILES = [choose_tile(ProductSize(64, 256, 64), machine, machine.words) for machine in MACHINES]
ROWS = sorted({0, 1, *(n for rows, _, _ in TILES for n in (rows - 1, rows, rows + 1, 2 * rows + 1))})
"""Rows around the register tile of every level."""

COLUMNS = sorted({n for lanes, (_, vectors, _) in zip(LANES, TILES) for n in (vectors * lanes - 1, vectors * lanes, vectors * lanes + 1)})
"""Columns around the register tile of every level."""

DEEP = MACHINES[-1].l2 // 3 // (4 * COLUMNS[-2]) + 2
"""So much to sum that a panel of the widest tile exceeds its share of the second cache, and the sum goes in blocks."""

ARRAYS = tuple(name for name, dtype in DTYPES.items() if dtype.kind in ("pred", "int", "uint", "float", "complex"))
NUMBERS = tuple(name for name in ARRAYS if name != "pred")
REALS = tuple(name for name in NUMBERS if not DTYPES[name].is_complex)
FLOATS = tuple(name for name in REALS if DTYPES[name].is_float)
INTEGERS = tuple(name for name in REALS if DTYPES[name].is_integer)
COMPLEX = tuple(name for name in ARRAYS if DTYPES[name].is_complex)
SIGNED = tuple(name for name in NUMBERS if DTYPES[name].is_signed)
WIDE = ("f32", "f64", "c64", "c128")


def along(before: Shape, edges: Iterable[int], behind: Shape = ()) -> tuple[Shape, ...]:
    """Sizes that differ in one number."""
    return tuple((*before, n, *behind) for n in edges)


def each(*groups: Iterable[Shape]) -> tuple[Shape, ...]:
    """Sizes of several groups, once each."""
    return tuple(dict.fromkeys(size for group in groups for size in group))
