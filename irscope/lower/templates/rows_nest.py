"""The loops of kernels of kind ``rows``: passes over a row, registers of running reductions, and values that are kept between passes."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import nan, prod

from irscope.graph import DType, Node, Op, TensorType
from irscope.graph.dtypes import F32, F64, PRED
from irscope.graph.node import Index, Value
from irscope.lower.build import KernelBuilder
from irscope.lower.emission import Emission, Values
from irscope.lower.points import Point, PointTrace
from irscope.lower.register import ComplexReg, Reg
from irscope.lower.templates import Problem
from irscope.lower.tile import Buffer, Expr, Schedule
from irscope.lower.values import tensor_of
from irscope.ops import hlo
from irscope.ops.bodies import COMBINERS, combiner, identity
from irscope.ops.nests import SUM_BLOCK, blocks, fold_type, widened

COSTLY = 8
"""A value that takes this many simple operations per element, or more, is kept for the next pass instead of being recomputed."""
MAX_SCRATCH = 1 << 18
"""Bytes of kept rows."""
At = Callable[[Sequence[Index], int, Expr | None, int], None]
"""Emits the work at an index of the row: the index, the register to sum into, the mask, and the lanes."""


@dataclass(slots=True)
class RowSum:
    """One running reduction: the registers of a pass, and how they are combined.

    ``total`` exists where a long sum is computed in blocks: after each block the registers are added to it and reset to zero.
    """

    point: Point
    operation: str | None
    dtype: DType
    registers: list[Reg | ComplexReg]
    nan: Reg | ComplexReg | None = None
    total: Reg | ComplexReg | None = None


class RowsNest:
    """A kernel of kind ``rows`` being emitted."""

    def __init__(self, k: KernelBuilder, problem: Problem, match: PointTrace, schedule: Schedule) -> None:
        self.k = k
        self.match = match
        self.lanes: int = schedule["lanes"]
        self.sums: int = schedule["sums"]
        self.exact = problem.precision == "exact"
        self.columns = match.space[match.rows:]
        self.e = Emission(k, problem, match, self.lanes, len(match.space) - 1 if self.columns else -1)
        self.kept: dict[Point, Buffer] = {}
        self.passes = 1 + max((p.stage for p in match.points), default=0)

    def write(self) -> None:
        """Emit the whole kernel."""
        values: Values = {}
        before = [p for p in self.match.points if p.stage == 0 and p.kind != "reduce" and not self._is_full(p)]
        with self.e.nest(self.match.rows, before, values) as index:
            for number in range(self.passes):
                self._pass(number, index, values)
            self._store_rows(index, values)

    def _store_rows(self, index: list[Index], values: Values) -> None:
        """Store the outputs that have one element a row."""
        outputs = [o for o in self.match.outputs if not self._is_full(o[1]) and not any(o[2].strides[self.match.rows:])]
        self.e.store_all(outputs, [*index, *([0] * len(self.columns))], values, None, 1)

    def _is_full(self, point: Point) -> bool:
        return point.level > self.match.rows

    # ---- one pass over the row

    def _pass(self, number: int, index: list[Index], values: Values) -> None:
        """Emit one pass over the row: the reductions whose operands are known, and full outputs that are ready."""
        match = self.match
        self._emit_rows(number, index, values)
        reduces = [p for p in match.points if p.kind == "reduce" and p.stage == number + 1]
        outputs = [(n, p, w) for n, p, w in match.outputs if self._is_full(p) and p.stage == number]
        spread = [(n, p, w) for n, p, w in match.outputs if not self._is_full(p) and p.stage == number and any(w.strides[match.rows:])]
        if not reduces and not outputs and not spread:
            return
        wanted = [p.args[0] for p in reduces] + [p for _, p, _ in outputs]
        body, keep = self._needed(wanted, number)
        sums = [self._begin(p, values) for p in reduces]

        def at(place: Sequence[Index], slot: int, mask: Expr | None, lanes: int) -> None:
            flat = self._flat(place)
            kept = {p: self.k.load(buffer, flat, lanes, mask) for p, buffer in self.kept.items() if p in body and p not in keep}
            inner = values | kept
            self.e.emit(body, [*index, *place], inner, mask, lanes)
            for point in keep:
                self.k.store(self.kept[point], flat, self.k.splat(inner[point], lanes), mask)
            for one in sums:
                self._add(one, inner[one.point.args[0]], slot, mask, lanes, values)
            self.e.store_all([*outputs, *spread], [*index, *place], inner, mask, lanes)
        self._loops(at, self.sums if sums else 1, [one for one in sums if one.total is not None])
        for one in sums:
            values[one.point] = self._end(one, values)

    def _emit_rows(self, number: int, index: list[Index], values: Values) -> None:
        """Compute the points that have one value per row and depend on the reductions of ``number`` passes."""
        rows = [p for p in self.match.points if not self._is_full(p) and p.stage == number and p not in values and p.kind != "reduce"]
        self.e.emit(rows, [*index, *([0] * len(self.columns))], values, lanes=1, keep=True)

    def _loops(self, at: At, unroll: int, totals: list[RowSum]) -> None:
        """Emit loops over a row, in blocks where sums have totals: after each block the registers are added to them."""
        if not self.columns:
            at([], 0, None, 1)
            return
        limit = SUM_BLOCK if totals else prod(self.columns)
        for first, extents in blocks(self.k, self.columns, limit, self.lanes * unroll):
            self._block(at, unroll, first, extents)
            for one in totals:
                self._add_block(one)

    def _block(self, at: At, unroll: int, first: Sequence[Value], extents: list[int]) -> None:
        """Emit one block of a row: vectors along its last axis, several at a time where registers work in parallel."""
        k, lanes, n = self.k, self.lanes, extents[-1]
        with ExitStack() as loops:
            outer = [start + loops.enter_context(k.loop(0, size)) for start, size in zip(first[:-1], extents[:-1])]
            begin = 0
            if unroll > 1:
                whole = n // (lanes * unroll) * lanes * unroll
                with k.loop(0, whole, lanes * unroll) as i:
                    for slot in range(unroll):
                        at([*outer, first[-1] + i + slot * lanes], slot, None, lanes)
                begin = whole
            whole = n // lanes * lanes
            with k.loop(begin, whole, lanes) as i:
                at([*outer, first[-1] + i], 0, None, lanes)
            if n % lanes:
                at([*outer, first[-1] + whole], 0, k.first_lanes(n % lanes, lanes), lanes)

    def _flat(self, place: Sequence[Index]) -> Expr:
        flat: Expr = self.k.index(0)
        for i, n in zip(place, self.columns):
            flat = flat * n + i
        return flat

    def _needed(self, wanted: list[Point], number: int) -> tuple[list[Point], list[Point]]:
        """The full points (one value per element) that a pass computes or loads from kept rows, and those that it keeps for later ones."""
        needed = self._sources(wanted, lambda point: point not in self.kept)
        ahead = [p.args[0] for p in self.match.points if p.kind == "reduce" and p.stage > number + 1]
        ahead += [p for _, p, _ in self.match.outputs if p.stage > number]
        later = self._sources(ahead, lambda point: not (point in needed and point.cone >= COSTLY))
        keep: list[Point] = []
        order = {p: i for i, p in enumerate(self.match.points)}
        for point in sorted(needed & later, key=order.__getitem__):
            if point.kind == "scalar" and point.cone >= COSTLY and point not in self.kept and self._has_room(point):
                dtype = tensor_of(point.node).dtype
                if not dtype.is_complex:
                    self.kept[point] = self.k.buffer("row", dtype, (prod(self.columns),), "scratch")
                    keep.append(point)
        return sorted(needed, key=order.__getitem__), keep

    def _sources(self, points: list[Point], computed: Callable[[Point], bool]) -> set[Point]:
        """The full points among ``points``, and those that these need. A point needs its operands where ``computed`` holds for it."""
        found: set[Point] = set()
        stack = list(points)
        while stack:
            point = stack.pop()
            if point not in found and self._is_full(point):
                found.add(point)
                if computed(point):
                    stack.extend(point.args)
        return found

    def _has_room(self, point: Point) -> bool:
        held = sum(b.elements * b.dtype.storage for b in self.kept.values())
        return held + tensor_of(point.node).dtype.storage * prod(self.columns) <= MAX_SCRATCH

    # ---- reductions

    def _begin(self, point: Point, values: Values) -> RowSum:
        node = point.node
        operation, dtype = operation_of(node), tensor_of(node).dtype
        if operation is None:
            return RowSum(point, None, dtype, [self.k.reg(dtype, self.k.convert(values[point.args[1]], dtype))])
        op = combiner(node.bodies[0])
        assert op is not None
        wide = widened(dtype) if operation in ("add", "mul") else dtype
        neutral = self.k.const(_neutral(op, wide), wide)
        registers = [self.k.reg(wide, self.k.splat(neutral, self.lanes)) for _ in range(self.sums)]
        # HLO's maximum takes six instructions, because it must propagate NaN. Here it takes two: a separate register records whether there
        # was a NaN, and is checked at the end of the row.
        aside = operation in ("max", "min") and wide in (F32, F64) and not self.exact
        total_type = fold_type(dtype, op, prod(self.columns))
        steps = prod(self.columns[:-1]) * -(-self.columns[-1] // (self.lanes * self.sums)) if self.columns else 1
        total = self.k.reg(total_type, self.k.splat(self.k.const(0, total_type), self.lanes)) \
            if operation == "add" and steps > SUM_BLOCK and (wide.is_float or wide.is_complex) else None
        nan_seen = self.k.reg(PRED, self.k.splat(self.k.pred(False), self.lanes)) if aside else None
        return RowSum(point, operation, wide, registers, nan_seen, total)

    def _add_block(self, one: RowSum) -> None:
        """Add the registers of a block to the total, and reset them to zero."""
        k, total = self.k, one.total
        assert total is not None
        total.set(k.binary("add", total.get(), k.convert(self._joined(one), total.get().dtype)))
        for register in one.registers:
            register.set(k.splat(k.const(0, one.dtype), self.lanes))

    def _joined(self, one: RowSum) -> Expr:
        """The registers combined, lane by lane."""
        total: Expr = one.registers[0].get()
        for register in one.registers[1:]:
            value = register.get()
            total = self._better(one, total, value) if one.nan is not None else self.k.binary(str(one.operation), total, value)
        return total

    def _add(self, one: RowSum, value: Expr, slot: int, mask: Expr | None, lanes: int, values: Values) -> None:
        k = self.k
        register = one.registers[slot]
        if one.operation is None:
            register.set(k.convert(k.inline(one.point.node.bodies[0], [register.get(), value])[0], one.dtype))
            return
        value = k.splat(k.convert(value, one.dtype), lanes)
        if mask is not None:
            op = combiner(one.point.node.bodies[0])
            assert op is not None
            value = k.select(mask, value, k.splat(k.const(_tail_identity(op, one.dtype), one.dtype), lanes))
        if one.nan is not None:
            register.set(self._better(one, value, register.get()))
            one.nan.set(k.binary("or", one.nan.get(), k.compare("NE", value, value)))
            return
        register.set(k.binary(one.operation, register.get(), value))

    def _better(self, one: RowSum, x: Expr, y: Expr) -> Expr:
        """The larger (or smaller) of two values that are not NaN."""
        return self.k.select(self.k.compare("GT" if one.operation == "max" else "LT", x, y), x, y)

    def _end(self, one: RowSum, values: Values) -> Expr:
        """The reduced value."""
        k = self.k
        if one.operation is None:
            only: Expr = one.registers[0].get()
            return k.let(only) if not only.dtype.is_complex else only
        return self._from_init(one.point, one.operation, self._across(one), values)

    def _from_init(self, point: Point, operation: str, total: Expr, values: Values) -> Expr:
        """A reduction's elements combined with its init value, rounded to the result's type."""
        k = self.k
        total = k.binary(operation, k.convert(values[point.args[1]], total.dtype), total)
        total = k.convert(total, tensor_of(point.node).dtype)
        return total if total.dtype.is_complex else k.let(total)

    def _across(self, one: RowSum) -> Expr:
        """Registers and lanes combined."""
        k = self.k
        total = self._joined(one) if one.total is None else one.total.get()
        if one.nan is not None:
            total = fold_lanes(k, total, lambda x, y: self._better(one, x, y))
            return k.select(k.reduce("or", one.nan.get()), k.const(nan, one.dtype), total)
        return k.reduce(str(one.operation), total)


def fold_lanes(k: KernelBuilder, value: Expr, combine: Callable[[Expr, Expr], Expr]) -> Expr:
    """All lanes of a vector combined into one."""
    while value.lanes > 1:
        half = value.lanes // 2
        low, high = (k.shuffle(value, value, tuple(range(begin, begin + half))) for begin in (0, half))
        value = combine(low, high)
    return value


def operation_of(node: Node) -> str | None:
    """The scalar operation that a reduction combines with, where it may be applied in any order; None for any other body."""
    op = combiner(node.bodies[0])
    if not isinstance(node.type, TensorType):
        return None
    dtype = node.type.dtype
    if op is None or (dtype.is_complex and op is not hlo.add):
        return None
    return COMBINERS[op]


def _neutral(op: Op, dtype: DType) -> complex:
    """The identity of the operation."""
    value: complex = identity(op, dtype.numpy()).item()
    return value


def _tail_identity(op: Op, dtype: DType) -> complex:
    """The value of masked-off lanes in a tail: the identity, but -0 for sums of floats, which is an identity too.

    Masked-off lanes are loaded as 0, and a quotient of two such lanes is NaN. Where the processor has no AVX, LLVM 22.1 takes the quotient
    for 0: it drops a select between the quotient and 0, and the sum is NaN. It keeps a select between the quotient and -0.
    """
    if op is hlo.add and (dtype.is_float or dtype.is_complex):
        return complex(-0.0, -0.0) if dtype.is_complex else -0.0
    return _neutral(op, dtype)
