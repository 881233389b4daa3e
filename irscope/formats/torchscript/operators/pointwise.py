"""Elementwise operators: arithmetic with torch's promotion, comparisons, choices."""
from __future__ import annotations

from math import pi
from typing import Any

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import F32, PRED, S64

# ---------------------------------------------------------------------- two operands


@operator("add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1)", "add.Scalar(Tensor self, Scalar other, Scalar alpha=1)")
def add(t: Torch, x: Node, y: Any, alpha: Any) -> Node:
    x, y = t.promote(x, y)
    return t.binary("or", x, y) if t.dtype(x) is PRED else t.add(x, t.scale(y, alpha) if alpha != 1 else y)


@operator("sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1)", "sub.Scalar(Tensor self, Scalar other, Scalar alpha=1)")
def sub(t: Torch, x: Node, y: Any, alpha: Any) -> Node:
    x, y = t.promote(x, y)
    return t.sub(x, t.scale(y, alpha) if alpha != 1 else y)


@operator("rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1)", "rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1)")
def rsub(t: Torch, x: Node, y: Any, alpha: Any) -> Node:
    x, y = t.promote(x, y)
    return t.sub(y, t.scale(x, alpha) if alpha != 1 else x)


@operator("mul.Tensor(Tensor self, Tensor other)", "mul.Scalar(Tensor self, Scalar other)", "multiply.Tensor(Tensor self, Tensor other)",
          "multiply.Scalar(Tensor self, Scalar other)")
def mul(t: Torch, x: Node, y: Any) -> Node:
    return t.mul(*t.promote(x, y))


@operator("div.Tensor(Tensor self, Tensor other)", "div.Scalar(Tensor self, Scalar other)", "true_divide.Tensor(Tensor self, Tensor other)",
          "true_divide.Scalar(Tensor self, Scalar other)", "divide.Tensor(Tensor self, Tensor other)",
          "divide.Scalar(Tensor self, Scalar other)")
def div(t: Torch, x: Node, y: Any) -> Node:
    """The true quotient: integers give float32."""
    dtype = t.result_type(x, y)
    return t.div(*t.promote(x, y, to=dtype if dtype.is_float or dtype.is_complex else F32))


@operator("div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode)",
          "div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode)",
          "divide.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode)",
          "divide.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode)")
def div_mode(t: Torch, x: Node, y: Any, mode: str | None) -> Node:
    if mode is None:
        return div(t, x, y)
    return floor_divide(t, x, y) if mode == "floor" else trunc_divide(t, x, y)


def trunc_divide(t: Torch, x: Node, y: Any) -> Node:
    """The quotient rounded towards zero."""
    x, y = t.promote(x, y)
    return trunc(t, t.div(x, y)) if t.dtype(x).is_float else t.div(x, y)


@operator("floor_divide(Tensor self, Tensor other)", "floor_divide.Scalar(Tensor self, Scalar other)")
def floor_divide(t: Torch, x: Node, y: Any) -> Node:
    x, y = t.together(*t.promote(x, y))
    if t.dtype(x).is_float:
        # As c10::div_floor_floating: exact where the plain quotient was rounded over an integer.
        rest = t.binary("remainder", x, y)
        quotient = t.div(t.sub(x, rest), y)
        adjust = t.binary("and", t.compare("NE", rest, t.like(rest, 0)),
                          t.compare("NE", t.compare("LT", rest, t.like(rest, 0)), t.compare("LT", y, t.like(y, 0))))
        quotient = t.select(adjust, t.plus(quotient, -1), quotient)
        whole = t.unary("round-nearest-even", quotient)
        return t.select(t.compare("EQ", y, t.like(y, 0)), t.div(x, y), whole)
    quotient = t.div(x, y)
    rest = t.sub(x, t.mul(quotient, y))
    adjust = t.binary("and", t.compare("NE", rest, t.like(rest, 0)),
                      t.compare("NE", t.compare("LT", rest, t.like(rest, 0)), t.compare("LT", y, t.like(y, 0))))
    return t.select(adjust, t.plus(quotient, -1), quotient)


@operator("remainder.Tensor(Tensor self, Tensor other)", "remainder.Scalar(Tensor self, Scalar other)",
          "remainder.Scalar_Tensor(Scalar self, Tensor other)")
def remainder(t: Torch, x: Any, y: Any) -> Node:
    """With the sign of the divisor, as in Python."""
    x, y = t.together(*t.promote(x, y))
    rest = t.binary("remainder", x, y)
    zero = t.like(rest, 0)
    adjust = t.binary("and", t.compare("NE", rest, zero), t.compare("NE", t.compare("LT", rest, zero), t.compare("LT", y, zero)))
    return t.select(adjust, t.add(rest, y), rest)


@operator("fmod.Tensor(Tensor self, Tensor other)", "fmod.Scalar(Tensor self, Scalar other)")
def fmod(t: Torch, x: Node, y: Any) -> Node:
    return t.binary("remainder", *t.promote(x, y))


@operator("pow.Tensor_Tensor(Tensor self, Tensor exponent)", "pow.Tensor_Scalar(Tensor self, Scalar exponent)",
          "pow.Scalar(Scalar self, Tensor exponent)")
def power(t: Torch, x: Any, y: Any) -> Node:
    """Small whole exponents become products, and 0.5 a root."""
    dtype = t.result_type(x, y)
    if isinstance(y, int | float) and isinstance(x, Node):
        base = t.as_tensor(x, dtype)
        if y == 1:
            return base
        if y == 2:
            return t.mul(base, base)
        if y == 3:
            return t.mul(t.mul(base, base), base)
        if dtype.is_float and y == 0.5:
            return t.unary("sqrt", base)
        if dtype.is_float and y == -0.5:
            return t.unary("rsqrt", base)
        if dtype.is_float and y == -1:
            return t.div(t.like(base, 1), base)
    x, y = t.together(*t.promote(x, y, to=dtype))
    if dtype.kind != "int":
        return t.binary("power", x, y)
    # Negative powers of integers: only 1 and -1 have whole ones.
    one, zero = t.like(x, 1), t.like(x, 0)
    odd = t.compare("NE", t.binary("and", y, one), zero)
    units = t.select(t.compare("EQ", x, one), one, t.select(t.compare("EQ", x, t.like(x, -1)), t.select(odd, t.like(x, -1), one), zero))
    return t.select(t.compare("LT", y, zero), units, t.binary("power", x, t.maximum(y, zero)))


@operator("atan2(Tensor self, Tensor other)", "arctan2(Tensor self, Tensor other)")
def atan2(t: Torch, x: Node, y: Node) -> Node:
    return t.binary("atan2", *t.promote_floating(x, y))


@operator("maximum(Tensor self, Tensor other)", "max.other(Tensor self, Tensor other)")
def maximum(t: Torch, x: Node, y: Node) -> Node:
    return t.maximum(*t.promote(x, y))


@operator("minimum(Tensor self, Tensor other)", "min.other(Tensor self, Tensor other)")
def minimum(t: Torch, x: Node, y: Node) -> Node:
    return t.minimum(*t.promote(x, y))


@operator("fmax(Tensor self, Tensor other)")
def fmax(t: Torch, x: Node, y: Node) -> Node:
    """The larger; NaN gives way."""
    x, y = t.together(*t.promote(x, y))
    return t.select(t.compare("NE", x, x), y, t.select(t.compare("NE", y, y), x, t.maximum(x, y)))


@operator("fmin(Tensor self, Tensor other)")
def fmin(t: Torch, x: Node, y: Node) -> Node:
    """The smaller; NaN gives way."""
    x, y = t.together(*t.promote(x, y))
    return t.select(t.compare("NE", x, x), y, t.select(t.compare("NE", y, y), x, t.minimum(x, y)))


@operator("hypot(Tensor self, Tensor other)")
def hypot(t: Torch, x: Node, y: Node) -> Node:
    x, y = t.promote(x, y)
    return t.unary("sqrt", t.add(t.mul(x, x), t.mul(y, y)))


@operator("copysign.Tensor(Tensor self, Tensor other)", "copysign.Scalar(Tensor self, Scalar other)")
def copysign(t: Torch, x: Node, y: Any) -> Node:
    x, y = t.promote_floating(x, y)
    # The sign of a zero shows in its reciprocal.
    negative = t.compare("LT", t.select(t.compare("EQ", y, t.like(y, 0)), t.div(t.like(y, 1), y), y), t.like(y, 0))
    size = t.unary("abs", x)
    return t.select(negative, t.unary("negate", size), size)


@operator("lerp.Scalar(Tensor self, Tensor end, Scalar weight)", "lerp.Tensor(Tensor self, Tensor end, Tensor weight)")
def lerp(t: Torch, x: Node, end: Node, weight: Any) -> Node:
    w = t.as_tensor(weight, t.dtype(x))
    return t.add(x, t.mul(w, t.sub(end, x)))


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
          "xlogy.Scalar_Self(Scalar self, Tensor other)", "xlogy.Scalar_Other(Tensor self, Scalar other)")
def xlogy(t: Torch, x: Any, y: Any) -> Node:
    x, y = t.together(*t.promote_floating(x, y))
    product = t.mul(x, t.unary("log", y))
    zero = t.binary("and", t.compare("EQ", x, t.like(x, 0)), t.compare("EQ", y, y))
    return t.select(zero, t.like(x, 0), product)


def _bitwise(name: str, hlo: str) -> None:
    @operator(f"bitwise_{name}.Tensor(Tensor self, Tensor other)", f"bitwise_{name}.Scalar(Tensor self, Scalar other)",
              f"__{name}__.Tensor(Tensor self, Tensor other)", f"__{name}__.Scalar(Tensor self, Scalar other)")
    def bitwise(t: Torch, x: Node, y: Any) -> Node:
        return t.binary(hlo, *t.promote(x, y))


for _name in ("and", "or", "xor"):
    _bitwise(_name, _name)


def _shift(name: str, other: str, hlo: str) -> None:
    @operator(f"bitwise_{name}_shift.Tensor(Tensor self, Tensor other)", f"bitwise_{name}_shift.Tensor_Scalar(Tensor self, Scalar other)",
              f"{other}.Tensor(Tensor self, Tensor other)", f"{other}.Scalar(Tensor self, Scalar other)")
    def shift(t: Torch, x: Node, y: Any) -> Node:
        x, y = t.promote(x, y)
        logical = hlo == "shift-right-arithmetic" and t.dtype(x).kind == "uint"
        return t.binary("shift-right-logical" if logical else hlo, x, y)


_shift("left", "__lshift__", "shift-left")
_shift("right", "__rshift__", "shift-right-arithmetic")


def _logical(name: str, hlo: str) -> None:
    @operator(f"logical_{name}(Tensor self, Tensor other)")
    def logical(t: Torch, x: Node, y: Node) -> Node:
        return t.binary(hlo, truth(t, x), truth(t, y))


for _name in ("and", "or", "xor"):
    _logical(_name, _name)


def truth(t: Torch, x: Node) -> Node:
    """``x != 0``."""
    return x if t.dtype(x) is PRED else t.compare("NE", x, t.like(x, 0))


def _comparison(names: tuple[str, ...], direction: str) -> None:
    schemas = [f"{n}.{o}" for n in names for o in ("Tensor(Tensor self, Tensor other)", "Scalar(Tensor self, Scalar other)")]

    @operator(*schemas)
    def comparison(t: Torch, x: Node, y: Any) -> Node:
        return t.compare(direction, *t.promote(x, y))


for _names, _direction in ((("eq",), "EQ"), (("ne", "not_equal"), "NE"), (("lt", "less"), "LT"), (("le", "less_equal"), "LE"),
                           (("gt", "greater"), "GT"), (("ge", "greater_equal"), "GE")):
    _comparison(_names, _direction)


@operator("isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False)")
def isclose(t: Torch, x: Node, y: Node, rtol: float, atol: float, equal_nan: bool) -> Node:
    x, y = t.together(*t.promote(x, y))
    same = t.compare("EQ", x, y)
    if not t.dtype(x).is_float:
        x, y = t.convert(x, F32), t.convert(y, F32)
    near = t.compare("LE", t.unary("abs", t.sub(x, y)), t.plus(t.scale(t.unary("abs", y), rtol), atol))
    near = t.binary("or", same, t.binary("and", near, t.unary("is-finite", t.sub(x, y))))
    if equal_nan:
        near = t.binary("or", near, t.binary("and", t.compare("NE", x, x), t.compare("NE", y, y)))
    return near


# ---------------------------------------------------------------------- one operand

FLOAT_UNARY = {
    "exp": "exponential", "expm1": "exponential-minus-one", "log": "log", "log1p": "log-plus-one", "sqrt": "sqrt", "rsqrt": "rsqrt",
    "sin": "sine", "cos": "cosine", "tan": "tan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "asin": "asin", "acos": "acos",
    "asinh": "asinh", "acosh": "acosh", "atanh": "atanh", "erf": "erf", "sigmoid": "logistic", "special_expit": "logistic",
    "arcsin": "asin", "arccos": "acos", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh", "special_erf": "erf",
    "special_expm1": "exponential-minus-one", "special_log1p": "log-plus-one",
}
"""torch name: HLO name; integers are taken as float32."""


def _float_unary(name: str, hlo: str) -> None:
    @operator(f"{name}(Tensor self)")
    def unary(t: Torch, x: Node) -> Node:
        return t.unary(hlo, t.floating(x))


for _name, _hlo in FLOAT_UNARY.items():
    _float_unary(_name, _hlo)


@operator("atan(Tensor self)", "arctan(Tensor self)")
def atan(t: Torch, x: Node) -> Node:
    x = t.floating(x)
    return t.binary("atan2", x, t.like(x, 1))


@operator("log2(Tensor self)")
def log2(t: Torch, x: Node) -> Node:
    return t.scale(t.unary("log", t.floating(x)), 1.4426950408889634)


@operator("log10(Tensor self)")
def log10(t: Torch, x: Node) -> Node:
    return t.scale(t.unary("log", t.floating(x)), 0.4342944819032518)


@operator("exp2(Tensor self)", "special_exp2(Tensor self)")
def exp2(t: Torch, x: Node) -> Node:
    x = t.floating(x)
    return t.binary("power", t.like(x, 2), x)


@operator("erfc(Tensor self)", "special_erfc(Tensor self)")
def erfc(t: Torch, x: Node) -> Node:
    x = t.floating(x)
    return t.sub(t.like(x, 1), t.unary("erf", x))


@operator("reciprocal(Tensor self)")
def reciprocal(t: Torch, x: Node) -> Node:
    x = t.floating(x)
    return t.div(t.like(x, 1), x)


@operator("square(Tensor self)")
def square(t: Torch, x: Node) -> Node:
    x = t.convert(x, S64) if t.dtype(x) is PRED else x
    return t.mul(x, x)


@operator("neg(Tensor self)", "negative(Tensor self)")
def neg(t: Torch, x: Node) -> Node:
    return t.unary("negate", x)


@operator("positive(Tensor self)")
def positive(t: Torch, x: Node) -> Node:
    return x


@operator("abs(Tensor self)", "absolute(Tensor self)")
def absolute(t: Torch, x: Node) -> Node:
    return t.unary("abs", x) if t.dtype(x).kind != "uint" and t.dtype(x) is not PRED else x


@operator("sign(Tensor self)", "sgn(Tensor self)")
def sign(t: Torch, x: Node) -> Node:
    if t.dtype(x) is PRED:
        return x
    if t.dtype(x).kind == "uint":
        return t.minimum(x, t.like(x, 1))
    s = t.unary("sign", x)
    return t.select(t.compare("NE", x, x), t.like(x, 0), s) if t.dtype(x).is_float else s


@operator("signbit(Tensor self)")
def signbit(t: Torch, x: Node) -> Node:
    if t.dtype(x).is_float:
        x = t.select(t.compare("EQ", x, t.like(x, 0)), t.div(t.like(x, 1), x), x)
    return t.compare("LT", x, t.like(x, 0))


def _rounding(name: str, hlo: str) -> None:
    @operator(f"{name}(Tensor self)")
    def rounding(t: Torch, x: Node) -> Node:
        return t.unary(hlo, x) if t.dtype(x).is_float else x


for _name, _hlo in (("floor", "floor"), ("ceil", "ceil"), ("round", "round-nearest-even")):
    _rounding(_name, _hlo)


@operator("round.decimals(Tensor self, *, int decimals)")
def round_decimals(t: Torch, x: Node, decimals: int) -> Node:
    factor = 10.0 ** decimals
    return t.scale(t.unary("round-nearest-even", t.scale(x, factor)), 1 / factor)


@operator("trunc(Tensor self)", "fix(Tensor self)")
def trunc(t: Torch, x: Node) -> Node:
    if not t.dtype(x).is_float:
        return x
    return t.select(t.compare("LT", x, t.like(x, 0)), t.unary("ceil", x), t.unary("floor", x))


@operator("frac(Tensor self)")
def frac(t: Torch, x: Node) -> Node:
    return t.sub(x, trunc(t, x))


@operator("bitwise_not(Tensor self)")
def bitwise_not(t: Torch, x: Node) -> Node:
    return t.unary("not", x)


@operator("logical_not(Tensor self)")
def logical_not(t: Torch, x: Node) -> Node:
    return t.unary("not", truth(t, x))


@operator("isnan(Tensor self)")
def isnan(t: Torch, x: Node) -> Node:
    return t.compare("NE", x, x)


@operator("isfinite(Tensor self)")
def isfinite(t: Torch, x: Node) -> Node:
    return t.unary("is-finite", x) if t.dtype(x).is_float else t.full(t.shape(x), True, PRED)


@operator("isinf(Tensor self)")
def isinf(t: Torch, x: Node) -> Node:
    if not t.dtype(x).is_float:
        return t.full(t.shape(x), False, PRED)
    return t.compare("EQ", t.unary("abs", x), t.like(x, float("inf")))


@operator("nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None)")
def nan_to_num(t: Torch, x: Node, nan: float | None, posinf: float | None, neginf: float | None) -> Node:
    import ml_dtypes
    if not t.dtype(x).is_float:
        return x
    finfo: Any = ml_dtypes.finfo
    limits = finfo(t.dtype(x).numpy())
    y = t.select(t.compare("NE", x, x), t.like(x, nan or 0.0), x)
    y = t.select(t.compare("EQ", x, t.like(x, float("inf"))), t.like(x, float(limits.max) if posinf is None else posinf), y)
    return t.select(t.compare("EQ", x, t.like(x, float("-inf"))), t.like(x, float(limits.min) if neginf is None else neginf), y)


@operator("deg2rad(Tensor self)")
def deg2rad(t: Torch, x: Node) -> Node:
    return t.scale(t.floating(x), pi / 180)


@operator("rad2deg(Tensor self)")
def rad2deg(t: Torch, x: Node) -> Node:
    return t.scale(t.floating(x), 180 / pi)


@operator("logit(Tensor self, float? eps=None)", "special_logit(Tensor self, float? eps=None)")
def logit(t: Torch, x: Node, eps: float | None) -> Node:
    x = t.floating(x)
    if eps is not None:
        x = clamp(t, x, eps, 1 - eps)
    return t.unary("log", t.div(x, t.sub(t.like(x, 1), x)))


@operator("sinc(Tensor self)")
def sinc(t: Torch, x: Node) -> Node:
    x = t.scale(t.floating(x), pi)
    return t.select(t.compare("EQ", x, t.like(x, 0)), t.like(x, 1), t.div(t.unary("sine", x), x))


# ---------------------------------------------------------------------- choices and limits


@operator("where.self(Tensor condition, Tensor self, Tensor other)", "where.ScalarSelf(Tensor condition, Scalar self, Tensor other)",
          "where.ScalarOther(Tensor condition, Tensor self, Scalar other)", "where.Scalar(Tensor condition, Scalar self, Scalar other)")
def where(t: Torch, condition: Node, x: Any, y: Any) -> Node:
    return t.select(truth(t, condition), *t.promote(x, y))


@operator("masked_fill.Scalar(Tensor self, Tensor mask, Scalar value)", "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value)")
def masked_fill(t: Torch, x: Node, mask: Node, value: Any) -> Node:
    return t.select(truth(t, mask), t.as_tensor(value, t.dtype(x)), x)


@operator("clamp(Tensor self, Scalar? min=None, Scalar? max=None)", "clip(Tensor self, Scalar? min=None, Scalar? max=None)",
          "clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None)", "clip.Tensor(Tensor self, Tensor? min=None, Tensor? max=None)")
def clamp(t: Torch, x: Node, low: Any, high: Any) -> Node:
    dtype = t.result_type(x, low, high)
    x = t.convert(x, dtype)
    if low is not None:
        x = t.maximum(x, t.as_tensor(low, dtype))
    return t.minimum(x, t.as_tensor(high, dtype)) if high is not None else x


@operator("clamp_min(Tensor self, Scalar min)", "clamp_min.Tensor(Tensor self, Tensor min)")
def clamp_min(t: Torch, x: Node, low: Any) -> Node:
    return clamp(t, x, low, None)


@operator("clamp_max(Tensor self, Scalar max)", "clamp_max.Tensor(Tensor self, Tensor max)")
def clamp_max(t: Torch, x: Node, high: Any) -> Node:
    return clamp(t, x, None, high)


@operator("threshold(Tensor self, Scalar threshold, Scalar value)")
def threshold(t: Torch, x: Node, limit: Any, value: Any) -> Node:
    return t.select(t.compare("LE", x, t.like(x, limit)), t.like(x, value), x)
