"""Operations with a region of scalars: reduce, windows, sort, map; and top_k."""
from __future__ import annotations

from collections.abc import Sequence

from irscope.formats.stablehlo.building.direct import Direct, Made, directly, operator, takes
from irscope.formats.stablehlo.building.fields import Fields
from irscope.formats.stablehlo.building.work import Work, builds, declare
from irscope.graph import Graph, TensorType
from irscope.ops import hlo
from irscope.ops.attrs import Window
from irscope.ops.faults import TypeFault


def _region_of(work: Work, count: int) -> list[Graph]:
    """The region of an operation, as a list of one. Raises TypeFault where it does not take ``count`` arguments."""
    graph = work.region()
    if len(graph.params) != count:
        raise TypeFault(f"the region of '{work.operation.name}' takes {len(graph.params)} arguments, but must take {count}")
    return [graph]


@builds("reduce")
def _reduce(work: Work) -> None:
    graphs = _region_of(work, len(work.operands))
    work.emit(hlo.reduce, {"dimensions": work.fields.ints("dimensions")}, None, graphs)


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


def window_of(fields: Fields, size: tuple[int, ...], dilations: tuple[str, str] = ("base_dilations", "window_dilations"),
              reversal: tuple[bool, ...] | None = None) -> Window:
    """The window of an operation. ``size`` is that of the window; ``dilations`` names the attributes that dilate the array and the window.

    Raises TypeFault where an attribute has another number of dimensions.
    """
    n, one = len(size), (1,) * len(size)
    base, window = (fields.ints(name, one) for name in dilations)
    made = Window.make(size, fields.ints("window_strides", one), fields.pairs("padding") or ((0, 0),) * n, base, window, reversal)
    if not all(len(part) == n for part in (made.stride, made.pad_low, made.lhs_dilate, made.rhs_dilate, made.rhs_reversal)):
        raise TypeFault(f"the window of '{fields.owner}' must have {n} dimensions")
    return made


@builds("reduce_window")
def _reduce_window(work: Work) -> None:
    graphs = _region_of(work, len(work.operands))
    work.emit(hlo.reduce_window, {"window": window_of(work.fields, work.fields.ints("window_dimensions"))}, None, graphs)


@builds("select_and_scatter")
def _select_and_scatter(work: Work) -> None:
    work.count(3)
    rank = work.array().rank
    window = window_of(work.fields, work.fields.ints("window_dimensions", (1,) * rank))
    work.emit(hlo.select_and_scatter, {"window": window}, None, [work.region(), work.region(1)])


declare("map", lambda work: work.emit(hlo.map, {"dimensions": work.fields.ints("dimensions")}, None, [work.region()]))


@builds("sort")
def _sort(work: Work) -> None:
    fields, rank = work.fields, work.array().rank
    dimension = fields.integer("dimension", -1)
    attrs = {"dimensions": (dimension + rank if dimension < 0 else dimension,), **fields.true_flags("is_stable")}
    work.emit(hlo.sort, attrs, None, _region_of(work, 2 * len(work.operands)))


@builds("chlo.top_k mhlo.topk")
def _top_k(work: Work) -> None:
    work.count(1)
    fields, operand = work.fields, work.array()
    if not operand.rank:
        raise TypeFault(f"'{work.operation.name}' op takes an array of rank 1 or more")
    work.emit(hlo.topk, {"k": fields.integer("k"), "largest": fields.flag("largest", True)})
