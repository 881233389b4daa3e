"""Elementary functions of f32 and f64, on whole vectors, without libm. docs/accuracy.md has the largest errors that were measured.

The methods are the classic ones: reduce the argument, evaluate a minimax polynomial (benchmarks/fit_math.py computed the coefficients),
reconstruct the result, correct the special values. NaN propagates through every formula; where a comparison could drop it, the operand
order keeps it. ``precision`` chooses between two forms only for tanh and erf of f32: the rational forms of Eigen, which XLA uses too,
or the exact ones.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from irscope.backends.llvm_coefficients import COEFFICIENTS
from irscope.backends.llvm_lanes import Lanes

LN2 = {32: (0.693145752, 1.42860677e-6), 64: (6.93147180369123816490e-01, 1.90821492927058770002e-10)}
"""ln 2 in two parts, the first with enough trailing zeros that its multiples are exact."""

_BIAS = {32: 127, 64: 1023}
_MANTISSA = {32: 23, 64: 52}
_MAGIC = {32: 12582912.0, 64: 6755399441055744.0}
"""1.5 * 2**mantissa: adding it rounds to an integer, which is then in the low bits."""

HALF_PI = {32: (1.57079637050628662109375, -4.37113900018624283e-8), 64: (1.5707963267948966, 6.123233995736766e-17)}
"""pi/2 in two parts."""

Rule = Callable[[Lanes, str], str]


def coefficients(v: Lanes, name: str) -> tuple[float, ...]:
    return COEFFICIENTS[name][v.bits]


# ---- exponentials

def reduced(v: Lanes, x: str) -> tuple[str, str, str]:
    """``x = n ln 2 + r``: the remainder, n as a float, and the float that has n in its low bits."""
    return remainder_of(v, x, math.log2(math.e), LN2[v.bits])


def remainder_of(v: Lanes, x: str, inverse: float, parts: Sequence[float]) -> tuple[str, str, str]:
    """``x = n p + r`` for any period p, given by its inverse and as a sum of parts. Returns the same three values as :func:`reduced`."""
    shifted = v.fma(x, v.c(inverse), v.c(_MAGIC[v.bits]))
    n = v.sub(shifted, v.c(_MAGIC[v.bits]))
    r = x
    for part in parts:
        r = v.fma(n, v.c(-part), r)
    return r, n, shifted


def scale(v: Lanes, x: str, n: str) -> str:
    """``x * 2**n`` for any x and any integer n: in up to four factors, ordered so that the result stays normal as long as possible."""
    bias = _BIAS[v.bits]
    for _ in range(2):
        step = v.isel(v.icmp("slt", n, v.ic(1 - bias)), v.ic(1 - bias + _MANTISSA[v.bits]), v.ic(0))
        step = v.isel(v.icmp("sgt", n, v.ic(bias)), v.ic(bias), step)
        x = v.mul(x, power_of_two(v, step))
        n = v.int("sub", n, step)
    low = v.isel(v.icmp("slt", n, v.ic(1 - bias)), v.ic(1 - bias), n)
    return v.mul(x, power_of_two(v, v.isel(v.icmp("sgt", low, v.ic(bias)), v.ic(bias), low)))


def scaled(v: Lanes, x: str, n: str, integer: str) -> str:
    """``x * 2**n``, n as a float and as an integer."""
    if v.avx512 and v.lanes * v.bits == 512:
        kind = "ps" if v.bits == 32 else "pd"
        mask = f"i{v.lanes}" if v.lanes >= 8 else "i8"
        name = f"@llvm.x86.avx512.mask.scalef.{kind}.512"
        return v.code.call(v.kind, name, (v.kind, x), (v.kind, n), (v.kind, "zeroinitializer"), (mask, "-1"), ("i32", "4"))
    # Two factors are enough for exponents up to twice the bias; the caller's values are near 1, or clamped.
    half = v.int("ashr", integer, v.ic(1))
    return v.mul(v.mul(x, power_of_two(v, half)), power_of_two(v, v.int("sub", integer, half)))


def power_of_two(v: Lanes, n: str) -> str:
    """2**n for an n in the range of the normal exponents."""
    return v.float_of(v.int("shl", v.int("add", n, v.ic(_BIAS[v.bits])), v.ic(_MANTISSA[v.bits])))


def low_integer(v: Lanes, shifted: str) -> str:
    """The integer in the low bits of a float shifted by the magic constant."""
    return v.int("sub", v.bits_of(shifted), v.bits_of(v.c(_MAGIC[v.bits])))


def exp(v: Lanes, x: str) -> str:
    top, bottom = (89.0, -104.0) if v.bits == 32 else (710.0, -746.0)
    x = v.larger(v.c(bottom), v.smaller(v.c(top), x))
    r, n, shifted = reduced(v, x)
    p = v.fma(v.mul(r, r), v.poly(r, *coefficients(v, "exp")), r)
    return scaled(v, v.add(p, v.c(1.0)), n, low_integer(v, shifted))


def expm1(v: Lanes, x: str) -> str:
    """2**n (e**r - 1) + (2**n - 1), the second term exact."""
    top, bottom = (89.0, -26.0) if v.bits == 32 else (710.0, -60.0)
    clipped = v.larger(v.c(bottom), v.smaller(v.c(top), x))
    r, _, shifted = reduced(v, clipped)
    p = v.fma(v.mul(r, r), v.poly(r, *coefficients(v, "exp")), r)
    n = low_integer(v, shifted)
    # Half the power, so that it exists for the largest n too.
    half = power_of_two(v, v.int("sub", n, v.ic(1)))
    out = v.fma(p, half, v.sub(half, v.c(0.5)))
    return v.copysign(v.add(out, out), x)


def logistic(v: Lanes, x: str) -> str:
    return v.div(v.c(1.0), v.add(v.c(1.0), exp(v, v.neg(x))))


# ---- logarithms

def split(v: Lanes, x: str) -> tuple[str, str]:
    """A positive normal x as ``m * 2**e`` with m between sqrt(1/2) and sqrt(2), e as a float."""
    m = _MANTISSA[v.bits]
    offset = 0x3F3504F3 if v.bits == 32 else 0x3FE6A09E667F3BCD
    bits = v.bits_of(x)
    exponent = v.int("and", v.int("sub", bits, v.ic(offset)), v.ic(-(1 << m)))
    mantissa = v.float_of(v.int("sub", bits, exponent))
    return mantissa, v.from_int(v.int("ashr", exponent, v.ic(m)))


def log_of_mantissa(v: Lanes, f: str) -> str:
    """log(1 + f) for 1 + f between sqrt(1/2) and sqrt(2)."""
    square = v.mul(f, f)
    if v.bits == 32:
        return v.fma(square, v.fma(f, v.poly(f, *coefficients(v, "log")), v.c(-0.5)), f)
    s = v.div(f, v.add(f, v.c(2.0)))
    z = v.mul(s, s)
    half = v.mul(square, v.c(0.5))
    rest = v.mul(z, v.poly(z, *coefficients(v, "log_ratio")))
    return v.sub(f, v.sub(half, v.mul(s, v.add(half, rest))))


def split_any(v: Lanes, x: str) -> tuple[str, str]:
    """The same as :func:`split` for any positive x, denormals included."""
    tiny, up = (2.0 ** -126, 23) if v.bits == 32 else (2.0 ** -1022, 52)
    small = v.lt(x, v.c(tiny))
    m, e = split(v, v.sel(small, v.mul(x, v.c(2.0 ** up)), x))
    return m, v.sel(small, v.sub(e, v.c(float(up))), e)


def log(v: Lanes, x: str) -> str:
    m, e = split_any(v, x)
    out = joined(v, e, log_of_mantissa(v, v.sub(m, v.c(1.0))))
    out = v.sel(v.eq(x, v.c(math.inf)), x, out)
    out = v.sel(v.eq(x, v.c(0.0)), v.c(-math.inf), out)
    return v.sel(v.fcmp("ult", x, v.c(0.0)), v.c(math.nan), out)


def joined(v: Lanes, e: str, part: str) -> str:
    """``e * ln 2 + part``."""
    high, low = LN2[v.bits]
    return v.fma(e, v.c(high), v.fma(e, v.c(low), part))


def log1p(v: Lanes, x: str) -> str:
    """log of the rounded 1+x, plus the rounding error divided by it; close to 0, log(1+x) is computed from x itself."""
    near = v.both(v.gt(x, v.c(-0.29)), v.lt(x, v.c(0.41)))
    one = v.add(x, v.c(1.0))
    larger = v.gt(x, v.c(1.0))
    lost = v.sub(v.sel(larger, v.c(1.0), x), v.sub(one, v.sel(larger, x, v.c(1.0))))
    m, e = split(v, one)
    f = v.sel(near, x, v.sub(m, v.c(1.0)))
    part = log_of_mantissa(v, f)
    out = v.sel(near, part, joined(v, e, v.add(part, v.div(lost, one))))
    out = v.sel(v.eq(x, v.c(math.inf)), x, out)
    out = v.sel(v.eq(x, v.c(-1.0)), v.c(-math.inf), out)
    out = v.sel(v.fcmp("ult", x, v.c(-1.0)), v.c(math.nan), out)
    return v.sel(v.eq(x, v.c(0.0)), x, out)


# ---- hyperbolic

def tanh(v: Lanes, x: str) -> str:
    a = v.smaller(v.c(22.0), v.abs(x))
    t = expm1(v, v.add(a, a))
    return v.copysign(v.div(t, v.add(t, v.c(2.0))), x)


def tanh_rational(v: Lanes, x: str) -> str:
    """An odd over an even polynomial, as in Eigen and XLA. It is 1 exactly where tanh, rounded to f32, is."""
    top = (-2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08, 1.48572235717979e-05,
           6.37261928875436e-04, 4.89352455891786e-03)
    below = (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03)
    return _saturating(v, x, top, below, 9.0109138)


def _saturating(v: Lanes, x: str, top: tuple[float, ...], below: tuple[float, ...], whole: float) -> str:
    """``x * top(x**2) / below(x**2)``, below 1 before ``whole`` and 1 from there on: ``1 - f(x)`` is 0 only where it should be, and never
    negative. Both polynomials are divided by the last coefficient, so that a denormal x is not lost."""
    t, unit = v.abs(x), below[-1]
    z = v.mul(t, t)
    part = v.div(v.mul(t, v.poly(z, *(c / unit for c in top))), v.poly(z, *(c / unit for c in below)))
    part = v.smaller(v.c(1.0 - 2.0 ** -24), part)
    return v.copysign(v.sel(v.fcmp("oge", t, v.c(whole)), v.c(1.0), part), x)


def sinh(v: Lanes, x: str) -> str:
    a, far = v.abs(x), v.c(88.0 if v.bits == 32 else 709.0)
    t = expm1(v, v.smaller(far, a))
    near = v.mul(v.c(0.5), v.add(t, v.div(t, v.add(t, v.c(1.0)))))
    half = exp(v, v.mul(a, v.c(0.5)))
    return v.copysign(v.sel(v.gt(a, far), v.mul(v.mul(half, v.c(0.5)), half), near), x)


def cosh(v: Lanes, x: str) -> str:
    a, far = v.abs(x), v.c(88.0 if v.bits == 32 else 709.0)
    e = exp(v, v.smaller(far, a))
    near = v.mul(v.c(0.5), v.add(e, v.div(v.c(1.0), e)))
    half = exp(v, v.mul(a, v.c(0.5)))
    return v.sel(v.gt(a, far), v.mul(v.mul(half, v.c(0.5)), half), near)


def asinh(v: Lanes, x: str) -> str:
    a = v.abs(x)
    square = v.mul(a, a)
    near = log1p(v, v.add(a, v.div(square, v.add(v.c(1.0), v.sqrt(v.add(square, v.c(1.0)))))))
    far = v.add(log(v, a), v.c(math.log(2.0)))
    return v.copysign(v.sel(v.gt(a, v.c(1e9)), far, near), x)


def acosh(v: Lanes, x: str) -> str:
    t = v.sub(x, v.c(1.0))
    near = log1p(v, v.add(t, v.sqrt(v.mul(t, v.add(t, v.c(2.0))))))
    out = v.sel(v.gt(x, v.c(1e9)), v.add(log(v, x), v.c(math.log(2.0))), near)
    return v.sel(v.fcmp("ult", x, v.c(1.0)), v.c(math.nan), out)


def atanh(v: Lanes, x: str) -> str:
    a = v.abs(x)
    out = v.mul(v.c(0.5), log1p(v, v.div(v.add(a, a), v.sub(v.c(1.0), a))))
    return v.copysign(out, x)


# ---- inverse trigonometric

def arcsine_core(v: Lanes, a: str) -> str:
    """asin for 0 <= a <= 1/2."""
    z = v.mul(a, a)
    return v.fma(v.mul(a, z), v.poly(z, *coefficients(v, "asin")), a)


def _arcsine(v: Lanes, x: str) -> tuple[str, str, str]:
    """(whether |x| > 1/2, the root sqrt((1 - |x|) / 2), the arc sine of the root where |x| > 1/2, else of |x|)."""
    a = v.abs(x)
    far = v.gt(a, v.c(0.5))
    root = v.sqrt(v.mul(v.c(0.5), v.sub(v.c(1.0), a)))
    return far, root, arcsine_core(v, v.sel(far, root, a))


def asin(v: Lanes, x: str) -> str:
    far, _, p = _arcsine(v, x)
    high, low = HALF_PI[v.bits]
    reflected = v.add(v.sub(v.c(high), v.add(p, p)), v.c(low))
    return v.copysign(v.sel(far, reflected, p), x)


def acos(v: Lanes, x: str) -> str:
    far, root, p = _arcsine(v, x)
    high, low = HALF_PI[v.bits]
    double = v.add(p, p)
    negative = v.lt(x, v.c(0.0))
    outside = v.sel(negative, v.add(v.sub(v.c(2 * high), double), v.c(2 * low)), double)
    inside = v.add(v.c(high), v.sub(v.c(low), v.copysign(p, x)))
    out = v.sel(far, outside, inside)
    return v.sel(v.isnan(root), root, out)


def arctangent_core(v: Lanes, top: str, below: str) -> str:
    """atan(top / below) for 0 <= top <= below: one division, at 45 degrees where the quotient is large."""
    far = v.gt(top, v.mul(below, v.c(math.tan(math.pi / 8))))
    t = v.div(v.sel(far, v.sub(top, below), top), v.sel(far, v.add(top, below), below))
    z = v.mul(t, t)
    p = v.fma(v.mul(t, z), v.poly(z, *coefficients(v, "atan")), t)
    high, low = HALF_PI[v.bits]
    return v.add(p, v.sel(far, v.add(v.c(high / 2), v.mul(v.c(low), v.c(0.5))), v.c(0.0)))


def atan(v: Lanes, x: str) -> str:
    a = v.abs(x)
    steep = v.gt(a, v.c(1.0))
    infinite = v.eq(a, v.c(math.inf))
    finite = v.sel(infinite, v.c(1.0), a)
    flat = arctangent_core(v, v.sel(steep, v.sel(infinite, v.c(0.0), v.c(1.0)), a), v.sel(steep, finite, v.c(1.0)))
    high, low = HALF_PI[v.bits]
    return v.copysign(v.sel(steep, v.add(v.sub(v.c(high), flat), v.c(low)), flat), x)


# ---- roots, error function

def cbrt(v: Lanes, x: str) -> str:
    """A third of the exponent by arithmetic on the bits, two Halley steps, one Newton step with an exact residual."""
    a = v.abs(x)
    up, largest = (24, 126) if v.bits == 32 else (54, 1020)
    # Also the smallest normal floats: their guess may have a denormal cube.
    small, large = v.lt(a, v.c(2.0 ** (-100 if v.bits == 32 else -960))), v.gt(a, v.c(2.0 ** (largest - 8)))
    factor = v.sel(small, v.c(2.0 ** up), v.sel(large, v.c(2.0 ** -up), v.c(1.0)))
    a = v.mul(a, factor)
    if v.bits == 32:
        guess = v.float_of(v.int("add", v.int("udiv", v.bits_of(a), v.ic(3)), v.ic(709958130)))
    else:
        upper = v.from_int(v.int("lshr", v.bits_of(a), v.ic(32)))
        third = v.to_int(v.mul(upper, v.c(1.0 / 3.0)))
        guess = v.float_of(v.int("shl", v.int("add", third, v.ic(715094163)), v.ic(32)))
    t = guess
    for _ in range(2):
        cube = v.mul(v.mul(t, t), t)
        t = v.mul(t, v.div(v.add(v.add(a, a), cube), v.add(v.add(cube, cube), a)))
    square = v.mul(t, t)
    error = v.sub(v.div(a, square), t)
    t = v.fma(error, v.c(1.0 / 3.0), t)
    t = v.mul(t, v.sel(small, v.c(2.0 ** (-up // 3)), v.sel(large, v.c(2.0 ** (up // 3)), v.c(1.0))))
    keep = v.either(v.eq(x, v.c(0.0)), v.fcmp("ueq", v.abs(x), v.c(math.inf)))
    return v.sel(keep, x, v.copysign(t, x))


def erf_rational(v: Lanes, x: str) -> str:
    """An odd over an even polynomial, as in Eigen and XLA. It is 1 exactly where erf, rounded to f32, is."""
    top = (-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05, -7.34990630326855e-04,
           -2.95459980854025e-03, -1.60960333262415e-02)
    below = (-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03, -1.42647390514189e-02)
    return _saturating(v, x, top, below, 3.9192059)


def erf(v: Lanes, x: str) -> str:
    return _erf32(v, x) if v.bits == 32 else _erf64(v, x)


def _erf32(v: Lanes, x: str) -> str:
    """N. Juffa's two branches: a polynomial close to 0, and 1 - exp(polynomial) beyond."""
    t, s = v.abs(x), v.mul(x, x)
    r = v.fma(v.c(-1.72853470e-5), t, v.c(3.83197126e-4))
    u = v.fma(v.c(-3.88396438e-3), t, v.c(2.42546219e-2))
    r = v.fma(r, s, u)
    for c in (-1.06777877e-1, -6.34846687e-1, -1.28717512e-1):
        r = v.fma(r, t, v.c(c))
    r = v.fma(r, t, v.neg(t))
    far = v.copysign(v.sub(v.c(1.0), exp(v, r)), x)
    p = v.poly(s, -5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1)
    # A huge x makes the polynomial of the far branch NaN; it is 1 there anyway.
    far = v.sel(v.gt(t, v.c(4.0)), v.copysign(v.c(1.0), x), far)
    return v.sel(v.gt(t, v.c(0.927734375)), far, v.copysign(v.fma(p, x, x), x))


def _erf64(v: Lanes, x: str) -> str:
    t = v.abs(x)
    z = v.mul(t, t)
    near = v.fma(t, v.poly(z, *coefficients(v, "erf")), t)
    c = v.smaller(v.c(6.0), t)
    tail = v.poly(v.div(v.sub(c, v.c(2.0)), v.add(c, v.c(2.0))), *coefficients(v, "erfcx"))
    far = v.sub(v.c(1.0), v.mul(exp(v, v.neg(v.mul(c, c))), tail))
    return v.copysign(v.sel(v.gt(t, v.c(1.0)), far, near), x)


RULES: dict[str, Rule] = {
    "exp": exp, "expm1": expm1, "logistic": logistic, "log": log, "log1p": log1p, "tanh": tanh, "sinh": sinh, "cosh": cosh,
    "asinh": asinh, "acosh": acosh, "atanh": atanh, "asin": asin, "acos": acos, "atan": atan, "cbrt": cbrt, "erf": erf,
}
