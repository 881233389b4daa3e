"""Divisors of integers, parts of floats, and differences along dimensions."""
from __future__ import annotations

from typing import Any

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import F64, S32, S64
from irscope.ops.checked import in_step, nonzero
from irscope.ops.faults import TypeFault
from irscope.ops.loops import repeat
from irscope.ops.tensors import Tensors

MOST_STEPS = 93
"""Euclid's algorithm takes no more steps for numbers of 64 bits (most for consecutive Fibonacci numbers)."""


@operator("gcd(Tensor self, Tensor other)")
def gcd(t: Torch, x: Node, y: Node) -> Node:
    """The greatest common divisor, by Euclid's algorithm."""
    x, y = t.together(*t.promote(x, y))
    kind = t.dtype(x)

    def step(inner: Tensors, i: Node, state: list[Node]) -> list[Node]:
        a, b = state
        done = inner.compare("EQ", b, inner.like(b, 0))
        rest = inner.binary("remainder", a, inner.select(done, inner.like(b, 1), b))
        return [inner.select(done, a, b), inner.select(done, b, rest)]
    found = repeat(t, t.array(MOST_STEPS, S64), [t.convert(x, S64), t.convert(y, S64)], step)[0]
    return t.convert(t.unary("abs", found), kind)


@operator("lcm(Tensor self, Tensor other)")
def lcm(t: Torch, x: Node, y: Node) -> Node:
    """The least common multiple; 0 of 0 and anything."""
    x, y = t.together(*t.promote(x, y))
    divisor = gcd(t, x, y)
    none = t.compare("EQ", divisor, t.like(divisor, 0))
    share = t.div(x, t.select(none, t.like(divisor, 1), divisor))
    made = t.mul(share, y)
    return t.unary("abs", made) if t.dtype(made).kind == "int" else made


@operator("frexp.Tensor(Tensor self)")
def frexp(t: Torch, x: Node) -> tuple[Node, Node]:
    """A mantissa from 0.5 to 1 and a power of two, from the bits of float64."""
    kind, wide = t.dtype(x), t.convert(x, F64)
    tiny = t.compare("LT", t.unary("abs", wide), t.like(wide, 2.0 ** -1022))
    wide = t.select(tiny, t.scale(wide, 2.0 ** 54), wide)
    bits = t.bitcast_convert(wide, S64)
    exponent = t.binary("and", t.binary("shift-right-logical", bits, t.like(bits, 52)), t.like(bits, 0x7FF))
    power = t.sub(t.plus(exponent, -1022), t.select(tiny, t.like(bits, 54), t.like(bits, 0)))
    mantissa = t.bitcast_convert(t.binary("or", t.binary("and", bits, t.like(bits, ~(0x7FF << 52))), t.like(bits, 1022 << 52)), F64)
    plain = t.binary("and", t.unary("is-finite", wide), t.compare("NE", wide, t.like(wide, 0)))
    return t.convert(t.select(plain, mantissa, wide), kind), t.convert(t.select(plain, power, t.like(power, 0)), S32)


def _slope(t: Torch, x: Node, d: int, spacing: float, order: int) -> Node:
    """Central differences inside, one-sided ones of ``order`` + 1 elements at the ends.

    Raises TypeFault for another order than 1 and 2, and for too few elements.
    """
    n = t.shape(x)[d]
    if n < order + 1 or order not in (1, 2):
        raise TypeFault(f"gradient of {n} elements with edge_order {order}: one or two, and more elements than that")

    def at(i: int, j: int) -> Node:
        return t.slice_dim(x, d, i, j)
    if order == 1:
        first, last = t.sub(at(1, 2), at(0, 1)), t.sub(at(n - 1, n), at(n - 2, n - 1))
    else:
        first = t.sub(t.sub(t.scale(at(1, 2), 2), t.scale(at(0, 1), 1.5)), t.scale(at(2, 3), 0.5))
        last = t.add(t.sub(t.scale(at(n - 1, n), 1.5), t.scale(at(n - 2, n - 1), 2)), t.scale(at(n - 3, n - 2), 0.5))
    inside = [t.scale(t.sub(at(2, n), at(0, n - 2)), 0.5)] if n > 2 else []
    return t.scale(t.concat([first, *inside, last], d), 1 / nonzero("spacing", spacing))


@operator("gradient.scalarint(Tensor self, *, Scalar? spacing=None, int? dim=None, int edge_order=1)",
          "gradient.scalarrayint(Tensor self, *, Scalar[] spacing, int? dim=None, int edge_order=1)",
          "gradient.scalararray(Tensor self, *, Scalar spacing, int[] dim, int edge_order=1)",
          "gradient.scalarrayarray(Tensor self, *, Scalar[] spacing, int[] dim, int edge_order=1)",
          "gradient.array(Tensor self, *, int[] dim, int edge_order=1)")
def gradient(t: Torch, x: Node, *, spacing: object = None, dim: Any, edge_order: int) -> list[Node]:
    dims = _along(t, x, dim)
    x = t.floating(x)
    steps = spacing if isinstance(spacing, list) else [1 if spacing is None else spacing] * len(dims)
    if len(steps) != len(dims):
        raise TypeFault(f"gradient along {len(dims)} dimensions is given {len(steps)} spacings")
    return [_slope(t, x, t.dim(x, d), s, edge_order) for d, s in zip(dims, steps, strict=True)]


def _along(t: Torch, x: Node, dim: Any) -> list[int]:
    """The dimensions of an argument that is one, a list of them, or None for all."""
    return list(range(t.rank(x))) if dim is None else [dim] if isinstance(dim, int) else dim


def _along_coordinates(t: Torch, x: Node, d: int, places: Node, order: int) -> Node:
    """Differences over coordinates with unequal spacing: of second order inside, as in numpy."""
    n = t.shape(x)[d]
    if n < order + 1 or order not in (1, 2) or t.shape(places) != (n,):
        raise TypeFault(f"gradient of {n} elements over {t.shape(places)} places with edge_order {order}")

    def at(v: Node, axis: int, i: int, j: int) -> Node:
        return t.slice_dim(v, axis, i, j)
    shape = tuple(-1 if i == d else 1 for i in range(t.rank(x)))
    steps = t.sub(at(places, 0, 1, n), at(places, 0, 0, n - 1))
    steps = t.reshape(t.convert(steps, t.dtype(x)), tuple(n - 1 if s == -1 else 1 for s in shape))

    def weighted(low: Node, middle: Node, high: Node, i: int, j: int) -> Node:
        parts = (t.mul(low, at(x, d, i, j)), t.mul(middle, at(x, d, i + 1, j + 1)), t.mul(high, at(x, d, i + 2, j + 2)))
        return t.add(t.add(parts[0], parts[1]), parts[2])

    def quotient(top: Node, *below: Node) -> Node:
        for b in below:
            top = t.div(top, b)
        return top
    rows = []
    if order == 1:
        first = t.div(t.sub(at(x, d, 1, 2), at(x, d, 0, 1)), at(steps, d, 0, 1))
        last = t.div(t.sub(at(x, d, n - 1, n), at(x, d, n - 2, n - 1)), at(steps, d, n - 2, n - 1))
    if n > 2:
        a, b = at(steps, d, 0, n - 2), at(steps, d, 1, n - 1)
        both = t.add(a, b)
        rows.append(weighted(t.unary("negate", quotient(b, a, both)), quotient(t.sub(b, a), a, b), quotient(a, b, both), 0, n - 2))
    if order == 2:
        a, b = at(steps, d, 0, 1), at(steps, d, 1, 2)
        both = t.add(a, b)
        low, high = quotient(t.add(a, both), a, both), quotient(a, b, both)
        first = weighted(t.unary("negate", low), quotient(both, a, b), t.unary("negate", high), 0, 1)
        a, b = at(steps, d, n - 3, n - 2), at(steps, d, n - 2, n - 1)
        both = t.add(a, b)
        last = weighted(quotient(b, a, both), t.unary("negate", quotient(both, a, b)), quotient(t.add(b, both), b, both), n - 3, n - 2)
    return t.concat([first, *rows, last], d)


@operator("gradient.tensorarrayint(Tensor self, *, Tensor[] spacing, int? dim=None, int edge_order=1)",
          "gradient.tensorarray(Tensor self, *, Tensor[] spacing, int[] dim, int edge_order=1)")
def gradient_over(t: Torch, x: Node, places: list[Node], dims: Any, order: int) -> list[Node]:
    """Along dimensions whose coordinates are given."""
    x = t.floating(x)
    return [_along_coordinates(t, x, t.dim(x, d), p, order) for d, p in in_step("dimensions and coordinates", _along(t, x, dims), places)]
