"""Shared expressions: equal trees become one object, and integer arithmetic on indices folds as it is built.

An s64 value of one lane is kept as a sum of constant multiples of atoms, outermost variables first and the constant last, so that
``(i + 1) * 64 + 3 - 64`` is ``i*64 + 3``, addresses share their loop-invariant prefix, and ``(i*64 + j) // 64`` is ``i`` where j is
known to be in 0..63.
"""
from __future__ import annotations

import struct
from collections.abc import Callable
from math import gcd
from typing import Any, Protocol, cast

from irscope.graph import DType
from irscope.graph.dtypes import PRED, S64
from irscope.lower.tile import Expr, Home
from irscope.source.budget import tick

Range = tuple[int, int]
Linear = tuple[dict[Expr, int], int]

_S64_MIN, _S64_MAX = -(1 << 63), (1 << 63) - 1


class Scalars(Protocol):
    """The operations that the rules for integers and complex values use (:class:`irscope.lower.arithmetic.Arithmetic`)."""

    def make(self, op: str, args: tuple[Expr, ...], dtype: DType, lanes: int = 1, value: object = None) -> Expr: ...
    def lift(self, op: str, args: tuple[Expr, ...], dtype: DType) -> Expr: ...
    def const(self, value: complex, dtype: DType) -> Expr: ...
    def pred(self, value: bool) -> Expr: ...
    def splat(self, x: Expr, lanes: int) -> Expr: ...
    def unary(self, name: str, x: Expr) -> Expr: ...
    def binary(self, name: str, x: object, y: object) -> Expr: ...
    def compare(self, direction: str, x: object, y: object) -> Expr: ...
    def select(self, condition: Expr, x: object, y: object) -> Expr: ...
    def convert(self, x: Expr, dtype: DType) -> Expr: ...
    def bitcast(self, x: Expr, dtype: DType) -> Expr: ...
    def widen(self, x: Expr) -> Expr: ...
    def complex(self, re: object, im: object) -> Expr: ...
    def real(self, x: Expr) -> Expr: ...
    def imag(self, x: Expr) -> Expr: ...
    def index_mul(self, x: Expr, y: Expr) -> Expr: ...


def wrap(value: int, dtype: DType) -> int:
    """An integer wrapped to the type, two's complement."""
    value &= (1 << dtype.bits) - 1
    return value - (1 << dtype.bits) if dtype.kind == "int" and value >> (dtype.bits - 1) else value


def limits(dtype: DType) -> Range:
    """The smallest and the largest value of an integer type."""
    return (-(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1) if dtype.kind == "int" else (0, (1 << dtype.bits) - 1)


class ExpressionTable:
    """The table of one kernel's expressions; :class:`irscope.lower.arithmetic.Arithmetic` adds the operations."""

    def __init__(self) -> None:
        self._table: dict[tuple[object, ...], Expr] = {}
        self._linear: dict[Expr, Linear] = {}

    # ---- construction

    def make(self, op: str, args: tuple[Expr, ...], dtype: DType, lanes: int = 1, value: object = None) -> Expr:
        """Build the expression with these parts, without folding."""
        key = (op, args, dtype, lanes, struct.pack("<d", value) if isinstance(value, float) else value)
        found = self._table.get(key)
        if found is None:
            tick()
            known = _range_of(op, args, dtype, value) if lanes == 1 and dtype.kind in ("int", "uint") else None
            found = Expr(op, args, dtype, lanes, value, known, len(self._table), cast(Home, self))
            self._table[key] = found
        return found

    def variable(self, name: str, dtype: DType, lanes: int = 1, known: Range | None = None) -> Expr:
        """Create a fresh variable."""
        var = Expr("var", (), dtype, lanes, name, known, len(self._table), cast(Home, self))
        self._table["fresh", var] = var
        return var

    def index(self, value: int) -> Expr:
        """An s64 constant."""
        return self.make("const", (), S64, 1, wrap(int(value), S64))

    def pred(self, value: bool) -> Expr:
        return self.make("const", (), PRED, 1, bool(value))

    def as_index(self, value: Any) -> Expr:
        """An int, or an integer expression, as s64."""
        if isinstance(value, Expr):
            return value if value.dtype is S64 else self.make("convert", (value,), S64, value.lanes)
        return self.index(int(value))

    # ---- sums of constant multiples

    def linear(self, x: Expr) -> Linear:
        """``x`` as (multiples of atoms, constant). The dictionary is shared: do not change it."""
        if x.op == "const":
            return {}, x.value
        found = self._linear.get(x)
        return found if found is not None else ({x: 1}, 0)

    def from_linear(self, terms: dict[Expr, int], constant: int) -> Expr:
        """The canonical expression of a sum."""
        terms = {atom: c for atom, c in terms.items() if c}
        if len(terms) > 1:
            terms = _rejoin(self, terms)
        total: Expr | None = None
        for atom in sorted(terms, key=lambda atom: atom.number):
            factor = wrap(terms[atom], S64)
            term = atom if factor == 1 else self.make("mul", (atom, self.index(factor)), S64)
            if term is not atom:
                self._linear.setdefault(term, ({atom: factor}, 0))
            total = term if total is None else self.make("add", (total, term), S64)
        constant = wrap(constant, S64)
        if total is None:
            return self.index(constant)
        if len(terms) > 1:
            self._linear.setdefault(total, (terms, 0))
        if constant:
            total = self.make("add", (total, self.index(constant)), S64)
            self._linear.setdefault(total, (terms, constant))
        return total

    def index_add(self, x: Expr, y: Expr, sign: int = 1) -> Expr:
        """``x + sign * y`` on s64 of one lane."""
        terms, constant = self.linear(x)
        more, extra = self.linear(y)
        if not more and not extra:
            return x
        out = dict(terms)
        for atom, factor in more.items():
            out[atom] = out.get(atom, 0) + sign * factor
        return self.from_linear(out, constant + sign * extra)

    def index_mul(self, x: Expr, y: Expr) -> Expr:
        """``x * y`` on s64 of one lane."""
        if x.op == "const":
            x, y = y, x
        if y.op != "const":
            return self.make("mul", (x, y) if x.number <= y.number else (y, x), S64)
        if y.value == 1:
            return x
        terms, constant = self.linear(x)
        return self.from_linear({atom: c * y.value for atom, c in terms.items()}, constant * y.value)

    def index_binary(self, name: str, x: Expr, y: Expr) -> Expr | None:
        """An operation on s64 of one lane by the rules of sums; None where none applies."""
        if name in ("add", "sub"):
            return self.index_add(x, y, 1 if name == "add" else -1)
        if name == "mul":
            return self.index_mul(x, y)
        if name in ("floordiv", "floormod"):
            if y.op != "const" or y.value <= 0:
                raise ValueError("// and % take a positive constant")
            return self.floordiv(x, y.value) if name == "floordiv" else self.floormod(x, y.value)
        if name in ("div", "rem") and y.op == "const" and y.value > 0 and x.range is not None and x.range[0] >= 0:
            return self.floordiv(x, y.value) if name == "div" else self.floormod(x, y.value)
        return None

    def floordiv(self, x: Expr, divisor: int) -> Expr:
        """``x // divisor``, rounding down, for a positive divisor."""
        if divisor == 1:
            return x
        whole, rest = self._split(x, divisor)
        return self.index_add(self.from_linear(*whole), self._quotient(rest, divisor))

    def floormod(self, x: Expr, divisor: int) -> Expr:
        """``x % divisor``, with the sign of the divisor, which is positive."""
        if divisor == 1:
            return self.index(0)
        rest = self._split(x, divisor)[1]
        if rest.op == "const":
            return self.index(rest.value % divisor)
        if rest.range is not None and rest.range[0] // divisor == rest.range[1] // divisor:
            return self.index_add(rest, self.index(rest.range[0] // divisor * divisor), -1)
        if rest.op == "floormod" and rest.args[1].value % divisor == 0:
            return self.floormod(rest.args[0], divisor)
        return self.make("floormod", (rest, self.index(divisor)), S64)

    def _split(self, x: Expr, divisor: int) -> tuple[Linear, Expr]:
        """``x`` as ``whole * divisor + rest``, where whole has no fraction. A sum that may wrap around is not split."""
        terms, constant = self.linear(x)
        if x.range is None:
            return ({}, 0), x
        whole = {atom: c // divisor for atom, c in terms.items() if c % divisor == 0}
        rest = {atom: c for atom, c in terms.items() if c % divisor}
        return (whole, constant // divisor), self.from_linear(rest, constant % divisor)

    def _quotient(self, x: Expr, divisor: int) -> Expr:
        if x.op == "const":
            return self.index(x.value // divisor)
        if x.range is not None and x.range[0] // divisor == x.range[1] // divisor:
            return self.index(x.range[0] // divisor)
        if x.op == "floordiv" and x.args[1].value * divisor <= _S64_MAX:
            return self.floordiv(x.args[0], x.args[1].value * divisor)
        if x.range is not None:
            terms, constant = self.linear(x)
            common = gcd(divisor, *terms.values())
            if common > 1:
                return self.floordiv(self.from_linear({a: c // common for a, c in terms.items()}, constant // common), divisor // common)
        return self.make("floordiv", (x, self.index(divisor)), S64)


def _rejoin(table: ExpressionTable, terms: dict[Expr, int]) -> dict[Expr, int]:
    """``(x // c) * c * m + (x % c) * m`` is ``x * m`` again."""
    for low, factor in terms.items():
        if low.op == "floormod":
            x, divisor = low.args
            high = table._table.get(("floordiv", low.args, S64, 1, None))
            if high is not None and terms.get(high) == factor * divisor.value:
                more, constant = table.linear(x)
                if constant == 0:
                    out = {atom: c for atom, c in terms.items() if atom is not low and atom is not high}
                    for atom, c in more.items():
                        out[atom] = out.get(atom, 0) + c * factor
                    return {atom: c for atom, c in out.items() if c}
    return terms


def _range_of(op: str, args: tuple[Expr, ...], dtype: DType, value: Any) -> Range | None:
    """The known bounds of an integer expression, or None."""
    if op == "const":
        return (value, value)
    if op == "convert":
        return _range_of_converted(args[0], dtype)
    rule = _RANGES.get(op)
    if rule is None:
        return None
    low, high = limits(dtype)
    first, last = args[-2].range, args[-1].range  # of a select: the values that it chooses from
    if op == "floormod" and last is not None:
        return (0, last[0] - 1)
    if first is None or last is None:
        return _half_known(op, first or last, low, high)
    out = rule(*first, *last)
    return out if out is not None and low <= out[0] and out[1] <= high else None


def _range_of_converted(x: Expr, dtype: DType) -> Range | None:
    """The range of a conversion that changes no value."""
    if x.dtype.kind == "pred":
        return (0, 1)
    if not x.dtype.is_integer:
        return None
    low, high = limits(dtype)
    known = x.range or (limits(x.dtype) if x.dtype.bits < dtype.bits else None)
    return known if known is not None and low <= known[0] and known[1] <= high else None


def _range_of_product(a: int, b: int, c: int, d: int) -> Range:
    corners = (a * c, a * d, b * c, b * d)
    return min(corners), max(corners)


_RANGES: dict[str, Callable[[int, int, int, int], Range | None]] = {
    "add": lambda a, b, c, d: (a + c, b + d), "sub": lambda a, b, c, d: (a - d, b - c), "mul": _range_of_product,
    "floordiv": lambda a, b, c, d: (a // c, b // c), "floormod": lambda a, b, c, d: None,  # the divisor is a positive constant
    "min": lambda a, b, c, d: (min(a, c), min(b, d)), "max": lambda a, b, c, d: (max(a, c), max(b, d)),
    "select": lambda a, b, c, d: (min(a, c), max(b, d)),
}
"""The range of a result from those of two operands, a to b and c to d."""


def _half_known(op: str, known: Range | None, low: int, high: int) -> Range | None:
    """The range of a minimum or maximum with one known side: a minimum is at most that side, whatever the other is."""
    if known is None or op not in ("min", "max"):
        return None
    return (low, known[1]) if op == "min" else (known[0], high)
