"""Elementwise operators that compare and choose: compare, select, clamp, and map, which applies a computation to each element."""
from __future__ import annotations

from irscope.graph import DTYPES, DType, Kind, Node, Op, TensorType, Type
from irscope.graph.dtypes import F32, PRED
from irscope.graph.node import Emitter, Run, Value
from irscope.lazy import Array, np
from irscope.ops import numerics
from irscope.ops.attributes import Compare, Map
from irscope.ops.bodies import mapped
from irscope.ops.costs import body_flops, result_elements
from irscope.ops.elementwise import operands_alike
from irscope.ops.faults import TypeFault
from irscope.ops.formula import FormulaTerm
from irscope.ops.infer import agree, arity, arrays, attr, body, distinct, kind_of, plain, takes
from irscope.ops.registry import declare
from irscope.ops.shapes import fits, higher_precision, merge, same_dtype, same_sizes

DIRECTIONS = ("EQ", "NE", "GE", "GT", "LE", "LT")


def comparison_type(dtype: DType) -> str:
    """The default ``type`` of a comparison of this element type."""
    return {"float": "FLOAT", "complex": "FLOAT", "int": "SIGNED"}.get(dtype.kind, "UNSIGNED")


def _infer_compare(node: Node) -> Type:
    arity(node, 2)
    direction = attr(node, Compare.direction)
    if direction not in DIRECTIONS:
        raise TypeFault(f"compare knows no direction {direction}", f"use one of {', '.join(DIRECTIONS)}")
    t = agree(node, arrays(node))
    usual = comparison_type(t.dtype)
    given = Compare.of(node).type or usual
    if given != usual and not (t.dtype.is_float and given == "TOTALORDER"):
        raise TypeFault(f"a comparison of {plain(t)} has type {usual}{' or TOTALORDER' * t.dtype.is_float}, not {given}",
                        "omit the type: it follows from the operands")
    if t.dtype.is_complex and direction not in ("EQ", "NE"):
        raise TypeFault(f"complex numbers have no order, but {direction} compares {plain(t)}", "compare real parts or absolute values")
    return TensorType(PRED, t.shape)


def _compare(run: Run, node: Node, x: Array, y: Array) -> Array:
    functions = {"EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal}
    with np.errstate(all="ignore"):
        x, y = numerics.widen(x), numerics.widen(y)
        if Compare.of(node).type == "TOTALORDER":
            x, y = numerics.total_order(x), numerics.total_order(y)
        x, y = numerics.flushed(x), numerics.flushed(y)
        return np.asarray(functions[Compare.of(node).direction](x, y))


def _compare_scalar(k: Emitter, node: Node, x: Value, y: Value) -> Value:
    x, y = operands_alike(k, (x, y))
    direction = Compare.of(node).direction
    if Compare.of(node).type == "TOTALORDER":
        x, y = total_order(k, x), total_order(k, y)
    return k.compare(direction, x, y)


def total_order(k: Emitter, x: Value) -> Value:
    """Integers that order floats as IEEE's total order does: the magnitude bits of negative ones are inverted."""
    if x.dtype.bits < 16:
        x = k.convert(x, F32)  # the narrow formats differ in their zeros, infinities and NaN
    signed = DTYPES[f"s{x.dtype.bits}"]
    bits = FormulaTerm(k, k.bitcast(x, signed))
    return (bits ^ (bits.binary("shr_arithmetic", x.dtype.bits - 1) & (1 << x.dtype.bits - 1) - 1)).value


compare = declare(Op(
    "compare", doc="A pred: x EQ, NE, GE, GT, LE or LT y. With NaN all but NE are false; type=TOTALORDER orders NaN and zeros by sign.",
    kind=Kind.ELEMENTWISE, infer=_infer_compare, reference=_compare, scalar=_compare_scalar))


def _infer_select(node: Node) -> Type:
    arity(node, 3)
    condition, yes, no = arrays(node)
    if condition.dtype is not PRED:
        raise TypeFault(f"select chooses by a pred, but %{node.operands[0].name} is {plain(condition)}", "compare it with 0 first")
    t = agree(node, [yes, no])
    if not condition.rank:
        return t
    if not same_sizes(condition.shape, t.shape):
        raise TypeFault(f"the predicate of select is {plain(condition)}, but it chooses between {plain(t)}",
                        "the predicate has the shape of the others, or is a scalar")
    return TensorType(t.dtype, tuple(map(merge, t.shape, condition.shape)))


def _select(run: Run, node: Node, condition: Array, yes: Array, no: Array) -> Array:
    dtype = numerics.dtype_of_result(node)
    return np.where(condition, numerics.convert(yes, dtype), numerics.convert(no, dtype))


def _select_scalar(k: Emitter, node: Node, condition: Value, yes: Value, no: Value) -> Value:
    yes, no = operands_alike(k, (yes, no))
    return k.convert(k.select(condition, yes, no), numerics.dtype_of_result(node))


select = declare(Op(
    "select", doc="The second operand where the predicate is true, else the third. The predicate may be a scalar.",
    kind=Kind.ELEMENTWISE, infer=_infer_select, reference=_select, scalar=_select_scalar))


def _infer_clamp(node: Node) -> Type:
    arity(node, 3)
    low, x, high = arrays(node)
    kind_of(node, x, ("pred", "int", "uint", "float"))
    dtype = x.dtype
    for bound, what in ((low, "lower"), (high, "upper")):
        if not same_dtype(bound.dtype, x.dtype, any_precision=True):
            raise TypeFault(f"clamp: the {what} bound is {plain(bound)}, but the operand is {plain(x)}", "convert the bound")
        if bound.rank and not same_sizes(bound.shape, x.shape):
            raise TypeFault(f"clamp: the {what} bound is {plain(bound)}, but the operand is {plain(x)}",
                            "a bound has the shape of the operand, or is a scalar")
        dtype = higher_precision(dtype, bound.dtype)
    return TensorType(dtype, x.shape)


def _clamp(low: Array, x: Array, high: Array) -> Array:
    return numerics.minimum(numerics.maximum(x, low), high)


def _clamp_scalar(k: Emitter, node: Node, *values: Value) -> Value:
    low, x, high = operands_alike(k, values)
    return k.convert(k.binary("min", k.binary("max", x, low), high), numerics.dtype_of_result(node))


clamp = declare(Op(
    "clamp", doc="``min(high, max(x, low))`` of (low, x, high); NaN in any gives NaN. The bounds may be scalars.",
    kind=Kind.ELEMENTWISE, infer=_infer_clamp, reference=numerics.numeric(_clamp), scalar=_clamp_scalar))


def _infer_map(node: Node) -> Type:
    types = arrays(node)
    if not types:
        raise TypeFault("map needs an operand")
    graph = body(node, 0, "to_apply")
    takes(node, graph, len(types))
    shape = types[0].shape
    for number, (t, parameter) in enumerate(zip(types, graph.params, strict=True)):
        if not same_sizes(t.shape, shape):
            raise TypeFault(f"operands of map disagree on shape: {plain(types[0])} and {plain(t)}")
        if not fits(parameter.type, TensorType(t.dtype, ())):
            raise TypeFault(f"map passes elements {t.dtype}[] to parameter {number} of {graph.name}, which is {plain(parameter.type)}")
    dimensions = Map.of(node).dimensions
    distinct(node, dimensions, "dimensions")
    if dimensions and tuple(dimensions) != tuple(range(len(shape))):
        raise TypeFault(f"map goes over all dimensions in order, but dimensions={{{','.join(map(str, dimensions))}}} "
                        f"do not fit {plain(types[0])}")
    result = graph.result().type
    if not isinstance(result, TensorType) or result.rank:
        raise TypeFault(f"the computation {graph.name} of map must give a scalar, but gives {plain(result)}")
    return TensorType(result.dtype, shape)


map_ = declare(Op(
    "map", doc="The computation ``to_apply`` of scalars, for each element of the operands.", kind=Kind.ELEMENTWISE, weight=4,
    infer=_infer_map, reference=lambda run, node, *operands: mapped(run, node.bodies[0], operands),
    scalar=lambda k, node, *values: k.inline(node.bodies[0], values)[0],
    cost=lambda node: result_elements(node) * body_flops(node.bodies[0])))
