"""Attention: the scores of a block of queries stay in the caches between the two products.

    par batch:                              K packed into panels, once
      for 16 queries:  scores = Q K         the register tile, then the pointwise work before the softmax
                       e = exp(scores - max), t = sum(e), row by row
                       O = e V / t          the register tile again, the pointwise work behind it
"""
from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from math import prod

from irscope.fusion.attention import RowSoftmax, softmax_of
from irscope.fusion.drafts import dims_of
from irscope.graph import Node
from irscope.graph.dtypes import F32
from irscope.graph.node import Index
from irscope.lower.build import KernelBuilder
from irscope.lower.schedule import ContractionSchedule, ProductSize, VectorMachine, choose_tile
from irscope.lower.storage import Storage
from irscope.lower.templates import Built, Problem, Template
from irscope.lower.templates.affine import Affine, Axis
from irscope.lower.templates.dots import packing
from irscope.lower.templates.epilogue import Epilogue
from irscope.lower.templates.nest import PACKERS, ContractionNest, Finish
from irscope.lower.templates.pack import Strip
from irscope.lower.tile import Expr, Schedule
from irscope.lower.view import Address
from irscope.ops.attributes import Dot
from irscope.ops.contraction import DotDims

IN_REGISTERS = 12
"""The most vectors of a row that the softmax keeps in registers, so that none is read twice."""


@dataclass(slots=True)
class ProductSide:
    """A product: its dot, the dimension numbers, and the Storage of both operands (None: the weights, in scratch memory of the kernel)."""

    dot: Node
    dims: DotDims
    left: Storage | None
    right: Storage


@dataclass(slots=True)
class AttentionWork:
    """Scores and values, and the softmax between."""

    scores: ProductSide
    values: ProductSide
    softmax: RowSoftmax
    batches: tuple[int, ...]
    rows: tuple[int, ...]
    keys: int


@dataclass(slots=True)
class Panel:
    """A panel of the keys of a batch: its address, and the sum axes with their strides there."""

    first: int
    count: int
    keys: Address
    sums: list[Axis]
    packed: bool


class AttentionTemplate(Template[AttentionWork]):
    """The attention template: see the module."""

    name = "attention"

    def match(self, problem: Problem) -> AttentionWork | None:
        """Groups that the policy fused, with results contiguous along the values; not under ``exact`` precision."""
        group = problem.group
        if group.kind != "attention" or problem.precision == "exact":
            return None
        first, rows, last = group.parts
        softmax = softmax_of(rows)
        if softmax is None or first.anchor is None or last.anchor is None:
            return None
        q, k = first.anchor.operands
        v = last.anchor.operands[1]
        if any(n not in problem.ins for n in (q, k, v)) or any(dims_of(o) != dims_of(last.anchor) for o in last.outputs):
            return None
        if any(problem.outs[o].strides[-1] != 1 for o in last.outputs) or not prod(dims_of(last.anchor)) or dims_of(last.anchor)[-1] == 1:
            return None
        shape, count = dims_of(first.anchor), len(Dot.of(first.anchor).lhs_batch_dims)
        return AttentionWork(ProductSide(first.anchor, DotDims.of(first.anchor), problem.ins[q], problem.ins[k]),
                    ProductSide(last.anchor, DotDims.of(last.anchor), None, problem.ins[v]), softmax,
                    shape[:count], shape[count:-1], shape[-1])

    def schedule(self, problem: Problem, match: AttentionWork) -> Schedule:
        machine, lanes = problem.machine, problem.lanes
        queries, depth = match.rows[-1], _depth(match)
        block = _block(queries, match.keys, machine)
        score = choose_tile(ProductSize(block, match.keys, depth), machine, lanes)
        value = choose_tile(ProductSize(block, dims_of(match.values.dot)[-1], match.keys), machine, lanes)
        return {"block": block, "score_rows": score[0], "score_vectors": score[1], "value_rows": value[0], "value_vectors": value[1]}

    def build(self, problem: Problem, match: AttentionWork, schedule: Schedule) -> Built:
        k = KernelBuilder(problem.name, lanes=problem.lanes, tuned=True, precision=problem.precision)
        writer = _Writer(k, problem, match, schedule)
        writer.write()
        flops = 2.0 * prod(match.batches) * prod(match.rows) * match.keys * (_depth(match) + dims_of(match.values.dot)[-1])
        return Built([writer.epilogue.call.stage(k.finish(flops=flops, schedule=schedule))])


class _Writer:
    """Emits the loops of one kernel."""

    def __init__(self, k: KernelBuilder, problem: Problem, work: AttentionWork, schedule: Schedule) -> None:
        self.k, self.work, self.schedule = k, work, schedule
        self.machine, self.lanes = problem.machine, problem.lanes
        self.rank = len(work.batches) + len(work.rows) + 1
        self.epilogue = Epilogue(k, problem, self.rank - 1)
        q, keys = work.scores.dot.operands
        self.q, self.keys, self.v = (self.epilogue.views[n] for n in (q, keys, work.values.dot.operands[1]))
        self.pitch = -(-work.keys // self.lanes) * self.lanes + self.lanes
        block = schedule["block"]
        self.scores = k.scratch(F32, (block, self.pitch)).origin
        self.totals = k.scratch(F32, (block,)).origin

    def write(self) -> None:
        """Emit loops over batches, other axes of queries, blocks of queries."""
        k, work = self.k, self.work
        q, keys, v = self.q, self.keys, self.v
        with ExitStack() as stack:
            index: list[Index] = []
            at_q, at_k, at_v = q.origin, keys.origin, v.origin
            for number, size in enumerate(work.batches):
                i = stack.enter_context(k.par(0, size))
                index.append(i)
                at_q = at_q + i * q.strides[work.scores.dims.lhs_batch[number]]
                at_k = at_k + i * keys.strides[work.scores.dims.rhs_batch[number]]
                at_v = at_v + i * v.strides[work.values.dims.rhs_batch[number]]
            panels = self._panels(at_k)
            for number, size in enumerate(work.rows[:-1]):
                i = stack.enter_context(k.loop(0, size))
                index.append(i)
                at_q = at_q + i * q.strides[work.scores.dims.lhs_free[number]]
            block, queries = self.schedule["block"], work.rows[-1]
            whole = queries // block * block
            step = q.strides[work.scores.dims.lhs_free[-1]]
            for first, count, rows in ((0, whole, block), (whole, queries - whole, queries - whole)):
                if count:
                    with k.loop(first, first + count, rows) as i:
                        self._block([*index, i], at_q + i * step, panels, at_v, rows)

    # ---- the two products

    def _panels(self, at: Address) -> list[Panel]:
        """The keys of a batch, split into panels and packed where that pays."""
        k, work, vectors = self.k, self.work, self.schedule["score_vectors"]
        column, sums = self._key_axes()
        pack = packing(Affine([Axis("row", work.rows[-1], 0, 0), column, *sums]), False, F32, self.machine)
        found: list[Panel] = []
        width = vectors * self.lanes
        for first in range(0, work.keys, width):
            count = min(width, work.keys - first)
            address, axes = at + first * column.rhs, sums
            if pack in PACKERS:
                address, axes = PACKERS[pack](k, Strip(address, sums, column, count, self.lanes))
            found.append(Panel(first, count, address, axes, pack in PACKERS))
        return found

    def _key_axes(self) -> tuple[Axis, list[Axis]]:
        """The key axis, as columns, and the sum axes of a score."""
        side, rank = self.work.scores, self.rank
        assert side.left is not None
        column = Axis("column", self.work.keys, 0, side.right.strides[side.dims.rhs_free[0]], rank - 1)
        sizes = dims_of(side.dot.operands[0])
        sums = [Axis("sum", sizes[a], side.left.strides[a], side.right.strides[b])
                for a, b in zip(side.dims.lhs_contracting, side.dims.rhs_contracting)]
        return column, sorted(sums, key=lambda axis: -abs(axis.lhs))

    def _block(self, index: list[Index], at_q: Address, panels: list[Panel], at_v: Address, rows: int) -> None:
        work, s = self.work, self.schedule
        side = work.scores
        assert side.left is not None
        row = Axis("row", rows, side.left.strides[side.dims.lhs_free[-1]], 0, self.rank - 2)
        for panel in panels:
            column = Axis("column", panel.count, 0, 1 if panel.packed else self._key_axes()[0].rhs, self.rank - 1)
            tile = ContractionSchedule(min(s["score_rows"], rows), -(-panel.count // self.lanes))
            ContractionNest(self.k, Affine([row, column, *panel.sums]), at_q, panel.keys, F32, self.lanes, self.rank, tile,
                 self._scored(index, panel.first), False, whole_columns=panel.packed).write()
        with self.k.loop(0, rows) as r:
            self._softmax(r)
        self._weigh(index, at_v, rows)

    def _scored(self, index: list[Index], first: int) -> Finish:
        """Returns the finish function for scores: applies the pointwise work before the softmax and stores to the block's memory."""
        k, softmax = self.k, self.work.softmax

        def finish(value: Expr, at: list[Index], mask: Expr | None) -> None:
            where = [*index[:-1], index[-1] + at[-2], self.epilogue.lanes(at[-1] + first, self.lanes)]
            self.epilogue.mask = mask
            self.epilogue.give(self.work.scores.dot, where, value)
            score = k.splat(self.epilogue.value(softmax.scores, where), self.lanes)
            if mask is not None:
                score = k.select(mask, score, k.const(float("-inf"), F32))
            (self.scores + (at[-2] * self.pitch + at[-1] + first)).store(score)

        return finish

    def _softmax(self, row: Index) -> None:
        """Replace a row of scores by exponentials, and store their sum."""
        k, lanes = self.k, self.lanes
        vectors = -(-self.work.keys // lanes)
        base, total = self.scores + row * self.pitch, self.totals + row
        if vectors <= IN_REGISTERS:
            values = [(base + v * lanes).load(lanes) for v in range(vectors)]
            top = k.let(k.reduce("max", _tree(k, "max", values)))
            powers = [k.unary("exp", k.binary("sub", value, top)) for value in values]
            for v, power in enumerate(powers):
                (base + v * lanes).store(power)
            total.store(k.reduce("add", _tree(k, "add", powers)))
            return
        chains = min(4, vectors)
        low = k.splat(k.const(float("-inf"), F32), lanes)
        highest = [k.reg(F32, low) for _ in range(chains)]
        self._sweep(vectors, chains, lambda at, c: highest[c].set(k.binary("max", highest[c].get(), (base + at).load(lanes))))
        top = k.let(k.reduce("max", _tree(k, "max", [h.get() for h in highest])))
        sums = [k.reg(F32, k.splat(k.const(0, F32), lanes)) for _ in range(chains)]

        def exponential(at: Expr, c: int) -> None:
            e = k.unary("exp", k.binary("sub", (base + at).load(lanes), top))
            (base + at).store(e)
            sums[c].set(k.binary("add", sums[c].get(), e))

        self._sweep(vectors, chains, exponential)
        total.store(k.reduce("add", _tree(k, "add", [s.get() for s in sums])))

    def _sweep(self, vectors: int, chains: int, work: Callable[[Expr, int], None]) -> None:
        """Emit ``work(element, chain)`` for every vector of a row, several chains at a time."""
        k, lanes = self.k, self.lanes
        whole = vectors // chains * chains
        with k.loop(0, whole * lanes, chains * lanes) as i:
            for c in range(chains):
                work(i + c * lanes, c)
        for v in range(whole, vectors):
            work(k.index(v * lanes), v - whole)

    def _weigh(self, index: list[Index], at_v: Address, rows: int) -> None:
        """Emit the second product over a block of exponentials; each result is divided by the sum of its row."""
        k, work, s = self.k, self.work, self.schedule
        side = work.values
        row = Axis("row", rows, self.pitch, 0, self.rank - 2)
        column = Axis("column", dims_of(side.dot)[-1], 0, side.right.strides[side.dims.rhs_free[0]], self.rank - 1)
        sums = Axis("sum", work.keys, 1, side.right.strides[side.dims.rhs_contracting[0]])
        affine = Affine([row, column, sums])
        tile = ContractionSchedule(min(s["value_rows"], rows), s["value_vectors"], pack="none" if column.rhs == 1 else "gather")

        def finish(value: Expr, at: list[Index], mask: Expr | None) -> None:
            where = [*index[:-1], index[-1] + at[-2], at[-1]]
            result = k.binary("div", value, (self.totals + at[-2]).load())
            if work.softmax.empty is not None:
                empty = self.epilogue.value(work.softmax.empty, [*where[:-1], k.index(0)])
                result = k.select(empty, k.splat(k.const(0, F32), self.lanes), result)
            self.epilogue(result, where, mask)

        ContractionNest(k, affine, self.scores, at_v, F32, self.lanes, self.rank, tile, finish, False).write()


def _tree(k: KernelBuilder, operation: str, values: list[Expr]) -> Expr:
    while len(values) > 1:
        values = [k.binary(operation, a, b) for a, b in zip(values[::2], values[1::2])] + values[len(values) // 2 * 2:]
    return values[0]


def _depth(work: AttentionWork) -> int:
    return prod(dims_of(work.scores.dot.operands[0])[d] for d in work.scores.dims.lhs_contracting)


def _block(queries: int, keys: int, machine: VectorMachine) -> int:
    """The number of queries whose scores fit in the first cache, a divisor of all queries where there is one."""
    most = max(8, min(64, machine.l1 // (4 * keys)))
    fair = [n for n in range(8, most + 1, 2) if queries % n == 0]
    return min(queries, fair[-1] if fair else most // 8 * 8)


TEMPLATE = AttentionTemplate()
