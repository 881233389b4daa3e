"""Operations that move elements, and leaves: constants, iota, shapes, slices, padding, the numbers of devices."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod

from irscope.formats.stablehlo.building.direct import Direct, Link, Made, constant, directly, directly_alone, directly_inferred, inferred
from irscope.formats.stablehlo.building.fields import Fields, Ints
from irscope.formats.stablehlo.building.work import Work, builds, primitive
from irscope.graph import NO_ATTRS, Node, TensorType
from irscope.ops import hlo
from irscope.ops.faults import TypeFault
from irscope.ops.infer import plain

primitive("constant chlo.constant", hlo.constant, lambda fields: {"literal": fields.literal("value")})


@builds("iota")
def iota(work: Work) -> None:
    """An iota along one of several dimensions is a broadcast of one along its only dimension, as jaxlib translates it."""
    dimension, result = work.fields.integer("iota_dimension"), work.result_array()
    if result.rank < 2 or not 0 <= dimension < result.rank:
        work.emit(hlo.iota, {"iota_dimension": dimension}, [])
        return
    line = work.step(hlo.iota, [], result.with_shape((result.shape[dimension],)), {"iota_dimension": 0})
    work.emit(hlo.broadcast, {"dimensions": (dimension,)}, [line])


@builds("broadcast_in_dim")
def _broadcast_in_dim(work: Work) -> None:
    work.count(1)
    dimensions = work.fields.ints("broadcast_dimensions")
    operand, result = work.array(), work.result_array()
    check_broadcast(work, operand, result, dimensions)
    x, kept = without_stretched(work, work.operands[0], result, dimensions)
    work.emit(hlo.broadcast, {"dimensions": kept}, [x])


def check_broadcast(work: Work, operand: TensorType, result: TensorType, dimensions: tuple[int, ...]) -> None:
    """Raise TypeFault where the dimensions of a broadcast do not fit operand and result."""
    name = work.operation.name
    if len(dimensions) != operand.rank:
        raise TypeFault(f"broadcast_dimensions size ({len(dimensions)}) of '{name}' does not match operand rank ({operand.rank})")
    if len(set(dimensions)) != len(dimensions):
        raise TypeFault(f"broadcast_dimensions of '{name}' should not have duplicates")
    for number, dimension in enumerate(dimensions):
        if not 0 <= dimension < result.rank:
            raise TypeFault(f"broadcast_dimensions of '{name}' contains invalid value {dimension} for result with rank {result.rank}")
        size, wanted = operand.shape[number], result.shape[dimension]
        if isinstance(size, int) and isinstance(wanted, int) and size not in (1, wanted):
            raise TypeFault(f"size of operand dimension {number} ({size}) of '{name}' is not equal to 1 or size of result dimension "
                            f"{dimension} ({wanted})")
    if operand.dtype is not result.dtype:
        raise TypeFault(f"'{name}' op gives {plain(result)} of {plain(operand)}: the element types differ")


def without_stretched(work: Work, x: Node, result: TensorType, dimensions: tuple[int, ...]) -> tuple[Node, tuple[int, ...]]:
    """An operand without the dimensions of size 1 that a broadcast stretches, and the dimensions that are left.

    XLA's builder broadcasts to a shape that keeps those dimensions, removes them by a reshape, and broadcasts again.
    """
    operand = x.type
    assert isinstance(operand, TensorType)
    if not (operand.is_static and result.is_static):
        return x, dimensions
    links, kept = stretch(operand, result, dimensions)
    for link in links:
        x = work.step(link.op, [x], link.type, link.attrs)
    return x, kept


def stretch(operand: TensorType, result: TensorType, dimensions: tuple[int, ...]) -> tuple[tuple[Link, ...], tuple[int, ...]]:
    """The nodes that remove the dimensions of size 1 that a broadcast stretches, and the dimensions of the broadcast behind them."""
    stretched = [i for i, d in enumerate(dimensions) if operand.shape[i] == 1 and result.shape[d] != 1]
    if not stretched:
        return (), dimensions
    sizes = list(result.shape)
    for i in stretched:
        sizes[dimensions[i]] = 1
    dropped = {dimensions[i] for i in stretched}
    left = tuple(d for d in range(result.rank) if d not in dropped)
    return (Link(hlo.broadcast, operand.with_shape(tuple(sizes)), {"dimensions": dimensions}),
            Link(hlo.reshape, operand.with_shape(tuple(sizes[d] for d in left)), NO_ATTRS)), left


@builds("broadcast")
def _broadcast(work: Work) -> None:
    """The old form: new dimensions in front."""
    work.count(1)
    rank, added = work.array().rank, len(work.fields.ints("broadcast_sizes"))
    work.emit(hlo.broadcast, {"dimensions": tuple(range(added, added + rank))})


def _dimension(fields: Fields) -> dict[str, Ints]:
    return {"dimensions": (fields.integer("dimension"),)}


primitive("reshape", hlo.reshape, None, 1)
primitive("transpose", hlo.transpose, lambda fields: {"dimensions": fields.ints("permutation")})
primitive("reverse", hlo.reverse, lambda fields: {"dimensions": fields.ints("dimensions")}, direct="dimensions")
primitive("dynamic_slice mhlo.dynamic-slice", hlo.dynamic_slice, lambda fields: {"dynamic_slice_sizes": fields.ints("slice_sizes")},
          direct="slice_sizes")
primitive("dynamic_update_slice", hlo.dynamic_update_slice, direct="")
primitive("get_dimension_size", hlo.get_dimension_size, _dimension)
primitive("set_dimension_size", hlo.set_dimension_size, _dimension)
primitive("partition_id", hlo.partition_id)
primitive("replica_id", hlo.replica_id)


@builds("concatenate")
def _concatenate(work: Work) -> None:
    attrs = _dimension(work.fields)
    dimension, = attrs["dimensions"]
    if not 0 <= dimension < work.array().rank:
        raise TypeFault(f"dimension {dimension} of '{work.operation.name}' is out of range for rank {work.array().rank}")
    work.emit(hlo.concatenate, attrs)


directly_inferred("concatenate", "dimension", hlo.concatenate, _dimension)
RANGES = ("start_indices", "limit_indices", "strides")
PADDING = ("edge_padding_low", "edge_padding_high", "interior_padding")


def _rows(fields: Fields, name: str, columns: Sequence[str]) -> dict[str, tuple[Ints, ...]]:
    """An attribute with a row for each dimension, from ``columns``, lists of integers. Raises TypeFault where those differ in length."""
    lists = [fields.ints(column) for column in columns]
    if len(set(map(len, lists))) != 1:
        raise TypeFault(f"{', '.join(columns)} of '{fields.owner}' must have the same length")
    return {name: tuple(zip(*lists, strict=True))}


@builds("slice")
def _slice(work: Work) -> None:
    fields, rank = work.fields, work.array().rank
    if any(len(fields.ints(name)) != rank for name in RANGES):
        raise TypeFault(f"'{work.operation.name}' op needs a start, a limit and a stride for each of {rank} dimensions")
    work.emit(hlo.slice, _rows(fields, "slice", RANGES))


directly_inferred("slice", " ".join(RANGES), hlo.slice, lambda fields: _rows(fields, "slice", RANGES))
directly_inferred("pad", " ".join(PADDING), hlo.pad, lambda fields: _rows(fields, "padding", PADDING))


@builds("pad")
def _pad(work: Work) -> None:
    fields = work.fields
    low, high = fields.ints("edge_padding_low"), fields.ints("edge_padding_high")
    interior = fields.ints("interior_padding", (0,) * len(low))
    if not len(low) == len(high) == len(interior) == work.array().rank:
        raise TypeFault(f"'{work.operation.name}' op needs low, high and interior padding for each of {work.array().rank} dimensions")
    work.emit(hlo.pad, {"padding": tuple(zip(low, high, interior, strict=True))})


def _direct_constant(fields: Fields, applied: str) -> Direct:
    literal = fields.literal("value")
    return Direct(Made(*constant(literal)), lambda types, result: not types and literal.type is result)


def _direct_broadcast(fields: Fields, applied: str) -> Direct | None:
    """A broadcast that stretches no dimension of size 1."""
    dimensions = fields.ints("broadcast_dimensions")
    if len(set(dimensions)) != len(dimensions) or (dimensions and min(dimensions) < 0):
        return None

    def fits(types: Sequence[TensorType], result: TensorType) -> bool:
        if len(types) != 1 or types[0].dtype is not result.dtype or types[0].rank != len(dimensions):
            return False
        shape = result.shape
        return not dimensions or (max(dimensions) < len(shape) and types[0].shape == tuple([shape[d] for d in dimensions]))

    def stretched(types: Sequence[TensorType], result: TensorType) -> Made | None:
        """With a chain that removes the dimensions of size 1."""
        if len(types) != 1 or types[0].dtype is not result.dtype or types[0].rank != len(dimensions):
            return None
        if max(dimensions, default=-1) >= result.rank:
            return None
        sizes = [result.shape[d] for d in dimensions]
        if not all(size in (1, wanted) for size, wanted in zip(types[0].shape, sizes, strict=True)):
            return None
        links, kept = stretch(types[0], result, dimensions)
        return Made(hlo.broadcast, {"dimensions": kept}, None, links)
    return Direct(Made(hlo.broadcast, {"dimensions": dimensions}), fits, stretched)


def _reshapes(types: Sequence[TensorType], result: TensorType) -> bool:
    return len(types) == 1 and types[0].dtype is result.dtype and prod(types[0].dims()) == prod(result.dims())


def _direct_transpose(fields: Fields, applied: str) -> Direct | None:
    permutation = fields.ints("permutation")
    if sorted(permutation) != list(range(len(permutation))):
        return None

    def fits(types: Sequence[TensorType], result: TensorType) -> bool:
        return len(types) == 1 and types[0].dtype is result.dtype and types[0].rank == len(permutation) \
            and result.shape == tuple([types[0].shape[d] for d in permutation])
    return Direct(Made(hlo.transpose, {"dimensions": permutation}), fits)


def _direct_iota(fields: Fields, applied: str) -> Direct:
    """An iota along the only dimension; along one of several, a chain and a broadcast."""
    dimension = fields.integer("iota_dimension")
    attrs = {"iota_dimension": dimension}
    fits = inferred(hlo.iota, attrs)

    def broadcast(types: Sequence[TensorType], result: TensorType) -> Made | None:
        if types or result.rank < 2 or not 0 <= dimension < result.rank:
            return None
        line = result.with_shape((result.shape[dimension],))
        chain = Link(hlo.iota, line, {"iota_dimension": 0}),
        return Made(hlo.broadcast, {"dimensions": (dimension,)}, None, chain) if _counts((), line) else None
    return Direct(Made(hlo.iota, attrs), lambda types, result: result.rank == 1 and fits(types, result), broadcast)


_counts = inferred(hlo.iota, {"iota_dimension": 0})


directly("constant", "value", _direct_constant)
directly("broadcast_in_dim", "broadcast_dimensions", _direct_broadcast)
directly_alone("reshape", hlo.reshape, _reshapes)
directly("transpose", "permutation", _direct_transpose)
directly("iota", "iota_dimension", _direct_iota)
