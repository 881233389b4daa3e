"""Elementwise operations: one primitive each, over operands of one type."""
from __future__ import annotations

from collections.abc import Sequence

from irscope.formats.stablehlo.attributes import Text
from irscope.formats.stablehlo.building.direct import Direct, Link, Made, all_of_one_type, alone, directly, directly_alone, operator
from irscope.formats.stablehlo.building.fields import Fields
from irscope.formats.stablehlo.building.scope import result_type
from irscope.formats.stablehlo.building.work import Build, Work, declare, primitive
from irscope.formats.stablehlo.forms import BINARY, FORMS, UNARY
from irscope.graph import NO_ATTRS, Node, Op, TensorType
from irscope.graph.dtypes import PRED
from irscope.ops import hlo
from irscope.ops.attrs import ResultAccuracy
from irscope.ops.faults import TypeFault
from irscope.ops.infer import plain
from irscope.ops.registry import get

OTHER = frozenset("abs complex real imag is_finite clamp bitcast_convert".split())
"""Operations that only the operator's own inference checks: their operands and result may differ in type."""
SAME = tuple(name for name, form in FORMS.items() if form in (UNARY, BINARY) and name not in (*OTHER, "convert", "erf"))
"""Operations with one type for operands and result. HLO has them under the same names, with ``-`` for ``_``."""


def _same(op: Op, count: int) -> Build:
    def build(work: Work) -> None:
        operands = work.operands
        if len(operands) != count:
            work.count(count)
        result = result_type(work.operation)
        for operand in operands:
            if operand.type is not result and operand.type != result:
                check_same(work, operand, result)
        work.emit(op, accuracy(work) if "result_accuracy" in work.operation.attributes else NO_ATTRS)
    return build


def accuracy(work: Work) -> dict[str, ResultAccuracy]:
    """``result_accuracy``; none where it is the default."""
    given = work.fields.record("result_accuracy")
    mode = given.values.get("mode")
    word = (mode.text if isinstance(mode, Text) else given.word("mode")).rpartition("<")[2].rstrip(">")
    if word == "TOLERANCE":
        atol, rtol = (given.real(name) if name in given else 0.0 for name in ("atol", "rtol"))
        return {"result_accuracy": ResultAccuracy("tolerance", atol, rtol, given.integer("ulps", 0))}
    return {"result_accuracy": ResultAccuracy(word.lower())} if word != "DEFAULT" else {}


def check_same(work: Work, operand: Node, result: object) -> None:
    """Raise TypeFault where an operand has another type than the result; sizes that are unknown agree with all."""
    one, other = operand.type, result
    if one == other:
        return
    if isinstance(one, TensorType) and isinstance(other, TensorType) and one.dtype is other.dtype and one.rank == other.rank \
            and not (one.is_static and other.is_static and one.shape != other.shape):
        return
    raise TypeFault(f"'{work.operation.name}' op requires the same type for all operands and results, "
                    f"but %{operand.name} is {plain(operand.type)} and the result {result}")


def _compare(work: Work) -> None:
    work.count(2)
    attrs = {"direction": work.fields.word("comparison_direction")}
    kind = work.fields.word("compare_type", "NOTYPE")
    if kind == "TOTALORDER" and work.array().dtype.kind == "float":
        attrs["type"] = kind
    left, right = work.array(), work.array(1)
    if left.dtype is not right.dtype:
        raise TypeFault(f"'{work.operation.name}' op requires compatible types for all operands, but they are {plain(left)} and "
                        f"{plain(right)}")
    work.emit(hlo.compare, attrs)


DIRECTIONS = frozenset(("EQ", "NE", "GE", "GT", "LE", "LT"))
TYPES = frozenset(("NOTYPE", "FLOAT", "SIGNED", "UNSIGNED"))
"""The types of comparisons that HLO leaves to the operands."""


def _direct_compare(fields: Fields, applied: str) -> Direct | None:
    direction, kind = fields.word("comparison_direction"), fields.word("compare_type", "NOTYPE")
    return alone(hlo.compare, {"direction": direction}, _compares) if direction in DIRECTIONS and kind in TYPES else None


def _compares(types: Sequence[TensorType], result: TensorType) -> bool:
    if len(types) != 2:
        return False
    left, right = types
    return left is right and result.dtype is PRED and result.shape == left.shape and not left.dtype.is_complex


def _converts(types: Sequence[TensorType], result: TensorType) -> bool:
    return len(types) == 1 and types[0].shape == result.shape


def _selects(types: Sequence[TensorType], result: TensorType) -> bool:
    """With a predicate for each element; a scalar one is broadcast."""
    if len(types) != 3:
        return False
    chooser, yes, no = types
    return yes is result and no is result and chooser.dtype is PRED and chooser.shape == result.shape


def _selects_by_scalar(types: Sequence[TensorType], result: TensorType) -> Made | None:
    """With one predicate for all elements, which a chain broadcasts."""
    if len(types) != 3 or types[0].dtype is not PRED or types[0].rank or not result.rank or not types[1] is types[2] is result:
        return None
    return Made(hlo.select, NO_ATTRS, None, (Link(hlo.broadcast, types[0].with_shape(result.shape), {"dimensions": ()}),))


def _convert(work: Work) -> None:
    work.count(1)
    if work.array().shape != work.result_array().shape and work.array().is_static and work.result_array().is_static:
        raise TypeFault(f"'{work.operation.name}' op converts {plain(work.array())} to another shape, {plain(work.result_array())}")
    work.emit(hlo.convert)


def _select(work: Work) -> None:
    """A scalar predicate is broadcast: HLO's select takes one for each element."""
    work.count(3)
    chooser, result = work.array(), work.result_array()
    if not chooser.rank and result.rank and result.is_static:
        wide = work.step(hlo.broadcast, work.operands[:1], chooser.with_shape(result.shape), {"dimensions": ()})
        work.emit(hlo.select, {}, [wide, *work.operands[1:]])
    else:
        work.emit(hlo.select)


for _name in SAME:
    _op, _count = operator(_name), FORMS[_name].count("$")
    declare(_name, _same(_op, _count))
    directly_alone(_name, _op, all_of_one_type(_op, _count))
for _name in "erf sinh cosh asin acos asinh acosh atan atanh".split():
    declare(f"chlo.{_name} mhlo.{_name}", _same(get(_name), 1))
declare("chlo.tan", _same(hlo.tan, 1))
declare("chlo.mulhi mhlo.mulhi", _same(get("mulhi"), 2))
for _name in OTHER:
    primitive(_name, operator(_name), direct="")
for _name in ("copy", "bitcast", "stochastic_convert"):
    primitive(f"mhlo.{_name}", operator(_name))
declare("compare", _compare)
declare("convert", _convert)
declare("select", _select)
primitive("reduce_precision", hlo.reduce_precision, lambda fields: {
    "exponent_bits": fields.integer("exponent_bits"), "mantissa_bits": fields.integer("mantissa_bits")})
directly("compare", "comparison_direction compare_type", _direct_compare)
directly_alone("convert", hlo.convert, _converts)
directly("select", "", lambda fields, applied: Direct(Made(hlo.select, NO_ATTRS), _selects, _selects_by_scalar))
