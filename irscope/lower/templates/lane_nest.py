"""Contractions whose batches are contiguous in both operands: lanes walk the batches, as in the gradient of a depthwise convolution.

    par channel of 16:
      r0..r8 = 0                                   a tile of results, one vector of channels each
      for n, y, x:  v = load.vec rhs[...]          r0 := fma(load.vec lhs[...], v, r0), ...
"""
from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from math import prod

from irscope.graph.node import Index
from irscope.lower.templates.affine import Affine, AffineNest, Axis
from irscope.lower.templates.micro import DEPTH_BLOCK, total_type
from irscope.lower.templates.shares import vectors
from irscope.lower.tile import Expr
from irscope.lower.view import Address
from irscope.ops.nests import blocks

RESULTS = 12
"""Accumulators of a tile."""


def lane_axis(affine: Affine, written: list[tuple[int, ...]]) -> Axis | None:
    """The batch axis along which both operands and all outputs are contiguous."""
    side_by_side = (a for a in affine.of("batch") if a.lhs == a.rhs == 1 and a.out >= 0)
    return next((a for a in side_by_side if all(v[a.out] * a.step == 1 for v in written)), None)


@dataclass(slots=True)
class LaneNest(AffineNest):
    """Lanes walk the batch axis ``axis``; ``finish`` gets vectors of results along it."""

    axis: Axis

    def write(self) -> None:
        """Emit all loops."""
        k, axis = self.k, self.axis
        results = [a for a in self.affine.axes if a.role != "sum" and a is not axis]
        tiled: list[Axis] = []
        size = 1
        while results and size * results[-1].size <= RESULTS:  # whole inner axes are a tile
            size *= results[-1].size
            tiled.insert(0, results.pop())
        for i, mask in vectors(k, axis.size, self.lanes):
            with ExitStack() as stack:
                at = _Place([k.index(0)] * self.rank, self.lhs, self.rhs).moved(axis, i)
                for outer in results:
                    at = at.moved(outer, stack.enter_context(k.loop(0, outer.size)))
                self._tile([at.through(tiled, steps) for steps in product(*(range(a.size) for a in tiled))], mask)

    def _tile(self, places: list[_Place], mask: Expr | None) -> None:
        k, dtype = self.k, self.dtype
        sums = self.affine.of("sum")
        depth = prod(a.size for a in sums)
        wide = total_type(dtype, depth)
        zero = k.splat(k.const(0, dtype), self.lanes)
        registers = [k.reg(dtype, zero) for _ in places]
        totals = [k.reg(wide, k.splat(k.const(0, wide), self.lanes)) for _ in places] if wide is not None else []
        for first, extents in blocks(k, [a.size for a in sums], DEPTH_BLOCK if totals else depth):
            with ExitStack() as stack:
                here = places
                for axis, start, extent in zip(sums, first, extents):
                    i = start + stack.enter_context(k.loop(0, extent))
                    here = [p.moved(axis, i) for p in here]
                for register, place in zip(registers, here):
                    x, y = (k.convert(address.load(self.lanes, mask), dtype) for address in (place.lhs, place.rhs))
                    register.set(k.fma(x, y, register.get()))
            for register, total in zip(registers, totals):
                total.set(k.binary("add", total.get(), k.convert(register.get(), total.get().dtype)))
                register.set(zero)
        for register, place in zip(totals or registers, places):
            self.finish(k.convert(register.get(), dtype), place.index, mask)


@dataclass(slots=True)
class _Place:
    """An index into the result, and the addresses that belong to it."""

    index: list[Index]
    lhs: Address
    rhs: Address

    def moved(self, axis: Axis, i: Index) -> _Place:
        """After ``i`` steps along an axis."""
        return _Place(axis.walk(self.index, i), self.lhs + i * axis.lhs, self.rhs + i * axis.rhs)

    def through(self, axes: list[Axis], steps: tuple[int, ...]) -> _Place:
        place = self
        for axis, i in zip(axes, steps):
            place = place.moved(axis, i)
        return place
