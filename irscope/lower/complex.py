"""Complex arithmetic as arithmetic on the two parts.

c64 is computed in f64 wherever an intermediate could overflow or cancel, and rounded once: that is simpler than scaling, and more exact.
c128 is scaled. Infinities follow C99 Annex G, as XLA's division does.
"""
from __future__ import annotations

import math
from collections.abc import Callable

from irscope.graph import DType
from irscope.graph.dtypes import F32, F64, S32, S64, U32, U64
from irscope.lower.expressions import Scalars
from irscope.lower.tile import Expr

Pair = tuple[Expr, Expr]
UnaryRule = Callable[[Scalars, Expr, Expr], Pair]


def unary(k: Scalars, name: str, x: Expr) -> Expr:
    """An operation on one complex operand."""
    re, im = k.real(x), k.imag(x)
    if name == "real":
        return re
    if name == "imag":
        return im
    if name == "neg":
        return k.complex(-re, -im)
    if name == "is_finite":
        return k.unary("is_finite", re) & k.unary("is_finite", im)
    if name == "abs":
        return k.convert(_abs(k, *_widened(k, re, im)), re.dtype)
    rule = _UNARY.get(name)
    if rule is None:
        raise TypeError(f"{name} of {x.dtype}")
    return _narrowed(k, re.dtype, rule(k, *_widened(k, re, im)))


def binary(k: Scalars, name: str, x: Expr, y: Expr) -> Expr:
    """An operation on two complex operands."""
    a, b, c, d = k.real(x), k.imag(x), k.real(y), k.imag(y)
    if name in ("add", "sub"):
        return k.complex(k.binary(name, a, c), k.binary(name, b, d))
    if name == "mul":
        return k.complex(*_mul(k, (a, b), (c, d)))
    rule = _BINARY.get(name)
    if rule is None:
        raise TypeError(f"{name} of {x.dtype}")
    return _narrowed(k, a.dtype, rule(k, _widened(k, a, b), _widened(k, c, d)))


def compare(k: Scalars, direction: str, x: Expr, y: Expr) -> Expr:
    """EQ and NE; there is no order."""
    if direction not in ("EQ", "NE"):
        raise TypeError(f"comparison {direction} of {x.dtype}")
    re, im = k.compare(direction, k.real(x), k.real(y)), k.compare(direction, k.imag(x), k.imag(y))
    return k.binary("and" if direction == "EQ" else "or", re, im)


def bitcast(k: Scalars, x: Expr, dtype: DType) -> Expr:
    """c64 to and from 64 bits, the real part low."""
    if x.dtype.is_complex:
        low = k.convert(k.bitcast(k.real(x), U32), U64)
        high = k.convert(k.bitcast(k.imag(x), U32), U64)
        return k.bitcast(low | k.binary("shl", high, 32), dtype)
    bits = k.bitcast(x, U64)
    re = k.bitcast(k.convert(bits, U32), F32)
    im = k.bitcast(k.convert(k.binary("shr_logical", bits, 32), U32), F32)
    return k.complex(re, im)


def _widened(k: Scalars, re: Expr, im: Expr) -> Pair:
    return k.convert(re, F64), k.convert(im, F64)


def _narrowed(k: Scalars, part: DType, x: Pair) -> Expr:
    return k.complex(k.convert(x[0], part), k.convert(x[1], part))


# ---- pieces, on f64 parts

def _negative(k: Scalars, x: Expr) -> Expr:
    """Whether the sign bit is set."""
    return k.compare("LT", k.bitcast(x, S64 if x.dtype is F64 else S32), 0)


def _with_sign(k: Scalars, magnitude: Expr | float, sign: Expr) -> Expr:
    """A magnitude (not negative) with the sign of ``sign``."""
    m = magnitude if isinstance(magnitude, Expr) else k.const(magnitude, sign.dtype)
    return k.select(_negative(k, sign), -m, m)


def _is(k: Scalars, x: Expr, value: float) -> Expr:
    return k.compare("EQ", x, value)


def _isnan(k: Scalars, x: Expr) -> Expr:
    return k.compare("NE", x, x)


def _infinite(k: Scalars, a: Expr, b: Expr) -> Expr:
    """Whether a part is infinite."""
    return _is(k, k.unary("abs", a), math.inf) | _is(k, k.unary("abs", b), math.inf)


def _choose(k: Scalars, condition: Expr, x: Pair, y: Pair) -> Pair:
    return k.select(condition, x[0], y[0]), k.select(condition, x[1], y[1])


def _times(k: Scalars, x: Expr, y: Expr) -> Expr:
    """``x * y`` where a zero ``x`` yields zero even for an infinite ``y``."""
    return k.select(_is(k, x, 0.0), x, x * y)


def _mul(k: Scalars, x: Pair, y: Pair) -> Pair:
    (a, b), (c, d) = x, y
    return a * c - b * d, a * d + b * c


def _ordered(k: Scalars, a: Expr, b: Expr) -> Pair:
    """The larger and the smaller magnitude; a NaN stays."""
    x, y = k.unary("abs", a), k.unary("abs", b)
    return k.binary("max", x, y), k.binary("min", x, y)


def _abs(k: Scalars, a: Expr, b: Expr) -> Expr:
    large, small = _ordered(k, a, b)
    ratio = small / large
    length = large * k.unary("sqrt", ratio * ratio + 1.0)
    length = k.select(_is(k, large, 0.0), large, length)
    return k.select(_infinite(k, a, b), k.const(math.inf, F64), length)


def _div(k: Scalars, x: Pair, y: Pair) -> Pair:
    a, b = x
    # Scale the divisor by a power of two so that its larger part is in [1, 2): no square overflows or vanishes.
    # Scaling changes neither zero nor infinity.
    large = _ordered(k, *y)[0]
    bits = k.bitcast(large, S64) & k.const(0x7FF << 52, S64)
    bits = k.binary("min", k.binary("max", bits, k.const(2 << 52, S64)), k.const(0x7FC << 52, S64))
    scale = k.bitcast(k.const(0x7FE << 52, S64) - bits, F64)
    c, d = y[0] * scale, y[1] * scale
    denominator = c * c + d * d

    def quotient(a: Expr, b: Expr, c: Expr, d: Expr) -> Pair:
        return a * c + b * d, b * c - a * d

    re, im = quotient(a, b, c, d)
    out = (re / denominator * scale, im / denominator * scale)
    # Annex G: where both parts are NaN although an infinity or a zero divisor decides the result.
    inf = k.const(math.inf, F64)
    lost = _isnan(k, out[0]) & _isnan(k, out[1])
    pole = _is(k, denominator, 0.0) & ~(_isnan(k, a) & _isnan(k, b))
    signed = _with_sign(k, inf, c)
    at_pole = (signed * a, signed * b)

    def unit(x: Expr) -> Expr:
        one = k.select(_is(k, k.unary("abs", x), math.inf), k.const(1.0, F64), k.const(0.0, F64))
        return _with_sign(k, one, x)

    def finite(x: Expr, y: Expr) -> Expr:
        return k.unary("is_finite", x) & k.unary("is_finite", y)

    big = quotient(unit(a), unit(b), c, d)
    far = quotient(a, b, unit(c), unit(d))
    fixed = _choose(k, _infinite(k, c, d) & finite(a, b), (far[0] * 0.0, far[1] * 0.0), out)
    fixed = _choose(k, _infinite(k, a, b) & finite(c, d), (big[0] * inf, big[1] * inf), fixed)
    fixed = _choose(k, pole, at_pole, fixed)
    return _choose(k, lost, fixed, out)


def _exp(k: Scalars, a: Expr, b: Expr) -> Pair:
    # e**a in two halves, so that a large a with a small cosine does not overflow early.
    far = k.compare("GT", a, 709.0)
    rest = k.select(far, (a - 709.0) * 1.0, k.const(0.0, F64))
    near = k.select(far, k.const(709.0, F64), a)
    e, more = k.unary("exp", near), k.unary("exp", rest)
    re = e * k.unary("cos", b) * more
    im = e * k.unary("sin", b) * more
    im = k.select(_is(k, b, 0.0), b, im)
    re = k.select(_is(k, b, 0.0), k.unary("exp", a), re)
    gone = _is(k, a, -math.inf)
    zero = k.const(0.0, F64)
    return _choose(k, gone, (zero, zero), (re, im))


def _log_abs(k: Scalars, a: Expr, b: Expr) -> Expr:
    """log|a + bi|, also close to the unit circle and far from it."""
    large, small = _ordered(k, a, b)
    near = (large - 1.0) * (large + 1.0) + small * small
    close = k.unary("log1p", near) * 0.5
    ratio = k.select(_is(k, large, 0.0), k.const(0.0, F64), small / large)
    wide = k.unary("log", large) + k.unary("log1p", ratio * ratio) * 0.5
    around = k.compare("GT", large, 0.7) & k.compare("LT", large, 1.5)
    return k.select(_infinite(k, a, b), k.const(math.inf, F64), k.select(around, close, wide))


def _log(k: Scalars, a: Expr, b: Expr) -> Pair:
    return _log_abs(k, a, b), k.binary("atan2", b, a)


def _log1p(k: Scalars, a: Expr, b: Expr) -> Pair:
    shifted = a + 1.0
    square = a * (a + 2.0) + b * b
    close = k.unary("log1p", square) * 0.5
    small = k.compare("LT", k.unary("abs", a), 0.5) & k.compare("LT", k.unary("abs", b), 0.5)
    return k.select(small, close, _log_abs(k, shifted, b)), k.binary("atan2", b, shifted)


def _expm1(k: Scalars, a: Expr, b: Expr) -> Pair:
    half = k.unary("sin", b * 0.5)
    re = k.unary("expm1", a) * k.unary("cos", b) - half * half * 2.0
    far = k.compare("GT", k.unary("abs", a), 40.0)
    full = _exp(k, a, b)
    return k.select(far, full[0] - 1.0, re), full[1]


def _sqrt(k: Scalars, a: Expr, b: Expr) -> Pair:
    # Scale by a power of four where |z| + |a| could overflow, or is denormal.
    large = _ordered(k, a, b)[0]
    big, tiny = k.compare("GT", large, 2.0 ** 1000), k.compare("LT", large, 2.0 ** -960)
    scale = k.select(big, k.const(2.0 ** -60, F64), k.select(tiny, k.const(2.0 ** 120, F64), k.const(1.0, F64)))
    back = k.select(big, k.const(2.0 ** 30, F64), k.select(tiny, k.const(2.0 ** -60, F64), k.const(1.0, F64)))
    p, q = a * scale, b * scale
    main = k.unary("sqrt", (_abs(k, p, q) + k.unary("abs", p)) * 0.5)
    other = k.unary("abs", q) / (main * 2.0)
    zero = _is(k, large, 0.0)
    other = k.select(zero, k.const(0.0, F64), other)
    right = k.compare("GE", a, 0.0)
    re = k.select(right, main, other) * back
    im = _with_sign(k, k.select(right, other, main) * back, b)
    inf = k.const(math.inf, F64)
    # An infinite part alone decides.
    left_infinite = _is(k, a, -math.inf)
    right_infinite = _is(k, a, math.inf)
    re = k.select(left_infinite, k.select(_isnan(k, b), b, k.const(0.0, F64)), re)
    im = k.select(left_infinite, _with_sign(k, inf, b), im)
    re = k.select(right_infinite, inf, re)
    im = k.select(right_infinite, k.select(_isnan(k, b), b, _with_sign(k, 0.0, b)), im)
    up = _is(k, k.unary("abs", b), math.inf)
    return k.select(up, inf, re), k.select(up, b, im)


def _one(k: Scalars) -> Pair:
    return k.const(1.0, F64), k.const(0.0, F64)


def _rsqrt(k: Scalars, a: Expr, b: Expr) -> Pair:
    return _div(k, _one(k), _sqrt(k, a, b))


def _tanh(k: Scalars, a: Expr, b: Expr) -> Pair:
    # Kahan: with t = tan b and s = sinh a, tanh z = ((1+t*t) * sqrt(1+s*s) * s + i t) / (1 + (1+t*t)*s*s).
    t, s = k.unary("tan", b), k.unary("sinh", k.select(k.compare("GT", k.unary("abs", a), 20.0), k.const(0.0, F64), a))
    beta = t * t + 1.0
    square = s * s
    rho = k.unary("sqrt", square + 1.0)
    below = beta * square + 1.0
    re = beta * rho * s / below
    im = t / below
    # Far from the imaginary axis the real part is 1, the imaginary one vanishes as exp(-2|a|).
    far = k.compare("GT", k.unary("abs", a), 20.0)
    fading = k.unary("exp", k.unary("abs", a) * -2.0)
    wave = k.unary("sin", b) * k.unary("cos", b) * 4.0
    tail = k.select(_is(k, k.unary("abs", a), math.inf), _with_sign(k, 0.0, wave), wave * fading)
    return k.select(far, _with_sign(k, 1.0, a), re), k.select(far, tail, k.select(_is(k, b, 0.0), b, im))


def _sinh(k: Scalars, a: Expr, b: Expr) -> Pair:
    return _times(k, k.unary("cos", b), k.unary("sinh", a)), _times(k, k.unary("sin", b), k.unary("cosh", a))


def _cosh(k: Scalars, a: Expr, b: Expr) -> Pair:
    return _times(k, k.unary("cos", b), k.unary("cosh", a)), _times(k, k.unary("sin", b), k.unary("sinh", a))


def _sin(k: Scalars, a: Expr, b: Expr) -> Pair:
    return _times(k, k.unary("sin", a), k.unary("cosh", b)), _times(k, k.unary("cos", a), k.unary("sinh", b))


def _cos(k: Scalars, a: Expr, b: Expr) -> Pair:
    return _times(k, k.unary("cos", a), k.unary("cosh", b)), -_times(k, k.unary("sin", a), k.unary("sinh", b))


def _asin(k: Scalars, a: Expr, b: Expr) -> Pair:
    # Kahan: the roots of 1 - z and 1 + z keep the side of the cut, and their products neither cancel nor overflow.
    (p, q), (r, s) = _sqrt(k, k.const(1.0, F64) - a, -b), _sqrt(k, a + 1.0, b)
    near = k.select(_is(k, a, 0.0), a, k.binary("atan2", a, p * r - q * s)), k.unary("asinh", p * s - q * r)
    far = k.binary("atan2", a, k.unary("abs", b)), _with_sign(k, math.inf, b)
    return _choose(k, _infinite(k, a, b), far, near)


def _acos(k: Scalars, a: Expr, b: Expr) -> Pair:
    (p, q), (r, s) = _sqrt(k, k.const(1.0, F64) - a, -b), _sqrt(k, a + 1.0, b)
    re = k.select(_is(k, a, 0.0), k.const(math.pi / 2, F64), k.binary("atan2", p, r) * 2.0)
    far = k.binary("atan2", k.unary("abs", b), a), _with_sign(k, math.inf, -b)
    return _choose(k, _infinite(k, a, b), far, (re, k.unary("asinh", r * q - s * p)))


def _acosh(k: Scalars, a: Expr, b: Expr) -> Pair:
    (p, q), (r, s) = _sqrt(k, a - 1.0, b), _sqrt(k, a + 1.0, b)
    im = k.select(_is(k, a, 0.0), _with_sign(k, math.pi / 2, b), k.binary("atan2", q, r) * 2.0)
    far = k.const(math.inf, F64), k.binary("atan2", b, a)
    return _choose(k, _infinite(k, a, b), far, (k.unary("asinh", p * r + q * s), im))


def _atanh(k: Scalars, a: Expr, b: Expr) -> Pair:
    # Kahan; where squares could overflow, the real part is that of 1 / z.
    x, y = k.unary("abs", a), k.unary("abs", b)
    below = k.const(1.0, F64) - x
    re = _with_sign(k, k.unary("log1p", x * 4.0 / (below * below + b * b)) * 0.25, a)
    near = k.select(_is(k, a, 0.0), a, re), k.binary("atan2", b * 2.0, below * (x + 1.0) - b * b) * 0.5
    vanishing = k.select(_infinite(k, a, b), _with_sign(k, 0.0, a), _div(k, _one(k), (a, b))[0])
    far = vanishing, k.select(_isnan(k, b), b, _with_sign(k, math.pi / 2, b))
    return _choose(k, k.compare("GT", x, 1e150) | k.compare("GT", y, 1e150), far, near)


def _logistic(k: Scalars, a: Expr, b: Expr) -> Pair:
    e = _exp(k, -a, -b)
    return _div(k, _one(k), (e[0] + 1.0, e[1]))


def _sign(k: Scalars, a: Expr, b: Expr) -> Pair:
    length = _abs(k, a, b)
    zero = _is(k, length, 0.0)
    return k.select(zero, k.const(0.0, F64), a / length), k.select(zero, k.const(0.0, F64), b / length)


def _pow(k: Scalars, x: Pair, y: Pair) -> Pair:
    (a, b), (c, d) = x, y
    product = _mul(k, y, _log(k, a, b))
    out = _exp(k, *product)
    nothing = _is(k, a, 0.0) & _is(k, b, 0.0)
    no_power = _is(k, c, 0.0) & _is(k, d, 0.0)
    zero = k.const(0.0, F64)
    out = _choose(k, nothing, (zero, zero), out)
    return _choose(k, no_power, _one(k), out)


def _cbrt(k: Scalars, a: Expr, b: Expr) -> Pair:
    return _pow(k, (a, b), (k.const(1.0 / 3.0, F64), k.const(0.0, F64)))


def _atan2(k: Scalars, y: Pair, x: Pair) -> Pair:
    # -i * log((x + i y) / sqrt(x*x + y*y))
    squares = _mul(k, x, x), _mul(k, y, y)
    length = _sqrt(k, squares[0][0] + squares[1][0], squares[0][1] + squares[1][1])
    top = x[0] - y[1], x[1] + y[0]
    re, im = _log(k, *_div(k, top, length))
    return im, -re


def _turned(rule: UnaryRule) -> UnaryRule:
    """The function ``-i f(i z)``: tan where f is tanh, asinh where f is asin, atan where f is atanh."""
    def turned(k: Scalars, a: Expr, b: Expr) -> Pair:
        re, im = rule(k, -b, a)
        return im, -re
    return turned


_UNARY: dict[str, UnaryRule] = {
    "sign": _sign, "exp": _exp, "expm1": _expm1, "log": _log, "log1p": _log1p, "sqrt": _sqrt, "rsqrt": _rsqrt, "cbrt": _cbrt,
    "logistic": _logistic, "tanh": _tanh, "tan": _turned(_tanh), "sin": _sin, "cos": _cos, "sinh": _sinh, "cosh": _cosh,
    "asin": _asin, "acos": _acos, "atan": _turned(_atanh), "asinh": _turned(_asin), "acosh": _acosh, "atanh": _atanh,
}
_BINARY: dict[str, Callable[[Scalars, Pair, Pair], Pair]] = {"div": _div, "pow": _pow, "atan2": _atan2}
