"""3 x 3 convolutions of stride 1 with fixed weights by Winograd's algorithm: 2.25 times fewer multiplications at the same accuracy (m = 2).

m = 4 takes four times fewer multiplications, costs about three bits of accuracy, and reads four times the weights: it is chosen under
``--precision fast``, for images that are large relative to their channels.
"""
from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from irscope.fusion import Group
from irscope.graph import DType, Node
from irscope.graph.dtypes import F32
from irscope.lazy import Array
from irscope.lower.build import KernelBuilder
from irscope.lower.schedule import ContractionSchedule, ProductSize, VectorMachine, choose_tile
from irscope.lower.storage import LayoutConstraint
from irscope.lower.templates import Built, Packed, Problem, Template
from irscope.lower.templates.convolution import Between, between_edges, geometry_of
from irscope.lower.templates.epilogue import Epilogue
from irscope.lower.templates.geometry import ConvolutionGeometry
from irscope.lower.templates.micro import sum_type
from irscope.lower.templates.pack import panels
from irscope.lower.templates.transforms import weights
from irscope.lower.templates.winograd_nest import WinogradNest
from irscope.lower.tile import Schedule
from irscope.ops import hlo

MIN_CHANNELS = 16
"""With fewer channels the transforms cost more than the products that they save."""
MIN_TILES = 9
"""With fewer tiles, the transformed weights (16 for every 9) are reused too rarely."""
ENOUGH_TILES = 48
"""This many tiles of a block make up for weights that are read from the third cache."""


@dataclass(slots=True)
class WinogradWork:
    """A convolution between its edges; a tile has ``m`` x ``m`` results."""

    between: Between
    m: int


class WinogradTemplate(Template[WinogradWork]):
    """The template for Winograd convolutions: see the module."""

    def layout_constraints(self, group: Group) -> dict[Node, LayoutConstraint]:
        """Requests room for whole tiles."""
        geometry = geometry_of(group)
        if geometry is None or not _suits(geometry) or sum_type(group) is not F32:
            return {}
        if geometry.rhs.op is not hlo.constant or geometry.lhs.op is hlo.constant:
            return {}
        return {geometry.lhs: geometry.image_constraint(2)}

    def match(self, problem: Problem) -> WinogradWork | None:
        """Convolutions for which it pays, unless ``--precision exact`` is set."""
        geometry = geometry_of(problem.group)
        exact = problem.precision == "exact"
        if geometry is None or exact or not _suits(geometry) or geometry.rhs not in problem.constants or sum_type(problem.group) is not F32:
            return None
        m = _tile(geometry, problem)
        between = between_edges(problem, geometry, m, channels_last=True)
        return WinogradWork(between, m) if between is not None and between.is_channels_last else None

    def schedule(self, problem: Problem, match: WinogradWork) -> Schedule:
        geometry, machine = match.between.geometry, problem.machine
        conv, block = geometry.conv, _block_rows(geometry, match.m, machine)
        tiles = block * ceil(conv.out_spatial[1] / match.m)
        far = (match.m + 2) ** 2 * conv.features * conv.outputs * 4 > machine.l2 // 2
        rows, vectors, _ = choose_tile(ProductSize(tiles, conv.outputs, conv.features, far=far), machine, problem.lanes)
        prefetch = min(2, ceil(vectors / ceil(tiles / rows)))
        panels, width = conv.outputs // (vectors * problem.lanes), vectors * problem.lanes
        blocks = conv.batch * ceil(ceil(conv.out_spatial[0] / match.m) / block)
        groups = 1
        if blocks < problem.threads and panels * width == conv.outputs:
            groups = max(g for g in range(1, problem.threads + 1) if panels % g == 0)
        tile = ContractionSchedule(rows, vectors, pack="load", prefetch=prefetch)
        return {"m": match.m, "block_rows": block, "groups": groups, **tile.data()}

    def build(self, problem: Problem, match: WinogradWork, schedule: Schedule) -> Built:
        geometry, edges, dtype, lanes = match.between.geometry, match.between.edges, sum_type(problem.group), problem.lanes
        dims, m = geometry.conv.dims, schedule["m"]
        chosen = ContractionSchedule.of(schedule)
        k = KernelBuilder(problem.name, lanes=lanes, precision=problem.precision)
        epilogue = Epilogue(k, edges.problem, dims.out_feature)
        packed, shape = _packed(geometry, m, chosen.vectors * lanes, dtype)
        transformed = epilogue.call.packed(packed, shape, "transformed").origin
        image = epilogue.call.bind(match.between.image, "in", "image")
        WinogradNest(k, geometry, image, transformed, m, schedule["block_rows"], chosen, dtype, lanes, epilogue.of_image(dims),
                     schedule["groups"]).write()
        kernel = k.finish(flops=_flops(geometry), schedule=schedule)
        return Built([*edges.before, epilogue.call.stage(kernel), *edges.after])


def _suits(geometry: ConvolutionGeometry) -> bool:
    conv, window = geometry.conv, geometry.conv.window
    plain = window.size == (3, 3) and set(window.stride) == {1} and set(window.rhs_dilate) == {1} and geometry.groups == 1
    if not plain or min(conv.features, conv.outputs) < MIN_CHANNELS or min(window.pad_low) < 0 or max(geometry.holes) > 1:
        return False
    return conv.batch * ceil(conv.out_spatial[0] / 2) * ceil(conv.out_spatial[1] / 2) >= MIN_TILES


def _tile(geometry: ConvolutionGeometry, problem: Problem) -> int:
    """4 only under ``fast``, where the image has many tiles for the 36 planes of weights that are read."""
    conv = geometry.conv
    tiles = conv.batch * ceil(conv.out_spatial[0] / 4) * ceil(conv.out_spatial[1] / 4)
    return 4 if problem.precision == "fast" and tiles >= 16 else 2


def _block_rows(geometry: ConvolutionGeometry, m: int, machine: VectorMachine) -> int:
    """Rows of tiles whose transforms and products fit in half of the second cache; enough for the weights where those would not fit."""
    conv, planes = geometry.conv, (m + 2) ** 2
    across, down = ceil(conv.out_spatial[1] / m), ceil(conv.out_spatial[0] / m)
    row = across * planes * (conv.features + conv.outputs + 32) * 4
    weights_bytes = planes * conv.features * conv.outputs * 4
    if weights_bytes > 2 * machine.l2:
        return min(down, ceil(ENOUGH_TILES / across))
    return max(1, min(down, machine.l2 // 2 // row))


def _packed(geometry: ConvolutionGeometry, m: int, width: int, dtype: DType) -> tuple[Packed, tuple[int, ...]]:
    """The transformed weights in panels, plane by plane."""
    numpy_type = dtype.numpy()
    shape = ((m + 2) ** 2, ceil(geometry.conv.outputs / width), geometry.conv.features, width)

    def make(array: Array) -> Array:
        return panels(weights(geometry.arranged(array, (0, 1, -1))[0].astype(numpy_type, copy=False), m), 1, width, numpy_type)

    return Packed(geometry.rhs, dtype, ("winograd", geometry.conv, m, width, dtype.name), make), shape


def _flops(geometry: ConvolutionGeometry) -> float:
    """FLOPs of the direct sum, so that figures are comparable."""
    conv = geometry.conv
    return 2.0 * 9 * conv.batch * conv.out_spatial[0] * conv.out_spatial[1] * conv.features * conv.outputs


TEMPLATE = WinogradTemplate()
