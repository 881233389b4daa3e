"""Reductions over trailing axes, fused with the pointwise work around them, a row at a time: sums, softmax, layer normalisation.

A row takes as many passes as reductions depend on each other (softmax: maximum, sum of exponentials, quotient). A value that is costly to
compute and used by a later pass is kept in a row of scratch memory, which stays in the first cache.

Where rows are few and long, each is divided into parts for the threads; another kernel combines the partial results.
"""
from __future__ import annotations

from math import ceil, prod

from irscope.lower.build import KernelBuilder
from irscope.lower.emission import width
from irscope.lower.points import PointTrace, lies_across, trace
from irscope.lower.templates import Built, LaunchStage, Problem, Template
from irscope.lower.templates.row_parts import PartsNest, TotalsNest, partials
from irscope.lower.templates.rows_nest import RowsNest, operation_of
from irscope.lower.tile import Schedule
from irscope.lower.values import tensor_of
from irscope.ops.nests import SUM_BLOCK

LONG_ROW = 1 << 17
"""A row of this many elements or more is divided."""
MOST_PARTS = 64
"""The most parts of a row: enough for the threads of a large machine. Results must not depend on how many threads there are."""
FEW_ROWS = 8
"""With this many rows, they are divided among the threads instead."""


class RowsTemplate(Template[PointTrace]):
    """Groups of kind ``rows``."""

    def match(self, problem: Problem) -> PointTrace | None:
        if problem.group.kind != "rows" or problem.in_place:
            return None
        found = trace(problem)
        return None if found is None or lies_across(found) else found

    def schedule(self, problem: Problem, match: PointTrace) -> Schedule:
        columns = match.space[-1] if len(match.space) > match.rows else 1
        simple = all(operation_of(p.node) is not None for p in match.points if p.kind == "reduce")
        lanes = width(columns, problem.lanes) if simple else 1
        sums = 4 if columns >= 4 * lanes and lanes > 1 else 1
        return {"lanes": lanes, "sums": sums, "part": _part(match, lanes * sums)}

    def build(self, problem: Problem, match: PointTrace, schedule: Schedule) -> Built:
        if not schedule["part"]:
            return Built([_written(RowsNest(_builder(problem), problem, match, schedule), schedule)])
        held = partials(match, schedule["part"])
        return Built([_written(PartsNest(_builder(problem), problem, match, schedule, held), schedule),
                      _written(TotalsNest(_builder(problem, "_total"), problem, match, schedule, held), schedule)])


def _builder(problem: Problem, behind: str = "") -> KernelBuilder:
    return KernelBuilder(problem.name + behind, problem.lanes, precision=problem.precision)


def _written(nest: RowsNest, schedule: Schedule) -> LaunchStage:
    nest.write()
    return nest.e.call.stage(nest.k.finish(schedule=schedule))


def _part(match: PointTrace, step: int) -> int:
    """The length of a part along the first axis of a row; 0 for rows that are not divided.

    Where a row has one axis, a part is a multiple of ``SUM_BLOCK`` steps.
    """
    columns = match.space[match.rows:]
    if prod(columns) < LONG_ROW or prod(match.space[:match.rows]) >= FEW_ROWS or not _is_divisible(match):
        return 0
    part = ceil(columns[0] / MOST_PARTS)
    if len(columns) == 1:
        part = ceil(part / (step * SUM_BLOCK)) * step * SUM_BLOCK
    return part if part < columns[0] else 0


def _is_divisible(match: PointTrace) -> bool:
    """Whether a group is reductions that depend on no other, in any order, and work on their results."""
    reduces = [p for p in match.points if p.kind == "reduce"]
    return (all(p.stage == 1 and operation_of(p.node) is not None and not tensor_of(p.node).dtype.is_complex for p in reduces)
            and all(point.level <= match.rows and not any(walk.strides[match.rows:]) for _, point, walk in match.outputs))


TEMPLATE = RowsTemplate()
