"""Elementwise arithmetic of two operands or more, with torch's promotion."""
from __future__ import annotations

from typing import Any

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.unary import trunc
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import F32, PRED
from irscope.ops.faults import TypeFault


@operator("add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1)", "add.Scalar(Tensor self, Scalar other, Scalar alpha=1)")
def add(t: Torch, x: Node, y: Any, alpha: Any) -> Node:
    x, y = t.promote(x, y)
    return t.binary("or", x, y) if t.dtype(x) is PRED else t.add(x, by_alpha(t, y, alpha))


def by_alpha(t: Torch, x: Node, alpha: Any) -> Node:
    """``alpha`` times ``x``. Raises TypeFault for a fractional ``alpha`` of an integer tensor, which would truncate it."""
    if isinstance(alpha, float) and not alpha.is_integer() and not (t.dtype(x).is_float or t.dtype(x).is_complex):
        raise TypeFault(f"alpha is {alpha}, and the tensor has integers: {t.dtype(x).name}")
    return t.scale(x, alpha) if alpha != 1 else x


@operator("sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1)", "sub.Scalar(Tensor self, Scalar other, Scalar alpha=1)",
          "subtract.Tensor(Tensor self, Tensor other, *, Scalar alpha=1)", "subtract.Scalar(Tensor self, Scalar other, Scalar alpha=1)")
def sub(t: Torch, x: Node, y: Any, alpha: Any) -> Node:
    x, y = t.promote(x, y)
    return t.sub(x, by_alpha(t, y, alpha))


@operator("rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1)", "rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1)")
def rsub(t: Torch, x: Node, y: Any, alpha: Any) -> Node:
    x, y = t.promote(x, y)
    return t.sub(y, by_alpha(t, x, alpha))


@operator("mul.Tensor(Tensor self, Tensor other)", "mul.Scalar(Tensor self, Scalar other)", "multiply.Tensor(Tensor self, Tensor other)",
          "multiply.Scalar(Tensor self, Scalar other)")
def mul(t: Torch, x: Node, y: object) -> Node:
    return t.mul(*t.promote(x, y))


@operator("div.Tensor(Tensor self, Tensor other)", "div.Scalar(Tensor self, Scalar other)", "true_divide.Tensor(Tensor self, Tensor other)",
          "true_divide.Scalar(Tensor self, Scalar other)", "divide.Tensor(Tensor self, Tensor other)",
          "divide.Scalar(Tensor self, Scalar other)")
def div(t: Torch, x: Node, y: object) -> Node:
    """The true quotient: integers give float32."""
    dtype = t.result_type(x, y)
    return t.div(*t.promote(x, y, to=dtype if dtype.is_float or dtype.is_complex else F32))


@operator("div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode)",
          "div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode)",
          "divide.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode)",
          "divide.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode)")
def div_mode(t: Torch, x: Node, y: object, mode: str | None) -> Node:
    if mode is None:
        return div(t, x, y)
    return floor_divide(t, x, y) if mode == "floor" else trunc_divide(t, x, y)


def trunc_divide(t: Torch, x: Node, y: object) -> Node:
    """The quotient rounded towards zero."""
    x, y = t.promote(x, y)
    return trunc(t, t.div(x, y)) if t.dtype(x).is_float else t.div(x, y)


@operator("floor_divide(Tensor self, Tensor other)", "floor_divide.Scalar(Tensor self, Scalar other)")
def floor_divide(t: Torch, x: Node, y: object) -> Node:
    x, y = t.together(*t.promote(x, y))
    if t.dtype(x).is_float:
        # As c10::div_floor_floating: exact where the plain quotient would round up to an integer.
        rest = t.binary("remainder", x, y)
        whole = t.unary("round-nearest-even", _lowered(t, t.div(t.sub(x, rest), y), rest, y))
        return t.select(t.compare("EQ", y, t.like(y, 0)), t.div(x, y), whole)
    quotient = t.div(x, y)
    return _lowered(t, quotient, t.sub(x, t.mul(quotient, y)), y)


def _lowered(t: Torch, quotient: Node, rest: Node, y: Node) -> Node:
    """The quotient minus one where the remainder ``rest`` is not zero and differs in sign from the divisor ``y``."""
    adjust = t.binary("and", t.compare("NE", rest, t.like(rest, 0)),
                      t.compare("NE", t.compare("LT", rest, t.like(rest, 0)), t.compare("LT", y, t.like(y, 0))))
    return t.select(adjust, t.plus(quotient, -1), quotient)


@operator("remainder.Tensor(Tensor self, Tensor other)", "remainder.Scalar(Tensor self, Scalar other)",
          "remainder.Scalar_Tensor(Scalar self, Tensor other)")
def remainder(t: Torch, x: object, y: object) -> Node:
    """The remainder with the sign of the divisor, as in Python."""
    x, y = t.together(*t.promote(x, y))
    rest = t.binary("remainder", x, y)
    zero = t.like(rest, 0)
    adjust = t.binary("and", t.compare("NE", rest, zero), t.compare("NE", t.compare("LT", rest, zero), t.compare("LT", y, zero)))
    return t.select(adjust, t.add(rest, y), rest)


@operator("fmod.Tensor(Tensor self, Tensor other)", "fmod.Scalar(Tensor self, Scalar other)")
def fmod(t: Torch, x: Node, y: object) -> Node:
    return t.binary("remainder", *t.promote(x, y))


@operator("pow.Tensor_Tensor(Tensor self, Tensor exponent)", "pow.Tensor_Scalar(Tensor self, Scalar exponent)",
          "pow.Scalar(Scalar self, Tensor exponent)")
def power(t: Torch, x: object, y: object) -> Node:
    """Small whole exponents become products, and 0.5 a root."""
    dtype = t.result_type(x, y)
    if isinstance(y, int | float) and isinstance(x, Node):
        base = t.as_tensor(x, dtype)
        product = t.small_power(base, y)
        if product is not None:
            return product
        if dtype.is_float and y == 0.5:
            return t.unary("sqrt", base)
        if dtype.is_float and y == -0.5:
            return t.unary("rsqrt", base)
        if dtype.is_float and y == -1:
            return t.div(t.like(base, 1), base)
    x, y = t.together(*t.promote(x, y, to=dtype))
    if dtype.kind != "int":
        return t.binary("power", x, y)
    # Negative powers of integers: only 1 and -1 have integer ones.
    one, zero = t.like(x, 1), t.like(x, 0)
    odd = t.compare("NE", t.binary("and", y, one), zero)
    units = t.select(t.compare("EQ", x, one), one, t.select(t.compare("EQ", x, t.like(x, -1)), t.select(odd, t.like(x, -1), one), zero))
    return t.select(t.compare("LT", y, zero), units, t.binary("power", x, t.maximum(y, zero)))


@operator("atan2(Tensor self, Tensor other)", "arctan2(Tensor self, Tensor other)")
def atan2(t: Torch, x: Node, y: Node) -> Node:
    return t.binary("atan2", *t.promote_floating(x, y))


@operator("maximum(Tensor self, Tensor other)")
@operator("max.other(Tensor self, Tensor other)", work="reduction")
def maximum(t: Torch, x: Node, y: Node) -> Node:
    return t.maximum(*t.promote(x, y))


@operator("minimum(Tensor self, Tensor other)")
@operator("min.other(Tensor self, Tensor other)", work="reduction")
def minimum(t: Torch, x: Node, y: Node) -> Node:
    return t.minimum(*t.promote(x, y))


@operator("fmax(Tensor self, Tensor other)")
def fmax(t: Torch, x: Node, y: Node) -> Node:
    """The larger of two, ignoring NaN."""
    x, y = t.together(*t.promote(x, y))
    return t.select(t.compare("NE", x, x), y, t.select(t.compare("NE", y, y), x, t.maximum(x, y)))


@operator("fmin(Tensor self, Tensor other)")
def fmin(t: Torch, x: Node, y: Node) -> Node:
    """The smaller of two, ignoring NaN."""
    x, y = t.together(*t.promote(x, y))
    return t.select(t.compare("NE", x, x), y, t.select(t.compare("NE", y, y), x, t.minimum(x, y)))


@operator("hypot(Tensor self, Tensor other)")
def hypot(t: Torch, x: Node, y: Node) -> Node:
    """The root of the sum of squares, of operands divided by the larger one: the squares would overflow or vanish."""
    x, y = t.together(*(t.unary("abs", v) for v in t.promote_floating(x, y)))
    large, small = t.maximum(x, y), t.minimum(x, y)
    zero = t.like(large, 0)
    ratio = t.div(small, t.select(t.compare("EQ", large, zero), t.like(large, 1), large))
    length = t.mul(large, t.unary("sqrt", t.plus(t.mul(ratio, ratio), 1)))
    infinite = t.like(large, float("inf"))
    # An infinite operand beats a NaN beside it, as in C.
    return t.select(t.binary("or", t.compare("EQ", x, infinite), t.compare("EQ", y, infinite)), infinite, length)


@operator("copysign.Tensor(Tensor self, Tensor other)", "copysign.Scalar(Tensor self, Scalar other)")
def copysign(t: Torch, x: Node, y: object) -> Node:
    x, y = t.promote_floating(x, y)
    # The reciprocal reveals the sign of a zero.
    negative = t.compare("LT", t.select(t.compare("EQ", y, t.like(y, 0)), t.div(t.like(y, 1), y), y), t.like(y, 0))
    size = t.unary("abs", x)
    return t.select(negative, t.unary("negate", size), size)


@operator("lerp.Scalar(Tensor self, Tensor end, Scalar weight)", "lerp.Tensor(Tensor self, Tensor end, Tensor weight)")
def lerp(t: Torch, x: Node, end: Node, weight: object) -> Node:
    """Counts from the nearer end, so that weight 1 gives ``end`` exactly."""
    w, away = t.as_tensor(weight, t.dtype(x)), t.sub(end, x)
    if isinstance(weight, int | float) and abs(weight) < 0.5:
        return t.add(x, t.mul(w, away))
    from_end = t.sub(end, t.mul(away, t.sub(t.like(w, 1), w)))
    if isinstance(weight, int | float):
        return from_end
    size = t.unary("abs", w)
    return t.select(t.compare("LT", size, t.like(size, 0.5)), t.add(x, t.mul(w, away)), from_end)


@operator("addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1)")
def addcmul(t: Torch, x: Node, a: Node, b: Node, value: Any) -> Node:
    x, a, b = t.promote(x, a, b)
    return t.add(x, t.mul(t.scale(a, value), b))


@operator("addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1)")
def addcdiv(t: Torch, x: Node, a: Node, b: Node, value: Any) -> Node:
    x, a, b = t.promote(x, a, b)
    return t.add(x, t.div(t.scale(a, value), b))


@operator("logaddexp(Tensor self, Tensor other)")
def logaddexp(t: Torch, x: Node, y: Node) -> Node:
    x, y = t.together(*t.promote(x, y))
    top = t.maximum(x, y)
    tail = t.unary("log-plus-one", t.unary("exponential", t.unary("negate", t.unary("abs", t.sub(x, y)))))
    return t.select(t.compare("EQ", x, y), t.add(top, t.like(top, 0.6931471805599453)), t.add(top, tail))


@operator("xlogy.Tensor(Tensor self, Tensor other)",
          "xlogy.Scalar_Self(Scalar self, Tensor other)", "xlogy.Scalar_Other(Tensor self, Scalar other)",
          "special_xlogy(Tensor self, Tensor other)", "special_xlogy.self_scalar(Scalar self, Tensor other)",
          "special_xlogy.other_scalar(Tensor self, Scalar other)")
def xlogy(t: Torch, x: object, y: object) -> Node:
    x, y = t.together(*t.promote_floating(x, y))
    product = t.mul(x, t.unary("log", y))
    zero = t.binary("and", t.compare("EQ", x, t.like(x, 0)), t.compare("EQ", y, y))
    return t.select(zero, t.like(x, 0), product)
