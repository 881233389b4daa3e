"""Complex arithmetic in terms of real words: a backend needs no complex function of its own, only ``real``, ``imag`` and ``complex``."""
from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import Any

from irscope.ops.formula import Term
from irscope.ops.meaning import Emitter

Complex = tuple[Term, Term]
"""Real and imaginary part."""


def apply(word: str, k: Emitter, *values: Any) -> Any:
    """The value of a word of :mod:`irscope.ops.vocabulary` for complex operands: complex, or real for ``abs``, ``real``, ``imag``."""
    result = WORDS[word](*(parts(k, v) for v in values))
    return result.value if isinstance(result, Term) else k.complex(result[0].value, result[1].value)


def parts(k: Emitter, z: Any) -> Complex:
    """Real and imaginary part of a complex value."""
    return Term(k, k.unary("real", z)), Term(k, k.unary("imag", z))


def compare(k: Emitter, direction: str, x: Any, y: Any) -> Any:
    """``EQ`` and ``NE``: the only order complex numbers have."""
    (a, b), (c, d) = parts(k, x), parts(k, y)
    joined = a.compare(direction, c).binary("and" if direction == "EQ" else "or", b.compare(direction, d))
    return joined.value


def select(k: Emitter, condition: Any, x: Any, y: Any) -> Any:
    """One of two complex values."""
    (a, b), (c, d) = parts(k, x), parts(k, y)
    return k.complex(k.select(condition, a.value, c.value), k.select(condition, b.value, d.value))


def _add(x: Complex, y: Complex) -> Complex:
    return x[0] + y[0], x[1] + y[1]


def _sub(x: Complex, y: Complex) -> Complex:
    return x[0] - y[0], x[1] - y[1]


def _mul(x: Complex, y: Complex) -> Complex:
    (a, b), (c, d) = x, y
    return a * c - b * d, a * d + b * c


def _div(x: Complex, y: Complex) -> Complex:
    """Smith's method: the smaller part is divided by the larger, so that squares cannot overflow."""
    (a, b), (c, d) = x, y
    wide = c.unary("abs") >= d.unary("abs")
    large, small = wide.where(c, d), wide.where(d, c)
    ratio = small / large
    scale = large + small * ratio
    re = wide.where(a + b * ratio, a * ratio + b) / scale
    im = wide.where(b - a * ratio, b * ratio - a) / scale
    zero = large.equals(0)
    return zero.where(a / large, re), zero.where(b / large, im)


def _neg(x: Complex) -> Complex:
    return -x[0], -x[1]


def _abs(x: Complex) -> Term:
    a, b = x[0].unary("abs"), x[1].unary("abs")
    large, small = a.binary("max", b), a.binary("min", b)
    ratio = small / large
    size = large * (1 + ratio * ratio).unary("sqrt")
    return (large.equals(0)).where(large, (large.equals(float("inf"))).where(large, size))


def _sign(x: Complex) -> Complex:
    size = _abs(x)
    zero = size.equals(0)
    return zero.where(size, x[0] / size), zero.where(size, x[1] / size)


def _exp(x: Complex) -> Complex:
    a, b = x
    size = a.unary("exp")
    return size * b.unary("cos"), (b.equals(0)).where(b, size * b.unary("sin"))


def _expm1(x: Complex) -> Complex:
    a, b = x
    half = (b * 0.5).unary("sin")
    return a.unary("expm1") * b.unary("cos") - 2 * (half * half), a.unary("exp") * b.unary("sin")


def _log(x: Complex) -> Complex:
    return _abs(x).unary("log"), x[1].binary("atan2", x[0])


def _log1p(x: Complex) -> Complex:
    a, b = x
    small = (a.unary("abs") < 0.5).binary("and", b.unary("abs") < 0.5)
    near = 0.5 * (a * (a + 2) + b * b).unary("log1p")
    return small.where(near, _abs((1 + a, b)).unary("log")), b.binary("atan2", 1 + a)


def _sqrt(x: Complex) -> Complex:
    a, b = x
    size = ((_abs(x) + a.unary("abs")) * 0.5).unary("sqrt")
    other = b.unary("abs") / (size * 2)
    right = a >= 0
    re, im = right.where(size, other), right.where(other, size)
    down = (b < 0).binary("or", (b.equals(0)).binary("and", (1 / b) < 0))
    zero = size.equals(0)
    return zero.where(size, re), zero.where(b, down.where(-im, im))


def _one(x: Complex) -> Complex:
    return x[0].lift(1), x[0].lift(0)


def _rsqrt(x: Complex) -> Complex:
    return _div(_one(x), _sqrt(x))


def _scaled(x: Complex, factor: float) -> Complex:
    return x[0] * factor, x[1] * factor


def _cbrt(x: Complex) -> Complex:
    zero = _abs(x).equals(0)
    re, im = _exp(_scaled(_log(x), 1 / 3))
    return zero.where(x[0], re), zero.where(x[1], im)


def _pow(x: Complex, y: Complex) -> Complex:
    re, im = _exp(_mul(y, _log(x)))
    none = _abs(y).equals(0)
    zero = _abs(x).equals(0)
    return none.where(re.lift(1), zero.where(re.lift(0), re)), none.where(re.lift(0), zero.where(re.lift(0), im))


def _logistic(x: Complex) -> Complex:
    return _div(_one(x), _add(_one(x), _exp(_neg(x))))


def _tanh(x: Complex) -> Complex:
    t, u, c = x[0].unary("tanh"), x[1].unary("tan"), x[0].unary("cosh")
    scale = 1 + t * t * u * u
    return t * (1 + u * u) / scale, u / (c * c) / scale


def _turned(x: Complex) -> Complex:
    """``i * x``."""
    return -x[1], x[0]


def _back(x: Complex) -> Complex:
    """``-i * x``."""
    return x[1], -x[0]


def _sinh(x: Complex) -> Complex:
    a, b = x
    return a.unary("sinh") * b.unary("cos"), a.unary("cosh") * b.unary("sin")


def _cosh(x: Complex) -> Complex:
    a, b = x
    return a.unary("cosh") * b.unary("cos"), a.unary("sinh") * b.unary("sin")


def _sin(x: Complex) -> Complex:
    return _back(_sinh(_turned(x)))


def _cos(x: Complex) -> Complex:
    return _cosh(_turned(x))


def _tan(x: Complex) -> Complex:
    return _back(_tanh(_turned(x)))


def _asinh(x: Complex) -> Complex:
    return _log(_add(x, _sqrt(_add(_mul(x, x), _one(x)))))


def _acosh(x: Complex) -> Complex:
    return _log(_add(x, _mul(_sqrt(_add(x, _one(x))), _sqrt(_sub(x, _one(x))))))


def _atanh(x: Complex) -> Complex:
    return _scaled(_sub(_log1p(x), _log1p(_neg(x))), 0.5)


def _asin(x: Complex) -> Complex:
    return _back(_asinh(_turned(x)))


def _acos(x: Complex) -> Complex:
    re, im = _asin(x)
    return pi / 2 - re, -im


def _atan(x: Complex) -> Complex:
    return _back(_atanh(_turned(x)))


def _atan2(y: Complex, x: Complex) -> Complex:
    """``-i * log((x + i*y) / sqrt(x*x + y*y))``."""
    return _back(_log(_div(_add(x, _turned(y)), _sqrt(_add(_mul(x, x), _mul(y, y))))))


WORDS: dict[str, Callable[..., Complex | Term]] = {
    "add": _add, "sub": _sub, "mul": _mul, "div": _div, "pow": _pow, "atan2": _atan2, "neg": _neg, "abs": _abs, "sign": _sign,
    "real": lambda x: x[0], "imag": lambda x: x[1],
    "exp": _exp, "expm1": _expm1, "log": _log, "log1p": _log1p, "sqrt": _sqrt, "rsqrt": _rsqrt, "cbrt": _cbrt, "logistic": _logistic,
    "tanh": _tanh, "sinh": _sinh, "cosh": _cosh, "sin": _sin, "cos": _cos, "tan": _tan,
    "asin": _asin, "acos": _acos, "atan": _atan, "asinh": _asinh, "acosh": _acosh, "atanh": _atanh,
}
"""The words that complex numbers have, as functions of parts."""
