"""Convolutions as contractions over the image in place: rows of results read overlapping elements, without im2col.

An image that does not have room for its padding is copied into memory that does; results that the caller wants in another order are written
in the nest's order and then copied. Inside a net neither happens, since producers write the layout that the next convolution requests.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from irscope.fusion import Group
from irscope.fusion.drafts import dims_of
from irscope.graph import Node, TensorType
from irscope.lower.build import KernelBuilder
from irscope.lower.schedule import ContractionSchedule
from irscope.lower.storage import LayoutConstraint, Storage
from irscope.lower.templates import Built, KernelOperand, Packed, Problem, Template
from irscope.lower.templates.affine import Affine, Axis, merged, swapped
from irscope.lower.templates.dots import alternatives, choose, last, packing, sorted_axes, vector_axis
from irscope.lower.templates.epilogue import Epilogue, Walk, walks
from irscope.lower.templates.geometry import ConvolutionGeometry
from irscope.lower.templates.lane_nest import LaneNest, lane_axis
from irscope.lower.templates.micro import computing_type, sum_type
from irscope.lower.templates.nest import ContractionNest
from irscope.lower.templates.pack import panels
from irscope.lower.templates.relayout import Edges
from irscope.lower.tile import Schedule
from irscope.ops import hlo

FEW = 4
"""Result channels of a group that are too few for vectors."""


@dataclass(slots=True)
class ConvolutionWork:
    """A convolution as a nest. ``fixed``: its weights are constant, and packed before the first run.

    ``flipped``: vectors walk the image instead of the result channels, and weights are broadcast. ``lane``: they walk the groups.
    """

    between: Between
    affine: Affine
    fixed: bool = False
    flipped: bool = False
    lane: Axis | None = None


class ConvolutionTemplate(Template[ConvolutionWork]):
    """The template for convolutions: see the module."""

    def layout_constraints(self, group: Group) -> dict[Node, LayoutConstraint]:
        """Requests operand and results channels last, the operand with room for the padding."""
        geometry = geometry_of(group)
        if geometry is None:
            return {}
        constraints = {output: geometry.result_constraint() for output in group.outputs
                       if group.anchor and dims_of(output) == dims_of(group.anchor)}
        if geometry.lhs.op is not hlo.constant:
            constraints[geometry.lhs] = geometry.image_constraint()
        if geometry.has_lanes_of_groups and geometry.rhs.op is not hlo.constant and geometry.rhs is not geometry.lhs:
            constraints[geometry.rhs] = geometry.kernel_constraint()
        return constraints

    def match(self, problem: Problem) -> ConvolutionWork | None:
        """A convolution of floats or integers whose results are contiguous along their channels, or along the image."""
        geometry = geometry_of(problem.group)
        if geometry is None:
            return None
        few = geometry.conv.outputs <= FEW * geometry.groups
        flipped = _flipped(problem, geometry) if few else None
        if flipped is None:
            return _work(problem, geometry) or _by_groups(problem, geometry)
        by_groups = _by_groups(problem, geometry)
        if by_groups is None or by_groups.lane is None:
            return flipped
        along, lanes = flipped.affine.of("column")[-1].size, problem.machine.lanes(sum_type(problem.group))
        return by_groups if _filled(by_groups.lane.size, lanes) > _filled(along, lanes) else flipped

    def schedule(self, problem: Problem, match: ConvolutionWork) -> Schedule:
        dtype, machine = sum_type(problem.group), problem.machine
        if match.lane is not None:
            return {"by": "groups"}
        return choose(match.affine, packing(match.affine, match.fixed, dtype, machine), dtype, machine, problem.threads).data()

    def alternatives(self, problem: Problem, match: ConvolutionWork, schedule: Schedule) -> list[Schedule]:
        """Other tiles and loop orders."""
        if match.lane is not None:
            return []
        dtype, machine = sum_type(problem.group), problem.machine
        return [s.data() for s in alternatives(match.affine, ContractionSchedule.of(schedule), dtype, machine, problem.threads)]

    def build(self, problem: Problem, match: ConvolutionWork, schedule: Schedule) -> Built:
        dtype, geometry, edges, image = sum_type(problem.group), match.between.geometry, match.between.edges, match.between.image
        chosen = ContractionSchedule.of({"rows": 1, "vectors": 1, **schedule})
        lanes = problem.machine.lanes(dtype)
        k = KernelBuilder(problem.name, lanes=lanes, precision=problem.precision)
        epilogue = Epilogue(k, edges.problem, match.lane.out if match.lane is not None else match.affine.of("column")[-1].out)
        call = epilogue.call
        left, right = geometry.first_tap(call.bind(image, "in", "image")), geometry.first_weight(epilogue.views[geometry.rhs])
        if match.flipped:
            left, right = right, left
        rank = len(dims_of(geometry.lhs))
        if match.lane is not None:
            LaneNest(k, match.affine, left, right, dtype, lanes, rank, epilogue, match.lane).write()
            return Built([*edges.before, call.stage(k.finish(flops=match.affine.flops, schedule=schedule)), *edges.after])
        if chosen.pack == "load":
            width, order, numpy_type = chosen.vectors * lanes, geometry.order(image.storage), dtype.numpy()
            shape = (geometry.groups, -(-match.affine.of("column")[-1].size // width), match.affine.size("sum"), width)
            packed = Packed(geometry.rhs, dtype, ("panels", geometry.conv, order, width, dtype.name),
                            lambda array: panels(geometry.arranged(array, order), 1, width, numpy_type))
            right = call.packed(packed, shape, "panels").origin
        ContractionNest(k, match.affine, left, right, dtype, lanes, rank, epilogue, chosen).write()
        kernel = k.finish(flops=match.affine.flops, schedule=schedule)
        return Built([*edges.before, call.stage(kernel), *edges.after])


def _work(problem: Problem, geometry: ConvolutionGeometry) -> ConvolutionWork | None:
    """Vectors along the result channels."""
    between = between_edges(problem, geometry)
    if between is None:
        return None
    fixed = geometry.rhs in problem.constants
    affine = sorted_axes(merged(between.affine(None if fixed else problem.ins[geometry.rhs])))
    column = vector_axis(affine, between.written)
    return None if column is None else ConvolutionWork(between, last(affine, column), fixed)


def _flipped(problem: Problem, geometry: ConvolutionGeometry) -> ConvolutionWork | None:
    """Vectors along the image, where it is contiguous or where there is no other axis for them."""
    between = between_edges(problem, geometry, in_place=True)
    if between is None:
        return None
    affine = sorted_axes(merged(swapped(between.affine(problem.ins[geometry.rhs]))))
    column = vector_axis(affine, between.written)
    if column is None or (column.rhs != 1 and geometry.conv.outputs > geometry.groups):
        return None
    return ConvolutionWork(between, last(affine, column), flipped=True)


def _by_groups(problem: Problem, geometry: ConvolutionGeometry) -> ConvolutionWork | None:
    """Vectors along groups of one result channel, where they are contiguous."""
    between = between_edges(problem, geometry)
    if between is None:
        return None
    affine = sorted_axes(merged(between.affine(problem.ins[geometry.rhs])))
    axis = lane_axis(affine, between.written)
    return None if axis is None else ConvolutionWork(between, affine, lane=axis)


def _filled(size: int, lanes: int) -> float:
    """The fraction of lanes that vectors along this many elements use."""
    return size / (-(-size // lanes) * lanes)


def geometry_of(group: Group) -> ConvolutionGeometry | None:
    """The convolution that a group is built around, when register tiles can do it."""
    anchor = group.anchor
    if group.kind != "convolution" or anchor is None or anchor.op is not hlo.convolution or not isinstance(anchor.type, TensorType):
        return None
    return ConvolutionGeometry.of(anchor) if computing_type(anchor) is not None else None


class Between(NamedTuple):
    """A convolution without the copies at its edges: the image that its window slides over, and the strides that the epilogue accesses."""

    geometry: ConvolutionGeometry
    edges: Edges
    image: KernelOperand
    written: list[Walk]
    read: list[Walk]

    def affine(self, rhs: Storage | None) -> Affine:
        """The contraction of this image with the weights (:meth:`ConvolutionGeometry.affine`)."""
        return self.geometry.affine(self.image.storage, rhs, [*self.written, *self.read])

    @property
    def is_channels_last(self) -> bool:
        """Whether the channels of the image and of all results are neighbours in memory."""
        dims = self.geometry.conv.dims
        return self.image.storage.strides[dims.lhs_feature] == 1 and all(v[dims.out_feature] == 1 for v in self.written)


def between_edges(problem: Problem, geometry: ConvolutionGeometry, tile: int = 1, channels_last: bool = False,
                  in_place: bool = False) -> Between | None:
    """Prepare the convolution, with the copies before and after its nest.

    None where an output is of another shape than the anchor, or strides do not describe an access of the epilogue.

    ``channels_last``: the operand must be channels last; otherwise any order will do, and it keeps its order where it has few channels.
    ``in_place``: any order of the operand and the results will do.
    """
    anchor, dims = problem.group.anchor, geometry.conv.dims
    assert anchor is not None
    if geometry.lhs not in problem.ins or geometry.rhs not in problem.ins or any(dims_of(o) != dims_of(anchor) for o in problem.outs):
        return None
    edges = Edges(problem)
    lhs = problem.ins[geometry.lhs]
    image = KernelOperand(lhs, geometry.lhs, around=True)
    turned = channels_last and lhs.strides[dims.lhs_feature] != 1
    if turned or not geometry.has_room(lhs, tile):
        order = geometry.image_constraint().order
        if in_place or (not channels_last and lhs.shape[dims.lhs_feature] < problem.lanes):
            order = tuple(sorted(range(len(lhs.shape)), key=lambda d: (-abs(lhs.strides[d]), d)))
        around = dict(zip(dims.lhs_spatial, geometry.room(tile)))
        image = edges.frame(geometry.lhs, order, [around.get(d, (0, 0)) for d in range(len(lhs.shape))], geometry.holes)
    if not in_place and (channels_last or geometry.conv.outputs > geometry.groups or geometry.has_lanes_of_groups):
        apart = [o for o, storage in problem.outs.items() if storage.strides[dims.out_feature] != 1]
        edges.leave(dict.fromkeys(apart, geometry.result_constraint().order))
    found = walks(edges.problem)
    return None if found is None else Between(geometry, edges, image, *found)


TEMPLATE = ConvolutionTemplate()
