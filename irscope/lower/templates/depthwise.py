"""Depthwise convolutions, one result channel for each channel of the operand: lanes along the channels."""
from __future__ import annotations

from collections.abc import Callable
from math import prod

from irscope.graph import DType
from irscope.graph.node import Index
from irscope.lazy import Array, np
from irscope.lower.build import KernelBuilder
from irscope.lower.schedule import VectorMachine
from irscope.lower.templates import Built, Packed, Problem, Template
from irscope.lower.templates.convolution import Between, between_edges, geometry_of
from irscope.lower.templates.depthwise_nest import DepthwiseNest
from irscope.lower.templates.epilogue import Epilogue
from irscope.lower.templates.geometry import ConvolutionGeometry
from irscope.lower.templates.micro import sum_type
from irscope.lower.tile import Expr, Schedule
from irscope.lower.view import Address, View

Tap = Callable[[Index, int, Expr | None], Expr]

MAX_TAPS = 49
"""Windows up to 7 x 7; larger ones are lowered as grouped contractions."""


class DepthwiseTemplate(Template[Between]):
    """The template for depthwise convolutions: see the module."""

    def match(self, problem: Problem) -> Between | None:
        """Two spatial dimensions, as many groups as channels and results, floats."""
        geometry = geometry_of(problem.group)
        if geometry is None or not sum_type(problem.group).is_float or geometry.rhs not in problem.ins:
            return None
        conv = geometry.conv
        if len(conv.spatial) != 2 or conv.features != 1 or conv.outputs != conv.feature_groups or conv.outputs == 1:
            return None
        if prod(conv.window.size) > MAX_TAPS:
            return None
        between = between_edges(problem, geometry, channels_last=True)
        return between if between is not None and between.is_channels_last else None

    def schedule(self, problem: Problem, match: Between) -> Schedule:
        return {"pixels": _pixels(match.geometry, problem.machine)}

    def build(self, problem: Problem, match: Between, schedule: Schedule) -> Built:
        geometry, edges, dtype = match.geometry, match.edges, sum_type(problem.group)
        conv, dims, window = geometry.conv, geometry.conv.dims, geometry.conv.window
        lanes = problem.machine.lanes(dtype)
        k = KernelBuilder(problem.name, lanes=lanes, precision=problem.precision)
        epilogue = Epilogue(k, edges.problem, dims.out_feature)
        if geometry.rhs in problem.constants:
            padded = -(-conv.outputs // lanes) * lanes
            taps = epilogue.call.packed(_packed(geometry, padded, dtype), (*window.size, padded), "taps")
            tap = _from_panel(taps.origin, padded, lanes)
        else:
            tap = _in_place(k, geometry, epilogue.views[geometry.rhs], dtype, lanes)
        image = epilogue.call.bind(match.image, "in", "image")
        DepthwiseNest(k, geometry, image, tap, schedule["pixels"], dtype, lanes, epilogue.of_image(dims)).write()
        kernel = k.finish(flops=2.0 * prod(window.size) * conv.batch * prod(conv.out_spatial) * conv.outputs, schedule=schedule)
        return Built([*edges.before, epilogue.call.stage(kernel), *edges.after])


def _from_panel(taps: Address, padded: int, lanes: int) -> Tap:
    """Taps that were packed before the first run."""
    return lambda channel, number, mask: (taps + (channel + number * padded)).load(lanes)


def _in_place(k: KernelBuilder, geometry: ConvolutionGeometry, weights: View, dtype: DType, lanes: int) -> Tap:
    """Taps of a computed kernel, read from its own storage."""
    dims = geometry.conv.dims
    down, across = ((-1 if turned else 1) * weights.strides[d] for d, turned in zip(dims.rhs_spatial, geometry.conv.window.rhs_reversal))
    apart, first = weights.strides[dims.rhs_output], geometry.first_weight(weights)

    def tap(channel: Index, number: int, mask: Expr | None) -> Expr:
        y, x = divmod(number, geometry.conv.window.size[1])
        place = first + (channel * apart + (y * down + x * across))
        return k.convert(place.load(lanes, mask) if apart == 1 else place.gather(lanes, apart, mask), dtype)

    return tap


def _packed(geometry: ConvolutionGeometry, padded: int, dtype: DType) -> Packed:
    """The taps, [window y][window x][channel], zero beyond the last channel."""
    numpy_type = dtype.numpy()

    def make(array: Array) -> Array:
        taps = geometry.arranged(array, (0, 1, -1))[:, :, :, 0, 0]  # [channel, y, x]
        out = np.zeros((*taps.shape[1:], padded), numpy_type)
        out[..., :taps.shape[0]] = np.moveaxis(taps, 0, -1)
        return out.reshape(-1)

    return Packed(geometry.rhs, dtype, ("taps", geometry.conv, padded, dtype.name), make)


def _pixels(geometry: ConvolutionGeometry, machine: VectorMachine) -> int:
    """Results per step: as many as fit in registers beside the taps, dividing the row evenly."""
    conv = geometry.conv
    free = machine.registers - prod(conv.window.size) - 4
    most = min(8, free) if free >= 4 else 6  # taps without a register are read from the first cache, as fast as they are used
    parts = -(-conv.out_spatial[1] // most)
    return -(-conv.out_spatial[1] // parts)


TEMPLATE = DepthwiseTemplate()
