"""Scalar operations on integers and pred: wrapping, division that never traps, shifts by any amount."""
from __future__ import annotations

from irscope.backends.llvm_code import Code
from irscope.backends.llvm_types import register, scalar, splat_text, suffix, vector
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
    dtype, lanes, op = x.dtype, x.lanes, x.op
    kind, element = register(dtype, lanes), scalar(dtype)
    if op in _PLAIN:
        return code.pure(f"{op} {kind} {names[0]}, {names[1]}", *names)
    w = _Words(code, element, lanes, dtype)
    if op == "not":
        return code.pure(f"xor {kind} {names[0]}, {w.c(-1 if dtype.is_integer else 1)}", names[0])
    if op == "neg":
        return code.pure(f"sub {kind} {w.c(0)}, {names[0]}", names[0])
    if op == "abs":
        return code.pure(w.call("abs", names[0], flag="i1 false"), names[0])
    if op == "popcnt":
        return code.call(kind, f"@llvm.ctpop.{w.short}", (kind, names[0]))
    if op == "clz":
        return code.pure(w.call("ctlz", names[0], flag="i1 false"), names[0])
    if op == "sign":
        return w.sign(names[0])
    if op in ("max", "min"):
        return code.call(kind, f"@llvm.{'s' if dtype.kind == 'int' else 'u'}{op}.{w.short}", (kind, names[0]), (kind, names[1]))
    if op in ("div", "rem"):
        return w.divide(op, names[0], names[1], x.args[1])
    if op in ("floordiv", "floormod"):
        return w.floor(op, x.args[0], names[0], _divisor(x.args[1]))
    if op.startswith("sh"):
        return w.shift(op, names[0], names[1], x.args[1])
    if op == "pow":
        return w.power(names[0], names[1], x.args[1])
    if op == "mulhi":
        return w.high(names[0], names[1])
    raise ValueError(f"{op} of {dtype} has no LLVM form")


def _divisor(x: Expr) -> int:
    value = (x.args[0] if x.op == "splat" else x).value
    assert isinstance(value, int)
    return value


def _constant(x: Expr) -> int | None:
    """The value that every lane has, when it is known."""
    plain = x.args[0] if x.op == "splat" else x
    return plain.value if plain.op == "const" and plain.lanes == 1 else None


class _Words:
    """Longer operations on one integer type."""

    def __init__(self, code: Code, element: str, lanes: int, dtype: DType) -> None:
        self.code, self.element, self.lanes, self.dtype = code, element, lanes, dtype
        self.kind = vector(element, lanes)
        self.short = suffix(element, lanes)
        self.signed = dtype.kind == "int"
        self.width = int(element[1:])

    def c(self, value: int) -> str:
        if self.element == "i1":
            return splat_text("true" if value else "false", "i1", self.lanes)
        return splat_text(str(value), self.element, self.lanes)

    def bin(self, op: str, x: str, y: str) -> str:
        return self.code.pure(f"{op} {self.kind} {x}, {y}", x, y)

    def cmp(self, op: str, x: str, y: str) -> str:
        return self.code.pure(f"icmp {op} {self.kind} {x}, {y}", x, y)

    def sel(self, condition: str, x: str, y: str) -> str:
        return self.code.pure(f"select {vector('i1', self.lanes)} {condition}, {self.kind} {x}, {self.kind} {y}", condition, x, y)

    def call(self, name: str, x: str, flag: str) -> str:
        self.code.declarations.add(f"declare {self.kind} @llvm.{name}.{self.short}({self.kind}, {flag.split()[0]})")
        return f"call {self.kind} @llvm.{name}.{self.short}({self.kind} {x}, {flag})"

    def sign(self, x: str) -> str:
        below = self.bin("ashr", x, self.c(self.width - 1))
        positive = self.cmp("sgt", x, self.c(0))
        above = self.code.pure(f"zext {vector('i1', self.lanes)} {positive} to {self.kind}", positive)
        return self.bin("or", below, above)

    def divide(self, op: str, x: str, y: str, divisor: Expr) -> str:
        """x/0 is -1 (all ones), x rem 0 is x, and the most negative number over -1 stays itself, with remainder 0."""
        known = _constant(divisor)
        word = ("s" if self.signed else "u") + op
        if known is not None and known not in (0, -1):
            return self.bin(word, x, y)
        zero = self.cmp("eq", y, self.c(0))
        unsafe = zero
        if self.signed:
            minus = self.cmp("eq", y, self.c(-1))
            unsafe = self.code.pure(f"or {vector('i1', self.lanes)} {zero}, {minus}", zero, minus)
        safe = self.bin(word, x, self.sel(unsafe, self.c(1), y))
        if self.signed:
            other = self.bin("sub", self.c(0), x) if op == "div" else self.c(0)
            safe = self.sel(self.cmp("eq", y, self.c(-1)), other, safe)
        return self.sel(zero, self.c(-1) if op == "div" else x, safe)

    def floor(self, op: str, operand: Expr, x: str, divisor: int) -> str:
        """Division by a positive constant, rounding down."""
        power = divisor & (divisor - 1) == 0
        if power:
            if op == "floormod":
                return self.bin("and", x, self.c(divisor - 1))
            return self.bin("ashr" if self.signed else "lshr", x, self.c(divisor.bit_length() - 1))
        word = op.removeprefix("floor")
        word = "rem" if word == "mod" else word
        if not self.signed or (operand.range is not None and operand.range[0] >= 0):
            return self.bin("u" + word, x, self.c(divisor))
        # Toward zero first, then one less (or one divisor more) where the remainder is negative.
        rest = self.bin("srem", x, self.c(divisor))
        below = self.bin("ashr", rest, self.c(self.width - 1))
        if op == "floormod":
            return self.bin("add", rest, self.bin("and", below, self.c(divisor)))
        return self.bin("add", self.bin("sdiv", x, self.c(divisor)), below)

    def shift(self, op: str, x: str, y: str, amount: Expr) -> str:
        """Shift; by the width or more the result is 0, or the sign. A negative amount is a large unsigned one."""
        word = {"shl": "shl", "shr_logical": "lshr", "shr_arithmetic": "ashr"}[op]
        known = _constant(amount)
        if known is not None and 0 <= known < self.width:
            return self.bin(word, x, y)
        if word == "ashr":
            short = self.code.call(self.kind, f"@llvm.umin.{self.short}", (self.kind, y), (self.kind, self.c(self.width - 1)))
            return self.bin(word, x, short)
        fits = self.cmp("ult", y, self.c(self.width))
        return self.sel(fits, self.bin(word, x, self.sel(fits, y, self.c(0))), self.c(0))

    def power(self, x: str, y: str, exponent: Expr) -> str:
        """Power by squaring; a negative exponent yields 0, except 1 for base 1."""
        known = _constant(exponent)
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
