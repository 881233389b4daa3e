"""Arithmetic that XLA's algebraic simplifier folds or canonicalises (algebraic_simplifier.cc)."""
from __future__ import annotations

from collections.abc import Callable
from math import frexp

from irscope.fusion.canonicalise.computation import HloComputation, HloInstruction
from irscope.fusion.canonicalise.values import (
    COMPLEX,
    array_of,
    broadcast_scalar_constant,
    is_all,
    is_floating,
    is_integral,
    is_power_of_two,
    is_unsigned,
    scalar_of,
    unwrapped,
)
from irscope.graph import Op
from irscope.lazy import np
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast, Iota
from irscope.ops.attrs import Literal


def add(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Canonicalise sums with constants: the constant becomes the second operand, and constants are added to each other."""
    lhs, rhs = instr.operands
    if lhs.op is hlo.constant and rhs.op is not hlo.constant:
        return rewriter.become(instr, hlo.add, (rhs, lhs))
    if not _reassociates(rewriter, instr):
        return False
    if (pair := _constants(lhs, rhs, hlo.add)) is not None:
        x, c1, c2 = pair
        return rewriter.become(instr, hlo.add, (x, rewriter.spread(rewriter.elementwise(hlo.add, (c1, c2)), instr.dims)))
    if lhs.op is hlo.subtract and (c := _scalar_side(lhs.operands[0])) is not None and (d := _scalar_side(rhs)) is not None \
            and lhs.operands[1].op is not hlo.constant and (lhs.operands[0].op == rhs.op):
        return rewriter.become(instr, hlo.subtract, (rewriter.spread(rewriter.elementwise(hlo.add, (c, d)), instr.dims), lhs.operands[1]))
    return False


def _reassociates(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Whether constants that stand apart may be computed with each other: always of integers, in some releases of floats."""
    return rewriter.rewriting.reassociates or is_integral(instr.dtype)


def update_of_zeros(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Rewrite x + update(0, y, i) to update(x, slice(x, i) + y, i)."""
    for x, update in (instr.operands, instr.operands[::-1]):
        if update.op is hlo.dynamic_update_slice and update.operands[0].op is hlo.broadcast and is_all(update.operands[0], 0):
            part = update.operands[1]
            total = rewriter.elementwise(hlo.add, (rewriter.dynamic_slice(x, update.operands[2:], part.dims), part))
            return rewriter.become(instr, hlo.dynamic_update_slice, (x, total, *update.operands[2:]))
    return False


def distribute(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Rewrite a c + b c to (a + b) c where that is exact."""
    lhs, rhs = instr.operands
    if lhs.op is not hlo.multiply or rhs.op is not hlo.multiply or len(lhs.users) != 1 or len(rhs.users) != 1 or lhs is rhs:
        return False
    for c, a in (lhs.operands[::-1], lhs.operands):
        if c in rhs.operands and (is_integral(instr.dtype) or _is_power_of_two(c)):
            b = rhs.operands[1] if rhs.operands[0] is c else rhs.operands[0]
            return rewriter.become(instr, hlo.multiply, (rewriter.elementwise(hlo.add, (a, b)), c))
    return False


def _is_power_of_two(instr: HloInstruction) -> bool:
    value = scalar_of(unwrapped(instr))
    return isinstance(value, float) and value != 0 and value == value and frexp(abs(value))[0] == 0.5


def subtract(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Rewrite x - c to x + (-c) for a constant c."""
    lhs, rhs = instr.operands
    constant = unwrapped(rhs) if rhs.op is hlo.broadcast and rhs.operands[0].op is hlo.constant else rhs
    if lhs.op is not hlo.constant and constant.op is hlo.constant:
        negated = rewriter.elementwise(hlo.negate, (constant,))
        if rhs.op is hlo.broadcast:
            negated = rewriter.broadcast(negated, rhs.dims, Broadcast.of(rhs).dimensions)
        return rewriter.become(instr, hlo.add, (lhs, negated))
    return False


def constant_factors(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Collect constant factors: (a c) d becomes a (c d), (a c) spread(b) becomes a spread(b c)."""
    if not _reassociates(rewriter, instr):
        return False
    for product, other in (instr.operands, instr.operands[::-1]):
        if product.op is not hlo.multiply:
            continue
        for a, c in (product.operands, product.operands[::-1]):
            if a.op is hlo.constant:
                continue
            if c.op is hlo.constant and other.op is hlo.constant and c.dims == other.dims:
                return rewriter.become(instr, hlo.multiply, (a, rewriter.elementwise(hlo.multiply, (c, other))))
            scalar = c if c.op is hlo.constant and not c.dims else broadcast_scalar_constant(c)
            if scalar is not None and other.op is hlo.broadcast and other.operands[0].op is not hlo.constant:
                b = other.operands[0]
                product = rewriter.elementwise(hlo.multiply, (b, rewriter.spread(scalar, b.dims)))
                spread = rewriter.broadcast(product, instr.dims, Broadcast.of(other).dimensions)
                return rewriter.become(instr, hlo.multiply, (a, spread))
    if (pair := _constants(instr.operands[0], instr.operands[1], hlo.multiply)) is not None:
        x, c1, c2 = pair
        return rewriter.become(instr, hlo.multiply, (x, rewriter.spread(rewriter.elementwise(hlo.multiply, (c1, c2)), instr.dims)))
    return False


def invert(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Strength-reduce a division by a constant or a broadcast to a multiplication; the inverse is computed before the broadcast."""
    a, b = instr.operands
    if not is_floating(instr.dtype) and instr.dtype not in COMPLEX:
        return False
    constant = b.operands[0] if b.op is hlo.broadcast else b
    # One is its own inverse: where the text elides the constant, nothing folds the quotient, and the rule would apply for ever.
    if a.op is not hlo.constant and constant.op is hlo.constant and not is_all(a.operands[0] if a.op is hlo.reshape else a, 1):
        array = array_of(constant)
        if array is None:
            inverse = rewriter.elementwise(hlo.divide, (rewriter.full(1, constant), constant))
        else:  # XLA inverts the numbers directly (``InvertConstant``)
            with np.errstate(all="ignore"):
                literal = Literal.of((np.ones_like(array) / array).astype(array.dtype), constant.type)
            inverse = rewriter.make(hlo.constant, constant.type, (), {"literal": literal})
        if b.op is hlo.broadcast:
            inverse = rewriter.broadcast(inverse, b.dims, Broadcast.of(b).dimensions)
        return rewriter.become(instr, hlo.multiply, (a, inverse))
    if b.op is hlo.broadcast and instr.dtype not in COMPLEX and len(b.operands[0].users) == 1 and not rewriter.on_gpu \
            and rewriter.rewriting.inverts:
        inner = b.operands[0]
        inverse = rewriter.elementwise(hlo.divide, (rewriter.full(1, inner), inner))
        return rewriter.become(instr, hlo.multiply, (a, rewriter.broadcast(inverse, instr.dims, Broadcast.of(b).dimensions)))
    return False


def shift(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Rewrite an integer division by a power of two to a shift; a negative dividend is negated before and after it."""
    a, b = instr.operands
    value = scalar_of(unwrapped(b))
    if not is_integral(instr.dtype) or not is_power_of_two(value):
        return False
    places = value.bit_length() - 1
    if is_unsigned(instr.dtype):
        return rewriter.become(instr, hlo.shift_right_logical, (a, rewriter.full(places, a)))
    return _by_magnitude(rewriter, instr, lambda x: rewriter.elementwise(hlo.shift_right_logical, (x, rewriter.full(places, a))))


def _by_magnitude(rewriter: HloComputation, instr: HloInstruction, apply: Callable[[HloInstruction], HloInstruction]) -> bool:
    """Apply a function to the magnitude of the first operand, and restore that operand's sign in the result."""
    a = instr.operands[0]
    negative = rewriter.compare(a, rewriter.full(0, a), "LT")
    magnitude = rewriter.elementwise(hlo.select, (negative, rewriter.elementwise(hlo.negate, (a,)), a), a.dtype)
    result = apply(magnitude)
    return rewriter.become(instr, hlo.select, (negative, rewriter.elementwise(hlo.negate, (result,)), result))


def remainder(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Rewrite remainders by powers of two to masks, and remove those that change nothing."""
    a, b = instr.operands
    value = scalar_of(unwrapped(b))
    if is_integral(instr.dtype) and is_power_of_two(value):
        mask = rewriter.full(value - 1, a)
        if is_unsigned(instr.dtype):
            return rewriter.become(instr, hlo.and_, (a, mask))
        return _by_magnitude(rewriter, instr, lambda x: rewriter.elementwise(hlo.and_, (x, mask)))
    if a.op is hlo.iota and b.op is hlo.broadcast and isinstance(value, int) and value >= a.dims[Iota.of(a).iota_dimension]:
        return rewriter.replace(instr, a)
    return False


def log_of_power(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Rewrite log(x ** y) to y log |x|, and to 0 where y is 0."""
    x = instr.operands[0]
    if x.op is not hlo.power:
        return False
    base, exponent = x.operands
    size = base if base.dtype in COMPLEX else rewriter.elementwise(hlo.abs, (base,))
    product = rewriter.elementwise(hlo.multiply, (rewriter.elementwise(hlo.log, (size,)), exponent))
    zero = rewriter.compare(exponent, rewriter.full(0, exponent), "EQ")
    return rewriter.become(instr, hlo.select, (zero, rewriter.full(0, instr), product))


def _constants(lhs: HloInstruction, rhs: HloInstruction, op: Op) -> tuple[HloInstruction, HloInstruction, HloInstruction] | None:
    """x, c1 and c2 of (x op c1) op c2, if both constants are broadcast scalars or both are arrays."""
    if lhs.op != op:
        return None
    x, c1 = lhs.operands
    if c1.op is hlo.constant and rhs.op is hlo.constant and x.op is not hlo.constant:
        return x, c1, rhs
    a, b = broadcast_scalar_constant(c1), broadcast_scalar_constant(rhs)
    return (x, a, b) if a is not None and b is not None else None


def _scalar_side(instr: HloInstruction) -> HloInstruction | None:
    return instr if instr.op is hlo.constant else broadcast_scalar_constant(instr)
