"""Cholesky factors: blocks of rows of the upper factor U, with U^H U = a, in vectors along the rows.

    for 8 rows:
      the vector that holds the diagonal:  acc = a - products with the rows above; one row after the other, with its pivot
      for vectors after it:                acc = a - products with the rows above, then solved with the rows of the block
"""
from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from math import nan, prod

from irscope.fusion.drafts import dims_of
from irscope.graph import Node
from irscope.graph.dtypes import F32, F64, PRED
from irscope.graph.node import Index
from irscope.lower.build import KernelBuilder
from irscope.lower.call import KernelOperands
from irscope.lower.emission import take
from irscope.lower.templates import Built, Problem, Template
from irscope.lower.templates.shares import stepped
from irscope.lower.templates.triangular import add_products
from irscope.lower.tile import Expr, Schedule
from irscope.lower.values import tensor_of
from irscope.lower.view import Address, View
from irscope.ops import hlo
from irscope.ops.attributes import Cholesky

FEWEST_ROWS = 16
"""Smaller matrices are no slower element by element."""


class CholeskyTemplate(Template[Node]):
    """``cholesky`` of real matrices; not under ``exact`` precision, since products are subtracted with one rounding."""

    def match(self, problem: Problem) -> Node | None:
        node = problem.group.anchor
        if node is None or node.op is not hlo.cholesky or len(problem.group.nodes) > 1 or problem.in_place:
            return None
        fits = prod(dims_of(node)) and dims_of(node)[-1] >= FEWEST_ROWS
        return node if fits and tensor_of(node).dtype in (F32, F64) and problem.precision != "exact" else None

    def schedule(self, problem: Problem, match: Node) -> Schedule:
        machine = problem.machine
        lanes = machine.lanes(tensor_of(match).dtype)
        return {"lanes": lanes, "vectors": 2, "rows": min(lanes, machine.registers // 4)}

    def build(self, problem: Problem, match: Node, schedule: Schedule) -> Built:
        k = KernelBuilder(problem.name, problem.lanes, precision=problem.precision)
        call = KernelOperands(k, problem)
        _Factor(k, schedule, call.views[match.operands[0]], call.views[match], Cholesky.of(match).lower).write()
        return Built([call.stage(k.finish(schedule=schedule))])


class _Factor:
    def __init__(self, k: KernelBuilder, schedule: Schedule, matrix: View, result: View, lower: bool) -> None:
        self.k, self.matrix, self.result, self.lower = k, matrix, result, lower
        self.lanes: int = schedule["lanes"]
        self.vectors: int = schedule["vectors"]
        self.rows: int = schedule["rows"]
        self.dtype, self.size = result.dtype, result.shape[-1]
        self.pitch = -(-self.size // self.lanes) * self.lanes + self.lanes * self.vectors
        self.upper = k.scratch(self.dtype, (self.size, self.pitch)).origin

    def write(self) -> None:
        """Emit loops over the matrices, and over blocks of rows."""
        k = self.k
        with ExitStack() as stack:
            batch = [stack.enter_context(k.par(0, n)) for n in self.result.shape[:-2]]
            self._read(batch)
            failed = k.reg(PRED, k.pred(False))
            for first, rows in stepped(k, self.size, self.rows, False):
                failed.set(k.binary("or", failed.get(), self._diagonal(first, rows)))
                with k.loop(first + self.lanes, self.size, self.lanes * self.vectors) as i:
                    self._behind(first, rows, i)
            self._store(batch, k.let(failed.get()))

    def _at(self, i: Index, j: Index) -> Address:
        """An element of U, or the vector from there on."""
        place: Address = self.upper + i * self.pitch + j
        return place

    def _read(self, batch: Sequence[Index]) -> None:
        """Copy the named triangle of a matrix, as an upper one; zeros elsewhere."""
        k = self.k
        with k.loop(0, self.size) as i:
            with k.loop(0, self.pitch, self.lanes) as j:
                self._at(i, j).store(k.splat(k.const(0, self.dtype), self.lanes))
            with k.loop(i, self.size) as j:
                self._at(i, j).store(self.matrix.load([*batch, j, i] if self.lower else [*batch, i, j]))

    def _reduced(self, first: Expr, rows: int, column: Expr, vectors: int) -> list[list[Expr]]:
        """Rows of the matrix less the products with the rows of U above the block."""
        k, lanes = self.k, self.lanes
        acc = [[k.reg(self.dtype, self._at(first + r, column + v * lanes).load(lanes)) for v in range(vectors)] for r in range(rows)]
        add_products(k, acc, first, lambda r, j: k.unary("neg", self._at(j, first + r).load()),
                     lambda j, v: self._at(j, column + v * lanes).load(lanes))
        return [[register.get() for register in row] for row in acc]

    def _diagonal(self, first: Expr, rows: int) -> Expr:
        """Emit the vector of each row that holds the diagonal; returns whether a pivot is not positive."""
        k = self.k
        failed = k.pred(False)
        found: list[Expr] = []
        for r, (value,) in enumerate(self._reduced(first, rows, first, 1)):
            for before in found:
                value = k.fma(k.unary("neg", take(k, before, r)), before, value)
            pivot = k.let(take(k, value, r))
            failed = k.binary("or", failed, k.unary("not", k.compare("GT", pivot, k.const(0, self.dtype))))
            found.append(k.let(k.binary("div", value, k.unary("sqrt", pivot))))
        for r, value in enumerate(found):
            self._at(first + r, first).store(value)
        return k.let(failed)

    def _behind(self, first: Expr, rows: int, column: Expr) -> None:
        """Emit the vectors of each row from ``column`` on."""
        k, lanes = self.k, self.lanes
        found: list[list[Expr]] = []
        for r, values in enumerate(self._reduced(first, rows, column, self.vectors)):
            for q, before in enumerate(found):
                factor = k.unary("neg", self._at(first + q, first + r).load())
                values = [k.fma(factor, x, value) for x, value in zip(before, values)]
            pivot = self._at(first + r, first + r).load()
            found.append([k.let(k.binary("div", value, pivot)) for value in values])
        for r, values in enumerate(found):
            for v, value in enumerate(values):
                self._at(first + r, column + v * lanes).store(value)

    def _store(self, batch: Sequence[Index], failed: Expr) -> None:
        """Store the factor, and zeros in the other triangle; NaN where a pivot was not positive."""
        k = self.k

        def store(i: Index, j: Index, value: Expr) -> None:
            self.result.store([*batch, j, i] if self.lower else [*batch, i, j], k.select(failed, k.const(nan, self.dtype), value))

        with k.loop(0, self.size) as i:
            with k.loop(0, i) as j:
                store(i, j, k.const(0, self.dtype))
            with k.loop(i, self.size) as j:
                store(i, j, self._at(i, j).load())


TEMPLATE = CholeskyTemplate()
