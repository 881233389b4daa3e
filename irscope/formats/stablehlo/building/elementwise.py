"""Elementwise operations: one primitive each, over operands of one type."""
from __future__ import annotations

from irscope.formats.stablehlo.attributes import Text
from irscope.formats.stablehlo.building.work import Build, Work, declare, plainly
from irscope.graph import NO_ATTRS, Node, Op, TensorType
from irscope.ops import hlo
from irscope.ops.attrs import ResultAccuracy
from irscope.ops.faults import TypeFault
from irscope.ops.infer import plain
from irscope.ops.registry import get

SAME = """add and cbrt ceil cosine count_leading_zeros divide exponential exponential_minus_one floor log log_plus_one logistic maximum
minimum multiply negate not or popcnt power remainder round_nearest_afz round_nearest_even rsqrt shift_left shift_right_arithmetic
shift_right_logical sign sine sqrt subtract tan tanh xor atan2"""
"""Operations whose operands and result have one type, and whose names in HLO differ in ``-`` for ``_`` alone."""
OTHER = "abs complex real imag is_finite"


def _same(op: Op, count: int) -> Build:
    def build(work: Work) -> None:
        operands = work.operands
        if len(operands) != count:
            work.count(count)
        result = work.operation.results[0].type
        for operand in operands:
            if operand.type is not result and operand.type != result:
                _check(work, operand, result)
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


def _check(work: Work, operand: Node, result: object) -> None:
    """Raise TypeFault where an operand has another type than the result; sizes that are unknown agree with all."""
    one, other = operand.type, result
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


def _reduce_precision(work: Work) -> None:
    fields = work.fields
    work.emit(hlo.reduce_precision, {"exponent_bits": fields.integer("exponent_bits"), "mantissa_bits": fields.integer("mantissa_bits")})


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


def _identity(work: Work) -> None:
    """An annotation: its operand."""
    work.emit(hlo.copy)


UNARY = frozenset("""cbrt ceil cosine count_leading_zeros exponential exponential_minus_one floor log log_plus_one logistic negate not
popcnt round_nearest_afz round_nearest_even rsqrt sign sine sqrt tan tanh""".split())

for _name in SAME.split():
    _op = get(_name.replace("_", "-"))
    _build = _same(_op, 1 if _name in UNARY else 2)
    declare(f"{_name} mhlo.{_name}", _build)
for _name in "erf sinh cosh asin acos asinh acosh atan atanh".split():
    declare(f"chlo.{_name} mhlo.{_name}", _same(get(_name), 1))
declare("chlo.tan", _same(hlo.tan, 1))
declare("chlo.mulhi mhlo.mulhi", _same(get("mulhi"), 2))
for _name in OTHER.split():
    declare(f"{_name} mhlo.{_name}", plainly(get(_name.replace("_", "-"))))
declare("compare mhlo.compare", _compare)
declare("convert mhlo.convert", _convert)
declare("reduce_precision mhlo.reduce_precision", _reduce_precision)
declare("select mhlo.select", _select)
declare("clamp mhlo.clamp", lambda work: work.emit(hlo.clamp))
declare("mhlo.copy", _identity)
declare("bitcast_convert mhlo.bitcast_convert", lambda work: work.emit(hlo.bitcast_convert))
declare("mhlo.bitcast", lambda work: work.emit(hlo.bitcast))
declare("mhlo.stochastic_convert", lambda work: work.emit(hlo.stochastic_convert))
