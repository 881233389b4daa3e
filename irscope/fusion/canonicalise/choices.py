"""Comparisons, selections, logic, extremes and conversions."""
from __future__ import annotations

from irscope.fusion.canonicalise.terms import Body, Term, tensor_type
from irscope.fusion.canonicalise.values import bits, is_all, is_integral, is_non_negative, is_unsigned, scalar_of, unwrapped
from irscope.graph import DTYPES
from irscope.ops import hlo
from irscope.ops.attributes import Compare


def compare(body: Body, term: Term) -> bool:
    """A comparison whose answer is known (``HandleCompare``)."""
    lhs, rhs = term.operands
    direction = Compare.of(term).direction
    answer: bool | None = None
    if lhs is rhs and is_integral(lhs.dtype):
        answer = direction in ("EQ", "GE", "LE")
    elif (is_unsigned(lhs.dtype) or is_non_negative(lhs)) and is_all(rhs, 0) and direction in ("LT", "GE"):
        answer = direction == "GE"
    elif (is_unsigned(rhs.dtype) or is_non_negative(rhs)) and is_all(lhs, 0) and direction in ("GT", "LE"):
        answer = direction == "LE"
    if answer is not None:
        return body.replace(term, body.full(answer, term, term))
    return False


def select_of_pred(body: Body, term: Term) -> bool:
    """A selection between two truth values by comparing them (``HandleSelect``)."""
    mask, yes, no = term.operands
    if term.dtype == "pred" and mask.op is hlo.compare and mask.operands == [yes, no]:
        direction = Compare.of(mask).direction
        if direction in ("GT", "GE", "LT", "LE"):
            return body.become(term, hlo.or_ if direction[0] == "G" else hlo.and_, (yes, no))
        return body.replace(term, no if direction == "EQ" else yes)
    return False


def select_of_update(body: Body, term: Term) -> bool:
    """A selection between an array and an update of it selects in the updated part (``HandleSelect``)."""
    mask, yes, no = term.operands
    for update, other, first in ((yes, no, True), (no, yes, False)):
        if update.op is hlo.dynamic_update_slice and update.operands[0] is other and len(update.users) == 1:
            part, places = update.operands[1], update.operands[2:]
            small = mask if not mask.dims else body.make(hlo.dynamic_slice, tensor_type("pred", part.dims), (mask, *places),
                                                         {"dynamic_slice_sizes": part.dims}, term)
            old = body.make(hlo.dynamic_slice, part.type, (other, *places), {"dynamic_slice_sizes": part.dims}, term)
            chosen = body.make(hlo.select, part.type, (small, part, old) if first else (small, old, part), {}, term)
            return body.become(term, hlo.dynamic_update_slice, (other, chosen, *places))
    return False


def bounds(body: Body, term: Term) -> bool:
    """Two upper bounds of one number are the smaller one (``HandleAnd``)."""
    lhs, rhs = term.operands
    a, b = _upper_bound(lhs), _upper_bound(rhs)
    if a is not None and b is not None and a[0] is b[0]:
        return body.become(term, hlo.compare, (a[0], body.full(min(a[1], b[1]), a[0], term)), {"direction": "LT"})
    return False


def is_ones(term: Term) -> bool:
    """Whether all bits of every element are set."""
    return is_all(term, 1 if term.dtype == "pred" else (1 << bits(term.dtype)) - 1 if is_unsigned(term.dtype) else -1)


def _upper_bound(term: Term) -> tuple[Term, int] | None:
    if term.op is not hlo.compare or term.elements != 1 or term.operands[0].dtype != "s32":
        return None
    lhs, rhs = term.operands
    direction = Compare.of(term).direction
    if direction == "LT" and isinstance(scalar_of(rhs), int):
        return lhs, scalar_of(rhs)
    if direction == "GT" and isinstance(scalar_of(lhs), int):
        return rhs, scalar_of(lhs)
    return None


def extreme(body: Body, term: Term) -> bool:
    """A maximum of a maximum, or minimum of a minimum, of one value; a clamp (``HandleMaximum``, ``HandleMinimum``)."""
    lhs, rhs = term.operands
    if lhs.op == term.op and rhs in lhs.operands:
        return body.replace(term, lhs)
    if rhs.op == term.op and rhs.operands[0] is lhs:
        return body.replace(term, rhs)
    if rhs.op == term.op and rhs.operands[1] is lhs:
        return body.become(term, term.op, (lhs, rhs.operands[0]))
    return _as_clamp(body, term)


def is_least(term: Term, of_maximum: bool) -> bool:
    """Whether every element is the value that a maximum (minimum) never gives but to itself; NaN is passed on."""
    dtype = DTYPES.get(term.dtype)
    constant = unwrapped(term)
    if dtype is None or constant.op is not hlo.constant or constant.elements != 1:
        return False
    value = scalar_of(constant)
    return value is not None and (dtype.is_float or dtype.is_integer) and bool(value == (dtype.lowest if of_maximum else dtype.highest))


def _as_clamp(body: Body, term: Term) -> bool:
    """The larger of a bound and the smaller of another bound and x is x, clamped."""
    inner_op = hlo.minimum if term.op is hlo.maximum else hlo.maximum
    for bound, inner in (term.operands, term.operands[::-1]):
        if inner.op is not inner_op or not _is_bound(bound):
            continue
        for x, other in (inner.operands, inner.operands[::-1]):
            if _is_bound(other):
                low, high = (bound, other) if term.op is hlo.maximum else (other, bound)
                if scalar_of(low.operands[0]) < scalar_of(high.operands[0]):
                    return body.become(term, hlo.clamp, (low, x, high))
    return False


def _is_bound(term: Term) -> bool:
    return term.op is hlo.broadcast and term.operands[0].op is hlo.constant and term.operands[0].elements == 1 \
        and scalar_of(term.operands[0]) is not None


def convert(body: Body, term: Term) -> bool:
    """Simplify a conversion (``HandleConvert``)."""
    source = term.operands[0]
    if source.dtype == term.dtype:
        return body.replace(term, source)
    if source.op is hlo.convert and source.operands[0].dtype == term.dtype and preserves(source.operands[0].dtype, source.dtype):
        return body.replace(term, source.operands[0])
    return _around_binary(body, term)


def bitcast_convert(body: Body, term: Term) -> bool:
    """Bits that are read as something else and back, or as what they are."""
    source = term.operands[0]
    if source.op is hlo.bitcast_convert and source.operands[0].dtype == term.dtype:
        return body.replace(term, source.operands[0])
    return source.dtype == term.dtype and body.replace(term, source)


def _around_binary(body: Body, term: Term) -> bool:
    """Whole numbers that are widened, added and narrowed again are added as they are."""
    op = term.operands[0]
    if op.op not in (hlo.add, hlo.subtract, hlo.multiply) or len(op.users) != 1:
        return False
    if any(o.op is not hlo.convert or len(o.users) != 1 for o in op.operands):
        return False
    a, b = (o.operands[0] for o in op.operands)
    alike = is_integral(a.dtype) and is_integral(op.dtype) and is_unsigned(a.dtype) == is_unsigned(op.dtype)
    if a.dtype != term.dtype or b.dtype != term.dtype or not alike or bits(a.dtype) < 8:
        return False
    return preserves(a.dtype, op.dtype) and body.become(term, op.op, (a, b))


def preserves(source: str, target: str) -> bool:
    """Whether every value of an element type can be written in another (``CastPreservesValues``)."""
    return source == target or (source in DTYPES and target in DTYPES and DTYPES[target].holds(DTYPES[source]))
