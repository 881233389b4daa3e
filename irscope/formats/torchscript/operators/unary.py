"""Elementwise functions of one operand."""
from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import Any

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.logic import clamp
from irscope.formats.torchscript.operators.wide import rounded_once, widened
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import PRED, S64
from irscope.lazy import ml_dtypes
from irscope.ops.faults import TypeFault

FLOAT_UNARY = {
    "exp": "exponential", "expm1": "exponential-minus-one", "log": "log", "log1p": "log-plus-one", "sqrt": "sqrt", "rsqrt": "rsqrt",
    "sin": "sine", "cos": "cosine", "tan": "tan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "asin": "asin", "acos": "acos",
    "asinh": "asinh", "acosh": "acosh", "atanh": "atanh", "erf": "erf", "sigmoid": "logistic", "special_expit": "logistic",
    "arcsin": "asin", "arccos": "acos", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh", "special_erf": "erf",
    "special_expm1": "exponential-minus-one", "special_log1p": "log-plus-one",
}
"""torch name: HLO name; integers are converted to float32."""


def _float_unary(name: str, hlo: str) -> None:
    @operator(f"{name}(Tensor self)")
    def unary(t: Torch, x: Node) -> Node:
        return t.unary(hlo, t.floating(x))


for _name, _hlo in FLOAT_UNARY.items():
    _float_unary(_name, _hlo)


ON_FLOATS: dict[str, Callable[[Torch, Node], Node]] = {
    "atan arctan": lambda t, x: t.binary("atan2", x, t.like(x, 1)),
    "log2": lambda t, x: t.scale(t.unary("log", x), 1.4426950408889634),
    "log10": lambda t, x: t.scale(t.unary("log", x), 0.4342944819032518),
    "exp2 special_exp2": lambda t, x: t.binary("power", t.like(x, 2), x),
    "reciprocal": lambda t, x: t.div(t.like(x, 1), x),
    "deg2rad": lambda t, x: t.scale(x, pi / 180),
    "rad2deg": lambda t, x: t.scale(x, 180 / pi),
    "sinc special_sinc": lambda t, x: _sine_over(t, t.scale(x, pi)),
}
"""Functions of several primitives; integers are converted to float32."""


def _sine_over(t: Torch, x: Node) -> Node:
    """``sin(x) / x``, 1 at 0."""
    return t.select(t.compare("EQ", x, t.like(x, 0)), t.like(x, 1), t.div(t.unary("sine", x), x))


def _on_floats(names: str, build: Callable[[Torch, Node], Node]) -> None:
    @operator(*(f"{name}(Tensor self)" for name in names.split()))
    def unary(t: Torch, x: Node) -> Node:
        return build(t, t.floating(x))


for _names, _build in ON_FLOATS.items():
    _on_floats(_names, _build)
operator("neg(Tensor self)", "negative(Tensor self)")(lambda t, x: t.unary("negate", x))
operator("isnan(Tensor self)")(lambda t, x: t.compare("NE", x, x))


@operator("erfc(Tensor self)", "special_erfc(Tensor self)")
def erfc(t: Torch, x: Node) -> Node:
    x = t.floating(x)
    wide = widened(t, x)  # the difference from 1 has few digits of a half type
    return t.convert(t.sub(t.like(wide, 1), t.unary("erf", wide)), t.dtype(x))


@operator("square(Tensor self)")
def square(t: Torch, x: Node) -> Node:
    x = t.convert(x, S64) if t.dtype(x) is PRED else x
    return t.mul(x, x)


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


MOST_DECIMALS = 308
"""10 to this power, and to its negative, is a double."""


@operator("round.decimals(Tensor self, *, int decimals)", "special_round(Tensor self, *, int decimals=0)")
@rounded_once
def round_decimals(t: Torch, x: Node, decimals: int) -> Node:
    if abs(decimals) > MOST_DECIMALS:
        raise TypeFault(f"{decimals} decimals are more than a float has")
    if not t.dtype(x).is_float:
        raise TypeFault(f"it rounds floating point numbers to decimals, not {t.dtype(x).name}")
    # Divides where torch divides: a product with the rounded reciprocal differs in the last digit.
    factor = t.array(10.0 ** abs(decimals), t.dtype(x))
    if decimals < 0:
        return t.mul(t.unary("round-nearest-even", t.div(x, factor)), factor)
    return t.div(t.unary("round-nearest-even", t.mul(x, factor)), factor)


@operator("trunc(Tensor self)", "fix(Tensor self)")
def trunc(t: Torch, x: Node) -> Node:
    if not t.dtype(x).is_float:
        return x
    return t.select(t.compare("LT", x, t.like(x, 0)), t.unary("ceil", x), t.unary("floor", x))


@operator("frac(Tensor self)")
def frac(t: Torch, x: Node) -> Node:
    return t.sub(x, trunc(t, x))


@operator("isfinite(Tensor self)")
def isfinite(t: Torch, x: Node) -> Node:
    if t.dtype(x).is_complex:
        return t.binary("and", *(t.unary("is-finite", part) for part in _parts(t, x)))
    return t.unary("is-finite", x) if t.dtype(x).is_float else t.full(t.shape(x), True, PRED)


def _parts(t: Torch, x: Node) -> tuple[Node, Node]:
    """The real and the imaginary part of complex numbers."""
    return t.unary("real", x), t.unary("imag", x)


@operator("isinf(Tensor self)")
def isinf(t: Torch, x: Node) -> Node:
    if t.dtype(x).is_complex:
        return t.binary("or", *(isinf(t, part) for part in _parts(t, x)))
    if not t.dtype(x).is_float:
        return t.full(t.shape(x), False, PRED)
    return t.compare("EQ", t.unary("abs", x), t.like(x, float("inf")))


@operator("nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None)")
def nan_to_num(t: Torch, x: Node, nan: float | None, posinf: float | None, neginf: float | None) -> Node:
    if t.dtype(x).is_complex:
        return t.binary("complex", *(nan_to_num(t, part, nan, posinf, neginf) for part in _parts(t, x)))
    if not t.dtype(x).is_float:
        return x
    finfo: Any = ml_dtypes.finfo
    limits = finfo(t.dtype(x).numpy())
    y = t.select(t.compare("NE", x, x), t.like(x, nan or 0.0), x)
    y = t.select(t.compare("EQ", x, t.like(x, float("inf"))), t.like(x, float(limits.max) if posinf is None else posinf), y)
    return t.select(t.compare("EQ", x, t.like(x, float("-inf"))), t.like(x, float(limits.min) if neginf is None else neginf), y)


@operator("logit(Tensor self, float? eps=None)", "special_logit(Tensor self, float? eps=None)")
def logit(t: Torch, x: Node, eps: float | None) -> Node:
    x = t.floating(x)
    if eps is not None:
        x = clamp(t, x, eps, 1 - eps)
    return t.unary("log", t.div(x, t.sub(t.like(x, 1), x)))
