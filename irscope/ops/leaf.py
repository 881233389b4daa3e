"""Operators without work: parameters, constants, iota, tuples and their parts, the number of this device."""
from __future__ import annotations

from collections.abc import Sequence

from irscope.graph import Kind, Node, Op, TensorType, TupleType, Type
from irscope.graph.dtypes import DTYPES, S64, U32
from irscope.graph.node import Emitter, Read, Run, Value
from irscope.lazy import Array, np
from irscope.ops.attributes import Constant, GetTupleElement, Iota, Parameter
from irscope.ops.attrs import Literal
from irscope.ops.costs import no_cost
from irscope.ops.faults import TypeFault
from irscope.ops.infer import arity, attr, declared_array, dimension, kind_of, plain
from irscope.ops.numerics import dtype_of_result
from irscope.ops.registry import declare


def _infer_parameter(node: Node) -> Type:
    arity(node, 0)
    if attr(node, Parameter.number) < 0:
        raise TypeFault(f"parameters are numbered from 0, but %{node.name} has number {Parameter.of(node).number}")
    return plain(node.type)


parameter = declare(Op(
    "parameter", work="parameter", doc="A value that the caller gives.", kind=Kind.LEAF, infer=_infer_parameter,
    reference=lambda run, node, value: value))


def _infer_constant(node: Node) -> Type:
    arity(node, 0)
    literal = attr(node, Constant.literal)
    return plain(literal.type)


def _constant(run: Run, node: Node) -> object:
    literal: Literal = Constant.of(node).literal
    return literal.value()


def _constant_element(k: Emitter, node: Node, index: Sequence[Value], read: Read) -> Value:
    """Only for scalars and arrays of one value: lowering assigns memory to the others."""
    values = np.asarray(Constant.of(node).literal.value()).reshape(-1)
    return k.const(values[0].item() if values.dtype.kind in "biufc" else float(values[0]), dtype_of_result(node))


constant = declare(Op(
    "constant", doc="A value in the text.", kind=Kind.LEAF, infer=_infer_constant, reference=_constant,
    element=_constant_element))


def _infer_iota(node: Node) -> Type:
    arity(node, 0)
    t = declared_array(node)
    kind_of(node, t, ("int", "uint", "float", "complex"), "result")
    if not t.rank:
        raise TypeFault(f"iota counts along a dimension, but its result is the scalar {plain(t)}", "a scalar 0 is a constant")
    dimension(node, attr(node, Iota.iota_dimension), t.rank, "iota_dimension")
    return plain(t)


def _iota(run: Run, node: Node) -> Array:
    assert isinstance(node.type, TensorType)
    dims, along = node.type.dims(), Iota.of(node).iota_dimension
    # Counted in s64 and converted, because u8 and s4 wrap where numpy's own arange would refuse.
    counted = np.arange(dims[along]).astype(np.int64).astype(node.type.dtype.numpy())
    shape = [1] * len(dims)
    shape[along] = dims[along]
    return np.broadcast_to(counted.reshape(shape), dims)


def _iota_element(k: Emitter, node: Node, index: Sequence[Value], read: Read) -> Value:
    dtype = dtype_of_result(node)
    place = index[Iota.of(node).iota_dimension]
    if dtype.is_complex:
        part = DTYPES["f32" if dtype.bits == 64 else "f64"]
        return k.complex(k.convert(place, part), k.const(0, part))
    return place if dtype is S64 else k.convert(place, dtype)


iota = declare(Op(
    "iota", doc="0, 1, 2 ... along ``iota_dimension``, the same along all others; wraps in narrow integers.", kind=Kind.INJECTIVE,
    infer=_infer_iota, reference=_iota, element=_iota_element, cost=no_cost))


def _infer_tuple(node: Node) -> Type:
    return TupleType(tuple(plain(o.type) for o in node.operands))


tuple_ = declare(Op(
    "tuple", doc="Several values in one.", kind=Kind.TUPLE, infer=_infer_tuple, reference=lambda run, node, *values: tuple(values),
    cost=no_cost))


def _infer_get(node: Node) -> Type:
    arity(node, 1)
    operand = node.operands[0]
    if not isinstance(operand.type, TupleType):
        raise TypeFault(f"get-tuple-element takes part of a tuple, but %{operand.name} is {operand.type}")
    index = attr(node, GetTupleElement.index)
    if not 0 <= index < len(operand.type.elements):
        raise TypeFault(f"get-tuple-element asks for element {index}, but %{operand.name} has {len(operand.type.elements)}: {operand.type}",
                        f"the last element is {len(operand.type.elements) - 1}")
    return plain(operand.type.elements[index])


get_tuple_element = declare(Op(
    "get-tuple-element", doc="One value of a tuple.", kind=Kind.TUPLE, infer=_infer_get,
    reference=lambda run, node, values: values[GetTupleElement.of(node).index], cost=no_cost))


def _device_number(name: str, doc: str) -> Op:
    def infer(node: Node) -> Type:
        arity(node, 0)
        return TensorType(U32, ())
    return declare(Op(name, doc=doc, kind=Kind.LEAF, work="collective", infer=infer, reference=lambda run, node: np.zeros((), np.uint32),
                      element=lambda k, node, index, read: k.const(0, U32), cost=no_cost))


partition_id = _device_number("partition-id", "The number of the partition that runs this; 0 when there is one.")
replica_id = _device_number("replica-id", "The number of the replica that runs this; 0 when there is one.")
