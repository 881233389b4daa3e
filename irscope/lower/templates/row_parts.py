"""Rows that are divided among threads: one kernel reduces each part of a row, another one combines the parts.

    x: f32[16777216]  ->  64 parts of 262,144  ->  64 partial sums in f64  ->  sum
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, prod

from irscope.graph.node import Index
from irscope.lower.build import KernelBuilder
from irscope.lower.emission import Values
from irscope.lower.points import Point, PointTrace
from irscope.lower.program import Slot
from irscope.lower.storage import Storage
from irscope.lower.templates import KernelOperand, Problem
from irscope.lower.templates.rows_nest import RowsNest, operation_of
from irscope.lower.templates.shares import stepped
from irscope.lower.tile import Expr, Schedule
from irscope.lower.values import tensor_of
from irscope.ops.bodies import combiner
from irscope.ops.nests import fold_type

Partials = dict[Point, Storage]
"""For each reduction the memory of its partial results: one for each row and part."""


def partials(match: PointTrace, part: int) -> Partials:
    """Memory for the reductions of a group; sums of floats are kept in f64."""
    rows, columns = match.space[:match.rows], match.space[match.rows:]
    shape = (*rows, ceil(columns[0] / part))
    found: Partials = {}
    for point in match.points:
        if point.kind == "reduce":
            dtype = fold_type(tensor_of(point.node).dtype, combiner(point.node.bodies[0]), prod(columns))
            found[point] = Storage.plain(Slot("partial", dtype, prod(shape), "temp"), dtype, shape)
    return found


class PartsNest(RowsNest):
    """The kernel that reduces every part."""

    def __init__(self, k: KernelBuilder, problem: Problem, match: PointTrace, schedule: Schedule, held: Partials) -> None:
        super().__init__(k, replace(problem, outs={}), match, schedule)
        self.part: int = schedule["part"]
        self.held = {point: self.e.call.bind(KernelOperand(storage), "out", "partial") for point, storage in held.items()}

    def _pass(self, number: int, index: list[Index], values: Values) -> None:
        if number:
            return
        whole = self.columns
        for first, count in stepped(self.k, whole[0], self.part):
            self.columns = (count, *whole[1:])
            self._reduce(first, index, values)
        self.columns = whole

    def _reduce(self, first: Expr, index: list[Index], values: Values) -> None:
        """Emit one part of a row: all reductions."""
        body, _ = self._needed([p.args[0] for p in self.held], 0)
        sums = [self._begin(p, values) for p in self.held]

        def at(place: Sequence[Index], slot: int, mask: Expr | None, lanes: int) -> None:
            inner = dict(values)
            self.e.emit(body, [*index, first + place[0], *place[1:]], inner, mask, lanes)
            for one in sums:
                self._add(one, inner[one.point.args[0]], slot, mask, lanes, values)

        self._loops(at, self.sums, [one for one in sums if one.total is not None])
        for one in sums:
            view = self.held[one.point]
            view.store([*index, first // self.part], self.k.convert(self._across(one), view.dtype))

    def _store_rows(self, index: list[Index], values: Values) -> None:
        """The other kernel stores the outputs."""


class TotalsNest(RowsNest):
    """The kernel that combines the parts of every row, and stores the outputs."""

    def __init__(self, k: KernelBuilder, problem: Problem, match: PointTrace, schedule: Schedule, held: Partials) -> None:
        super().__init__(k, problem, match, schedule)
        self.held = {point: self.e.call.bind(KernelOperand(storage), "in", "partial") for point, storage in held.items()}

    def _pass(self, number: int, index: list[Index], values: Values) -> None:
        self._emit_rows(number, index, values)
        if number:
            return
        for point, view in self.held.items():
            operation = operation_of(point.node)
            assert operation is not None
            total = self.k.reg(view.dtype, view.load([*index, 0]))
            with self.k.loop(1, view.shape[-1]) as i:
                total.set(self.k.binary(operation, total.get(), view.load([*index, i])))
            values[point] = self._from_init(point, operation, total.get(), values)
