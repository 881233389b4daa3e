"""pow and atan2.

pow of f32 is computed in f64, where a plain exp(y log x) is exact enough. pow of f64 carries the logarithm and the product as sums of
two floats, since an error of the exponent is multiplied by up to 709.
"""
from __future__ import annotations

import math

from irscope.backends import llvm_elementary as elementary
from irscope.backends.llvm_coefficients import COEFFICIENTS
from irscope.backends.llvm_lanes import Lanes

Two = tuple[str, str]


def power(v: Lanes, x: str, y: str) -> str:
    """x**y with C's special cases: 1**y and x**0 are 1 even for NaN."""
    magnitude = _through_double(v, v.abs(x), y) if v.bits == 32 else _double_power(v, v.abs(x), y)
    # Integers are odd where halving them leaves a half; floats from 2**mantissa on are all even.
    whole = v.intrinsic("trunc", y)
    integer = v.eq(whole, y)
    half = v.mul(y, v.c(0.5))
    odd = v.both(integer, v.fcmp("one", v.intrinsic("trunc", half), half))
    negative = v.icmp("slt", v.bits_of(x), v.ic(0))
    zero_or_infinite = v.either(v.eq(x, v.c(0.0)), v.eq(v.abs(x), v.c(math.inf)))
    # The logarithm of 0 and of infinity is corrected here: the sign of y decides.
    up = v.gt(y, v.c(0.0))
    large = v.eq(v.abs(x), v.c(math.inf))
    grows = v.differ(up, large)  # 0**positive and inf**negative vanish
    edge = v.sel(grows, v.c(0.0), v.c(math.inf))
    out = v.sel(zero_or_infinite, v.sel(v.isnan(y), y, edge), magnitude)
    out = v.sel(v.both(negative, odd), v.neg(out), out)
    invalid = v.both(v.both(v.lt(x, v.c(0.0)), v.fcmp("ogt", x, v.c(-math.inf))), v.fcmp("une", whole, y))
    out = v.sel(invalid, v.c(math.nan), out)
    unit = v.eq(v.abs(x), v.c(1.0))
    endless = v.eq(v.abs(y), v.c(math.inf))
    out = v.sel(v.both(unit, endless), v.c(1.0), out)
    out = v.sel(v.isnan(x), x, out)
    return v.sel(v.either(v.eq(x, v.c(1.0)), v.eq(y, v.c(0.0))), v.c(1.0), out)


def _through_double(v: Lanes, a: str, y: str) -> str:
    d = Lanes(v.code, "double", v.lanes, v.has_fma, v.avx512)
    wide_a = v.code.pure(f"fpext {v.kind} {a} to {d.kind}", a)
    wide_y = v.code.pure(f"fpext {v.kind} {y} to {d.kind}", y)
    # As doubles all floats are normal, and the caller corrects the special ones: the plain logarithm is enough.
    m, e = elementary.split(d, wide_a)
    logarithm = elementary.joined(d, e, elementary.log_of_mantissa(d, d.sub(m, d.c(1.0))))
    out = elementary.exp(d, d.mul(wide_y, logarithm))
    return v.code.pure(f"fptrunc {d.kind} {out} to {v.kind}", out)


# ---- sums of two floats: the first is the rounded value, the second the error

def _sum(v: Lanes, a: str, b: str) -> Two:
    """a + b for |a| >= |b|."""
    s = v.add(a, b)
    return s, v.sub(b, v.sub(s, a))


def _product(v: Lanes, a: str, b: str) -> Two:
    p = v.mul(a, b)
    return p, v.residual(a, b, p)


def _times(v: Lanes, x: Two, y: Two) -> Two:
    high, low = _product(v, x[0], y[0])
    return _sum(v, high, v.fma(x[0], y[1], v.fma(x[1], y[0], low)))


def _double_power(v: Lanes, a: str, y: str) -> str:
    high, low = _logarithm(v, a)
    # Out of the range of exponents the product is clamped; its sign then decides between 0 and infinity.
    if not v.has_fma:
        y = v.larger(v.c(-(2.0 ** 200)), v.smaller(v.c(2.0 ** 200), y))  # splitting must not overflow; up to here the result is the same
    p = v.mul(y, high)
    rest = v.fma(y, low, v.residual(y, high, p))
    far = v.fcmp("ogt", v.abs(p), v.c(800.0))
    rest = v.sel(far, v.c(0.0), rest)
    r, n, shifted = elementary.reduced(v, v.larger(v.c(-800.0), v.smaller(v.c(800.0), p)))
    r = v.add(r, rest)
    q = v.fma(v.mul(r, r), v.poly(r, *COEFFICIENTS["exp"][64]), r)
    return elementary.scaled(v, v.add(q, v.c(1.0)), n, elementary.low_integer(v, shifted))


def _logarithm(v: Lanes, a: str) -> Two:
    """log a for a > 0: 2 artanh(s) + e ln 2 with s = f / (2 + f)."""
    m, e = elementary.split_any(v, a)
    f = v.sub(m, v.c(1.0))
    below, lost = _sum(v, v.c(2.0), f)
    s = v.div(f, below)
    product = v.mul(s, below)
    left = v.sub(v.sub(f, product), v.residual(s, below, product))
    s_low = v.div(v.fma(v.neg(s), lost, left), below)
    z, z_low = _product(v, s, s)
    z_low = v.fma(v.add(s, s), s_low, z_low)
    two_thirds, missing = 2.0 / 3.0, 3.700743415417188e-17
    c, c_low = _sum(v, v.c(two_thirds), v.mul(z, v.poly(z, *COEFFICIENTS["log_fifth"][64])))
    c_low = v.add(c_low, v.c(missing))
    cubed = _times(v, (s, s_low), (z, z_low))
    tail = _times(v, cubed, (c, c_low))
    double = v.add(s, s)
    high, low = _sum(v, double, tail[0])
    low = v.add(low, v.add(tail[1], v.add(s_low, s_low)))
    # e ln 2 is exact in its first part; where e is 0 it is the smaller term, and exactly 0.
    ln_high, ln_low = elementary.LN2[64]
    power = v.mul(e, v.c(ln_high))
    total = v.add(power, high)
    back = v.sub(total, power)
    error = v.add(v.sub(power, v.sub(total, back)), v.sub(high, back))
    return _sum(v, total, v.add(error, v.fma(e, v.c(ln_low), low)))


def arctangent2(v: Lanes, y: str, x: str) -> str:
    """The angle of (x, y), with C's signed zeros and infinities."""
    a, b = v.abs(x), v.abs(y)
    steep = v.gt(b, a)
    top, below = v.sel(steep, a, b), v.sel(steep, b, a)
    infinite = v.eq(below, v.c(math.inf))
    top = v.sel(infinite, v.sel(v.eq(top, v.c(math.inf)), v.c(1.0), v.c(0.0)), top)
    below = v.sel(v.either(infinite, v.eq(below, v.c(0.0))), v.c(1.0), below)
    # The sum of two huge floats would overflow, and the difference of two tiny ones is a denormal, which may count as 0: scale both.
    largest, digits = (126, 24) if v.bits == 32 else (1022, 53)
    enlarge = v.sel(v.lt(below, v.c(2.0 ** (digits - largest))), v.c(2.0 ** digits), v.c(1.0))
    factor = v.sel(v.gt(below, v.c(2.0 ** largest)), v.c(0.25), enlarge)
    angle = elementary.arctangent_core(v, v.mul(top, factor), v.mul(below, factor))
    high, low = elementary.HALF_PI[v.bits]
    angle = v.sel(steep, v.add(v.sub(v.c(high), angle), v.c(low)), angle)
    left = v.icmp("slt", v.bits_of(x), v.ic(0))
    angle = v.sel(left, v.add(v.sub(v.c(2 * high), angle), v.c(2 * low)), angle)
    angle = v.copysign(angle, y)
    # Comparisons have dropped a NaN.
    unordered = v.fcmp("uno", x, y)
    return v.sel(unordered, v.c(math.nan), angle)
