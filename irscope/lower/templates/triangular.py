"""Triangular systems: vectors along the right-hand sides, blocks of unknowns in registers.

    par strips of right-hand sides:
      for 8 unknowns:
        for all unknowns before:     acc0..acc7 -= a[.., j] * x[j]     the solved ones are in scratch memory
        x = acc, one after the other, each less its products with those before, divided by the diagonal
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import prod

from irscope.fusion.drafts import dims_of
from irscope.graph import Node
from irscope.graph.dtypes import F32, F64
from irscope.graph.node import Index
from irscope.lower.build import KernelBuilder
from irscope.lower.call import KernelOperands
from irscope.lower.emission import take, width
from irscope.lower.register import ComplexReg, Reg
from irscope.lower.templates import Built, Problem, Template
from irscope.lower.templates.shares import stepped
from irscope.lower.tile import Expr, Schedule
from irscope.lower.values import tensor_of
from irscope.lower.view import Address, View
from irscope.ops import hlo
from irscope.ops.attributes import TriangularSolve

FEWEST_UNKNOWNS = 8
"""With fewer, or with one right-hand side, element by element is no slower."""


class TriangularTemplate(Template[Node]):
    """``triangular-solve`` of real matrices; not under ``exact`` precision, since products are subtracted with one rounding."""

    def match(self, problem: Problem) -> Node | None:
        node = problem.group.anchor
        if node is None or node.op is not hlo.triangular_solve or len(problem.group.nodes) > 1 or problem.in_place:
            return None
        dims = dims_of(node)
        unknowns, columns = dims[-2:] if TriangularSolve.of(node).left_side else dims[:-3:-1]
        fits = prod(dims) and unknowns >= FEWEST_UNKNOWNS and columns > 1
        return node if fits and tensor_of(node).dtype in (F32, F64) and problem.precision != "exact" else None

    def schedule(self, problem: Problem, match: Node) -> Schedule:
        machine, dims = problem.machine, dims_of(match)
        columns = dims[-1 if TriangularSolve.of(match).left_side else -2]
        lanes = width(columns, machine.lanes(tensor_of(match).dtype))
        return {"lanes": lanes, "vectors": min(2, -(-columns // lanes)), "rows": machine.registers // 4}

    def build(self, problem: Problem, match: Node, schedule: Schedule) -> Built:
        k = KernelBuilder(problem.name, problem.lanes, precision=problem.precision)
        call = KernelOperands(k, problem)
        matrix, given = (call.views[operand] for operand in match.operands)
        _Substitution(k, match, schedule, matrix, given, call.views[match]).write()
        return Built([call.stage(k.finish(schedule=schedule))])


@dataclass(frozen=True, slots=True)
class _Strip:
    """Some right-hand sides: the first elements of the matrix, of their given and of their solved values, in the order of substitution."""

    matrix: Address
    given: Address
    result: Address
    solved: Address
    count: int


class _Substitution:
    """Emits forward substitution; a backward one walks the matrix and the unknowns with negative strides."""

    def __init__(self, k: KernelBuilder, node: Node, schedule: Schedule, matrix: View, given: View, result: View) -> None:
        self.k, self.matrix, self.given, self.result = k, matrix, given, result
        self.lanes: int = schedule["lanes"]
        self.vectors: int = schedule["vectors"]
        self.rows: int = schedule["rows"]
        attrs = TriangularSolve.of(node)
        self.unit = attrs.unit_diagonal
        swapped = (attrs.transpose_a != "NO_TRANSPOSE") == attrs.left_side
        self.sign = 1 if attrs.lower != swapped else -1
        self.unknown, self.column = (-2, -1) if attrs.left_side else (-1, -2)
        self.down, self.along = (self.sign * matrix.strides[d] for d in ((-1, -2) if swapped else (-2, -1)))
        self.size, self.columns = result.shape[self.unknown], result.shape[self.column]

    def write(self) -> None:
        """Emit loops over batches and strips of right-hand sides."""
        k, step = self.k, self.lanes * self.vectors
        solved = k.scratch(self.result.dtype, (self.size, step)).origin
        begin = 0 if self.sign > 0 else self.size - 1
        with ExitStack() as stack:
            batch = [stack.enter_context(k.par(0, n)) for n in self.result.shape[:-2]]
            matrix = self._at(self.matrix, batch) + self.sign * (self.down + self.along) * begin
            given, result = (self._at(v, batch) + v.strides[self.unknown] * begin for v in (self.given, self.result))
            for first, count in stepped(k, self.columns, step):
                strip = _Strip(matrix, given + first * self.given.strides[self.column], result + first * self.result.strides[self.column],
                               solved, count)
                for i, rows in stepped(k, self.size, self.rows, False):
                    self._block(strip, i, rows)

    def _at(self, view: View, batch: Sequence[Index]) -> Address:
        """The first element of a matrix of a stack."""
        place = view.origin
        for i, stride in zip(batch, view.strides):
            place = place + i * stride
        return place

    def _block(self, strip: _Strip, first: Expr, rows: int) -> None:
        """Emit the substitution of ``rows`` unknowns from ``first`` on."""
        k, step, vectors = self.k, self.lanes * self.vectors, range(-(-strip.count // self.lanes))
        acc = [[k.reg(self.result.dtype, self._given(strip, first + r, v)) for v in vectors] for r in range(rows)]
        add_products(k, acc, first, lambda r, j: self._negative(strip, first + r, j),
                     lambda j, v: (strip.solved + (j * step + v * self.lanes)).load(self.lanes))
        found: list[list[Expr]] = []
        for r, row in enumerate(acc):
            values = [register.get() for register in row]
            for q, before in enumerate(found):
                left = self._negative(strip, first + r, first + q)
                values = [k.fma(left, x, value) for x, value in zip(before, values)]
            if not self.unit:
                pivot = (strip.matrix + (first + r) * (self.down + self.along)).load()
                values = [k.let(k.binary("div", value, pivot)) for value in values]
            found.append(values)
            for v, value in enumerate(values):
                (strip.solved + ((first + r) * step + v * self.lanes)).store(value)
                self._store(strip, first + r, v, value)

    def _negative(self, strip: _Strip, i: Index, j: Index) -> Expr:
        """An element of the matrix, negative."""
        return self.k.unary("neg", (strip.matrix + i * self.down + j * self.along).load())

    def _existing(self, strip: _Strip, vector: int) -> int:
        """The lanes of a vector that are right-hand sides."""
        return min(self.lanes, strip.count - vector * self.lanes)

    def _given(self, strip: _Strip, i: Index, vector: int) -> Expr:
        step, have = self.given.strides[self.column], self._existing(strip, vector)
        at = strip.given + i * (self.sign * self.given.strides[self.unknown]) + vector * self.lanes * step
        mask = self.k.first_lanes(have, self.lanes) if have < self.lanes else None
        return at.load(self.lanes, mask) if step == 1 or self.lanes == 1 else at.gather(self.lanes, step, mask)

    def _store(self, strip: _Strip, i: Index, vector: int, value: Expr) -> None:
        step, have = self.result.strides[self.column], self._existing(strip, vector)
        at = strip.result + i * (self.sign * self.result.strides[self.unknown]) + vector * self.lanes * step
        if step == 1:
            at.store(value, self.k.first_lanes(have, self.lanes) if have < self.lanes else None)
            return
        for lane in range(have):
            (at + lane * step).store(take(self.k, value, lane))


def add_products(k: KernelBuilder, acc: list[list[Reg | ComplexReg]], count: Expr, left: Callable[[int, Expr], Expr],
                 right: Callable[[Expr, int], Expr]) -> None:
    """Add ``left(row, j) * right(j, vector)`` for all ``j`` below ``count`` to each accumulator."""
    with k.loop(0, count) as j:
        vectors = [right(j, v) for v in range(len(acc[0]))]
        for r, row in enumerate(acc):
            factor = left(r, j)
            for register, vector in zip(row, vectors):
                register.set(k.fma(factor, vector, register.get()))


TEMPLATE = TriangularTemplate()
