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
    is_non_negative,
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


def abs_(body: Body, term: Term) -> bool:
    """|A| is A where A cannot be negative."""
    x = term.operands[0]
    return is_non_negative(x) and x.type == term.type and body.replace(term, x)


def add(body: Body, term: Term) -> bool:
    """Sums with constants, and updates of zeros that are added to something."""
    lhs, rhs = term.operands
    if is_all(rhs, 0):
        return body.replace(term, lhs)
    if is_all(lhs, 0):
        return body.replace(term, rhs)
    if lhs.op is hlo.constant and rhs.op is not hlo.constant:
        return body.become(term, hlo.add, (rhs, lhs))
    if (pair := _constants(lhs, rhs, hlo.add)) is not None:
        x, c1, c2 = pair
        return body.become(term, hlo.add, (x, _spread(body, body.elementwise(hlo.add, (c1, c2), term), term)))
    if lhs.op is hlo.subtract and (c := _scalar_side(lhs.operands[0])) is not None and (d := _scalar_side(rhs)) is not None \
            and lhs.operands[1].op is not hlo.constant and (lhs.operands[0].op == rhs.op):
        return body.become(term, hlo.subtract, (_spread(body, body.elementwise(hlo.add, (c, d), term), term), lhs.operands[1]))
    if is_integral(term.dtype):
        for x, other in ((lhs, rhs), (rhs, lhs)):
            if other.op is hlo.subtract and other.operands[1] is x:
                return body.replace(term, other.operands[0])
    return _update_of_zeros(body, term) or _distribute(body, term)


def _update_of_zeros(body: Body, term: Term) -> bool:
    """x + update(0, y, i) is update(x, slice(x, i) + y, i)."""
    for x, update in (term.operands, term.operands[::-1]):
        if update.op is hlo.dynamic_update_slice and update.operands[0].op is hlo.broadcast and is_all(update.operands[0], 0):
            part = update.operands[1]
            cut = body.make(hlo.dynamic_slice, part.type, (x, *update.operands[2:]), {"dynamic_slice_sizes": part.dims}, term)
            return body.become(term, hlo.dynamic_update_slice, (x, body.elementwise(hlo.add, (cut, part), term), *update.operands[2:]))
    return False


def _distribute(body: Body, term: Term) -> bool:
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
    """Differences; a constant that is taken away is added, negated."""
    lhs, rhs = term.operands
    whole = is_integral(term.dtype)
    if whole and lhs is rhs:
        return body.replace(term, body.full(0, term, term))
    if is_all(rhs, 0):
        return body.replace(term, lhs)
    constant = unwrapped(rhs) if rhs.op is hlo.broadcast and rhs.operands[0].op is hlo.constant else rhs
    if lhs.op is not hlo.constant and constant.op is hlo.constant:
        negated = body.elementwise(hlo.negate, (constant,), term)
        if rhs.op is hlo.broadcast:
            negated = body.broadcast(negated, rhs.dims, Broadcast.of(rhs).dimensions, term)
        return body.become(term, hlo.add, (lhs, negated))
    if whole and rhs.op is hlo.subtract and rhs.operands[0] is lhs:
        return body.replace(term, rhs.operands[1])
    if whole and rhs.op is hlo.add and lhs in rhs.operands:
        return body.become(term, hlo.negate, (rhs.operands[1] if rhs.operands[0] is lhs else rhs.operands[0],))
    if whole and lhs.op is hlo.add and rhs in lhs.operands:
        return body.replace(term, lhs.operands[0] if lhs.operands[1] is rhs else lhs.operands[1])
    return False


def multiply(body: Body, term: Term) -> bool:
    """Products with constants, signs and truth values."""
    lhs, rhs = term.operands
    for x, one in ((lhs, rhs), (rhs, lhs)):
        if is_all(one, 1):
            return body.replace(term, x)
    if is_integral(term.dtype):
        for zero in (lhs, rhs):
            if is_all(zero, 0):
                return body.replace(term, zero)
    if lhs.op is hlo.negate and rhs.op is hlo.negate:
        return body.become(term, hlo.multiply, (lhs.operands[0], rhs.operands[0]))
    if lhs is rhs and lhs.op is hlo.abs and lhs.operands[0].dtype not in COMPLEX:
        return body.become(term, hlo.multiply, (lhs.operands[0], lhs.operands[0]))
    if lhs.op is rhs.op is hlo.exponential:
        total = body.elementwise(hlo.add, (lhs.operands[0], rhs.operands[0]), term)
        return body.become(term, hlo.exponential, (total,))
    for x, mask in ((lhs, rhs), (rhs, lhs)):
        if mask.op is hlo.convert and mask.operands[0].dtype == "pred":
            return body.become(term, hlo.select, (mask.operands[0], x, body.full(0, term, term)))
    return _constant_factors(body, term) or _roots(body, term)


def _constant_factors(body: Body, term: Term) -> bool:
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


def _roots(body: Body, term: Term) -> bool:
    """The square of a root of something that is not negative."""
    lhs, rhs = term.operands
    if lhs.op == rhs.op and lhs.op in (hlo.sqrt, hlo.rsqrt) and lhs.operands[0] is rhs.operands[0] and is_non_negative(lhs.operands[0]):
        x = lhs.operands[0]
        if lhs.op is hlo.sqrt:
            return body.replace(term, x)
        return body.become(term, hlo.divide, (body.full(1, x, term), x))
    return False


def divide(body: Body, term: Term) -> bool:
    """Quotients: shifts of whole numbers, products with what can be inverted once."""
    a, b = term.operands
    if is_all(b, 1):
        return body.replace(term, a)
    if is_integral(term.dtype):
        return _shift(body, term)
    if b.op is hlo.exponential:
        inverse = body.elementwise(hlo.exponential, (body.elementwise(hlo.negate, (b.operands[0],), term),), term)
        return body.become(term, hlo.multiply, (a, inverse))
    if b.op is hlo.power:
        inverse = body.elementwise(hlo.power, (b.operands[0], body.elementwise(hlo.negate, (b.operands[1],), term)), term)
        return body.become(term, hlo.multiply, (a, inverse))
    if b.op in (hlo.sqrt, hlo.rsqrt) and len(b.users) == 1:
        root = body.elementwise(hlo.rsqrt if b.op is hlo.sqrt else hlo.sqrt, (b.operands[0],), term)
        return body.become(term, hlo.multiply, (a, root))
    if is_floating(term.dtype) or term.dtype in COMPLEX:
        if (changed := _inverted(body, term)):
            return changed
    if a.op is hlo.divide and b.op is hlo.divide:
        return body.become(term, hlo.divide, (body.elementwise(hlo.multiply, (a.operands[0], b.operands[1]), term),
                                            body.elementwise(hlo.multiply, (a.operands[1], b.operands[0]), term)))
    if a.op is hlo.divide:
        return body.become(term, hlo.divide, (a.operands[0], body.elementwise(hlo.multiply, (a.operands[1], b), term)))
    if b.op is hlo.divide:
        return body.become(term, hlo.divide, (body.elementwise(hlo.multiply, (a, b.operands[1]), term), b.operands[0]))
    return False


def _inverted(body: Body, term: Term) -> bool:
    """Division by a constant, or by something that is spread: multiply by what is inverted before it is spread."""
    a, b = term.operands
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


def _shift(body: Body, term: Term) -> bool:
    """A whole number over a power of two is shifted; a negative one is negated before and after."""
    a, b = term.operands
    value = scalar_of(unwrapped(b))
    if not is_power_of_two(value):
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
    """Remainders by powers of two are masks; those that change nothing go."""
    a, b = term.operands
    if a.op is hlo.remainder and a.operands[1] is b:
        return body.replace(term, a)
    value = scalar_of(unwrapped(b))
    if is_integral(term.dtype) and is_power_of_two(value):
        mask = body.full(value - 1, a, term)
        if is_unsigned(term.dtype):
            return body.become(term, hlo.and_, (a, mask))
        return _by_magnitude(body, term, lambda x: body.elementwise(hlo.and_, (x, mask), term))
    if a.op is hlo.iota and b.op is hlo.broadcast and isinstance(value, int) and value >= a.dims[Iota.of(a).iota_dimension]:
        return body.replace(term, a)
    return False


def power(body: Body, term: Term) -> bool:
    """Powers with small exponents."""
    x, exponent = term.operands
    if x.op is hlo.exponential:
        return body.become(term, hlo.exponential, (body.elementwise(hlo.multiply, (x.operands[0], exponent), term),))
    if is_all(exponent, 0):
        return body.replace(term, body.full(1, term, term))
    if is_all(exponent, 1):
        return body.replace(term, x)
    if is_all(exponent, 2):
        return body.become(term, hlo.multiply, (x, x))
    if is_all(exponent, 3):
        return body.become(term, hlo.multiply, (x, body.elementwise(hlo.multiply, (x, x), term)))
    if is_all(exponent, -1):
        return body.become(term, hlo.divide, (body.full(1, x, term), x))
    if is_all(exponent, 0.5) and is_non_negative(x):
        return body.become(term, hlo.sqrt, (x,))
    return False


def twice(body: Body, term: Term) -> bool:
    """What undoes itself: two negations."""
    x = term.operands[0]
    return x.op == term.op and body.replace(term, x.operands[0])


def log(body: Body, term: Term) -> bool:
    """Logarithms of exponentials, roots and powers."""
    x = term.operands[0]
    if x.op is hlo.exponential:
        return body.replace(term, x.operands[0])
    if x.op is hlo.power:
        base, exponent = x.operands
        size = base if base.dtype in COMPLEX else body.elementwise(hlo.abs, (base,), term)
        product = body.elementwise(hlo.multiply, (body.elementwise(hlo.log, (size,), term), exponent), term)
        zero = body.compare(exponent, body.full(0, exponent, term), "EQ", term)
        return body.become(term, hlo.select, (zero, body.full(0, term, term), product))
    if x.op in (hlo.sqrt, hlo.rsqrt):
        half = body.full(0.5 if x.op is hlo.sqrt else -0.5, term, term)
        return body.become(term, hlo.multiply, (body.elementwise(hlo.log, (x.operands[0],), term), half))
    return False


def exponential(body: Body, term: Term) -> bool:
    """exp(0) is 1."""
    return is_all(term.operands[0], 0) and body.replace(term, body.full(1, term, term))


def sqrt(body: Body, term: Term) -> bool:
    """The root of a square."""
    x = term.operands[0]
    if x.op is hlo.multiply and x.operands[0] is x.operands[1] and term.dtype not in COMPLEX:
        return body.become(term, hlo.abs, (x.operands[0],))
    return False


def rsqrt(body: Body, term: Term) -> bool:
    """The root of a reciprocal."""
    x = term.operands[0]
    if x.op is hlo.divide and is_all(x.operands[0], 1) and is_non_negative(x.operands[1]):
        return body.become(term, hlo.sqrt, (x.operands[1],))
    if x.op is hlo.power and is_all(x.operands[1], -2) and is_non_negative(x.operands[0]):
        return body.replace(term, x.operands[0])
    return False


def complex_(body: Body, term: Term) -> bool:
    """A number put together again of its parts."""
    real, imaginary = term.operands
    if real.op is hlo.real and imaginary.op is hlo.imag and real.operands[0] is imaginary.operands[0]:
        return body.replace(term, real.operands[0])
    return False


def part(body: Body, term: Term) -> bool:
    """A part of a number that is put together, or that is real."""
    x = term.operands[0]
    if x.op is hlo.complex:
        return body.replace(term, x.operands[0 if term.op is hlo.real else 1])
    if x.dtype not in COMPLEX:
        return body.replace(term, x if term.op is hlo.real else body.full(0, term, term))
    return False


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
