"""Bessel functions of the first and second kind, and modified ones of the second kind, in float64.

Small arguments use Chebyshev series of the regular part, which are fitted here to integrals (Abramowitz and Stegun 9.1.21, 9.6.24), large
ones the asymptotic expansion (9.2.5) or a series in 1/x.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import factorial, log, pi

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.special import bessel, in_double, polynomial, where
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.lazy import Array, np

EULER = 0.57721566490153286061
NEAR = 25.0
"""Up to here the series hold; from here on the asymptotic expansion is exact to the last digit."""
TERMS, DEGREE = 12, 48


def _first_kind(order: int, x: Array) -> Array:
    """J of an order by its integral over half a period, for which equidistant points converge exponentially."""
    angle = (np.arange(256) + 0.5) * (pi / 256)
    return np.asarray(np.cos(order * angle - x[..., None] * np.sin(angle)).mean(-1))


def _regular(order: int, x: Array) -> Array:
    """Y0, or Y1 / x, without logarithm and pole (Abramowitz and Stegun 9.1.89 and its derivative): even functions of x."""
    if order == 0:
        value = (2 / pi) * (EULER - log(2)) * _first_kind(0, x)
        for k in range(1, 40):
            value = value + (4 / pi) * (-1) ** (k + 1) / k * _first_kind(2 * k, x)
        return value
    value = (2 / pi) * ((EULER - log(2)) * _first_kind(1, x) + (1 - _first_kind(0, x)) / x)
    for k in range(1, 40):
        value = value - (2 / pi) * (-1) ** (k + 1) / k * (_first_kind(2 * k - 1, x) - _first_kind(2 * k + 1, x))
    return value / x


def _scaled_second(order: int, x: Array) -> Array:
    """e^x sqrt(x) K of an order, by its integral."""
    s = np.arange(1200) * 0.01
    t = s / np.sqrt(x)[..., None]
    values = np.exp(-2 * x[..., None] * np.sinh(t / 2) ** 2) * np.cosh(order * t)
    return np.asarray((values.sum(-1) - 0.5 * values[..., 0]) * 0.01)


@cache
def _chebyshev(function: str, order: int) -> tuple[float, ...]:
    """The coefficients of a series on [-1, 1]: of z = x^2 up to NEAR^2, or of 1/x up to 1/2."""
    n = 96
    nodes = np.cos((np.arange(n) + 0.5) * (pi / n))
    if function == "second":
        values = _scaled_second(order, 4 / (nodes + 1))
    else:
        x = NEAR * np.sqrt((nodes + 1) / 2)
        values = _regular(order, x) if function == "regular" else _first_kind(order, x) / (x if order else 1)
    k = np.arange(DEGREE)
    found = (2 / n) * (values * np.cos(k[:, None] * np.arccos(nodes))).sum(-1)
    return tuple(float(c) for c in found)


def _series(t: Torch, u: Node, coefficients: Sequence[float]) -> Node:
    """A Chebyshev series by Clenshaw's recurrence."""
    twice, before, now = t.scale(u, 2), t.like(u, 0), t.like(u, 0)
    for c in reversed(coefficients[1:]):
        before, now = now, t.plus(t.sub(t.mul(twice, now), before), c)
    return t.plus(t.sub(t.mul(u, now), before), coefficients[0] / 2)


def _near(t: Torch, x: Node, function: str, order: int) -> Node:
    square = t.minimum(t.mul(x, x), t.like(x, NEAR * NEAR))
    return _series(t, t.plus(t.scale(square, 2 / (NEAR * NEAR)), -1), _chebyshev(function, order))


def _far(t: Torch, x: Node, order: int, second: bool) -> Node:
    """sqrt(2 / (pi x)) times the sine or cosine of the phase, with the two asymptotic series."""
    x = t.maximum(x, t.like(x, NEAR))
    products = [1.0]
    for k in range(1, 2 * TERMS):
        products.append(products[-1] * (4 * order * order - (2 * k - 1) ** 2) / (8 * k))
    inverse = t.div(t.like(x, 1), x)
    square = t.mul(inverse, inverse)
    p = polynomial(t, square, [(-1) ** k * products[2 * k] for k in range(TERMS)])
    q = t.mul(inverse, polynomial(t, square, [(-1) ** k * products[2 * k + 1] for k in range(TERMS)]))
    phase = t.plus(x, -(order / 2 + 0.25) * pi)
    cosine, sine = t.unary("cosine", phase), t.unary("sine", phase)
    wave = t.add(t.mul(p, sine), t.mul(q, cosine)) if second else t.sub(t.mul(p, cosine), t.mul(q, sine))
    return t.mul(wave, t.unary("sqrt", t.scale(inverse, 2 / pi)))


def first_kind(t: Torch, x: Node, order: int) -> Node:
    size = t.unary("abs", x)
    near = _near(t, size, "first", order)
    near = t.mul(near, size) if order else near
    value = where(t, "LE", size, NEAR, near, _far(t, size, order, False))
    return where(t, "LT", x, 0, t.unary("negate", value), value) if order else value


def second_kind(t: Torch, x: Node, order: int) -> Node:
    """-inf at 0, NaN below."""
    logarithm = t.scale(t.unary("log", x), 2 / pi)
    near = t.mul(logarithm, first_kind(t, x, order))
    if order:
        rest = t.mul(_near(t, x, "regular", 1), x)
        near = t.add(t.sub(near, t.div(t.like(x, 2 / pi), x)), rest)
    else:
        near = t.add(near, _near(t, x, "regular", 0))
    value = where(t, "LE", x, NEAR, near, _far(t, x, order, True))
    value = where(t, "EQ", x, 0, t.like(x, float("-inf")), value)
    return where(t, "LT", x, 0, t.like(x, float("nan")), value)


def modified_second(t: Torch, x: Node, order: int, scaled: bool) -> Node:
    """K0 or K1: by power series up to 2 (Abramowitz and Stegun 9.6.11), else e^-x / sqrt(x) times a series in 1/x. inf at 0, NaN below."""
    z = t.scale(t.mul(x, x), 0.25)
    terms = 16
    harmonic = [sum(1 / j for j in range(1, k + 1)) for k in range(terms + 1)]
    squares = [factorial(k) * factorial(k + order) for k in range(terms)]
    smooth = polynomial(t, z, [1 / s for s in squares])
    logarithm = t.unary("log", t.scale(x, 0.5))
    if order:
        digammas = [harmonic[k] + harmonic[k + 1] - 2 * EULER for k in range(terms)]
        rest = polynomial(t, z, [d / s for d, s in zip(digammas, squares, strict=True)])
        near = t.add(t.div(t.like(x, 1), x), t.mul(t.scale(x, 0.5), t.sub(t.mul(logarithm, smooth), t.scale(rest, 0.5))))
    else:
        rest = polynomial(t, z, [(harmonic[k] - EULER) / squares[k] for k in range(terms)])
        near = t.sub(rest, t.mul(logarithm, smooth))
    wide = t.maximum(x, t.like(x, 2))
    far = t.div(_series(t, t.plus(t.div(t.like(x, 4), wide), -1), _chebyshev("second", order)), t.unary("sqrt", wide))
    if scaled:
        near = t.mul(near, t.unary("exponential", x))
    else:
        far = t.mul(far, t.unary("exponential", t.unary("negate", wide)))
    value = where(t, "LE", x, 2, near, far)
    value = where(t, "EQ", x, 0, t.like(x, float("inf")), value)
    return where(t, "LT", x, 0, t.like(x, float("nan")), value)


def _declare(name: str, argument: str, function: Callable[[Torch, Node], Node]) -> None:
    @operator(f"special_{name}(Tensor {argument})")
    def made(t: Torch, x: Node) -> Node:
        return in_double(t, x, lambda v: function(t, v))


for _n in (0, 1):
    _declare(f"bessel_j{_n}", "self", lambda t, x, n=_n: first_kind(t, x, n))  # type: ignore[misc]
    _declare(f"bessel_y{_n}", "self", lambda t, x, n=_n: second_kind(t, x, n))  # type: ignore[misc]
    _declare(f"modified_bessel_i{_n}", "self", lambda t, x, n=_n: bessel(t, x, n == 1, False))  # type: ignore[misc]
    _declare(f"modified_bessel_k{_n}", "self", lambda t, x, n=_n: modified_second(t, x, n, False))  # type: ignore[misc]
    _declare(f"scaled_modified_bessel_k{_n}", "x", lambda t, x, n=_n: modified_second(t, x, n, True))  # type: ignore[misc]


@operator("special_spherical_bessel_j0(Tensor x)")
def spherical(t: Torch, x: Node) -> Node:
    """sin(x) / x, by its series near 0."""
    def value(v: Node) -> Node:
        z = t.mul(v, v)
        near = polynomial(t, z, [(-1) ** k / factorial(2 * k + 1) for k in range(7)])
        made = where(t, "LT", t.unary("abs", v), 0.5, near, t.div(t.unary("sine", v), v))
        return where(t, "EQ", t.unary("abs", v), float("inf"), t.like(v, 0), made)
    return in_double(t, x, value)
