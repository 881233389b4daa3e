"""Algebraic identities of the primitives, one row each: pattern, replacement, condition, and the compiler that applies it.

    divide-sqrt    divide(x, sqrt'(y))  ->  multiply(x, rsqrt(y))    of floats    XLA: HandleDivide

XLA's canonicaliser (``fusion/canonicalise/simplify.py``) and ``simplify-algebra`` select rows by name, each in its own order, mixed with
plain functions for rewrites that need a search or arithmetic over dimensions. Patterns are those of :mod:`irscope.graph.pattern`.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from irscope.graph.pattern import Bindings, IsAll, Maker, Pattern, PatternTerm, build, parse_term

Predicates = Mapping[str, Callable[..., bool]]
"""The predicates in the conditions of the rows, by name: ``non_negative(x)``."""

INTEGERS = frozenset(("int", "uint"))
REALS = frozenset(("int", "uint", "float"))
NUMBERS = REALS | {"complex"}
INEXACT = frozenset(("float", "complex"))
ANY = NUMBERS | {"pred"}
PRED = frozenset(("pred",))
NO_ARRAY = frozenset(("",))


@dataclass(frozen=True, slots=True)
class Identity:
    """``pattern`` is replaced by ``to`` where the element type of the result is one of ``kinds`` and the condition ``where`` holds.

    ``xla`` is the handler of XLA's AlgebraicSimplifierVisitor that has it (algebraic_simplifier.cc of jaxlib 0.4.35 to 0.10.2).
    """

    name: str
    pattern: Pattern
    to: PatternTerm
    kinds: frozenset[str]
    xla: str
    where: PatternTerm | None

    def match(self, root: Any, is_all: IsAll, predicates: Predicates) -> Bindings | None:
        """The bindings where the identity matches ``root`` and its element type is one of the kinds; None where it does not."""
        where = self.where
        if where is None:
            return self.pattern.match(root, is_all)
        holds = predicates[where.ops[0]]
        return self.pattern.match(root, is_all, lambda bound: holds(*(bound[operand.name] for operand in where.operands)))

    def build(self, bound: Bindings, make: Maker) -> Any:
        """Build the replacement of a match's root."""
        return build(self.to, bound, make)


IDENTITIES: dict[str, Identity] = {}


def _row(xla: str, name: str, pattern: str, to: str, kinds: frozenset[str] = ANY, where: str = "") -> None:
    IDENTITIES[name] = Identity(name, Pattern(pattern), parse_term(to), kinds, xla, parse_term(where) if where else None)


_row("HandleAbs", "abs-non-negative", "abs(x)", "x", REALS, "non_negative(x)")
_row("HandleAdd", "add-zero", "add(x, 0)", "x")
_row("HandleAdd", "add-difference", "add(x, subtract(y, x))", "y", INTEGERS)
_row("HandleAnd", "and-ones", "and(x, y)", "x", where="ones(y)")
_row("HandleAnd", "and-zero", "and(x, zero:0)", "zero")
_row("HandleClamp", "clamp-twice", "clamp(low, clamped:clamp(low, x, high), high)", "clamped")
_row("HandleCompare", "not-equal-zero", "compare[direction=NE](x, 0)", "x", where="pred(x)")
_row("HandleCompare", "zero-not-equal", "compare[direction=NE](0, x)", "x", where="pred(x)")
_row("HandleCompare", "equal-one", "compare[direction=EQ](x, 1)", "x", where="pred(x)")
_row("HandleCompare", "one-equal", "compare[direction=EQ](1, x)", "x", where="pred(x)")
_row("HandleCompare", "greater-than-maximum", "compare[direction=GT](maximum(x, y), y)", "like(x, y)")
_row("HandleCompare", "greater-than-minimum", "compare[direction=GT](x, minimum(x, y))", "like(x, y)")
_row("HandleCompare", "selected-not-zero", "compare[direction=NE](select(test:compare[direction=GE](x, y), 1, 0), 0)", "test",
     where="same_dims(test, root)")
_row("HandleComplex", "complex-of-parts", "complex(real(x), imag(x))", "x")
_row("HandleConvert", "convert-same", "convert(x)", "x", where="same_dtype(x, root)")
_row("HandleConvert", "convert-back", "convert(wide:convert(x))", "x", where="round_trip(x, wide, root)")
_row("HandleBitcastConvert", "bitcast-convert-back", "bitcast-convert(bitcast-convert(x))", "x", where="same_dtype(x, root)")
_row("HandleBitcastConvert", "bitcast-convert-same", "bitcast-convert(x)", "x", where="same_dtype(x, root)")
_row("HandleCopy", "copy", "copy(x)", "x", ANY | NO_ARRAY)
_row("HandleDivide", "divide-one", "divide(x, 1)", "x")
_row("HandleDivide", "divide-exponential", "divide(x, exponential(y))", "multiply(x, exponential(negate(y)))", INEXACT)
_row("HandleDivide", "divide-power", "divide(x, power(y, z))", "multiply(x, power(y, negate(z)))", INEXACT)
_row("HandleDivide", "divide-sqrt", "divide(x, sqrt'(y))", "multiply(x, rsqrt(y))", INEXACT)
_row("HandleDivide", "divide-rsqrt", "divide(x, rsqrt'(y))", "multiply(x, sqrt(y))", INEXACT)
_row("HandleDivide", "divide-quotients", "divide(divide(a, b), divide(c, d))", "divide(multiply(a, d), multiply(b, c))", INEXACT)
_row("HandleDivide", "divide-quotient", "divide(divide(a, b), c)", "divide(a, multiply(b, c))", INEXACT)
_row("HandleDivide", "divide-by-quotient", "divide(a, divide(b, c))", "divide(multiply(a, c), b)", INEXACT)
_row("HandleExp", "exponential-zero", "exponential(0)", "1")
_row("HandleImag", "imag-of-complex", "imag(complex(x, y))", "y")
_row("HandleImag", "imag-of-real", "imag(x)", "0", where="real(x)")
_row("HandleLog", "log-exponential", "log(exponential(x))", "x")
_row("HandleLog", "log-sqrt", "log(sqrt(x))", "multiply(log(x), 0.5)")
_row("HandleLog", "log-rsqrt", "log(rsqrt(x))", "multiply(log(x), -0.5)")
_row("HandleMaximum", "maximum-lowest", "maximum(x, y)", "x", where="lowest(y)")
_row("HandleMinimum", "minimum-highest", "minimum(x, y)", "x", where="highest(y)")
_row("HandleMaximum", "extreme-same", "maximum|minimum(x, x)", "x")
_row("HandleMultiply", "multiply-one", "multiply(x, 1)", "x")
_row("HandleMultiply", "multiply-zero", "multiply(x, zero:0)", "zero", INTEGERS)
_row("HandleMultiply", "multiply-negations", "multiply(negate(x), negate(y))", "multiply(x, y)")
_row("HandleMultiply", "square-of-abs", "multiply(size:abs(x), size)", "multiply(x, x)", REALS, "real(x)")
_row("HandleMultiply", "multiply-exponentials", "multiply(exponential(x), exponential(y))", "exponential(add(x, y))")
_row("HandleMultiply", "multiply-mask", "multiply(x, convert(mask))", "select(mask, x, 0)", where="pred(mask)")
_row("HandleMultiply", "square-of-sqrt", "multiply(sqrt(x), sqrt(x))", "x", where="non_negative(x)")
_row("HandleMultiply", "square-of-rsqrt", "multiply(rsqrt(x), rsqrt(x))", "divide(1, x)", where="non_negative(x)")
_row("HandleNegate", "negate-negate", "negate(negate(x))", "x")
_row("HandleNot", "not-not", "not(not(x))", "x")
_row("HandleOr", "or-ones", "or(x, y)", "y", where="ones(y)")
_row("HandleOr", "or-zero", "or(x, 0)", "x")
_row("HandlePower", "power-exponential", "power(exponential(x), y)", "exponential(multiply(x, y))")
_row("HandlePower", "power-zero", "power(x, 0)", "1")
_row("HandlePower", "power-one", "power(x, 1)", "x")
_row("HandlePower", "power-two", "power(x, 2)", "multiply(x, x)")
_row("HandlePower", "power-three", "power(x, 3)", "multiply(x, multiply(x, x))")
_row("HandlePower", "power-inverse", "power(x, -1)", "divide(1, x)")
_row("HandlePower", "power-half", "power(x, 0.5)", "sqrt(x)", where="non_negative(x)")
_row("HandleReal", "real-of-complex", "real(complex(x, y))", "x")
_row("HandleReal", "real-of-real", "real(x)", "x", where="real(x)")
_row("HandleRemainder", "remainder-twice", "remainder(rest:remainder(x, y), y)", "rest")
_row("HandleRsqrt", "rsqrt-inverse", "rsqrt(divide(1, x))", "sqrt(x)", where="non_negative(x)")
_row("HandleRsqrt", "rsqrt-power", "rsqrt(power(x, -2))", "x", where="non_negative(x)")
_row("HandleSelect", "select-same", "select(mask, x, x)", "x")
_row("HandleSelect", "select-true", "select(1, x, y)", "x")
_row("HandleSelect", "select-false", "select(0, x, y)", "y")
_row("HandleSelect", "select-not", "select(not(mask), x, y)", "select(mask, y, x)")
_row("HandleSelect", "select-true-false", "select(mask, 1, 0)", "mask", PRED, "same_dims(mask, root)")
_row("HandleSelect", "select-false-true", "select(mask, 0, 1)", "not(mask)", PRED, "same_dims(mask, root)")
_row("HandleSqrt", "sqrt-of-square", "sqrt(multiply(x, x))", "abs(x)", REALS)
_row("HandleSubtract", "subtract-same", "subtract(x, x)", "0", INTEGERS)
_row("HandleSubtract", "subtract-zero", "subtract(x, 0)", "x")
_row("HandleSubtract", "subtract-difference", "subtract(x, subtract(x, y))", "y", INTEGERS)
_row("HandleSubtract", "subtract-sum", "subtract(x, add(x, y))", "negate(y)", INTEGERS)
_row("HandleSubtract", "subtract-from-sum", "subtract(add(x, y), x)", "y", INTEGERS)
_row("HandleXor", "xor-same", "xor(x, x)", "0")
_row("HandleXor", "xor-zero", "xor(x, 0)", "x")
for _op in ("cbrt", "erf", "logistic", "tanh"):  # monotonic functions: the larger of two results is the result of the larger
    _row("HandleMaximum", f"maximum-{_op}", f"maximum({_op}(x), {_op}(y))", f"{_op}(maximum(x, y))")
for _direction, _to in (("GT", "or(x, y)"), ("GE", "or(x, y)"), ("LT", "and(x, y)"), ("LE", "and(x, y)"), ("EQ", "y"), ("NE", "x")):
    _row("HandleSelect", f"select-{_direction.lower()}", f"select(compare[direction={_direction}](x, y), x, y)", _to, PRED)
