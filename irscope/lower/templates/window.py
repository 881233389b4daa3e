"""Pooling: windows that slide over an image whose channels are contiguous, lanes along the channels.

    for y:  for x:  for channel of 16:  a window's pixels are combined in registers, in the order of the window

At the edges, a maximum or minimum reads the nearest pixel of the window again, which changes nothing; other reductions, and all where
some window is entirely in the padding, read some pixel of the image and discard it. Maxima of floats take the larger value and record
separately whether any was NaN, which leaves one instruction between a pixel and the next; the sign of a zero is then that of any zero
(``--precision exact`` orders zeros).
"""
from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from math import prod

from irscope.fusion import Group
from irscope.fusion.drafts import dims_of
from irscope.graph import Node, Op, TensorType
from irscope.graph.node import Index
from irscope.lower.build import KernelBuilder
from irscope.lower.emission import width
from irscope.lower.storage import LayoutConstraint
from irscope.lower.templates import Built, Problem, Template
from irscope.lower.templates.epilogue import Epilogue, walks
from irscope.lower.tile import Expr, Schedule
from irscope.lower.view import Address
from irscope.ops import hlo
from irscope.ops.attributes import Windowed
from irscope.ops.attrs import Window
from irscope.ops.bodies import combiner

MAX_TAPS = 64
"""Windows with more elements use the generic template's loops: unrolled code would be long."""
IDEMPOTENT = hlo.named("maximum minimum and or")
_DIRECTIONS: dict[Op | None, str] = {hlo.maximum: "GT", hlo.minimum: "LT"}


@dataclass(slots=True)
class WindowWork:
    """``axis`` is the dimension of the lanes; ``repeats``: reading an element twice does not change the result."""

    window: Window
    axis: int
    repeats: bool


class WindowTemplate(Template[WindowWork]):
    """The template for pooling: see the module."""

    def layout_constraints(self, group: Group) -> dict[Node, LayoutConstraint]:
        """Requests the dimension that looks like the channels last, in the operand and in the results."""
        window, anchor = _window(group), group.anchor
        if window is None or anchor is None:
            return {}
        channel = _channel(window, dims_of(anchor))
        if channel is None:
            return {}
        rank = len(window.size)
        order = (*(d for d in range(rank) if d != channel and not _slides(window, d)),
                 *(d for d in range(rank) if _slides(window, d)), channel)
        constraint = LayoutConstraint.dense(order)
        nodes = (anchor.operands[0], *group.outputs)
        return {node: constraint for node in nodes if len(dims_of(node)) == rank and node.op is not hlo.constant}

    def match(self, problem: Problem) -> WindowWork | None:
        """One operand without dilation, and a contiguous dimension that no window slides along."""
        group, anchor = problem.group, problem.group.anchor
        window = _window(group)
        if window is None or anchor is None or prod(window.size) > MAX_TAPS or not isinstance(anchor.type, TensorType):
            return None
        if any(n != 1 for n in window.lhs_dilate) or anchor.type.dtype.is_complex or not anchor.type.elements:
            return None
        if anchor.type.dtype.is_float and anchor.type.dtype.bits < 32:
            return None
        operand = anchor.operands[0]
        found = walks(problem)
        if operand not in problem.ins or found is None or 0 in dims_of(operand):
            return None
        strides, written = problem.ins[operand].strides, found[0]
        for axis in range(len(window.size)):
            if not _slides(window, axis) and strides[axis] == 1 and all(v[axis] == 1 for v in written) and dims_of(anchor)[axis] > 1:
                repeats = combiner(anchor.bodies[0]) in IDEMPOTENT and _all_meet(window, dims_of(operand), dims_of(anchor))
                return WindowWork(window, axis, repeats)
        return None

    def schedule(self, problem: Problem, match: WindowWork) -> Schedule:
        assert problem.group.anchor is not None and isinstance(problem.group.anchor.type, TensorType)
        type = problem.group.anchor.type
        return {"vectors": 4, "lanes": width(type.dims()[match.axis], problem.machine.lanes(type.dtype))}

    def build(self, problem: Problem, match: WindowWork, schedule: Schedule) -> Built:
        anchor, lanes = problem.group.anchor, schedule["lanes"]
        assert anchor is not None
        k = KernelBuilder(problem.name, lanes=lanes, precision=problem.precision)
        nest = _Nest(k, problem, match, anchor, lanes, schedule["vectors"])
        nest.write()
        return Built([nest.epilogue.call.stage(k.finish(schedule=schedule))])


class _Nest:
    """The loops of one kernel."""

    def __init__(self, k: KernelBuilder, problem: Problem, work: WindowWork, anchor: Node, lanes: int, vectors: int) -> None:
        self.k, self.work, self.anchor, self.lanes, self.vectors = k, work, anchor, lanes, vectors
        self.epilogue = Epilogue(k, problem, work.axis)
        self.source = self.epilogue.views[anchor.operands[0]]
        self.shape = dims_of(anchor)
        self.init = self.epilogue.value(anchor.operands[1], [])
        op = combiner(anchor.bodies[0])
        exact = problem.precision == "exact"
        self.direction = _DIRECTIONS.get(op) if self.init.dtype.is_float and not exact else None
        self.taps = list(product(*(range(n) for n in work.window.size)))

    def write(self) -> None:
        """Emit all loops: over the image, then over groups of vectors, single vectors, and the tail."""
        k, axis = self.k, self.work.axis
        order = sorted((d for d in range(len(self.shape)) if d != axis), key=lambda d: -abs(self.source.strides[d]))
        with ExitStack() as stack:
            index: list[Index] = [k.index(0)] * len(self.shape)
            for place, d in enumerate(order):
                index[d] = stack.enter_context((k.par if place < 2 else k.loop)(0, self.shape[d]))
            places = [self._place(index, tap) for tap in self.taps]
            channels, many = self.shape[axis], self.vectors * self.lanes
            first = 0
            for width in (many, self.lanes):
                count = (channels - first) // width * width
                with k.loop(first, first + count, width) as c:
                    self._vectors(index, places, c, width // self.lanes, None)
                first += count
            if first < channels:
                self._vectors(index, places, k.index(first), 1, k.first_lanes(channels - first, self.lanes))

    def _place(self, index: list[Index], tap: tuple[int, ...]) -> tuple[Address, Expr | None]:
        """The address of a tap of a window (clamped to the image), and whether it is in the image (None: always)."""
        k, window, shape = self.k, self.work.window, self.source.shape
        base = self.source.origin
        inside: Expr | None = None
        for d, step in enumerate(tap):
            if d == self.work.axis:
                continue
            at = index[d] * window.stride[d] + (step * window.rhs_dilate[d] - window.pad_low[d])
            low = step * window.rhs_dilate[d] - window.pad_low[d]
            high = (self.shape[d] - 1) * window.stride[d] + low
            if low < 0 or high >= shape[d]:
                clamped = k.binary("min", k.binary("max", at, k.index(0)), k.index(shape[d] - 1))
                here = k.compare("EQ", at, clamped)
                inside = here if inside is None else k.binary("and", inside, here)
                at = k.let(clamped)
            base = base + at * self.source.strides[d]
        return base, inside

    def _vectors(self, index: list[Index], places: list[tuple[Address, Expr | None]], c: Index, vectors: int, mask: Expr | None) -> None:
        k = self.k
        totals: list[Expr] = [k.splat(self.init, self.lanes) for _ in range(vectors)]
        odd: list[Expr] = [k.compare("NE", total, total) for total in totals]
        for base, inside in places:
            for v in range(vectors):
                value = (base + (c + v * self.lanes)).load(self.lanes, mask)
                if self.direction is not None:
                    combined = k.select(k.compare(self.direction, totals[v], value), totals[v], value)
                    new = k.compare("NE", value, value)
                    if inside is not None and not self.work.repeats:
                        new = k.binary("and", k.splat(inside, self.lanes), new)
                    odd[v] = k.binary("or", odd[v], new)
                else:
                    combined = k.convert(k.inline(self.anchor.bodies[0], [totals[v], value])[0], totals[v].dtype)
                if inside is not None and not self.work.repeats:
                    combined = k.select(inside, combined, totals[v])
                totals[v] = combined
        if self.direction is not None:
            nan = k.splat(k.const(float("nan"), self.init.dtype), self.lanes)
            totals = [k.select(o, nan, total) for o, total in zip(odd, totals)]
        for v, total in enumerate(totals):
            where = list(index)
            where[self.work.axis] = c + v * self.lanes
            self.epilogue(total, where, mask)


def _window(group: Group) -> Window | None:
    """The window of a group around a reduce-window of one operand."""
    anchor = group.anchor
    if group.kind != "window" or anchor is None or anchor.op is not hlo.reduce_window or len(anchor.operands) != 2:
        return None
    return Windowed.of(anchor).window  # a scalar has none


def _slides(window: Window, d: int) -> bool:
    """Whether the window does anything along a dimension."""
    return (window.size[d], window.stride[d], window.pad_low[d], window.pad_high[d], window.lhs_dilate[d]) != (1, 1, 0, 0, 1)


def _all_meet(window: Window, image: tuple[int, ...], windows: tuple[int, ...]) -> bool:
    """Whether each window contains an element of the image, and therefore the nearest one to each of its taps."""
    return all(dilate == 1 and low < size and (n - 1) * stride - low < length for size, stride, low, dilate, length, n in zip(
        window.size, window.stride, window.pad_low, window.rhs_dilate, image, windows, strict=True))


def _channel(window: Window, shape: tuple[int, ...]) -> int | None:
    """The last dimension that no window slides along and that has more than one element; only where some window slides."""
    still = [d for d in range(len(shape)) if not _slides(window, d) and shape[d] > 1]
    return still[-1] if still and len(still) < len(shape) else None


TEMPLATE = WindowTemplate()
