"""Special functions: gamma and its relatives, the error function's relatives, Bessel functions, entropies."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import factorial, inf, log, pi, sqrt

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.unary import erfc
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import C128, F32, F64, S16, S32, S64
from irscope.ops.checked import at_least
from irscope.ops.faults import TypeFault
from irscope.source.budget import require_parts

LARGEST_FACTORIAL = 170
"""171! is infinite in float64."""


def in_double(t: Torch, x: Node, function: Callable[[Node], Node]) -> Node:
    """``function`` of ``x`` computed in float64 and rounded once, because these formulas lose digits."""
    x = t.floating(x)
    return t.convert(function(t.convert(x, F64)), t.dtype(x))


def polynomial(t: Torch, x: Node, coefficients: Sequence[float]) -> Node:
    """A polynomial of ``x`` by Horner's rule; the constant term comes first."""
    total = t.like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = t.plus(t.mul(total, x), c)
    return total


def where(t: Torch, direction: str, x: Node, limit: float, y: Node, z: Node) -> Node:
    """``y`` where ``x`` compares with a number, else ``z``."""
    return t.select(t.compare(direction, x, t.like(x, limit)), y, z)


# ---------------------------------------------------------------------- gamma

LANCZOS = (676.520368121885098567009190444019, -1259.13921672240287047156078755283, 771.3234287776530788486528258894,
           -176.61502916214059906584551354, 12.507343278686904814458936853, -0.13857109526572011689554707, 9.984369578019570859563e-6,
           1.50563273514931155834e-7)


def log_gamma(t: Torch, x: Node) -> Node:
    """Lanczos' approximation (g = 7), reflected below one half."""
    small = t.compare("LT", x, t.like(x, 0.5))
    z = t.plus(t.select(small, t.sub(t.like(x, 1), x), x), -1)
    total = t.like(z, 0.99999999999980993227684700473478)
    for i, c in enumerate(LANCZOS):
        total = t.add(total, t.div(t.like(z, c), t.plus(z, i + 1)))
    base = t.plus(z, 7.5)
    value = t.add(t.sub(t.mul(t.plus(z, 0.5), t.unary("log", base)), base), t.plus(t.unary("log", total), 0.5 * log(2 * pi)))
    # sin(pi x) by the distance from the nearest integer, which is exact.
    away = t.sub(x, t.unary("floor", x))
    sine = t.unary("abs", t.unary("sine", t.scale(away, pi)))
    mirrored = t.sub(t.plus(t.unary("negate", t.unary("log", sine)), log(pi)), value)
    endless = t.compare("EQ", t.unary("abs", x), t.like(x, float("inf")))
    return t.select(endless, t.like(x, float("inf")), t.select(small, mirrored, value))


def _declare(function: Callable[[Torch, Node], Node], *names: str) -> None:
    """Declare operators of one tensor that compute ``function`` in float64 and round once."""
    @operator(*(f"{name}(Tensor self)" for name in names))
    def made(t: Torch, x: Node) -> Node:
        return in_double(t, x, lambda v: function(t, v))


_declare(log_gamma, "lgamma", "special_gammaln")


@operator("mvlgamma(Tensor self, int p)", "special_multigammaln(Tensor self, int p)")
def mvlgamma(t: Torch, x: Node, p: int) -> Node:
    require_parts(at_least(1, "p", p))

    def total(v: Node) -> Node:
        made = t.like(v, p * (p - 1) / 4 * log(pi))
        for i in range(p):
            made = t.add(made, log_gamma(t, t.plus(v, -i / 2)))
        return made
    return in_double(t, x, total)


def psi(t: Torch, x: Node) -> Node:
    """The digamma function: ten steps of the recurrence, then the asymptotic series; reflected below zero."""
    below = t.compare("LE", x, t.like(x, 0))
    v = t.select(below, t.sub(t.like(x, 1), x), x)
    steps = t.like(v, 0)
    for k in range(10):
        steps = t.add(steps, t.div(t.like(v, 1), t.plus(v, k)))
    z = t.plus(v, 10)
    inverse = t.div(t.like(z, 1), t.mul(z, z))
    tail = t.mul(inverse, polynomial(t, inverse, (1 / 12, -1 / 120, 1 / 252, -1 / 240, 5 / 660)))
    value = t.sub(t.sub(t.sub(t.unary("log", z), t.div(t.like(z, 0.5), z)), tail), steps)
    away = t.sub(x, t.unary("floor", x))
    mirrored = t.sub(value, t.div(t.like(x, pi), t.unary("tan", t.scale(away, pi))))
    whole = t.compare("EQ", away, t.like(x, 0))
    pole = where(t, "EQ", x, 0, t.unary("negate", t.div(t.like(x, 1), x)), t.like(x, float("nan")))
    return t.select(below, t.select(whole, pole, mirrored), value)


_declare(psi, "digamma", "special_digamma", "special_psi")
BERNOULLI = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160)


def hurwitz(t: Torch, s: Node, q: Node) -> Node:
    """The sum of (q + k)^-s: the first terms one by one, the rest by Euler and Maclaurin."""
    terms = 20
    total = t.like(q, 0)
    minus = t.unary("negate", s)
    for k in range(terms):
        total = t.add(total, t.binary("power", t.plus(q, k), minus))
    z = t.plus(q, terms)
    last = t.binary("power", z, minus)
    total = t.add(t.add(total, t.div(t.mul(last, z), t.plus(s, -1))), t.scale(last, 0.5))
    factor, power = s, t.div(last, z)
    for k, b in enumerate(BERNOULLI):
        total = t.add(total, t.scale(t.mul(factor, power), b))
        factor = t.mul(t.mul(factor, t.plus(s, 2 * k + 1)), t.plus(s, 2 * k + 2))
        power = t.div(power, t.mul(z, z))
    pole = t.binary("and", t.compare("LE", q, t.like(q, 0)), t.compare("EQ", q, t.unary("floor", q)))
    return t.select(pole, t.like(q, float("inf")), total)


@operator("polygamma(int n, Tensor self)", "special_polygamma(int n, Tensor self)")
def polygamma(t: Torch, n: int, x: Node) -> Node:
    if at_least(0, "n", n) == 0:
        return in_double(t, x, lambda v: psi(t, v))
    scale = float(factorial(n)) if n <= LARGEST_FACTORIAL else inf
    return in_double(t, x, lambda v: t.scale(hurwitz(t, t.like(v, n + 1), v), scale if n % 2 else -scale))


@operator("polygamma.in_place(Tensor self, int n)")
def polygamma_of(t: Torch, x: Node, n: int) -> Node:
    """The order of operands of ``polygamma_``."""
    return polygamma(t, n, x)


@operator("special_zeta(Tensor self, Tensor other)", "special_zeta.self_scalar(Scalar self, Tensor other)",
          "special_zeta.other_scalar(Tensor self, Scalar other)")
def zeta(t: Torch, s: object, q: object) -> Node:
    s, q = t.together(*t.promote_floating(s, q))
    wide, base = t.convert(s, F64), t.convert(q, F64)
    value = hurwitz(t, wide, base)
    # As in Cephes: undefined for s below 1; below 0, powers of negative numbers only where they are real.
    value = where(t, "EQ", wide, 1, t.like(value, float("inf")), value)
    broken = t.binary("and", t.compare("LE", base, t.like(base, 0)), t.compare("NE", wide, t.unary("floor", wide)))
    pole = t.binary("and", t.compare("LE", base, t.like(base, 0)), t.compare("EQ", base, t.unary("floor", base)))
    value = t.select(t.binary("and", broken, t.unary("not", pole)), t.like(value, float("nan")), value)
    value = where(t, "LT", wide, 1, t.like(value, float("nan")), value)
    return t.convert(value, t.dtype(q))


# ---------------------------------------------------------------------- error function


def scaled_erfc(t: Torch, x: Node) -> Node:
    """exp(x^2) erfc(x), by a rational Chebyshev fit (relative error 1.2e-7)."""
    size = t.unary("abs", x)
    u = t.div(t.like(x, 1), t.plus(t.scale(size, 0.5), 1))
    fit = polynomial(t, u, (-1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587, -0.82215223,
                            0.17087277))
    value = t.mul(u, t.unary("exponential", fit))
    return where(t, "LT", x, 0, t.sub(t.scale(t.unary("exponential", t.mul(x, x)), 2), value), value)


_declare(scaled_erfc, "special_erfcx")


@operator("special_ndtr(Tensor self)")
def ndtr(t: Torch, x: Node) -> Node:
    """The cumulative normal distribution at ``x``."""
    return in_double(t, x, lambda v: t.scale(erfc(t, t.scale(v, -sqrt(0.5))), 0.5))


def log_normal(t: Torch, v: Node) -> Node:
    """The logarithm of the cumulative normal distribution at ``v``."""
    u = t.scale(v, sqrt(0.5))
    far = t.sub(t.unary("log", t.scale(scaled_erfc(t, t.unary("negate", u)), 0.5)), t.mul(u, u))
    return where(t, "LT", v, -1, far, t.unary("log-plus-one", t.scale(erfc(t, u), -0.5)))


_declare(log_normal, "special_log_ndtr")
CENTRAL = (1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.000218580870, -4.39150654e-06, -3.5233877e-06, 3.43273939e-07,
           2.81022636e-08)
TAIL = (2.83297682, 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773, -0.00367342844, 0.00134934322, 0.000100950558, -0.000200214257)


def inverse_erf(t: Torch, y: Node) -> Node:
    """The inverse error function: Giles' approximation, refined by two steps of Newton's method."""
    w = t.unary("negate", t.unary("log", t.mul(t.sub(t.like(y, 1), y), t.plus(y, 1))))
    near = polynomial(t, t.plus(w, -2.5), CENTRAL)
    far = polynomial(t, t.plus(t.unary("sqrt", w), -3), TAIL)
    x = t.mul(where(t, "LT", w, 5, near, far), y)
    for _ in range(2):
        slope = t.scale(t.unary("exponential", t.unary("negate", t.mul(x, x))), 2 / sqrt(pi))
        step = t.div(t.sub(t.unary("erf", x), y), slope)
        x = t.sub(x, t.select(t.unary("is-finite", step), step, t.like(x, 0)))
    edge = t.compare("EQ", t.unary("abs", y), t.like(y, 1))
    return t.select(edge, t.mul(y, t.like(y, float("inf"))), x)


_declare(inverse_erf, "erfinv", "special_erfinv")


@operator("special_ndtri(Tensor self)")
def ndtri(t: Torch, x: Node) -> Node:
    """The quantile ``x`` of the normal distribution; tiny ones by Newton's steps on their logarithm."""
    def value(p: Node) -> Node:
        middle = t.scale(inverse_erf(t, t.plus(t.scale(p, 2), -1)), sqrt(2))
        goal = t.unary("log", p)
        y = t.unary("negate", t.unary("sqrt", t.scale(goal, -2)))
        for _ in range(6):
            tail = t.scale(scaled_erfc(t, t.scale(y, -sqrt(0.5))), 0.5)
            have = t.sub(t.unary("log", tail), t.scale(t.mul(y, y), 0.5))
            y = t.sub(y, t.mul(t.sub(have, goal), t.scale(tail, sqrt(2 * pi))))
        small = t.binary("and", t.compare("LT", p, t.like(p, 1e-3)), t.compare("GT", p, t.like(p, 0)))
        return t.select(small, y, middle)
    return in_double(t, x, value)


# ---------------------------------------------------------------------- Bessel functions (Abramowitz and Stegun 9.8.1 to 9.8.4)

I0 = (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.0360768, 0.0045813)
I0_FAR = (0.39894228, 0.01328592, 0.00225319, -0.00157565, 0.00916281, -0.02057706, 0.02635537, -0.01647633, 0.00392377)
I1 = (0.5, 0.87890594, 0.51498869, 0.15084934, 0.02658733, 0.00301532, 0.00032411)
I1_FAR = (0.39894228, -0.03988024, -0.00362018, 0.00163801, -0.01031555, 0.02282967, -0.02895312, 0.01787654, -0.00420059)


def bessel(t: Torch, x: Node, odd: bool, scaled: bool) -> Node:
    """I0 or I1; ``scaled`` by exp(-|x|)."""
    size = t.unary("abs", x)
    u = t.scale(x, 1 / 3.75)
    near = polynomial(t, t.mul(u, u), I1 if odd else I0)
    if odd:
        near = t.mul(near, size)
    inverse = t.div(t.like(x, 3.75), t.maximum(size, t.like(x, 1)))
    far = t.div(polynomial(t, inverse, I1_FAR if odd else I0_FAR), t.unary("sqrt", t.maximum(size, t.like(x, 1))))
    if scaled:
        near = t.mul(near, t.unary("exponential", t.unary("negate", size)))
    else:
        far = t.mul(far, t.unary("exponential", size))
    value = where(t, "LT", size, 3.75, near, far)
    return where(t, "LT", x, 0, t.unary("negate", value), value) if odd else value


_declare(partial(bessel, odd=False, scaled=False), "i0", "special_i0")
_declare(partial(bessel, odd=False, scaled=True), "special_i0e")
_declare(partial(bessel, odd=True, scaled=False), "special_i1")
_declare(partial(bessel, odd=True, scaled=True), "special_i1e")

# ---------------------------------------------------------------------- logarithms and steps


@operator("special_entr(Tensor self)")
def entr(t: Torch, x: Node) -> Node:
    """-x log x, 0 at 0 and -inf below."""
    x = t.floating(x)
    value = t.unary("negate", t.mul(x, t.unary("log", x)))
    value = where(t, "EQ", x, 0, t.like(x, 0), value)
    return where(t, "LT", x, 0, t.like(x, float("-inf")), value)


@operator("special_xlog1py(Tensor self, Tensor other)", "special_xlog1py.self_scalar(Scalar self, Tensor other)",
          "special_xlog1py.other_scalar(Tensor self, Scalar other)")
def xlog1py(t: Torch, x: object, y: object) -> Node:
    x, y = t.together(*t.promote_floating(x, y))
    zero = t.binary("and", t.compare("EQ", x, t.like(x, 0)), t.compare("EQ", y, y))
    return t.select(zero, t.like(x, 0), t.mul(x, t.unary("log-plus-one", y)))


@operator("logaddexp2(Tensor self, Tensor other)")
def logaddexp2(t: Torch, x: Node, y: Node) -> Node:
    """log2(2^x + 2^y)."""
    x, y = t.together(*t.promote_floating(x, y))
    top = t.maximum(x, y)
    away = t.unary("negate", t.unary("abs", t.sub(x, y)))
    value = t.add(top, t.scale(t.unary("log-plus-one", t.binary("power", t.like(x, 2), away)), 1 / log(2)))
    same = t.binary("and", t.compare("EQ", x, y), t.unary("not", t.unary("is-finite", x)))
    return t.select(same, x, value)


@operator("heaviside(Tensor self, Tensor values)")
def heaviside(t: Torch, x: Node, values: Node) -> Node:
    x, values = t.together(*t.promote(x, values))
    step = t.convert(t.compare("GT", x, t.like(x, 0)), t.dtype(x))
    return where(t, "EQ", x, 0, values, step)


@operator("float_power.Tensor_Tensor(Tensor self, Tensor exponent)", "float_power.Tensor_Scalar(Tensor self, Scalar exponent)",
          "float_power.Scalar(Scalar self, Tensor exponent)")
def float_power(t: Torch, x: object, y: object) -> Node:
    kind = C128 if t.result_type(x, y).is_complex else F64
    return t.binary("power", *t.promote(x, y, to=kind))


@operator("ldexp.Tensor(Tensor self, Tensor other)")
def ldexp(t: Torch, x: Node, y: Node) -> Node:
    """x 2^y. Integers do not affect the result type beside a floating operand, even a 0-dimensional or half-precision one."""
    floats = [v for v in (x, y) if t.dtype(v).is_float or t.dtype(v).is_complex]
    kind = t.result_type(*floats) if floats else F32
    wide = F32 if kind.storage < 4 else kind
    scale = t.binary("power", t.like(t.convert(y, wide), 2), t.convert(y, wide))
    return t.convert(t.mul(t.convert(x, wide), scale), kind)


def _infinite(name: str, value: float) -> None:
    @operator(f"{name}(Tensor self)")
    def made(t: Torch, x: Node) -> Node:
        return t.compare("EQ", x, t.like(x, value)) if t.dtype(x).is_float else t.compare("NE", x, x)


_infinite("isposinf", inf)
_infinite("isneginf", -inf)


@operator("nextafter(Tensor self, Tensor other)")
def nextafter(t: Torch, x: Node, y: Node) -> Node:
    """The next number of the type in the direction of ``y``."""
    x, y = t.together(*t.promote(x, y))
    if not t.dtype(x).is_float or t.dtype(x).bits not in (16, 32, 64):
        raise TypeFault(f"the next number of {t.dtype(x)} is not supported")
    kind = {16: S16, 32: S32, 64: S64}[t.dtype(x).bits]
    pattern = t.bitcast_convert(x, kind)
    away = t.compare("EQ", t.compare("GT", y, x), t.compare("GT", x, t.like(x, 0)))
    moved = t.bitcast_convert(t.add(pattern, t.select(away, t.like(pattern, 1), t.like(pattern, -1))), t.dtype(x))
    least = t.bitcast_convert(t.like(pattern, 1), t.dtype(x))
    moved = where(t, "EQ", x, 0, t.select(t.compare("GT", y, x), least, t.unary("negate", least)), moved)
    broken = t.binary("or", t.compare("NE", x, x), t.compare("NE", y, y))
    return t.select(broken, t.add(x, y), t.select(t.compare("EQ", x, y), y, moved))
