"""Scalar operations on integers and pred: wrapping, division that never traps, shifts by any amount."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from irscope.backends.llvm_code import Code
from irscope.backends.llvm_lanes import Instructions
from irscope.backends.llvm_types import register, scalar, splat_text, vector
from irscope.graph import DType
from irscope.lower.tile import Expr

_PLAIN = frozenset("add sub mul and or xor".split())


def cut(code: Code, x: str, dtype: DType, lanes: int) -> str:
    """A byte wrapped to a sub-byte integer: sign- or zero-extended from the integer's bits."""
    if not dtype.is_integer or dtype.bits >= 8:
        return x
    kind = register(dtype, lanes)
    if dtype.kind == "uint":
        return code.pure(f"and {kind} {x}, {splat_text(str((1 << dtype.bits) - 1), 'i8', lanes)}", x)
    far = splat_text(str(8 - dtype.bits), "i8", lanes)
    left = code.pure(f"shl {kind} {x}, {far}", x)
    return code.pure(f"ashr {kind} {left}, {far}", left)


def operation(code: Code, x: Expr, names: list[str]) -> str:
    """A scalar operation on bytes or wider, or on pred."""
    if x.op in _PLAIN:
        return code.pure(f"{x.op} {register(x.dtype, x.lanes)} {names[0]}, {names[1]}", *names)
    rule = _RULES.get(x.op)
    if rule is None:
        raise ValueError(f"{x.op} of {x.dtype} has no LLVM form")
    return rule(_Words(code, scalar(x.dtype), x.lanes, x.dtype), x, *names)


@dataclass(frozen=True, slots=True)
class _Words(Instructions):
    """The operations on one integer type, or on pred."""

    dtype: DType

    @property
    def signed(self) -> bool:
        return self.dtype.kind == "int"

    @property
    def width(self) -> int:
        return int(self.element[1:])

    def c(self, value: int) -> str:
        if self.element == "i1":
            return splat_text("true" if value else "false", "i1", self.lanes)
        return splat_text(str(value), self.element, self.lanes)

    def cmp(self, op: str, x: str, y: str) -> str:
        return self.bin(f"icmp {op}", x, y)

    def flagged(self, name: str, x: str) -> str:
        """An intrinsic with a second operand ``i1 false``: its result is defined for every operand."""
        function = f"{self.kind} @llvm.{name}.{self.short}"
        self.code.declarations.add(f"declare {function}({self.kind}, i1)")
        return self.code.pure(f"call {function}({self.kind} {x}, i1 false)", x)

    def sign(self, x: str) -> str:
        below = self.bin("ashr", x, self.c(self.width - 1))
        positive = self.cmp("sgt", x, self.c(0))
        above = self.code.pure(f"zext {self.pkind} {positive} to {self.kind}", positive)
        return self.bin("or", below, above)

    def divide(self, expr: Expr, x: str, y: str) -> str:
        """x/0 is -1 (all ones), x rem 0 is x, and the most negative number over -1 stays itself, with remainder 0."""
        op, known = expr.op, expr.args[1].uniform
        word = ("s" if self.signed else "u") + op
        if known is not None and known not in (0, -1):
            return self.bin(word, x, y)
        zero = self.cmp("eq", y, self.c(0))
        unsafe = zero
        if self.signed:
            minus = self.cmp("eq", y, self.c(-1))
            unsafe = self.either(zero, minus)
        safe = self.bin(word, x, self.sel(unsafe, self.c(1), y))
        if self.signed:
            other = self.bin("sub", self.c(0), x) if op == "div" else self.c(0)
            safe = self.sel(self.cmp("eq", y, self.c(-1)), other, safe)
        return self.sel(zero, self.c(-1) if op == "div" else x, safe)

    def floor(self, expr: Expr, x: str, _: str) -> str:
        """Division by a positive constant, rounding down."""
        op, operand, divisor = expr.op, expr.args[0], expr.args[1].uniform
        assert isinstance(divisor, int)
        if divisor & (divisor - 1) == 0:
            if op == "floormod":
                return self.bin("and", x, self.c(divisor - 1))
            return self.bin("ashr" if self.signed else "lshr", x, self.c(divisor.bit_length() - 1))
        if not self.signed or (operand.range is not None and operand.range[0] >= 0):
            return self.bin("udiv" if op == "floordiv" else "urem", x, self.c(divisor))
        # Toward zero first, then one less (or one divisor more) where the remainder is negative.
        rest = self.bin("srem", x, self.c(divisor))
        below = self.bin("ashr", rest, self.c(self.width - 1))
        if op == "floormod":
            return self.bin("add", rest, self.bin("and", below, self.c(divisor)))
        return self.bin("add", self.bin("sdiv", x, self.c(divisor)), below)

    def shift(self, word: str, amount: Expr, x: str, y: str) -> str:
        """Shift; by the width or more the result is 0, or the sign. A negative amount is a large unsigned one."""
        known = amount.uniform
        if known is not None and 0 <= known < self.width:
            return self.bin(word, x, y)
        if word == "ashr":
            return self.bin(word, x, self.intrinsic("umin", y, self.c(self.width - 1)))
        fits = self.cmp("ult", y, self.c(self.width))
        return self.sel(fits, self.bin(word, x, self.sel(fits, y, self.c(0))), self.c(0))

    def power(self, expr: Expr, x: str, y: str) -> str:
        """Power by squaring; a negative exponent yields 0, except 1 for base 1."""
        known = expr.args[1].uniform
        if known is not None and known >= 0:
            out: str | None = None
            while known:
                if known & 1:
                    out = x if out is None else self.bin("mul", out, x)
                known >>= 1
                if known:
                    x = self.bin("mul", x, x)
            return self.c(1) if out is None else out
        result, base = self.c(1), x
        for bit in range(self.width - self.signed):
            odd = self.cmp("ne", self.bin("and", y, self.c(1 << bit)), self.c(0))
            result = self.sel(odd, self.bin("mul", result, base), result)
            base = self.bin("mul", base, base)
        if self.signed:
            one = self.sel(self.cmp("eq", x, self.c(1)), self.c(1), self.c(0))
            result = self.sel(self.cmp("slt", y, self.c(0)), one, result)
        return result

    def high(self, x: str, y: str) -> str:
        """The upper half of the product."""
        wide = vector(f"i{2 * self.width}", self.lanes)
        word = "sext" if self.signed else "zext"
        a = self.code.pure(f"{word} {self.kind} {x} to {wide}", x)
        b = self.code.pure(f"{word} {self.kind} {y} to {wide}", y)
        product = self.code.pure(f"mul {wide} {a}, {b}", a, b)
        upper = self.code.pure(f"lshr {wide} {product}, {splat_text(str(self.width), f'i{2 * self.width}', self.lanes)}", product)
        return self.code.pure(f"trunc {wide} {upper} to {self.kind}", upper)

    def extreme(self, name: str, x: str, y: str) -> str:
        return self.intrinsic(("s" if self.signed else "u") + name, x, y)


_RULES: dict[str, Callable[..., str]] = {
    "not": lambda w, _, x: w.bin("xor", x, w.c(-1 if w.dtype.is_integer else 1)), "neg": lambda w, _, x: w.bin("sub", w.c(0), x),
    "abs": lambda w, _, x: w.flagged("abs", x), "popcnt": lambda w, _, x: w.intrinsic("ctpop", x),
    "clz": lambda w, _, x: w.flagged("ctlz", x), "sign": lambda w, _, x: w.sign(x),
    "max": lambda w, _, x, y: w.extreme("max", x, y), "min": lambda w, _, x, y: w.extreme("min", x, y),
    "div": _Words.divide, "rem": _Words.divide, "floordiv": _Words.floor, "floormod": _Words.floor, "pow": _Words.power,
    "shl": lambda w, expr, x, y: w.shift("shl", expr.args[1], x, y),
    "shr_logical": lambda w, expr, x, y: w.shift("lshr", expr.args[1], x, y),
    "shr_arithmetic": lambda w, expr, x, y: w.shift("ashr", expr.args[1], x, y), "mulhi": lambda w, _, x, y: w.high(x, y),
}
"""Emits each operation, from the expression and the names of its operands."""
