"""Dimensions whose size is known only at run time: querying it, setting it, reshaping by it.

The reference keeps arrays of the actual size, so later operators never see the elements beyond it. Compiled code does not contain these
operators: :mod:`irscope.expand.dynamic` makes every size static and masks the padding.
"""
from __future__ import annotations

from irscope.graph import Dim, DynamicDim, Kind, Node, Op, TensorType, Type
from irscope.graph.dtypes import S32
from irscope.graph.node import Run
from irscope.lazy import Array, np
from irscope.ops.attributes import DimensionSize
from irscope.ops.costs import no_cost
from irscope.ops.faults import TypeFault
from irscope.ops.infer import arity, array, declared_array, dimension, one_dimension, plain
from irscope.ops.movement import operand_dims, reshaped
from irscope.ops.registry import declare
from irscope.ops.shapes import elements, size


def _one_dimension(node: Node, t: TensorType) -> int:
    return dimension(node, one_dimension(node, DimensionSize.dimensions, "is about"), t.rank, "dimension")


def _infer_get(node: Node) -> Type:
    arity(node, 1)
    _one_dimension(node, array(node, 0))
    return TensorType(S32, ())


get_dimension_size = declare(Op(
    "get-dimension-size", work="free", doc="The actual size of a dimension.", kind=Kind.INJECTIVE, infer=_infer_get,
    reference=lambda run, node, x: np.asarray(np.shape(x)[DimensionSize.of(node).dimensions[0]], np.int32),
    element=lambda k, node, index, read: k.const(operand_dims(node)[DimensionSize.of(node).dimensions[0]], S32), cost=no_cost))


def _infer_set(node: Node) -> Type:
    arity(node, 2)
    x, length = array(node, 0), array(node, 1)
    along = _one_dimension(node, x)
    if length.rank or length.dtype is not S32:
        raise TypeFault(f"set-dimension-size needs the size as s32[], but %{node.operands[1].name} is {plain(length)}")
    shape: list[Dim] = list(x.shape)
    bound = size(shape[along])
    shape[along] = DynamicDim("", bound)
    return TensorType(x.dtype, tuple(shape))


def _set(run: Run, node: Node, x: Array, length: Array) -> Array:
    along, wanted = DimensionSize.of(node).dimensions[0], int(length)
    x = np.asarray(x)
    missing = wanted - x.shape[along]
    if missing > 0:
        x = np.concatenate([x, np.zeros((*x.shape[:along], missing, *x.shape[along + 1:]), x.dtype)], axis=along)
    return x[(slice(None),) * along + (slice(0, max(wanted, 0)),)]


set_dimension_size = declare(Op(
    "set-dimension-size", doc="Sets the size of a dimension: only its first elements count from here on.", kind=Kind.INJECTIVE,
    infer=_infer_set, reference=_set, cost=no_cost))


def _infer_reshape(node: Node) -> Type:
    x, result = array(node, 0), declared_array(node)
    arity(node, result.rank + 1)
    if x.dtype is not result.dtype:
        raise TypeFault(f"dynamic-reshape keeps the element type, but goes from {plain(x)} to {plain(result)}")
    before, after = elements(x.shape), elements(result.shape)
    if before is not None and after is not None and before != after:
        raise TypeFault(f"dynamic-reshape keeps the elements, but goes from {plain(x)} with {before} to {plain(result)} with {after}")
    for number in range(1, len(node.operands)):
        length = array(node, number)
        if length.rank or length.dtype is not S32:
            raise TypeFault(f"dynamic-reshape needs sizes as s32[], but %{node.operands[number].name} is {plain(length)}")
    return plain(result)


def _reshape(run: Run, node: Node, x: Array, *sizes: Array) -> Array:
    dims = [int(s) for s in sizes]
    return reshaped(x, dims, dims)


dynamic_reshape = declare(Op(
    "dynamic-reshape", doc="Reshape to sizes that are operands; the declared type bounds them.", kind=Kind.INJECTIVE, infer=_infer_reshape,
    reference=_reshape, cost=no_cost))
