"""Arithmetic that XLA's algebraic simplifier does at compile time or writes in its own way (algebraic_simplifier.cc)."""
from __future__ import annotations

from collections.abc import Callable
from math import frexp

from irscope.fusion.canonicalise.terms import Body, Term
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


def add(body: Body, term: Term) -> bool:
    """Sums with constants: the constant is the second operand, and constants are added to each other."""
    lhs, rhs = term.operands
    if lhs.op is hlo.constant and rhs.op is not hlo.constant:
        return body.become(term, hlo.add, (rhs, lhs))
    if (pair := _constants(lhs, rhs, hlo.add)) is not None:
        x, c1, c2 = pair
        return body.become(term, hlo.add, (x, _spread(body, body.elementwise(hlo.add, (c1, c2), term), term)))
    if lhs.op is hlo.subtract and (c := _scalar_side(lhs.operands[0])) is not None and (d := _scalar_side(rhs)) is not None \
            and lhs.operands[1].op is not hlo.constant and (lhs.operands[0].op == rhs.op):
        return body.become(term, hlo.subtract, (_spread(body, body.elementwise(hlo.add, (c, d), term), term), lhs.operands[1]))
    return False


def update_of_zeros(body: Body, term: Term) -> bool:
    """x + update(0, y, i) is update(x, slice(x, i) + y, i)."""
    for x, update in (term.operands, term.operands[::-1]):
        if update.op is hlo.dynamic_update_slice and update.operands[0].op is hlo.broadcast and is_all(update.operands[0], 0):
            part = update.operands[1]
            cut = body.make(hlo.dynamic_slice, part.type, (x, *update.operands[2:]), {"dynamic_slice_sizes": part.dims}, term)
            return body.become(term, hlo.dynamic_update_slice, (x, body.elementwise(hlo.add, (cut, part), term), *update.operands[2:]))
    return False


def distribute(body: Body, term: Term) -> bool:
    """a c + b c is (a + b) c where that is exact."""
    lhs, rhs = term.operands
    if lhs.op is not hlo.multiply or rhs.op is not hlo.multiply or len(lhs.users) != 1 or len(rhs.users) != 1 or lhs is rhs:
        return False
    for c, a in ((lhs.operands[1], lhs.operands[0]), (lhs.operands[0], lhs.operands[1])):
        if c in rhs.operands and (is_integral(term.dtype) or _is_power_of_two(c)):
            b = rhs.operands[1] if rhs.operands[0] is c else rhs.operands[0]
            return body.become(term, hlo.multiply, (body.elementwise(hlo.add, (a, b), term), c))
    return False


def _is_power_of_two(term: Term) -> bool:
    value = scalar_of(unwrapped(term))
    return isinstance(value, float) and value != 0 and value == value and frexp(abs(value))[0] == 0.5


def subtract(body: Body, term: Term) -> bool:
    """A constant that is subtracted is negated and added."""
    lhs, rhs = term.operands
    constant = unwrapped(rhs) if rhs.op is hlo.broadcast and rhs.operands[0].op is hlo.constant else rhs
    if lhs.op is not hlo.constant and constant.op is hlo.constant:
        negated = body.elementwise(hlo.negate, (constant,), term)
        if rhs.op is hlo.broadcast:
            negated = body.broadcast(negated, rhs.dims, Broadcast.of(rhs).dimensions, term)
        return body.become(term, hlo.add, (lhs, negated))
    return False


def constant_factors(body: Body, term: Term) -> bool:
    """Constant factors are gathered: (a c) d is a (c d), (a c) spread(b) is a spread(b c)."""
    for product, other in (term.operands, term.operands[::-1]):
        if product.op is not hlo.multiply:
            continue
        for a, c in (product.operands, product.operands[::-1]):
            if a.op is hlo.constant:
                continue
            if c.op is hlo.constant and other.op is hlo.constant and c.dims == other.dims:
                return body.become(term, hlo.multiply, (a, body.elementwise(hlo.multiply, (c, other), term)))
            scalar = c if c.op is hlo.constant and not c.dims else broadcast_scalar_constant(c)
            if scalar is not None and other.op is hlo.broadcast and other.operands[0].op is not hlo.constant:
                b = other.operands[0]
                factor = scalar if not b.dims else body.broadcast(scalar, b.dims, (), term)
                spread = body.broadcast(body.elementwise(hlo.multiply, (b, factor), term), term.dims, Broadcast.of(other).dimensions, term)
                return body.become(term, hlo.multiply, (a, spread))
    if (pair := _constants(term.operands[0], term.operands[1], hlo.multiply)) is not None:
        x, c1, c2 = pair
        return body.become(term, hlo.multiply, (x, _spread(body, body.elementwise(hlo.multiply, (c1, c2), term), term)))
    return False


def invert(body: Body, term: Term) -> bool:
    """Division by a constant, or by a broadcast: multiplication by what is inverted before it is broadcast."""
    a, b = term.operands
    if not is_floating(term.dtype) and term.dtype not in COMPLEX:
        return False
    constant = b.operands[0] if b.op is hlo.broadcast else b
    # What is one already is inverted: where the text elides the constant, nothing folds the quotient, and it would be inverted for ever.
    if a.op is not hlo.constant and constant.op is hlo.constant and not is_all(a.operands[0] if a.op is hlo.reshape else a, 1):
        array = array_of(constant)
        if array is None:
            inverse = body.elementwise(hlo.divide, (body.full(1, constant, term), constant), term)
        else:  # XLA inverts the numbers at once (``InvertConstant``)
            with np.errstate(all="ignore"):
                literal = Literal.of((np.ones_like(array) / array).astype(array.dtype), constant.type)
            inverse = body.make(hlo.constant, constant.type, (), {"literal": literal}, term)
        if b.op is hlo.broadcast:
            inverse = body.broadcast(inverse, b.dims, Broadcast.of(b).dimensions, term)
        return body.become(term, hlo.multiply, (a, inverse))
    if b.op is hlo.broadcast and term.dtype not in COMPLEX and len(b.operands[0].users) == 1 and not body.on_gpu:
        inner = b.operands[0]
        inverse = body.elementwise(hlo.divide, (body.full(1, inner, term), inner), term)
        return body.become(term, hlo.multiply, (a, body.broadcast(inverse, term.dims, Broadcast.of(b).dimensions, term)))
    return False


def shift(body: Body, term: Term) -> bool:
    """An integer divided by a power of two is shifted; a negative one is negated before and after."""
    a, b = term.operands
    value = scalar_of(unwrapped(b))
    if not is_integral(term.dtype) or not is_power_of_two(value):
        return False
    places = value.bit_length() - 1
    if is_unsigned(term.dtype):
        return body.become(term, hlo.shift_right_logical, (a, body.full(places, a, term)))
    return _by_magnitude(body, term, lambda x: body.elementwise(hlo.shift_right_logical, (x, body.full(places, a, term)), term))


def _by_magnitude(body: Body, term: Term, apply: Callable[[Term], Term]) -> bool:
    """Apply something to the magnitude of the first operand, and give the result its sign."""
    a = term.operands[0]
    negative = body.compare(a, body.full(0, a, term), "LT", term)
    magnitude = body.elementwise(hlo.select, (negative, body.elementwise(hlo.negate, (a,), term), a), term, a.dtype)
    result = apply(magnitude)
    return body.become(term, hlo.select, (negative, body.elementwise(hlo.negate, (result,), term), result))


def remainder(body: Body, term: Term) -> bool:
    """Remainders by powers of two are masks; those that change nothing are removed."""
    a, b = term.operands
    value = scalar_of(unwrapped(b))
    if is_integral(term.dtype) and is_power_of_two(value):
        mask = body.full(value - 1, a, term)
        if is_unsigned(term.dtype):
            return body.become(term, hlo.and_, (a, mask))
        return _by_magnitude(body, term, lambda x: body.elementwise(hlo.and_, (x, mask), term))
    if a.op is hlo.iota and b.op is hlo.broadcast and isinstance(value, int) and value >= a.dims[Iota.of(a).iota_dimension]:
        return body.replace(term, a)
    return False


def log_of_power(body: Body, term: Term) -> bool:
    """log(x ** y) is y log |x|, and 0 where y is 0."""
    x = term.operands[0]
    if x.op is not hlo.power:
        return False
    base, exponent = x.operands
    size = base if base.dtype in COMPLEX else body.elementwise(hlo.abs, (base,), term)
    product = body.elementwise(hlo.multiply, (body.elementwise(hlo.log, (size,), term), exponent), term)
    zero = body.compare(exponent, body.full(0, exponent, term), "EQ", term)
    return body.become(term, hlo.select, (zero, body.full(0, term, term), product))


def part_of_real(body: Body, term: Term) -> bool:
    """The real part of a real number is the number, its imaginary part 0."""
    x = term.operands[0]
    return x.dtype not in COMPLEX and body.replace(term, x if term.op is hlo.real else body.full(0, term, term))


def _constants(lhs: Term, rhs: Term, op: Op) -> tuple[Term, Term, Term] | None:
    """For (x op c1) op c2, with both constants scalars that are spread or both arrays: x, c1 and c2."""
    if lhs.op != op:
        return None
    x, c1 = lhs.operands
    if c1.op is hlo.constant and rhs.op is hlo.constant and x.op is not hlo.constant:
        return x, c1, rhs
    a, b = broadcast_scalar_constant(c1), broadcast_scalar_constant(rhs)
    return (x, a, b) if a is not None and b is not None else None


def _scalar_side(term: Term) -> Term | None:
    return term if term.op is hlo.constant else broadcast_scalar_constant(term)


def _spread(body: Body, value: Term, like: Term) -> Term:
    return value if value.dims == like.dims else body.broadcast(value, like.dims, (), like)
