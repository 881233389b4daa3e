"""Reductions over leading or middle axes: vectors along the last axis that is kept, sequential loops over the reduced axes.

Results of a block of vectors stay in registers until all their elements are reduced; the epilogue computes on them there.
"""
from __future__ import annotations

from contextlib import ExitStack
from math import prod

from irscope.graph.node import Index
from irscope.lower.build import KernelBuilder
from irscope.lower.emission import Emission, Values, width
from irscope.lower.points import PointTrace, lies_across, trace
from irscope.lower.templates import Built, Problem, Template
from irscope.lower.templates.rows_nest import operation_of
from irscope.lower.tile import Expr, Schedule
from irscope.lower.values import tensor_of
from irscope.ops import hlo
from irscope.ops.nests import SUM_BLOCK, blocks, fold_type, widened


class ReductionTemplate(Template[PointTrace]):
    """Groups of kind ``reduction`` with one result, and sums over rows whose elements are strided."""

    def match(self, problem: Problem) -> PointTrace | None:
        group = problem.group
        if group.kind not in ("reduction", "rows") or group.anchor is None or len(group.anchor.operands) != 2 or problem.in_place:
            return None
        if operation_of(group.anchor) is None:
            return None
        found = trace(problem)
        return found if found is not None and found.rows and (group.kind == "reduction" or lies_across(found)) else None

    def schedule(self, problem: Problem, match: PointTrace) -> Schedule:
        kept = match.space[match.rows - 1]
        lanes = width(kept, problem.lanes)
        # Wide strips read more of each page, but leave fewer of them for the threads.
        most = problem.machine.registers // 4
        if kept // (lanes * most) < 2 * problem.threads:
            most //= 2
        return {"lanes": lanes, "vectors": max(1, min(most, kept // lanes))}

    def build(self, problem: Problem, match: PointTrace, schedule: Schedule) -> Built:
        k = KernelBuilder(problem.name, problem.lanes, precision=problem.precision)
        reduction = _Reduction(k, problem, match, schedule["lanes"], schedule["vectors"])
        reduction.write()
        return Built([reduction.e.call.stage(k.finish(schedule=schedule))])


class _Reduction:
    def __init__(self, k: KernelBuilder, problem: Problem, match: PointTrace, lanes: int, vectors: int) -> None:
        self.k = k
        self.match = match
        self.lanes = lanes
        self.vectors = vectors
        self.rows = match.rows
        self.columns = match.space[match.rows:]
        self.e = Emission(k, problem, match, lanes, match.rows - 1)
        self.reduce = next(p for p in match.points if p.kind == "reduce")
        self.before = [p for p in match.points if p.stage == 0 and p.level <= self.rows]
        self.inside = [p for p in match.points if p.level > self.rows]
        self.results = [o for o in match.outputs if o[1].level <= self.rows]
        self.beside = [o for o in match.outputs if o[1].level > self.rows]  # stored during the walk over them
        self.after = [p for p in match.points if p.stage == 1 and p is not self.reduce]

    def write(self) -> None:
        """Emit the whole kernel."""
        k, rows, space = self.k, self.rows, self.match.space
        values: Values = {}
        with self.e.nest(rows - 1, self.before, values) as index:
            n, block = space[rows - 1], self.lanes * self.vectors
            whole = n // block * block
            with k.par(0, whole, block) as j:
                self._block(index, j, self.vectors, None, values)
            left = (n - whole) // self.lanes
            if left:
                self._block(index, k.index(whole), left, None, values)
            rest = n - whole - left * self.lanes
            if rest:
                self._block(index, k.index(n - rest), 1, k.first_lanes(rest, self.lanes), values)

    def _full(self, index: list[Index]) -> list[Index]:
        return [*index, *([0] * (len(self.match.space) - len(index)))]

    def _block(self, index: list[Index], j: Index, count: int, mask: Expr | None, values: Values) -> None:
        """Emit several vectors of results: the reduction of their elements, then the epilogue."""
        k, lanes = self.k, self.lanes
        node = self.reduce.node
        operation, dtype = operation_of(node), tensor_of(node).dtype
        assert operation is not None
        wide = widened(dtype) if operation in ("add", "mul") else dtype
        mine: list[Values] = []
        registers = []
        for v in range(count):
            held = dict(values)
            self.e.emit(self.before, self._full([*index, j + v * lanes]), held, mask)
            mine.append(held)
            registers.append(k.reg(wide, k.splat(k.convert(held[self.reduce.args[1]], wide), lanes)))
        long = operation == "add" and prod(self.columns) > SUM_BLOCK and (wide.is_float or wide.is_complex)
        total_type = fold_type(dtype, hlo.add, prod(self.columns)) if long else wide
        totals = [k.reg(total_type, k.splat(k.const(0, total_type), lanes)) for _ in registers] if long else []
        for first, extents in blocks(k, self.columns, SUM_BLOCK if long else prod(self.columns)):
            with ExitStack() as loops:
                place = [start + loops.enter_context(k.loop(0, n)) for start, n in zip(first, extents)]
                for v in range(count):
                    inner = dict(mine[v])
                    self.e.emit(self.inside, [*index, j + v * lanes, *place], inner, mask)
                    self.e.store_all(self.beside, [*index, j + v * lanes, *place], inner, mask, lanes)
                    element = k.splat(k.convert(inner[self.reduce.args[0]], wide), lanes)
                    registers[v].set(k.binary(operation, registers[v].get(), element))
            for register, total in zip(registers, totals):
                total.set(k.binary("add", total.get(), k.convert(register.get(), total_type)))
                register.set(k.splat(k.const(0, wide), lanes))
        for v in range(count):
            held = mine[v]
            held[self.reduce] = k.convert((totals or registers)[v].get(), dtype)
            at = self._full([*index, j + v * lanes])
            self.e.emit(self.after, at, held, mask)
            self.e.store_all(self.results, at, held, mask, lanes)


TEMPLATE = ReductionTemplate()
