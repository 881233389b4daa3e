"""Operations with a region of scalars: reduce, windows, sort, map; and top_k."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irscope.formats.stablehlo.building.direct import Direct, Made, directly, operator, takes
from irscope.formats.stablehlo.building.fields import Fields
from irscope.formats.stablehlo.building.work import Work, builds
from irscope.graph import Graph, TensorType
from irscope.ops import hlo
from irscope.ops.attrs import Window
from irscope.ops.faults import TypeFault


def region(work: Work, number: int = 0) -> Graph:
    """The graph of a region. Raises TypeFault where the operation has none."""
    if number >= len(work.bodies):
        raise TypeFault(f"'{work.operation.name}' op needs a region {number}")
    return work.bodies[number]


def _returns(work: Work, graph: Graph, count: int) -> None:
    if len(graph.params) != count:
        raise TypeFault(f"the region of '{work.operation.name}' takes {len(graph.params)} arguments, but must take {count}")


@builds("reduce mhlo.reduce")
def _reduce(work: Work) -> None:
    graph = region(work)
    _returns(work, graph, len(work.operands))
    work.emit(hlo.reduce, {"dimensions": work.fields.ints("dimensions")}, None, [graph])


def _direct_reduce(fields: Fields, applied: str) -> Direct | None:
    """A reduction of one array that applies an operation."""
    dimensions = fields.ints("dimensions")
    if not applied or len(set(dimensions)) != len(dimensions) or (dimensions and min(dimensions) < 0):
        return None
    combiner = operator(applied)

    def fits(types: Sequence[TensorType], result: TensorType) -> bool:
        if len(types) != 2 or types[1].rank or not types[0].dtype is types[1].dtype is result.dtype:
            return False
        shape = types[0].shape
        return (not dimensions or max(dimensions) < len(shape)) and takes(combiner, result.dtype, 2) \
            and result.shape == tuple([size for d, size in enumerate(shape) if d not in dimensions])
    return Direct(Made(hlo.reduce, {"dimensions": dimensions}, combiner), fits)


directly("reduce", "dimensions", _direct_reduce)


def window_of(fields: Fields, size: tuple[int, ...]) -> Window:
    """The window of ``reduce_window`` and ``select_and_scatter``."""
    n, one = len(size), (1,) * len(size)
    window = Window.make(size, fields.ints("window_strides", one), fields.pairs("padding") or ((0, 0),) * n,
                         fields.ints("base_dilations", one), fields.ints("window_dilations", one))
    if not all(len(part) == n for part in (window.stride, window.pad_low, window.lhs_dilate, window.rhs_dilate)):
        raise TypeFault(f"the window of '{fields.owner}' must have {n} dimensions")
    return window


@builds("reduce_window mhlo.reduce_window")
def _reduce_window(work: Work) -> None:
    graph = region(work)
    _returns(work, graph, len(work.operands))
    work.emit(hlo.reduce_window, {"window": window_of(work.fields, work.fields.ints("window_dimensions"))}, None, [graph])


@builds("select_and_scatter mhlo.select_and_scatter")
def _select_and_scatter(work: Work) -> None:
    work.count(3)
    rank = work.array().rank
    window = window_of(work.fields, work.fields.ints("window_dimensions", (1,) * rank))
    work.emit(hlo.select_and_scatter, {"window": window}, None, [region(work), region(work, 1)])


@builds("map mhlo.map")
def _map(work: Work) -> None:
    work.emit(hlo.map, {"dimensions": work.fields.ints("dimensions")}, None, [region(work)])


@builds("sort mhlo.sort")
def _sort(work: Work) -> None:
    fields, rank = work.fields, work.array().rank
    dimension = fields.integer("dimension", -1)
    attrs: dict[str, Any] = {"dimensions": (dimension + rank if dimension < 0 else dimension,)}
    if fields.flag("is_stable"):
        attrs["is_stable"] = True
    graph = region(work)
    _returns(work, graph, 2 * len(work.operands))
    work.emit(hlo.sort, attrs, None, [graph])


@builds("chlo.top_k mhlo.topk")
def _top_k(work: Work) -> None:
    work.count(1)
    fields, operand = work.fields, work.array()
    if not operand.rank:
        raise TypeFault(f"'{work.operation.name}' op takes an array of rank 1 or more")
    work.emit(hlo.topk, {"k": fields.integer("k"), "largest": fields.flag("largest", True)})
