"""Operations on floats: arithmetic as one or a few instructions; elementary functions are in :mod:`irscope.backends.llvm_elementary`."""
from __future__ import annotations

import math
from collections.abc import Callable

from irscope.backends import llvm_elementary
from irscope.backends.llvm_code import Code
from irscope.backends.llvm_lanes import Lanes
from irscope.backends.llvm_power import arctangent2, power
from irscope.backends.llvm_remainder import remainder
from irscope.backends.llvm_trigonometry import cosine, sine, tangent
from irscope.lower.tile import Expr

_RATIONAL = {"tanh": llvm_elementary.tanh_rational, "erf": llvm_elementary.erf_rational}


def operation(v: Lanes, x: Expr, names: list[str], flags: str, precision: str) -> str:
    """A scalar operation on f32 or f64; ``flags`` are the fast-math flags of LLVM."""
    op = x.op
    if op in _ARITHMETIC:
        return v.code.pure(f"f{op} {flags}{v.kind} {names[0]}, {names[1]}", *names)
    if op in _RATIONAL and v.bits == 32 and precision != "exact":
        return _RATIONAL[op](v, names[0])
    special = _BY_OPERANDS.get(op)
    return special(v, x, names, flags) if special is not None else _RULES[op](v, *names)


def extreme(code: Code, name: str, element: str, lanes: int, x: str, y: str) -> str:
    """The exact maximum or minimum: NaN where either is NaN, and -0 below +0."""
    v = Lanes(code, element, lanes)
    return v.intrinsic("maximum" if name == "max" else "minimum", x, y)


def _extreme(v: Lanes, expr: Expr, names: list[str], flags: str) -> str:
    """A maximum or minimum. With a constant that is not NaN it takes one comparison, and a maximum with +0 an addition too.

    A maximum with -0 and a minimum with +0 use the intrinsic, as operands that are not constant do.
    """
    op, (x, y) = expr.op, names
    bound = expr.args[1].uniform
    if bound is None:
        bound = expr.args[0].uniform
        x, y = y, x
    if bound is None or math.isnan(bound) or (bound == 0.0 and (math.copysign(1.0, bound) < 0) == (op == "max")):
        return extreme(v.code, op, v.element, v.lanes, *names)
    # The comparison is false for NaN, which selects the other operand, the NaN itself.
    out = v.sel(v.gt(y, x) if op == "max" else v.lt(y, x), y, x)
    if bound != 0.0:
        return out
    return v.add(out, v.c(0.0)) if op == "max" else out


def _divide(v: Lanes, expr: Expr, names: list[str], flags: str) -> str:
    (x, y), known = names, expr.args[1].uniform
    if known is not None and known != 0.0 and math.isfinite(known):
        mantissa, exponent = math.frexp(known)
        if abs(mantissa) == 0.5 and abs(exponent) < 100:
            return v.code.pure(f"fmul {v.kind} {x}, {v.c(1.0 / known)}", x)  # exact
    return v.code.pure(f"fdiv {flags}{v.kind} {x}, {y}", x, y)


def _sign(v: Lanes, x: str) -> str:
    one = v.sel(v.gt(x, v.c(0.0)), v.c(1.0), x)
    return v.sel(v.lt(x, v.c(0.0)), v.c(-1.0), one)


def _power(v: Lanes, expr: Expr, names: list[str], flags: str) -> str:
    simple = _POWERS.get(expr.args[1].uniform)
    return simple(v, names[0]) if simple is not None else power(v, *names)


def _root(v: Lanes, x: str) -> str:
    """x to the power 1/2: +0 for -0, +inf for -inf."""
    root = v.sqrt(v.add(x, v.c(0.0)))
    return v.sel(v.eq(x, v.c(-math.inf)), v.c(math.inf), root)


_POWERS: dict[float, Callable[[Lanes, str], str]] = {
    1.0: lambda v, x: x, 2.0: lambda v, x: v.mul(x, x), 3.0: lambda v, x: v.mul(v.mul(x, x), x),
    4.0: lambda v, x: v.mul(v.mul(x, x), v.mul(x, x)), -1.0: lambda v, x: v.div(v.c(1.0), x),
    -2.0: lambda v, x: v.div(v.c(1.0), v.mul(x, x)), 0.5: _root,
}
"""Powers that a product or a quotient computes, within one or two roundings, by the exponent."""
_ARITHMETIC = frozenset(("add", "sub", "mul"))
_BY_OPERANDS: dict[str, Callable[[Lanes, Expr, list[str], str], str]] = {"div": _divide, "max": _extreme, "min": _extreme, "pow": _power}
"""Operations that simplify where an operand is a constant."""
_RULES: dict[str, Callable[..., str]] = {
    **llvm_elementary.RULES, "sin": sine, "cos": cosine, "tan": tangent, "neg": Lanes.neg, "abs": Lanes.abs, "sqrt": Lanes.sqrt,
    "fma": Lanes.fma,
    "rsqrt": lambda v, x: v.div(v.c(1.0), v.sqrt(x)), "sign": _sign, "scale2": llvm_elementary.scale, "rem": remainder,
    "atan2": arctangent2,
    "floor": lambda v, x: v.intrinsic("floor", x), "ceil": lambda v, x: v.intrinsic("ceil", x),
    "round_even": lambda v, x: v.intrinsic("roundeven", x), "round_away": lambda v, x: v.intrinsic("round", x),
}
