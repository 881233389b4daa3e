"""Operations on floats: arithmetic as one or a few instructions; elementary functions are in :mod:`irscope.backends.llvm_elementary`."""
from __future__ import annotations

import math

from irscope.backends import llvm_elementary
from irscope.backends.llvm_code import Code
from irscope.backends.llvm_lanes import Lanes
from irscope.backends.llvm_power import arctangent2, power
from irscope.backends.llvm_remainder import remainder
from irscope.backends.llvm_trigonometry import cosine, sine, tangent
from irscope.lower.tile import Expr

_ROUND = {"floor": "floor", "ceil": "ceil", "round_even": "roundeven", "round_away": "round"}
_ELEMENTARY = {**llvm_elementary.RULES, "sin": sine, "cos": cosine, "tan": tangent}
_RATIONAL = {"tanh": llvm_elementary.tanh_rational, "erf": llvm_elementary.erf_rational}


def operation(v: Lanes, x: Expr, names: list[str], flags: str, precision: str) -> str:
    """A scalar operation on f32 or f64; ``flags`` are the fast-math flags of LLVM."""
    op = x.op
    if op in ("add", "sub", "mul"):
        return v.code.pure(f"f{op} {flags}{v.kind} {names[0]}, {names[1]}", *names)
    if op == "div":
        return _divide(v, flags, names[0], names[1], x.args[1])
    if op == "neg":
        return v.neg(names[0])
    if op == "abs":
        return v.abs(names[0])
    if op == "sqrt":
        return v.sqrt(names[0])
    if op == "rsqrt":
        return v.div(v.c(1.0), v.sqrt(names[0]))
    if op in _ROUND:
        return v.intrinsic(_ROUND[op], names[0])
    if op in ("max", "min"):
        return _extreme(v, op, names, x.args)
    if op == "sign":
        one = v.sel(v.gt(names[0], v.c(0.0)), v.c(1.0), names[0])
        return v.sel(v.lt(names[0], v.c(0.0)), v.c(-1.0), one)
    if op == "scale2":
        return llvm_elementary.scale(v, names[0], names[1])
    if op == "rem":
        return remainder(v, names[0], names[1])
    if op == "pow":
        simple = _simple_power(v, names[0], constant_of(x.args[1]))
        if simple is not None:
            return simple
        return power(v, names[0], names[1])
    if op == "atan2":
        return arctangent2(v, names[0], names[1])
    if op in _RATIONAL and v.bits == 32 and precision != "exact":
        return _RATIONAL[op](v, names[0])
    return _ELEMENTARY[op](v, names[0])


def constant_of(x: Expr) -> float | None:
    """The value that every lane has, when it is known."""
    plain = x.args[0] if x.op == "splat" else x
    return float(plain.value) if plain.op == "const" and plain.lanes == 1 else None


def extreme(code: Code, name: str, element: str, lanes: int, x: str, y: str) -> str:
    """The exact maximum or minimum: NaN where either is NaN, and -0 below +0."""
    v = Lanes(code, element, lanes)
    return v.intrinsic("maximum" if name == "max" else "minimum", x, y)


def _extreme(v: Lanes, op: str, names: list[str], args: tuple[Expr, ...]) -> str:
    """With a constant that is no NaN it takes one comparison, and one addition where the constant is zero."""
    x, y = names
    bound = constant_of(args[1])
    if bound is None:
        bound = constant_of(args[0])
        x, y = y, x
    if bound is None or math.isnan(bound) or (bound == 0.0 and (math.copysign(1.0, bound) < 0) == (op == "max")):
        return extreme(v.code, op, v.element, v.lanes, *names)
    # The comparison is false for NaN, and then the other operand, the NaN itself, is taken.
    out = v.sel(v.gt(y, x) if op == "max" else v.lt(y, x), y, x)
    if bound != 0.0:
        return out
    return v.add(out, v.c(0.0)) if op == "max" else out


def _divide(v: Lanes, flags: str, x: str, y: str, divisor: Expr) -> str:
    known = constant_of(divisor)
    if known is not None and known != 0.0 and math.isfinite(known):
        mantissa, exponent = math.frexp(known)
        if abs(mantissa) == 0.5 and abs(exponent) < 100:
            return v.code.pure(f"fmul {v.kind} {x}, {v.c(1.0 / known)}", x)  # exact
    return v.code.pure(f"fdiv {flags}{v.kind} {x}, {y}", x, y)


def _simple_power(v: Lanes, x: str, exponent: float | None) -> str | None:
    """Powers that a product or a quotient gives, within a rounding or two."""
    if exponent == 1.0:
        return x
    if exponent == 2.0:
        return v.mul(x, x)
    if exponent == 3.0:
        return v.mul(v.mul(x, x), x)
    if exponent == 4.0:
        square = v.mul(x, x)
        return v.mul(square, square)
    if exponent == -1.0:
        return v.div(v.c(1.0), x)
    if exponent == -2.0:
        return v.div(v.c(1.0), v.mul(x, x))
    if exponent == 0.5:
        # The power of -0 is +0, and of -inf +inf.
        root = v.sqrt(v.add(x, v.c(0.0)))
        return v.sel(v.eq(x, v.c(-math.inf)), v.c(math.inf), root)
    return None
