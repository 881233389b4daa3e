"""Matrix products of every kind: batched, transposed, with few rows or columns, with an epilogue in registers."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from irscope.fusion.drafts import dims_of
from irscope.fusion.views import row_major
from irscope.graph import DType, Node, TensorType
from irscope.lazy import Array, np
from irscope.lower.build import KernelBuilder
from irscope.lower.schedule import ContractionSchedule
from irscope.lower.templates import Built, Packed, Problem, Template
from irscope.lower.templates.affine import Affine, Axis, merged
from irscope.lower.templates.dots import alternatives, choose, last, packing, sorted_axes, vector_axis
from irscope.lower.templates.epilogue import Epilogue, Walk, walks
from irscope.lower.templates.inner_nest import InnerNest, inner_schedule
from irscope.lower.templates.lane_nest import LaneNest, lane_axis
from irscope.lower.templates.micro import computing_type, sum_type
from irscope.lower.templates.nest import ContractionNest
from irscope.lower.templates.pack import panels
from irscope.lower.templates.relayout import Edges
from irscope.lower.tile import Schedule
from irscope.ops import hlo
from irscope.ops.contraction import DotDims

INNER_COLUMNS = 4
"""With this many columns or fewer, and both operands contiguous along the sum, lanes walk the sum instead of the columns."""


@dataclass(slots=True)
class ContractionWork:
    """A dot as a nest. ``left`` is broadcast, ``right`` is read in vectors (``inner``: both are read in vectors).

    A constant right operand's dimensions, in the order ``order``, have the sizes ``packed`` (batches, sums, columns) after neighbours
    are merged; ``column`` is the place of the vectors' axis among the columns. ``lane`` is the batch axis that lanes walk instead.
    """

    affine: Affine
    left: Node
    right: Node
    order: tuple[int, ...]
    packed: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
    column: int = 0
    inner: bool = False
    lane: Axis | None = None
    edges: Edges | None = None


class ContractionTemplate(Template[ContractionWork]):
    """The template for matrix products: see the module."""

    def match(self, problem: Problem) -> ContractionWork | None:
        """A dot of floats or integers whose results are contiguous along one of its free dimensions."""
        anchor = problem.group.anchor
        if problem.group.kind != "contraction" or anchor is None or anchor.op is not hlo.dot:
            return None
        if not isinstance(anchor.type, TensorType) or computing_type(anchor) is None or not anchor.type.elements:
            return None
        if any(o not in problem.ins for o in anchor.operands) or any(dims_of(o) != dims_of(anchor) for o in problem.group.outputs):
            return None
        return _any_work(problem, anchor) or _relaid(problem, anchor)

    def schedule(self, problem: Problem, match: ContractionWork) -> Schedule:
        dtype, machine = sum_type(problem.group), problem.machine
        if match.lane is not None:
            return {"by": "batches"}
        if match.inner:
            return inner_schedule(match.affine)
        pack = packing(match.affine, match.right in problem.constants, dtype, machine)
        return choose(match.affine, pack, dtype, machine, problem.threads).data()

    def alternatives(self, problem: Problem, match: ContractionWork, schedule: Schedule) -> list[Schedule]:
        """Other tiles and loop orders."""
        if match.lane is not None or match.inner:
            return []
        dtype, machine = sum_type(problem.group), problem.machine
        return [s.data() for s in alternatives(match.affine, ContractionSchedule.of(schedule), dtype, machine, problem.threads)]

    def build(self, problem: Problem, match: ContractionWork, schedule: Schedule) -> Built:
        anchor, dtype = problem.group.anchor, sum_type(problem.group)
        assert anchor is not None
        lanes = problem.machine.lanes(dtype)
        k = KernelBuilder(problem.name, lanes=lanes, precision=problem.precision)
        edges = match.edges or Edges(problem)
        columns = match.affine.of("column")
        epilogue = Epilogue(k, edges.problem, match.lane.out if match.lane is not None else columns[-1].out if columns else 0)
        left, right, rank = epilogue.views[match.left].origin, epilogue.views[match.right].origin, len(dims_of(anchor))
        if match.lane is not None:
            LaneNest(k, match.affine, left, right, dtype, lanes, rank, epilogue, match.lane).write()
        elif match.inner:
            InnerNest(k, match.affine, left, right, dtype, lanes, rank, epilogue, schedule["rows"]).write()
        else:
            chosen = ContractionSchedule.of(schedule)
            if chosen.pack == "load":
                packed, shape = packed_operand(match, chosen, dtype, lanes)
                right = epilogue.call.packed(packed, shape, "panels").origin
            ContractionNest(k, match.affine, left, right, dtype, lanes, rank, epilogue, chosen).write()
        kernel = k.finish(flops=match.affine.flops, schedule=schedule)
        return Built([epilogue.call.stage(kernel), *edges.after])


def packed_operand(work: ContractionWork, schedule: ContractionSchedule, dtype: DType, lanes: int) -> tuple[Packed, tuple[int, ...]]:
    """The right operand in panels: how to pack them from the constant, and their shape."""
    width, numpy_type = schedule.vectors * lanes, dtype.numpy()
    batches, sums, columns = work.packed
    outer = (*batches, *(n for i, n in enumerate(columns) if i != work.column))
    shape = (*outer, -(-columns[work.column] // width), *sums, width)
    order, column = work.order, work.column

    def make(array: Array) -> Array:
        joined = array.transpose(order).reshape(*batches, *sums, *columns)
        first = len(batches) + len(sums)
        joined = np.moveaxis(joined, first + column, -1)
        for i in range(len(columns) - 1):
            joined = np.moveaxis(joined, first + i, len(batches) + i)
        return panels(joined, len(outer), width, numpy_type)

    return Packed(work.right, dtype, ("panels", order, work.packed, column, width, dtype.name), make), shape


def _any_work(problem: Problem, anchor: Node) -> ContractionWork | None:
    """The dot with vectors along the free dimensions of the right operand, of the left one, or along its batches."""
    found = walks(problem)
    if found is None:
        return None
    works = (_work(problem, anchor, *found, flip) for flip in (False, True))
    return next((work for work in works if work is not None), None) or _by_batches(problem, anchor, *found)


def _relaid(problem: Problem, anchor: Node) -> ContractionWork | None:
    """The dot into row-major private memory, and copies from there: where results are contiguous along no dimension."""
    edges = Edges(problem)
    edges.leave(dict.fromkeys(problem.group.outputs, tuple(range(len(dims_of(anchor))))))
    work = _any_work(edges.problem, anchor)
    return None if work is None else replace(work, edges=edges)


def _by_batches(problem: Problem, anchor: Node, written: list[Walk], read: list[Walk]) -> ContractionWork | None:
    dims, shape = DotDims.of(anchor), dims_of(anchor)
    left, right = anchor.operands[:2]
    lhs, rhs, batches, rows = problem.ins[left].strides, problem.ins[right].strides, len(dims.lhs_batch), len(dims.lhs_free)
    axes = [Axis("batch", shape[i], lhs[a], rhs[b], i) for i, (a, b) in enumerate(zip(dims.lhs_batch, dims.rhs_batch))]
    axes += [Axis("row", shape[batches + i], lhs[d], 0, batches + i) for i, d in enumerate(dims.lhs_free)]
    axes += [Axis("column", shape[batches + rows + i], 0, rhs[d], batches + rows + i) for i, d in enumerate(dims.rhs_free)]
    axes += [Axis("sum", dims_of(left)[a], lhs[a], rhs[b]) for a, b in zip(dims.lhs_contracting, dims.rhs_contracting)]
    affine = sorted_axes(merged(Affine(axes, [*written, *read])))
    axis = lane_axis(affine, written)
    return None if axis is None else ContractionWork(affine, left, right, (), ((), (), ()), lane=axis)


def _work(problem: Problem, anchor: Node, written: list[Walk], read: list[Walk], flip: bool) -> ContractionWork | None:
    """The dot with its columns chosen (``flip``: among the left operand's dimensions), or None when its results are strided along them."""
    dims = DotDims.of(anchor)
    shape = dims_of(anchor)
    left, right = anchor.operands[:2]
    parts = (dims.lhs_batch, dims.lhs_free, dims.lhs_contracting), (dims.rhs_batch, dims.rhs_free, dims.rhs_contracting)
    rows_at, columns_at = len(dims.lhs_batch), len(dims.lhs_batch) + len(dims.lhs_free)
    if flip:
        left, right, parts, rows_at, columns_at = right, left, parts[::-1], columns_at, rows_at
    (lhs_batch, lhs_free, lhs_sum), (rhs_batch, rhs_free, rhs_sum) = parts
    lhs = problem.ins[left].strides
    pairs = sorted(zip(lhs_sum, rhs_sum), key=lambda pair: -abs(lhs[pair[0]]))
    order = (*rhs_batch, *(b for _, b in pairs), *rhs_free)

    def affine(rhs: Mapping[int, int]) -> Affine:
        axes = [Axis("batch", shape[i], lhs[a], rhs[b], i) for i, (a, b) in enumerate(zip(lhs_batch, rhs_batch))]
        axes += [Axis("row", shape[rows_at + i], lhs[d], 0, rows_at + i) for i, d in enumerate(lhs_free)]
        axes += [Axis("sum", dims_of(left)[a], lhs[a], rhs[b]) for a, b in pairs]
        axes += [Axis("column", shape[columns_at + i], 0, rhs[d], columns_at + i) for i, d in enumerate(rhs_free)]
        return sorted_axes(merged(Affine(axes, [*written, *read])))

    in_place = affine(dict(enumerate(problem.ins[right].strides)))
    sums, columns = in_place.of("sum"), in_place.size("column")
    if columns <= INNER_COLUMNS and len(sums) == 1 and sums[0].lhs == sums[0].rhs == 1 and sums[0].size >= problem.lanes:
        return ContractionWork(in_place, left, right, order, ((), (), ()), inner=True)
    made = affine(dict(zip(order, row_major([dims_of(right)[d] for d in order])))) if right in problem.constants else in_place
    column = vector_axis(made, written)
    if column is None:
        return None
    sizes = [tuple(a.size for a in made.of(role)) for role in ("batch", "sum", "column")]
    return ContractionWork(last(made, column), left, right, order, (sizes[0], sizes[1], sizes[2]), made.of("column").index(column))


TEMPLATE = ContractionTemplate()
