"""Loops for a few columns: matrix times vector, where both operands are contiguous along the sum and lanes walk it."""
from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from irscope.graph.node import Index
from irscope.lower.templates.affine import Affine, AffineNest, Axis
from irscope.lower.templates.micro import Tile, inner_products
from irscope.lower.templates.shares import stepped
from irscope.lower.tile import Schedule
from irscope.lower.view import Address

TILE = 16
"""Accumulators of a tile: enough chains to hide the latency of an fma, few enough for 16 registers with operands beside them."""


def inner_schedule(affine: Affine) -> Schedule:
    """Rows of a tile: as many as keep the accumulators in registers."""
    columns = max(1, affine.size("column"))
    return {"rows": min(8, max(1, TILE // columns), max(1, affine.size("row")))}


@dataclass(slots=True)
class InnerNest(AffineNest):
    """Each tile takes ``rows`` rows of the innermost row axis and all columns; ``finish`` gets results one by one."""

    rows: int

    def write(self) -> None:
        """Emit all loops."""
        k, affine = self.k, self.affine
        *before, last = affine.of("row") or [Axis("row", 1, 0, 0)]
        with ExitStack() as stack:
            index: list[Index] = [k.index(0) for _ in range(self.rank)]
            lhs, rhs = self.lhs, self.rhs
            for axis in [*affine.of("batch"), *before]:
                i = stack.enter_context(k.par(0, axis.size))
                lhs, rhs, index = lhs + i * axis.lhs, rhs + i * axis.rhs, axis.walk(index, i)
            for i, height in stepped(k, last.size, self.rows):
                self._tile(lhs + i * last.lhs, rhs, last.walk(index, i), last, height)

    def _tile(self, lhs: Address, rhs: Address, index: list[Index], last: Axis, height: int) -> None:
        k = self.k
        columns: list[tuple[int, list[tuple[Axis, int]]]] = [(0, [])]
        for axis in self.affine.of("column"):
            columns = [(offset + i * axis.rhs, [*steps, (axis, i)]) for offset, steps in columns for i in range(axis.size)]
        tile = Tile(lhs, rhs, [r * last.lhs for r in range(height)], 1, self.lanes, self.affine.of("sum"))
        for r, row in enumerate(inner_products(k, tile, [offset for offset, _ in columns], self.dtype)):
            for value, (_, steps) in zip(row, columns):
                where = last.walk(index, k.index(r))
                for axis, i in steps:
                    where = axis.walk(where, k.index(i))
                self.finish(value, where, None)
