"""Expands a bitcast between layouts into the equivalent transposes and reshapes.

``bitcast`` reads the physical buffer of its operand under the layout of its result, so its value depends on both layouts:
f32[2,3]{0,1} -> f32[3,2]{1,0} is a transpose. After the expansion no layout affects a value.
"""
from __future__ import annotations

from irscope.graph import Builder, Node, TensorType
from irscope.ops import hlo
from irscope.source import UserError


def as_movement(builder: Builder, node: Node, operand: Node) -> Node:
    """Build the equivalent of ``node`` (a bitcast) over ``operand``: at most transpose, bitcast-convert, reshape, transpose."""
    before = node.operands[0].type
    after = node.type
    if not isinstance(before, TensorType) or not isinstance(after, TensorType) or not isinstance(operand.type, TensorType):
        return operand  # a gap in the text, which the reader has reported
    order = _major_to_minor(before)
    for type in (before, after):
        if sorted(_major_to_minor(type)) != list(range(type.rank)):
            raise UserError(f"the layout of {type} does not list each dimension once, so the bitcast %{node.name} has no meaning")
    value = _transpose(builder, operand, order)
    if before.dtype is not after.dtype:
        value = _reinterpret(builder, value, after)
    target = _major_to_minor(after)
    physical = tuple(after.dims()[d] for d in target)
    if value.type != TensorType(after.dtype, physical):
        value = builder.add(hlo.reshape, (value,), {}, TensorType(after.dtype, physical), name=node.name)
    return _transpose(builder, value, tuple(target.index(d) for d in range(len(target))))


def _major_to_minor(type: TensorType) -> tuple[int, ...]:
    if type.layout is None or not type.layout.minor_to_major:
        return tuple(range(type.rank))
    return tuple(reversed(type.layout.minor_to_major))


def _transpose(builder: Builder, value: Node, order: tuple[int, ...]) -> Node:
    assert isinstance(value.type, TensorType)
    if order == tuple(range(len(order))):
        return value
    dims = value.type.dims()
    return builder.add(hlo.transpose, (value,), {"dimensions": order}, TensorType(value.type.dtype, tuple(dims[d] for d in order)))


def _reinterpret(builder: Builder, value: Node, after: TensorType) -> Node:
    """Reinterpret the bytes as another element type; a different width splits or joins the fastest-varying dimension."""
    assert isinstance(value.type, TensorType)
    old, new, dims = value.type.dtype, after.dtype, value.type.dims()
    if old.bits == new.bits:
        shape = dims
    elif old.bits > new.bits:
        shape = (*dims, old.bits // new.bits)
    else:
        ratio = new.bits // old.bits
        if dims and dims[-1] != ratio:
            split = (*dims[:-1], dims[-1] // ratio, ratio)
            value = builder.add(hlo.reshape, (value,), {}, TensorType(old, split))
            dims = split
        shape = dims[:-1]
    return builder.add(hlo.bitcast_convert, (value,), {}, TensorType(new, shape))
