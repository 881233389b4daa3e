"""The loops of attention.

    par batch, par 512 queries:
      for 512 keys:                           packed into panels
        for 16 queries:  scores = Q K         the register tile, then the pointwise work before the softmax
                         e = exp(scores - m)  row by row; m is the maximum so far
                         o = o * c + e V      the register tile again; c = exp(the maximum before - m), and t = t * c + sum(e)
      o / t                                   and the pointwise work after it

With one block of keys, ``o`` stays in registers, and ``m`` is the maximum.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from math import inf, prod

from irscope.fusion.attention import RowSoftmax, Weighing
from irscope.fusion.drafts import dims_of
from irscope.graph import Node
from irscope.graph.dtypes import F32, PRED
from irscope.graph.node import Index
from irscope.lower.build import KernelBuilder
from irscope.lower.schedule import ContractionSchedule
from irscope.lower.storage import Storage
from irscope.lower.templates import Problem
from irscope.lower.templates.affine import Affine, Axis
from irscope.lower.templates.dots import packing
from irscope.lower.templates.epilogue import Epilogue
from irscope.lower.templates.masking import Mask
from irscope.lower.templates.nest import PACKERS, ContractionNest
from irscope.lower.templates.pack import Strip, in_panel
from irscope.lower.templates.score_rows import ScoreRows
from irscope.lower.templates.shares import stepped, vectors
from irscope.lower.tile import Expr, Schedule
from irscope.lower.view import Address
from irscope.ops.contraction import DotDims

VALUES_AT_ONCE = 4
"""Vectors of values that are examined at once: independent sums."""
NO_WEIGHT = 104.0
"""The exponential of minus this number is 0 in f32, denormals included."""
Box = list[tuple[Index, Index]]
"""The first and the last index along each dimension."""


@dataclass(slots=True)
class ProductSide:
    """A product: its dot, the dimension numbers, and the Storage of both operands (None: the weights, in scratch memory of the kernel)."""

    dot: Node
    dims: DotDims
    left: Storage | None
    right: Storage


@dataclass(slots=True)
class AttentionWork:
    """Scores and values, and the softmax between.

    ``axis`` is the dimension of the results that walks the values of a key. ``mask`` excludes blocks of scores.
    The dimension numbers of the values have the weights on the left, whatever the order of their dot's operands.
    """

    scores: ProductSide
    values: ProductSide
    softmax: RowSoftmax
    axis: int
    batches: tuple[int, ...]
    rows: tuple[int, ...]
    keys: int
    mask: Mask | None = None

    @property
    def width(self) -> int:
        """The number of values of a key."""
        return dims_of(self.values.dot)[self.axis]


@dataclass(frozen=True, slots=True)
class Queries:
    """``rows`` queries. Of the first one: ``index`` in the scores, without the key; ``address``; ``number`` among those that keep a sum."""

    index: tuple[Index, ...]
    address: Address
    number: Expr
    rows: int = 0


@dataclass(frozen=True, slots=True)
class KeyBlock:
    """``count`` keys from ``first`` on: the address of the first, and of its values."""

    first: Index
    count: int
    keys: Address
    values: Address


@dataclass(frozen=True, slots=True)
class Panels:
    """Panels of equal width: ``count`` keys from number ``first`` of the block on, ``vectors`` in each panel, at the address ``keys``."""

    first: int
    count: int
    vectors: int
    keys: Address


class AttentionNest:
    """Emits the loops of one kernel."""

    def __init__(self, k: KernelBuilder, problem: Problem, work: AttentionWork, schedule: Schedule) -> None:
        self.k, self.work, self.schedule, self.lanes = k, work, schedule, problem.lanes
        self.rank = len(work.batches) + len(work.rows) + 1
        self.epilogue = Epilogue(k, problem, work.axis)
        self.keys, self.queries, axes = schedule["keys"], schedule["queries"], schedule["axes"]
        self.streaming = self.keys < work.keys
        self.outer, self.inner = work.rows[:-axes], work.rows[-axes:-1]
        self.column, self.sums = self._key_axes()
        self.pack = packing(Affine([Axis("row", work.rows[-1], 0, 0), self.column, *self.sums]), False, F32, problem.machine)
        self.values = work.width

        block, lanes, kept = schedule["block"], self.lanes, prod(self.inner) * self.queries
        self.pitch = _up(self.keys, lanes) + lanes
        self.scores = k.scratch(F32, (block, self.pitch)).origin
        self.rows = ScoreRows(k, self.scores, self.pitch, lanes)
        self.totals = k.scratch(F32, (kept if self.streaming else block,)).origin
        self.packed = k.scratch(F32, (prod(a.size for a in self.sums), _up(self.keys, lanes))).origin if self.pack in PACKERS else None
        if self.streaming:
            self.result_pitch = _up(self.values, lanes)
            self.highest = k.scratch(F32, (kept,)).origin
            self.results = k.scratch(F32, (kept, self.result_pitch)).origin
            self.scales = k.scratch(F32, (block,)).origin

    def write(self) -> None:
        """Emit loops over batches, other axes of queries, and the queries that walk the keys together."""
        k, work = self.k, self.work
        scores, values = work.scores.dims, work.values.dims
        weighing = Weighing.of(work.values.dot, work.softmax.weights)
        q, keys, v = (self.epilogue.views[n] for n in (*work.scores.dot.operands, weighing.values))
        with ExitStack() as stack:
            index: list[Index] = []
            at_q, at_k, at_v = q.origin, keys.origin, v.origin
            for number, size in enumerate(work.batches):
                i = stack.enter_context(k.par(0, size))
                index.append(i)
                at_q = at_q + i * q.strides[scores.lhs_batch[number]]
                at_k = at_k + i * keys.strides[scores.rhs_batch[number]]
                at_v = at_v + i * v.strides[values.rhs_batch[number]]
            for number, size in enumerate(self.outer):
                i = stack.enter_context(k.par(0, size))
                index.append(i)
                at_q = at_q + i * q.strides[scores.lhs_free[number]]
            start = stack.enter_context(k.par(0, work.rows[-1], self.queries))
            self._walk(Queries(tuple(index), at_q, k.index(0)), start, KeyBlock(0, work.keys, at_k, at_v))

    def _walk(self, at: Queries, start: Expr, every: KeyBlock) -> None:
        """Emit the queries from ``start`` on over all keys."""
        if not self.streaming:
            panels = self._panels(every)
            for queries in self._blocks(at, start):
                self._scores(queries, every, panels)
                with self.k.loop(0, queries.rows) as r:
                    (self.totals + r).store(self.rows.exponentials(r, every.count, lambda top: top))
                self._weigh(queries, every)
            return
        self._begin()
        along = self.work.values.dims.rhs_contracting[0]
        for first, count in stepped(self.k, self.work.keys, self.keys, False):
            block = KeyBlock(first, count, every.keys + first * self.column.rhs,
                             every.values + first * self.work.values.right.strides[along])
            self._add(at, start, block)
        for queries in self._blocks(at, start):
            self._finish(queries)

    def _add(self, at: Queries, start: Expr, block: KeyBlock) -> None:
        """Emit a block of keys: all queries that see one of them."""
        k, mask = self.k, self.work.mask
        skips = self._skips(block)
        with ExitStack() as stack:
            if mask is not None and mask.fill == -inf:
                every = [*((i, i) for i in at.index), *((0, size - 1) for size in self.inner), (start, start + (self.queries - 1))]
                stack.enter_context(self._unless(skips(every, None)))
            panels = self._panels(block)
            for queries in self._blocks(at, start):
                *others, i = queries.index
                with self._unless(skips([*((j, j) for j in others), (i, i + (queries.rows - 1))], queries)):
                    self._scores(queries, block, panels)
                    with k.loop(0, queries.rows) as r:
                        self._rescale(r, queries.number + r, block.count)
                    self._weigh(queries, block)

    def _skips(self, block: KeyBlock) -> Callable[[Box, Queries | None], Expr]:
        """A function that tells whether a block of keys adds nothing to the results of a box of queries. Given these queries, it also
        examines their maxima.

        Weights of 0 add nothing, unless a value is infinite or NaN. A finite score has a weight of 0 where the maximum is far above it.
        """
        k, mask = self.k, self.work.mask
        if mask is None:
            return lambda box, queries: k.pred(False)
        finite = self._is_finite(block)

        def skips(box: Box, queries: Queries | None) -> Expr:
            excluded = k.binary("and", mask.excludes(k, [*box, (block.first, block.first + (block.count - 1))]), finite)
            if mask.fill == -inf or queries is None:
                return excluded
            found = k.reg(PRED, k.pred(False))
            with k.when(excluded):
                lowest = k.reg(F32, k.const(inf, F32))
                with k.loop(0, queries.rows) as r:
                    lowest.set(k.binary("min", lowest.get(), (self.highest + (queries.number + r)).load()))
                found.set(k.compare("GT", k.binary("sub", lowest.get(), k.const(mask.fill, F32)), k.const(NO_WEIGHT, F32)))
            return k.let(found.get())

        return skips

    def _unless(self, skipped: Expr) -> AbstractContextManager[None]:
        return self.k.when(self.k.unary("not", skipped))

    def _is_finite(self, block: KeyBlock) -> Expr:
        """Whether no value of a block of keys is infinite or not a number: their products with 0 add up to 0."""
        k, lanes, right, dims = self.k, self.lanes, self.work.values.right, self.work.values.dims
        along, across = right.strides[dims.rhs_contracting[0]], right.strides[dims.rhs_free[0]]
        zero = k.splat(k.const(0, F32), lanes)
        total = k.reg(F32, zero)
        for j, count in stepped(k, self.values, VALUES_AT_ONCE * lanes, False):
            sums = [k.reg(F32, zero) for _ in range(_up(count, lanes) // lanes)]
            with k.loop(0, block.count) as i:
                for v, one in enumerate(sums):
                    mask = k.first_lanes(count - v * lanes, lanes) if count < (v + 1) * lanes else None
                    at = block.values + i * along + (j + v * lanes) * across
                    value = at.load(lanes, mask) if across == 1 else at.gather(lanes, across, mask)
                    one.set(k.fma(value, zero, one.get()))
            for one in sums:
                total.set(k.binary("add", total.get(), one.get()))
        return k.let(k.compare("EQ", k.reduce("add", total.get()), k.const(0, F32)))

    def _blocks(self, at: Queries, start: Expr) -> Iterator[Queries]:
        """The queries that walk the keys together, block by block; the loops are open while each is emitted."""
        k, block, every = self.k, self.schedule["block"], self.work.rows[-1]
        q, free = self.epilogue.views[self.work.scores.dot.operands[0]], self.work.scores.dims.lhs_free
        whole = every // block * block
        last = (every - 1) // self.queries * self.queries
        with ExitStack() as stack:
            number, address, index = at.number, at.address, list(at.index)
            for axis, size in enumerate(self.inner, len(self.outer)):
                i = stack.enter_context(k.loop(0, size))
                number, address = number * size + i, address + i * q.strides[free[axis]]
                index.append(i)

            def queries(i: Expr, begin: Index, rows: int) -> Queries:
                return Queries((*index, i), address + i * q.strides[free[-1]], number * self.queries + begin, rows)

            with k.loop(0, min(self.queries, whole), block) as begin:
                i = start + begin
                with self._where("LT", i, whole, last + self.queries > whole):
                    yield queries(i, begin, block)
            if every > whole:
                with self._where("EQ", start, last, last > 0):
                    yield queries(k.index(whole), whole - last, every - whole)

    def _where(self, direction: str, x: Expr, y: int, matters: bool) -> AbstractContextManager[None]:
        """A condition, where it does not always hold."""
        return self.k.when(self.k.compare(direction, x, self.k.index(y))) if matters else nullcontext()

    # ---- scores

    def _key_axes(self) -> tuple[Axis, list[Axis]]:
        """The key axis, as columns, and the sum axes of a score."""
        side = self.work.scores
        assert side.left is not None
        column = Axis("column", self.work.keys, 0, side.right.strides[side.dims.rhs_free[0]], self.rank - 1)
        sizes = dims_of(side.dot.operands[0])
        sums = [Axis("sum", sizes[a], side.left.strides[a], side.right.strides[b])
                for a, b in zip(side.dims.lhs_contracting, side.dims.rhs_contracting)]
        return column, sorted(sums, key=lambda axis: -abs(axis.rhs))

    def _panels(self, block: KeyBlock) -> list[Panels]:
        """Split a block of keys into panels, which are packed where that pays: whole ones, and the remainder."""
        found: list[Panels] = []
        begin = 0
        width = min(self.schedule["score_vectors"] * self.lanes, block.count)
        for count, step in ((block.count // width * width, width), (block.count % width, block.count % width)):
            if count:
                keys = block.keys + begin * self.column.rhs
                found.append(self._packed(Panels(begin, count, _up(step, self.lanes) // self.lanes, keys), step))
                begin += count
        return found

    def _packed(self, panels: Panels, step: int) -> Panels:
        """Pack panels of ``step`` keys each, where that pays."""
        if self.packed is None:
            return panels
        depth = prod(a.size for a in self.sums)
        room = self.packed + panels.first * depth
        with self.k.loop(0, panels.count, step) as i:
            PACKERS[self.pack](self.k, Strip(panels.keys + i * self.column.rhs, self.sums, self.column, step, self.lanes, room + i * depth))
        return replace(panels, keys=room)

    def _scores(self, queries: Queries, block: KeyBlock, panels: list[Panels]) -> None:
        """Emit the first product, the pointwise work before the softmax, and the stores to the memory of the scores."""
        k, side, softmax = self.k, self.work.scores, self.work.softmax
        assert side.left is not None
        row = Axis("row", queries.rows, side.left.strides[side.dims.lhs_free[-1]], 0, self.rank - 2)
        for part in panels:
            column = replace(self.column, size=part.count)
            sums = self.sums if self.packed is None else in_panel(self.sums, part.vectors * self.lanes)
            tile = ContractionSchedule(min(self.schedule["score_rows"], queries.rows), part.vectors,
                                       pack="none" if self.packed is None else "load")

            def finish(value: Expr, at: list[Index], mask: Expr | None, begin: int = part.first) -> None:
                place = at[-1] + begin
                where = [*queries.index[:-1], queries.index[-1] + at[-2], self.epilogue.lanes(block.first + place, self.lanes)]
                self.epilogue.mask = mask
                self.epilogue.give(side.dot, where, value)
                score = k.splat(self.epilogue.value(softmax.scores, where), self.lanes)
                if mask is not None:
                    score = k.select(mask, score, k.const(-inf, F32))
                (self.scores + (at[-2] * self.pitch + place)).store(score)

            ContractionNest(k, Affine([row, column, *sums]), queries.address, part.keys, F32, self.lanes, self.rank, finish, tile,
                            False).write()

    # ---- the softmax

    def _begin(self) -> None:
        """Initialise the maxima to -inf, and the sums and the results to 0."""
        k, lanes = self.k, self.lanes
        with k.loop(0, prod(self.inner) * self.queries) as i:
            (self.highest + i).store(k.const(-inf, F32))
            (self.totals + i).store(k.const(0, F32))
            with k.loop(0, self.result_pitch, lanes) as j:
                (self.results + (i * self.result_pitch + j)).store(k.splat(k.const(0, F32), lanes))

    def _rescale(self, row: Index, number: Expr, count: int) -> None:
        """Replace a row of scores by exponentials, and update the row's maximum and sum.

        While all scores of a row are -inf, 0 is subtracted: the exponentials are then 0, and -inf - -inf would not be a number.
        """
        k, highest, total = self.k, self.highest + number, self.totals + number
        before = highest.load()

        def shift(top: Expr) -> Expr:
            now = k.let(self.rows.larger(top, before))
            by = k.let(k.select(k.compare("EQ", now, k.const(-inf, F32)), k.const(0, F32), now))
            highest.store(now)
            (self.scales + row).store(k.unary("exp", k.binary("sub", before, by)))
            return by

        added = self.rows.exponentials(row, count, shift)
        total.store(k.fma(total.load(), (self.scales + row).load(), added))

    # ---- results

    def _weigh(self, queries: Queries, block: KeyBlock) -> None:
        """Emit the second product, of a block of exponentials and the values of its keys."""
        k, s, side = self.k, self.schedule, self.work.values
        row = Axis("row", queries.rows, self.pitch, 0, self.rank - 2)
        column = Axis("column", self.values, 0, side.right.strides[side.dims.rhs_free[0]], self.rank - 1)
        sums = Axis("sum", block.count, 1, side.right.strides[side.dims.rhs_contracting[0]])
        tile = ContractionSchedule(min(s["value_rows"], queries.rows), s["value_vectors"], pack="none" if column.rhs == 1 else "gather")

        def add(value: Expr, at: list[Index], mask: Expr | None) -> None:
            place = self.results + ((queries.number + at[-2]) * self.result_pitch + at[-1])
            place.store(k.fma(place.load(self.lanes), (self.scales + at[-2]).load(), value))

        def finish(value: Expr, at: list[Index], mask: Expr | None) -> None:
            self._result(value, (self.totals + at[-2]).load(), [*queries.index[:-1], queries.index[-1] + at[-2], at[-1]], mask)

        ContractionNest(k, Affine([row, column, sums]), self.scores, block.values, F32, self.lanes, self.rank,
                        add if self.streaming else finish, tile, False).write()

    def _finish(self, queries: Queries) -> None:
        """Emit the results of a block of queries, once all keys are summed."""
        k, lanes = self.k, self.lanes
        with k.loop(0, queries.rows) as r:
            number = queries.number + r
            total = (self.totals + number).load()
            for j, mask in vectors(k, self.values, lanes, False):
                value = (self.results + (number * self.result_pitch + j)).load(lanes)
                self._result(value, total, [*queries.index[:-1], queries.index[-1] + r, j], mask)

    def _result(self, value: Expr, total: Expr, where: list[Index], mask: Expr | None) -> None:
        """Divide a vector of a result by the sum of its row, and pass it to the epilogue."""
        k, empty = self.k, self.work.softmax.empty
        result = k.binary("div", value, total)
        if empty is not None:
            none = self.epilogue.value(empty, [*where[:-1], k.index(0)])
            result = k.select(none, k.splat(k.const(0, F32), self.lanes), result)
        axis = self.work.axis
        self.epilogue(result, [*where[:axis], where[-1], *where[axis:-1]], mask)


def _up(size: int, unit: int) -> int:
    """The next multiple of ``unit``."""
    return -(-size // unit) * unit
