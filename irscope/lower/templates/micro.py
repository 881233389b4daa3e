"""The register tile that does the work of every contraction: rows x vectors of accumulators, one broadcast left element at a time.

    reg.vec r0..r7 = 0
    for k in 0..768:
      v0, v1, v2 = load.vec rhs[k*48], rhs[k*48 + 16], rhs[k*48 + 32]
      s0 = load lhs[k]          r0, r1, r2 := fma(s0, v0, r0), ...
      s1 = load lhs[k + 768]    ...

The left operand is never packed: its elements are broadcast from its own storage. The right one is read in vectors.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from irscope.fusion import Group
from irscope.graph import DType, Node, TensorType
from irscope.graph.dtypes import F32, F64, PRED, S32, S64
from irscope.graph.node import Index
from irscope.lower.build import KernelBuilder
from irscope.lower.register import ComplexReg, Reg
from irscope.lower.templates.affine import Axis
from irscope.lower.tile import Expr
from irscope.lower.view import Address
from irscope.ops.nests import blocks

Accumulators = list[list[Reg | ComplexReg]]

DEPTH_BLOCK = 1 << 11
"""Products that one f32 accumulator takes where a sum is cut into blocks, whose totals are kept in f64 (:func:`total_type`)."""
LONG_DEPTH = 1 << 14
"""Products of a result from which on its sum is done in blocks. Below, the error of a sequential f32 sum of random terms is about 1e-5 at
most, and the totals would cost registers and scratch memory in every kernel."""


@dataclass(slots=True)
class Ahead:
    """Cache lines to prefetch while a tile runs: ``lines`` neighbours at each step, ``steps[i]`` elements further along sum axis i."""

    address: Address
    steps: Sequence[int]
    lines: int


@dataclass(slots=True)
class Tile:
    """A register tile: the addresses of its first elements, and the offsets of its rows from there.

    ``rows`` are offsets of the left operand, ``lhs`` and ``rhs`` the addresses of row 0 and column 0 at the first step of every sum axis.
    ``mask`` (of the last vector) is None where all lanes exist.
    """

    lhs: Address
    rhs: Address
    rows: Sequence[int]
    vectors: int
    lanes: int
    sums: Sequence[Axis]
    mask: Expr | None = None
    ahead: Ahead | None = None


def computing_type(anchor: Node) -> DType | None:
    """The type in which the products of a contraction are summed, or None for those that register tiles do not support: of complex numbers
    and pred, and of floats that are first converted to the integer type of the result, with its range."""
    assert isinstance(anchor.type, TensorType)
    dtype, *given = anchor.type.dtype, *(o.type.dtype for o in anchor.operands if isinstance(o.type, TensorType))
    if dtype.is_integer and not all(d.is_integer or d is PRED for d in given):
        return None
    if dtype.kind == "float":
        return F64 if dtype is F64 else F32
    if dtype.is_integer:
        return S64 if dtype.bits == 64 else S32
    return None


def sum_type(group: Group) -> DType:
    """The type in which the products of a group's anchor, which register tiles support, are summed."""
    assert group.anchor is not None
    dtype = computing_type(group.anchor)
    assert dtype is not None
    return dtype


def accumulate(k: KernelBuilder, tile: Tile, dtype: DType, begin: Callable[[int, int], Expr] | None = None) -> Accumulators:
    """Run a tile over its sum axes; returns the accumulators, by row and vector. ``begin(row, vector)`` is their initial value (zero)."""
    zero = k.const(0, dtype)
    acc = [[k.reg(dtype, begin(r, v) if begin else k.splat(zero, tile.lanes)) for v in range(tile.vectors)] for r in range(len(tile.rows))]
    with ExitStack() as loops:
        lhs, rhs = tile.lhs, tile.rhs
        ahead = tile.ahead.address if tile.ahead is not None else None
        for place, axis in enumerate(tile.sums):
            i = loops.enter_context(k.loop(0, axis.size))
            lhs, rhs = lhs + i * axis.lhs, rhs + i * axis.rhs
            if tile.ahead is not None and ahead is not None:
                ahead = ahead + i * tile.ahead.steps[place]
        if tile.ahead is not None and ahead is not None:
            for line in range(tile.ahead.lines):
                (ahead + line * line_of(ahead.dtype)).prefetch()
        right = [k.convert((rhs + v * tile.lanes).load(tile.lanes, tile.mask if v == tile.vectors - 1 else None), dtype)
                 for v in range(tile.vectors)]
        for r, offset in enumerate(tile.rows):
            left = k.convert((lhs + offset).load(), dtype)
            for v in range(tile.vectors):
                acc[r][v].set(k.fma(left, right[v], acc[r][v].get()))
    return acc


def total_type(dtype: DType, depth: int) -> DType | None:
    """The type that block totals of ``depth`` products are kept in, or None where one accumulator is enough."""
    return F64 if dtype is F32 and depth > LONG_DEPTH else None


def inner_products(k: KernelBuilder, tile: Tile, columns: Sequence[int], dtype: DType) -> list[list[Expr]]:
    """The tile for two operands that are contiguous along the one sum axis: lanes walk it, and are summed at the end.

    ``columns`` are offsets of the right operand, as ``rows`` are of the left. Returns one-lane values, by row and column.
    """
    axis, lanes = tile.sums[0], tile.lanes
    zero = k.splat(k.const(0, dtype), lanes)
    wide = total_type(dtype, axis.size // lanes)
    acc = [[k.reg(dtype, zero) for _ in columns] for _ in tile.rows]
    totals = [[k.reg(wide, k.splat(k.const(0, wide), lanes)) for _ in columns] for _ in tile.rows] if wide is not None else []

    def step(at: Index, mask: Expr | None) -> None:
        right = [k.convert((tile.rhs + at + c).load(lanes, mask), dtype) for c in columns]
        for r, offset in enumerate(tile.rows):
            left = k.convert((tile.lhs + at + offset).load(lanes, mask), dtype)
            for c, value in enumerate(right):
                acc[r][c].set(k.fma(left, value, acc[r][c].get()))

    def add_block() -> None:
        for row, sums in zip(acc, totals):
            for register, total in zip(row, sums):
                total.set(k.binary("add", total.get(), k.convert(register.get(), total.get().dtype)))
                register.set(zero)

    whole = axis.size // lanes * lanes
    for (first,), (extent,) in blocks(k, [whole], DEPTH_BLOCK if totals else whole, lanes):
        with k.loop(0, extent, lanes) as i:
            step(first + i, None)
        add_block()
    if axis.size > whole:
        step(k.index(whole), k.first_lanes(axis.size - whole, lanes))
        add_block()
    return [[k.convert(k.reduce("add", a.get()), dtype) for a in row] for row in totals or acc]


def line_of(dtype: DType) -> int:
    """Elements of a cache line."""
    return max(1, 64 // dtype.storage)
