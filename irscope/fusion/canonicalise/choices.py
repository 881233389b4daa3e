"""Comparisons, selections, logic, extremes and conversions."""
from __future__ import annotations

from irscope.fusion.canonicalise.computation import HloComputation, HloInstruction
from irscope.fusion.canonicalise.values import bits, is_all, is_integral, is_non_negative, is_unsigned, scalar_of, unwrapped
from irscope.graph import DTYPES
from irscope.ops import hlo
from irscope.ops.attributes import Compare


def compare(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Fold a comparison whose result is known (``HandleCompare``)."""
    lhs, rhs = instr.operands
    direction = Compare.of(instr).direction
    answer: bool | None = None
    if lhs is rhs and is_integral(lhs.dtype):
        answer = direction in ("EQ", "GE", "LE")
    elif direction in ("LT", "GE") and is_all(rhs, 0) and (is_unsigned(lhs.dtype) or is_non_negative(lhs)):
        answer = direction == "GE"
    elif direction in ("GT", "LE") and is_all(lhs, 0) and (is_unsigned(rhs.dtype) or is_non_negative(rhs)):
        answer = direction == "LE"
    return answer is not None and rewriter.replace(instr, rewriter.full(answer, instr))


def select_of_update(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Rewrite a selection between an array and an update of it to an update by a selection (``HandleSelect``)."""
    mask, yes, no = instr.operands
    for update, other, first in ((yes, no, True), (no, yes, False)):
        if update.op is hlo.dynamic_update_slice and update.operands[0] is other and len(update.users) == 1:
            part, places = update.operands[1], update.operands[2:]
            small = rewriter.dynamic_slice(mask, places, part.dims) if mask.dims else mask
            old = rewriter.dynamic_slice(other, places, part.dims)
            chosen = rewriter.make(hlo.select, part.type, (small, part, old) if first else (small, old, part))
            return rewriter.become(instr, hlo.dynamic_update_slice, (other, chosen, *places))
    return False


def bounds(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Merge two upper bounds of one number into the smaller one (``HandleAnd``)."""
    lhs, rhs = instr.operands
    a, b = _upper_bound(lhs), _upper_bound(rhs)
    if a is not None and b is not None and a[0] is b[0]:
        return rewriter.become(instr, hlo.compare, (a[0], rewriter.full(min(a[1], b[1]), a[0])), {"direction": "LT"})
    return False


def is_ones(instr: HloInstruction) -> bool:
    """Whether all bits of every element are set."""
    return is_all(instr, 1 if instr.dtype == "pred" else (1 << bits(instr.dtype)) - 1 if is_unsigned(instr.dtype) else -1)


def _upper_bound(instr: HloInstruction) -> tuple[HloInstruction, int] | None:
    if instr.op is not hlo.compare or instr.elements != 1 or instr.operands[0].dtype != "s32":
        return None
    lhs, rhs = instr.operands
    direction = Compare.of(instr).direction
    if direction == "LT" and isinstance(scalar_of(rhs), int):
        return lhs, scalar_of(rhs)
    if direction == "GT" and isinstance(scalar_of(lhs), int):
        return rhs, scalar_of(lhs)
    return None


def extreme(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Simplify nested maxima or minima of one value, and recognise a clamp (``HandleMaximum``, ``HandleMinimum``)."""
    lhs, rhs = instr.operands
    if lhs.op == instr.op and rhs in lhs.operands:
        return rewriter.replace(instr, lhs)
    if rhs.op == instr.op and rhs.operands[0] is lhs:
        return rewriter.replace(instr, rhs)
    if rhs.op == instr.op and rhs.operands[1] is lhs:
        return rewriter.become(instr, instr.op, (lhs, rhs.operands[0]))
    return _as_clamp(rewriter, instr)


def is_least(instr: HloInstruction, of_maximum: bool) -> bool:
    """Whether every element is the neutral element of a maximum (or minimum); NaN propagates."""
    dtype = DTYPES.get(instr.dtype)
    constant = unwrapped(instr)
    if dtype is None or constant.op is not hlo.constant or constant.elements != 1:
        return False
    value = scalar_of(constant)
    return value is not None and (dtype.is_float or dtype.is_integer) and bool(value == (dtype.lowest if of_maximum else dtype.highest))


def _as_clamp(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Rewrite max(bound, min(another bound, x)) to a clamp of x."""
    inner_op = hlo.minimum if instr.op is hlo.maximum else hlo.maximum
    for bound, inner in (instr.operands, instr.operands[::-1]):
        if inner.op is not inner_op or not _is_bound(bound):
            continue
        for x, other in (inner.operands, inner.operands[::-1]):
            if _is_bound(other):
                low, high = (bound, other) if instr.op is hlo.maximum else (other, bound)
                if scalar_of(low.operands[0]) < scalar_of(high.operands[0]):
                    return rewriter.become(instr, hlo.clamp, (low, x, high))
    return False


def _is_bound(instr: HloInstruction) -> bool:
    return instr.op is hlo.broadcast and instr.operands[0].op is hlo.constant and instr.operands[0].elements == 1 \
        and scalar_of(instr.operands[0]) is not None


def narrow_binary(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Narrow integer arithmetic: operands that are widened, added and narrowed again are added in the narrow type (``HandleConvert``)."""
    op = instr.operands[0]
    if op.op not in (hlo.add, hlo.subtract, hlo.multiply) or len(op.users) != 1:
        return False
    if any(o.op is not hlo.convert or len(o.users) != 1 for o in op.operands):
        return False
    a, b = (o.operands[0] for o in op.operands)
    alike = is_integral(a.dtype) and is_integral(op.dtype) and is_unsigned(a.dtype) == is_unsigned(op.dtype)
    if a.dtype != instr.dtype or b.dtype != instr.dtype or not alike or bits(a.dtype) < 8:
        return False
    return preserves(a.dtype, op.dtype) and rewriter.become(instr, op.op, (a, b))


def preserves(source: str, target: str) -> bool:
    """Whether every value of one element type is representable in another (``CastPreservesValues``)."""
    return source == target or (source in DTYPES and target in DTYPES and DTYPES[target].holds(DTYPES[source]))
