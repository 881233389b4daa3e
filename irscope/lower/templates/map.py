"""Pointwise work over any number of inputs and outputs: vectors along the axis in which results are contiguous.

    kernel gelu(in x: f32[128,3072], in bias: f32[3072], out y: f32[128,3072])
      par i0 in 0..128 step 1:
        for i1 in 0..3072 step 16:
          v0 = load.16 x[i0*3072 + i1] ...
"""
from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from irscope.fusion.drafts import dims_of
from irscope.fusion.views import VIEWS
from irscope.graph import Node
from irscope.graph.node import Index
from irscope.lower.build import KernelBuilder
from irscope.lower.call import KernelOperands
from irscope.lower.emission import Emission, Values, width
from irscope.lower.points import PointTrace, trace
from irscope.lower.pull import Pull
from irscope.lower.templates import Built, Problem, Template
from irscope.lower.tile import Expr, Schedule
from irscope.ops import hlo

BLOCK = 4096
"""Elements of one unit of work where there is a single loop to divide among threads."""


class MapTemplate(Template[PointTrace | str]):
    """The template for groups without reductions."""

    def match(self, problem: Problem) -> PointTrace | str | None:
        """The trace of the group where strides describe all data movement; ``pull`` where elements are gathered, but in vectors."""
        if problem.group.kind != "map":
            return None
        return trace(problem) or ("pull" if _can_pull(problem) else None)

    def schedule(self, problem: Problem, match: PointTrace | str) -> Schedule:
        if isinstance(match, str):
            return {"form": "pull", "lanes": problem.lanes}
        longest = match.space[-1] if match.space else 1
        return {"form": "points", "lanes": width(longest, problem.lanes), "block": BLOCK}

    def build(self, problem: Problem, match: PointTrace | str, schedule: Schedule) -> Built:
        k = KernelBuilder(problem.name, problem.lanes, precision=problem.precision)
        if isinstance(match, str):
            call = _build_pull(k, problem, schedule["lanes"])
        else:
            call = _build_points(k, problem, match, schedule["lanes"], schedule["block"])
        return Built([call.stage(k.finish(schedule=schedule))])


def _build_points(k: KernelBuilder, problem: Problem, match: PointTrace, lanes: int, block: int) -> KernelOperands:
    axes = len(match.space)
    e = Emission(k, problem, match, lanes, axes - 1)
    values: Values = {}
    if not axes:
        e.emit(match.points, [], values, lanes=1)
        e.starts(values)
        e.store_all(match.outputs, [], values, None, 1)
        return e.call
    innermost = [p for p in match.points if p.level == axes]
    with e.nest(axes - 1, match.points, values) as index:
        n = match.space[-1]
        whole, rest = n // lanes * lanes, n % lanes

        def body(i: Index, mask: Expr | None = None) -> None:
            inner = dict(values)
            e.emit(innermost, [*index, i], inner, mask)
            e.store_all(match.outputs, [*index, i], inner, mask, lanes)

        def tail() -> None:
            if rest:
                body(k.index(whole), k.first_lanes(rest, lanes))

        if axes > 1 or whole <= block:
            with k.loop(0, whole, lanes) as i:
                body(i)
            tail()
            return e.call
        blocks = -(-whole // block)
        with k.par(0, blocks) as b:
            end = k.binary("min", b * block + block, k.index(whole))
            with k.loop(b * block, end, lanes) as i:
                body(i)
            if rest:
                with k.when(k.compare("EQ", b, blocks - 1)):
                    tail()
    return e.call


_PULLS = hlo.named("gather iota")
MOST_RESHAPES = 16
"""The most reshapes one after the other whose indices are computed in vectors. Each takes divisions, for which LLVM makes much code."""


def _can_pull(problem: Problem) -> bool:
    """Whether every node of the group works on vectors of indices, and all outputs are contiguous along the last axis."""
    group = problem.group
    shapes = {dims_of(o) for o in group.outputs}
    if len(shapes) != 1 or problem.in_place or not all(n.op.scalar or n.op in VIEWS or n.op in _PULLS for n in group.nodes):
        return False
    shape = next(iter(shapes))
    if not shape or shape[-1] < 4 or any(s.strides[-1] != 1 for s in problem.outs.values()):
        return False
    return most_reshapes(group.nodes) <= MOST_RESHAPES


def most_reshapes(nodes: Sequence[Node]) -> int:
    """The most reshapes on a path through some nodes."""
    found: dict[Node, int] = {}
    for node in sorted(nodes, key=lambda n: n.index):
        found[node] = max((found.get(o, 0) for o in node.operands), default=0) + (node.op is hlo.reshape)
    return max(found.values(), default=0)


def _build_pull(k: KernelBuilder, problem: Problem, most: int) -> KernelOperands:
    """Loops over the result, the last in vectors; the last vector of a row overlaps the one before."""
    pull = Pull(k, problem)
    shape = dims_of(problem.group.outputs[0])
    lanes = most
    while lanes > shape[-1]:
        lanes //= 2
    with ExitStack() as loops:
        index = [loops.enter_context(k.par(0, n)) for n in shape[:-1]]

        def body(i: object) -> None:
            at = [*index, pull.lanes(i, lanes)]
            for output in problem.outs:
                pull.store(output, at, k.splat(pull.value(output, at), lanes))

        with k.loop(0, shape[-1] // lanes * lanes, lanes) as i:
            body(i)
        if shape[-1] % lanes:
            body(k.index(shape[-1] - lanes))
    return pull.call


TEMPLATE = MapTemplate()
