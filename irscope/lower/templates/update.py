"""``dynamic-update-slice`` in place: writes a small array into a large one at computed start indices."""
from __future__ import annotations

from contextlib import ExitStack

from irscope.fusion.drafts import dims_of
from irscope.fusion.views import Strides
from irscope.graph import Node
from irscope.graph.node import Index
from irscope.lower.build import KernelBuilder
from irscope.lower.emission import Emission, Values, width
from irscope.lower.points import Point, PointTrace, level_of, merged
from irscope.lower.templates import Built, Problem, Template
from irscope.lower.tile import Expr, Schedule
from irscope.lower.values import is_scalar_constant


class UpdateTemplate(Template[PointTrace]):
    """Groups of kind ``update``: the inputs are the update and its start indices; the output's memory already holds the array."""

    def match(self, problem: Problem) -> PointTrace | None:
        if problem.group.kind != "update":
            return None
        node = problem.group.nodes[0]
        part, starts = node.operands[1], node.operands[2:]
        shape = dims_of(part)
        points = [_scalar(start, len(shape)) for start in starts]
        source = problem.ins[part]
        walk = Strides(shape, source.strides)
        points.append(Point("load", part, (), walk, level=level_of(walk)))
        out = problem.outs[node]
        return merged(PointTrace(shape, len(shape), points, [(node, points[-1], Strides(shape, out.strides))]))

    def schedule(self, problem: Problem, match: PointTrace) -> Schedule:
        return {"lanes": width(match.space[-1] if match.space else 1, problem.lanes)}

    def build(self, problem: Problem, match: PointTrace, schedule: Schedule) -> Built:
        k = KernelBuilder(problem.name, problem.lanes)
        lanes, axes = schedule["lanes"], len(match.space)
        e = Emission(k, problem, match, lanes, axes - 1)
        values: Values = {}
        *starts, load = match.points
        e.emit(starts, [0] * axes, values, lanes=1, keep=True)
        node, _, walk = match.outputs[0]
        out, size = problem.outs[node], dims_of(node.operands[1])
        steps = [(stride, whole - part) for stride, whole, part in zip(out.strides, out.shape, size)]
        place = k.let(e.start(starts, steps, values))

        def body(index: list[Index], mask: Expr | None = None) -> None:
            inner = dict(values)
            e.emit([load], index, inner, mask)
            e.store((node, walk), index, inner[load], mask, lanes, place)

        with ExitStack() as loops:
            index = [loops.enter_context(k.loop(0, n)) for n in match.space[:-1]]
            n = match.space[-1] if axes else 1
            if not axes:
                body([])
            else:
                with k.loop(0, n // lanes * lanes, lanes) as i:
                    body([*index, i])
                if n % lanes:
                    body([*index, k.index(n // lanes * lanes)], k.first_lanes(n % lanes, lanes))
        return Built([e.call.stage(k.finish(schedule=schedule))])


def _scalar(start: Node, axes: int) -> Point:
    """The point of a start index."""
    if is_scalar_constant(start):
        return Point("constant", start)
    return Point("load", start, (), Strides((1,) * axes, (0,) * axes))


TEMPLATE = UpdateTemplate()
