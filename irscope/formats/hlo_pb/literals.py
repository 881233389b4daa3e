"""Values of constants and arguments: the fields of a LiteralProto as arrays in logical order."""
from __future__ import annotations

from math import prod

from irscope.formats.hlo.arrays import MAX_ELEMENTS, narrow
from irscope.formats.hlo.faults import Refused
from irscope.formats.hlo.types import TypeTable
from irscope.formats.hlo_pb.record import Malformed, Record
from irscope.formats.hlo_pb.shapes import shape_text
from irscope.graph import DType, TensorType, TupleType, Type
from irscope.lazy import Array, np
from irscope.source.budget import require

MAX_RANK = 64
"""The maximal number of dimensions of an array of numpy."""
_PLURALS = {"f32": "f32s", "f64": "f64s", "c64": "c64s", "c128": "c128s", "pred": "preds"}


def values_of(literal: Record) -> tuple[Type, list[Array]]:
    """The type of a literal and its arrays, one for each leaf of a tuple. Raises Malformed where they are not of the stated size."""
    text = shape_text(literal.record("shape"))
    try:
        type = TypeTable().lookup(text)
    except Refused as refused:
        raise Malformed(f"{text} is not the type of a literal: {refused.message}", -1) from None
    leaves: list[Array] = []
    stack = [(literal, type)]
    while stack:
        record, kind = stack.pop()
        if isinstance(kind, TupleType):
            parts = record.records("tuple_literals")
            if len(parts) != len(kind.elements):
                raise Malformed(f"a literal of type {kind} has {len(parts)} parts", -1)
            stack += reversed(list(zip(parts, kind.elements, strict=True)))
        else:
            leaves.append(array_of(record, kind))
    return type, leaves


def array_of(literal: Record, type: Type) -> Array:
    """The array of a literal. Raises Malformed where the data is not of the stated size."""
    if not isinstance(type, TensorType):
        raise Malformed(f"a constant of type {type} has no value", -1)
    try:
        dims, dtype = type.dims(), type.dtype
    except ValueError as error:
        raise Malformed(f"a constant has no size: {error}", -1) from None
    count = prod(dims)
    if len(dims) > MAX_RANK:
        raise Malformed(f"a constant has {len(dims)} dimensions, more than {MAX_RANK}", -1)
    if prod(size or 1 for size in dims) > MAX_ELEMENTS:  # numpy refuses such sizes of an array without elements, too
        raise Malformed(f"a constant of type {type} is too large", -1)
    name = _PLURALS.get(dtype.name, dtype.name + "s")
    if name not in literal.message.names:
        raise Malformed(f"a literal has no values of type {dtype.name}", -1)
    flat = literal.array(name) if literal.has(name) else np.zeros(0, np.uint8)
    require(len(flat) * 8, "a constant")
    flat = _typed(flat, dtype, count, literal.message.names[name].kind == "bytes")
    if len(flat) != count:
        raise Malformed(f"a constant of type {type} has {len(flat):,} values", -1)
    order = literal.record("shape").record("layout").numbers("minor_to_major")
    if sorted(order) == list(range(len(dims))) and order != list(range(len(dims)))[::-1]:
        flat = flat.reshape([dims[d] for d in reversed(order)]).transpose(np.argsort(order[::-1]))
    array = np.ascontiguousarray(flat).reshape(dims)
    array.flags.writeable = False
    return array


def _typed(flat: Array, dtype: DType, count: int, raw: bool) -> Array:
    """The values of a field as an array of a dtype. Types of less than a byte have one element in each byte, in old releases several."""
    wanted = dtype.numpy()
    if not raw:
        return flat.view(wanted) if dtype.is_complex and len(flat) % 2 == 0 else flat.astype(wanted)
    bits = dtype.bits
    if bits >= 8:
        size = np.dtype(wanted).itemsize
        return flat[:len(flat) // size * size].view(wanted)
    if len(flat) < count and bits in (1, 2, 4):
        flat = np.stack([flat >> shift for shift in range(0, 8, bits)], 1).reshape(-1)[:count]
    return narrow(flat, dtype)
