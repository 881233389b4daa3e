"""Emits the points of a trace into a kernel: addresses, vectors along one axis, and the values hoisted out of the inner loops."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from irscope.fusion.drafts import dims_of
from irscope.fusion.views import Strides
from irscope.graph import Node
from irscope.graph.dtypes import S32, S64
from irscope.graph.node import Index, Value
from irscope.lower.build import KernelBuilder
from irscope.lower.call import KernelOperands
from irscope.lower.points import Output, Point, PointTrace
from irscope.lower.templates import Problem
from irscope.lower.tile import Expr
from irscope.lower.values import scalar_value, tensor_of
from irscope.lower.view import Address
from irscope.ops.nests import clamped

Values = dict[Point, Any]


class Emission:
    """A kernel being emitted from a trace. ``axis`` is the vector axis (-1: none), ``lanes`` the vector width."""

    def __init__(self, k: KernelBuilder, problem: Problem, trace: PointTrace, lanes: int, axis: int) -> None:
        self.k = k
        self.trace = trace
        self.lanes = lanes
        self.axis = axis
        self.stream = problem.stream
        self.call = KernelOperands(k, problem)
        self._places: dict[Point, Expr] = {}

    # ---- points

    def emit(self, points: Iterable[Point], index: Sequence[Index], values: Values, mask: Expr | None = None, lanes: int = 0,
             keep: bool = False) -> None:
        """Compute points at an index (one value per axis; on the vector axis, the first lane's).

        ``keep`` names the results here, so that inner loops reuse them.
        """
        for point in points:
            if point in values:
                continue
            value = self._value(point, index, values, mask, lanes or self.lanes)
            values[point] = self.k.let(value) if keep and point.kind == "scalar" and not value.dtype.is_complex else value

    @contextmanager
    def nest(self, axes: int, points: Sequence[Point], values: Values) -> Iterator[list[Index]]:
        """Open loops over the first ``axes`` axes; yields the index in these loops. Each point is computed in the loop of its level,
        outside the loops that do not change it."""
        index: list[Index] = []
        with ExitStack() as loops:
            for level in range(axes + 1):
                if level:
                    index.append(loops.enter_context(self.k.par(0, self.trace.space[level - 1])))
                here = [*index, *([0] * (len(self.trace.space) - level))]
                self.emit([p for p in points if p.level == level], here, values, lanes=1, keep=True)
                if not level:
                    self.starts(values)
            yield index

    def _value(self, point: Point, index: Sequence[Index], values: Values, mask: Expr | None, lanes: int) -> Any:
        k, node = self.k, point.node
        match point.kind:
            case "constant":
                return k.const(scalar_value(node), tensor_of(node).dtype)
            case "load":
                return self.load(node, point.walk, index, mask, lanes)
            case "count":
                return self._count(point, index, lanes)
            case "part":
                extra = self._places.get(point)
                if extra is None:
                    extra = self.start(point.args, point.steps, values)
                return self.load(node.operands[0], point.walk, index, mask, lanes, extra)
            case "scalar":
                assert node.op.scalar is not None
                return node.op.scalar(k, node, *(values[a] for a in point.args))
        raise AssertionError(f"{point.kind} points are given, not computed")

    def starts(self, values: Values) -> None:
        """Compute the offsets of the dynamic slices whose start indices are known here."""
        for point in self.trace.points:
            if point.kind == "part" and point not in self._places and all(a in values for a in point.args):
                self._places[point] = self.k.let(self.start(point.args, point.steps, values))

    def start(self, args: Sequence[Point], steps: Sequence[tuple[int, int]], values: Values) -> Expr:
        """The offset at which a slice begins: the sum of its start indices, each clamped to its highest value, times the strides."""
        at: Value = self.k.index(0)
        for arg, (stride, high) in zip(args, steps):
            at = at + clamped(self.k, values[arg], high) * stride
        return self.k.as_index(at)

    def _count(self, point: Point, index: Sequence[Index], lanes: int) -> Expr:
        """The value of an iota at this index."""
        k, dtype = self.k, tensor_of(point.node).dtype
        first = self.place(point.walk, index)
        step = self.step(point.walk)
        if not step or lanes == 1:
            return k.convert(first, dtype)
        # Integers of the result's own width wrap as the result does; the counts of all other types are exact.
        exact = S64 if dtype.bits >= 64 or max(dims_of(point.node)) > S32.highest else S32
        whole = dtype if dtype.is_integer and dtype.bits >= 8 else exact
        counted = k.splat(k.convert(first, whole), lanes) + k.lane(lanes, whole) * step
        return k.convert(counted, dtype)

    # ---- memory

    def place(self, walk: Strides, index: Sequence[Index]) -> Expr:
        """The offset of a walk at an index; along the vector axis, of the first lane."""
        at: Expr = self.k.index(walk.offset)
        for i, stride in zip(index, walk.strides):
            if stride and not (isinstance(i, int) and i == 0):
                at = at + self.k.as_index(i) * stride
        return self.k.as_index(at)

    def step(self, walk: Strides) -> int:
        """The stride of a walk from lane to lane."""
        return walk.strides[self.axis] if self.axis >= 0 and walk.shape[self.axis] > 1 else 0

    def address(self, node: Node, walk: Strides, index: Sequence[Index], extra: Expr | None = None) -> Address:
        """The address of an input's or output's element under a walk at an index, plus ``extra`` elements."""
        at = self.call.views[node].origin + self.place(walk, index)
        return at if extra is None else at + extra

    def load(self, node: Node, walk: Strides, index: Sequence[Index], mask: Expr | None, lanes: int, extra: Expr | None = None) -> Expr:
        """Load from that address: a vector, or one element where all lanes read the same."""
        k, step = self.k, self.step(walk)
        at = self.address(node, walk, index, extra)
        if not step or lanes == 1:
            return at.load()
        if step == 1:
            return at.load(lanes, mask)
        if step == -1 and mask is None:
            backwards = (at + (1 - lanes)).load(lanes)
            return k.shuffle(backwards, backwards, tuple(range(lanes - 1, -1, -1)))
        return at.gather(lanes, step, mask)

    def store(self, output: tuple[Node, Strides], index: Sequence[Index], value: Expr, mask: Expr | None, lanes: int,
              extra: Expr | None = None) -> None:
        """Store a vector, or lane by lane where the elements are not contiguous, ``extra`` elements beyond the walk's offset."""
        k, (node, walk) = self.k, output
        step = self.step(walk)
        at = self.address(node, walk, index, extra)
        if lanes == 1:
            at.store(value)
            return
        value = k.splat(value, lanes)
        if step == 1:
            at.store(value, mask, mask is None and node in self.stream)
            return
        held = _masked(mask, lanes)
        for lane in range(lanes):
            if held is None or held[lane]:
                (at + lane * step).store(take(k, value, lane))

    def store_all(self, outputs: Iterable[Output], index: Sequence[Index], values: Values, mask: Expr | None, lanes: int) -> None:
        """Store the value of each output."""
        for node, point, walk in outputs:
            self.store((node, walk), index, values[point], mask, lanes)


def take(k: KernelBuilder, x: Expr, lane: int) -> Expr:
    """One lane of a vector."""
    return x if x.lanes == 1 else k.shuffle(x, x, (lane,))


def _masked(mask: Expr | None, lanes: int) -> Sequence[bool] | None:
    """The lanes that a constant mask enables."""
    if mask is None:
        return None
    assert mask.op == "const" and isinstance(mask.value, tuple) and len(mask.value) == lanes
    return mask.value


def width(elements: int, most: int) -> int:
    """The vector width for a run of elements: the machine's, or the next power of two for a shorter run."""
    lanes = 1
    while lanes < min(elements, most):
        lanes *= 2
    return min(lanes, most)
