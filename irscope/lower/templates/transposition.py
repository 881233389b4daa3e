"""Pointwise work that reads some of its inputs transposed: squares of vectors are loaded along their rows and transposed in registers.

    x: f32[1024,768]  ->  transpose  ->  add y: f32[768,1024]

Sixteen contiguous vectors of x are loaded, transposed by four rounds of shuffles, and then belong to sixteen rows of the result.
"""
from __future__ import annotations

from contextlib import ExitStack

from irscope.graph.node import Index, Value
from irscope.lower.build import KernelBuilder
from irscope.lower.emission import Emission, Values
from irscope.lower.points import Point, PointTrace, trace
from irscope.lower.templates import Built, Problem, Template
from irscope.lower.templates.pack import transposed
from irscope.lower.tile import Expr, Schedule
from irscope.lower.values import tensor_of

SMALLEST = 4
"""Squares of fewer lanes gain nothing over single elements."""


class TranspositionTemplate(Template[tuple[PointTrace, int]]):
    """Maps with loads that are contiguous along another axis than the results."""

    def match(self, problem: Problem) -> tuple[PointTrace, int] | None:
        """The trace, and the axis along which the transposed inputs are contiguous."""
        if problem.group.kind != "map" or problem.in_place:
            return None
        found = trace(problem)
        if found is None or len(found.space) < 2 or any(walk.strides[-1] != 1 for _, _, walk in found.outputs):
            return None
        axes = {_along(p) for p in found.points if _is_across(p)}
        axis = next(iter(axes), None)
        if len(axes) != 1 or axis is None or min(found.space[-1], found.space[axis]) < SMALLEST:
            return None
        return found, axis

    def schedule(self, problem: Problem, match: tuple[PointTrace, int]) -> Schedule:
        found, axis = match
        lanes = problem.lanes
        while lanes > min(found.space[-1], found.space[axis]):
            lanes //= 2
        return {"lanes": lanes}

    def build(self, problem: Problem, match: tuple[PointTrace, int], schedule: Schedule) -> Built:
        k = KernelBuilder(problem.name, problem.lanes, precision=problem.precision)
        squares = _Squares(k, problem, *match, schedule["lanes"])
        squares.write()
        return Built([squares.e.call.stage(k.finish(schedule=schedule))])


def _is_across(point: Point) -> bool:
    """Whether a load is strided from lane to lane."""
    return point.kind == "load" and point.walk.strides[-1] not in (0, 1) and not tensor_of(point.node).dtype.is_complex


def _along(point: Point) -> int | None:
    """The axis along which a load's elements are contiguous."""
    return next((d for d, s in enumerate(point.walk.strides) if s == 1 and point.walk.shape[d] > 1), None)


class _Squares:
    def __init__(self, k: KernelBuilder, problem: Problem, match: PointTrace, axis: int, lanes: int) -> None:
        self.k = k
        self.match = match
        self.axis = axis
        self.lanes = lanes
        self.last = len(match.space) - 1
        self.e = Emission(k, problem, match, lanes, self.last)
        self.across = [p for p in match.points if _is_across(p)]
        self.rest = [p for p in match.points if p not in self.across]

    def write(self) -> None:
        """Emit loops over squares; those at the end of an axis overlap the ones before."""
        k, space = self.k, self.match.space
        values: Values = {}
        self.e.emit([p for p in self.rest if p.level == 0], [0] * len(space), values, lanes=1, keep=True)
        self.e.starts(values)
        with ExitStack() as loops:
            index: list[Index] = [0] * len(space)
            for d in range(self.last):
                if d != self.axis:
                    index[d] = loops.enter_context(k.par(0, space[d]))
            count, width = -(-space[self.axis] // self.lanes), -(-space[-1] // self.lanes)
            a = loops.enter_context(k.par(0, count))
            b = loops.enter_context(k.loop(0, width))
            index[self.axis] = self._begin(a, space[self.axis])
            index[-1] = self._begin(b, space[-1])
            self._square(index, values)

    def _begin(self, number: Value, size: int) -> Value:
        """Where a square begins along an axis."""
        begin = number * self.lanes
        return begin if size % self.lanes == 0 else self.k.binary("min", self.k.as_index(begin), self.k.index(size - self.lanes))

    def _square(self, index: list[Index], values: Values) -> None:
        k = self.k
        turned: dict[Point, list[Expr]] = {}
        for point in self.across:
            at, step = self.e.address(point.node, point.walk, index), point.walk.strides[-1]
            lines = [(at + row * step).load(self.lanes) for row in range(self.lanes)]
            turned[point] = transposed(k, lines)
        for row in range(self.lanes):
            here = list(index)
            here[self.axis] = index[self.axis] + row
            inner = values | {point: lines[row] for point, lines in turned.items()}
            self.e.emit(self.rest, here, inner)
            self.e.store_all(self.match.outputs, here, inner, None, self.lanes)


TEMPLATE = TranspositionTemplate()
