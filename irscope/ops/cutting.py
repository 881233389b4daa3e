"""Operators that take arrays apart and put them together: slice, concatenate, pad."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from irscope.graph import Builder, Dim, Kind, Node, Op, TensorType, Type
from irscope.graph.node import Emitter, Read, Run, Value
from irscope.lazy import Array, np
from irscope.ops.attributes import Concatenate, Pad, Slice
from irscope.ops.attrs import LONGEST
from irscope.ops.building import convert as converted
from irscope.ops.costs import no_cost
from irscope.ops.faults import TypeFault
from irscope.ops.infer import arity, array, arrays, attr, dimension, one_dimension, plain
from irscope.ops.movement import operand_dims
from irscope.ops.nests import below, both, not_below
from irscope.ops.numerics import convert, dtype_of_result
from irscope.ops.registry import declare
from irscope.ops.shapes import higher_precision, merge, resized, same_dtype, same_size, size

# ---- slice

def _infer_slice(node: Node) -> Type:
    arity(node, 1)
    x, ranges = array(node, 0), attr(node, Slice.slice)
    if len(ranges) != x.rank:
        raise TypeFault(f"slice of {plain(x)} needs {x.rank} ranges, but has {len(ranges)}")
    shape: list[Dim] = []
    for d, (start, limit, stride) in enumerate(ranges):
        available = size(x.shape[d])
        shown = f"[{start}:{limit}:{stride}]"
        if start < 0 or limit < start or (available is not None and limit > available):
            raise TypeFault(f"slice {shown} of dimension {d} does not lie within {plain(x)}",
                            "0 <= start <= limit <= size; the limit is not part of the slice")
        if stride <= 0:
            raise TypeFault(f"slice {shown} of dimension {d} of {plain(x)} needs a stride of at least 1")
        length = -(-(limit - start) // stride)
        # One element of a dynamic dimension is always there.
        shape.append(length if length == 1 else resized(x.shape[d], length))
    return TensorType(x.dtype, tuple(shape))


def _slice_element(k: Emitter, node: Node, index: Sequence[Value], read: Read) -> Value:
    return read(0, [i * stride + start for i, (start, _, stride) in zip(index, Slice.of(node).slice, strict=True)])


slice_ = declare(Op(
    "slice", doc="From start to limit (not included) with a stride, in each dimension.", kind=Kind.INJECTIVE, infer=_infer_slice,
    reference=lambda run, node, x: np.asarray(x)[tuple(slice(*r) for r in Slice.of(node).slice)], element=_slice_element, cost=no_cost))


# ---- concatenate

def _infer_concatenate(node: Node) -> Type:
    types = arrays(node)
    if not types:
        raise TypeFault("concatenate needs an operand")
    first, along = types[0], one_dimension(node, Concatenate.dimensions, "goes along")
    dimension(node, along, first.rank, "dimension")
    shape, dtype = list(first.shape), first.dtype
    for t in types[1:]:
        if t.rank != first.rank:
            raise TypeFault(f"concatenate joins arrays of one rank, but got {plain(first)} and {plain(t)}")
        if not same_dtype(t.dtype, dtype, any_precision=True):
            raise TypeFault(f"operands of concatenate disagree on dtype: {plain(first)} and {plain(t)}", f"convert one side to {dtype}")
        for d in range(first.rank):
            if d != along and not same_size(first.shape[d], t.shape[d]):
                raise TypeFault(f"concatenate along dimension {along}: {plain(first)} and {plain(t)} differ in dimension {d} too")
            shape[d] = merge(shape[d], t.shape[d])
        dtype = higher_precision(dtype, t.dtype)
    shape[along] = _total([t.shape[along] for t in types])
    return TensorType(dtype, tuple(shape))


def _total(dims: Sequence[Dim]) -> Dim:
    """The sum of some sizes: open where one of them is open, dynamic where one is dynamic."""
    total = 0
    for dim in dims:
        known = size(dim)
        if known is None:
            return dim
        total += known
    return resized(next((dim for dim in dims if not isinstance(dim, int)), 0), total)


def _concatenate(run: Run, node: Node, *operands: Array) -> Array:
    dtype = dtype_of_result(node)
    return np.concatenate([convert(x, dtype) for x in operands], axis=Concatenate.of(node).dimensions[0])


def _concatenate_element(k: Emitter, node: Node, index: Sequence[Value], read: Read) -> Value:
    """Read every operand at the nearest index in its bounds, then select the right one."""
    along, dtype = Concatenate.of(node).dimensions[0], dtype_of_result(node)
    sizes = [operand_dims(node, n)[along] for n in range(len(node.operands))]
    filled = [n for n, length in enumerate(sizes) if length]
    value: Value | None = None
    for n in filled:
        start = sum(sizes[:n])
        place = index[along] - start if start else index[along]
        if n != filled[0]:
            place = k.binary("max", place, k.index(0))
        if n != filled[-1]:
            place = k.binary("min", place, k.index(sizes[n] - 1))
        here = k.convert(read(n, [*index[:along], place, *index[along + 1:]]), dtype)
        value = here if value is None else k.select(k.compare("GE", index[along], k.index(start)), here, value)
    assert value is not None, "an empty array has no element"
    return value


def _expand_concatenate(builder: Builder, node: Node, operands: Sequence[Node], raw: Mapping[str, str]) -> Node | None:
    """Operands of other precisions are converted first: then each can be written directly into the result."""
    dtype = dtype_of_result(node)
    if all(array(node, number).dtype is dtype for number in range(len(operands))):
        return None
    return builder.copy(node, [converted(builder, x, dtype) for x in operands])


concatenate = declare(Op(
    "concatenate", doc="One operand after the other along a dimension.", kind=Kind.INJECTIVE, infer=_infer_concatenate,
    reference=_concatenate, element=_concatenate_element, expand=_expand_concatenate, cost=no_cost))


# ---- pad

def _infer_pad(node: Node) -> Type:
    arity(node, 2)
    x, value, padding = array(node, 0), array(node, 1), attr(node, Pad.padding)
    if value.rank:
        raise TypeFault(f"pad fills with a scalar, but %{node.operands[1].name} is {plain(value)}")
    if len(padding) != x.rank:
        raise TypeFault(f"pad of {plain(x)} needs padding for {x.rank} dimensions, but has it for {len(padding)}")
    if not same_dtype(x.dtype, value.dtype, any_precision=True):
        raise TypeFault(f"operands of pad disagree on dtype: {plain(x)} and {plain(value)}", f"convert the value to {x.dtype}")
    shape: list[Dim] = []
    for d, (low, high, interior) in enumerate(padding):
        if interior < 0:
            raise TypeFault(f"interior padding cannot be negative, but is {interior} in dimension {d}")
        length = size(x.shape[d])
        if length is None:
            shape.append(x.shape[d])
            continue
        total = length + low + high + max(length - 1, 0) * interior
        if total < 0:
            raise TypeFault(f"padding {low}_{high}_{interior} leaves dimension {d} of {plain(x)} with the negative size {total}")
        if max(abs(low), abs(high), interior, max(length - 1, 0) * interior + length + max(low, 0) + max(high, 0)) >= LONGEST:
            raise TypeFault(f"padding {low}_{high}_{interior} of dimension {d} of {plain(x)} makes positions that do not fit in 64 bits")
        shape.append(resized(x.shape[d], total))
    return TensorType(higher_precision(x.dtype, value.dtype), tuple(shape))


def _pad(run: Run, node: Node, x: Array, value: Array) -> Array:
    x, dtype = np.asarray(x), dtype_of_result(node)
    kept, places, dims = [], [], []
    for length, (low, high, interior) in zip(x.shape, Pad.of(node).padding, strict=True):
        total = length + low + high + max(length - 1, 0) * interior
        place = low + np.arange(length) * (interior + 1)
        inside = (place >= 0) & (place < total)
        kept.append(np.flatnonzero(inside))
        places.append(place[inside])
        dims.append(total)
    result = np.full(dims, convert(value, dtype))
    result[np.ix_(*places)] = convert(x[np.ix_(*kept)], dtype)
    return result


def _pad_element(k: Emitter, node: Node, index: Sequence[Value], read: Read) -> Value:
    dtype = dtype_of_result(node)
    dims = operand_dims(node)
    fill = k.convert(read(1, ()), dtype)
    if 0 in dims:
        return fill
    inside: Value | None = None
    place: list[Value] = []
    for i, length, (low, high, interior) in zip(index, dims, Pad.of(node).padding, strict=True):
        at = i - low if low else i
        if low > 0:
            inside = both(k, inside, not_below(k, at, 0))
            at = k.binary("max", at, k.index(0))
        if interior:
            inside = both(k, inside, k.compare("EQ", at % (interior + 1), k.index(0)))
            at = at // (interior + 1)
        if high > 0:
            inside = both(k, inside, below(k, at, length))
            at = k.binary("min", at, k.index(length - 1))
        place.append(at)
    value = k.convert(read(0, place), dtype)
    return value if inside is None else k.select(inside, value, fill)


pad = declare(Op(
    "pad", doc="Interior padding between the elements, then low and high around them; negative low and high crop.", kind=Kind.INJECTIVE,
    infer=_infer_pad, reference=_pad, element=_pad_element, cost=no_cost))
