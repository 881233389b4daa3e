"""Shared expressions: equal trees become one object, and integer arithmetic on indices folds while it is written.

An s64 value of one lane is kept as a sum of constant multiples of atoms, outermost variables first and the constant last, so that
``(i + 1) * 64 + 3 - 64`` is ``i*64 + 3``, addresses share their loop-invariant prefix, and ``(i*64 + j) // 64`` is ``i`` where j is
known to lie in 0..63.
"""
from __future__ import annotations

import struct
from typing import Any, cast

from irscope.graph import DType
from irscope.graph.dtypes import PRED, S64
from irscope.lower.tile import Expr, Home
from irscope.source.budget import tick

Range = tuple[int, int]
Linear = tuple[dict[Expr, int], int]

_S64_MIN, _S64_MAX = -(1 << 63), (1 << 63) - 1


def wrap(value: int, dtype: DType) -> int:
    """An integer as the type holds it, two's complement."""
    value &= (1 << dtype.bits) - 1
    return value - (1 << dtype.bits) if dtype.kind == "int" and value >> (dtype.bits - 1) else value


def limits(dtype: DType) -> Range:
    """The smallest and the largest value of an integer type."""
    return (-(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1) if dtype.kind == "int" else (0, (1 << dtype.bits) - 1)


class Expressions:
    """The table of one kernel's expressions; :class:`irscope.lower.arithmetic.Arithmetic` adds the operations."""

    def __init__(self) -> None:
        self._table: dict[tuple[Any, ...], Expr] = {}
        self._linear: dict[Expr, Linear] = {}

    # ---- making

    def make(self, op: str, args: tuple[Expr, ...], dtype: DType, lanes: int = 1, value: Any = None) -> Expr:
        """The expression with these parts; no folding."""
        key = (op, args, dtype, lanes, struct.pack("<d", value) if isinstance(value, float) else value)
        found = self._table.get(key)
        if found is None:
            tick()
            known = _range_of(op, args, dtype, value) if lanes == 1 and dtype.kind in ("int", "uint") else None
            found = Expr(op, args, dtype, lanes, value, known, len(self._table), cast(Home, self))
            self._table[key] = found
        return found

    def variable(self, name: str, dtype: DType, lanes: int = 1, known: Range | None = None) -> Expr:
        """A fresh variable; each call makes another one."""
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
        """``x`` as (multiples of atoms, constant). The dictionary is shared: not to be changed."""
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
            common = divisor
            for factor in terms.values():
                while factor % common:
                    common = _gcd(factor, common)
            if common > 1:
                return self.floordiv(self.from_linear({a: c // common for a, c in terms.items()}, constant // common), divisor // common)
        return self.make("floordiv", (x, self.index(divisor)), S64)


def _gcd(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return abs(a)


def _rejoin(table: Expressions, terms: dict[Expr, int]) -> dict[Expr, int]:
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
    """What an integer expression is known to lie between, or None."""
    if op == "const":
        return (value, value)
    low, high = limits(dtype)
    if op == "convert":
        source = args[0].dtype
        if source.kind == "pred":
            return (0, 1)
        if not source.is_integer:
            return None
        known = args[0].range or (limits(source) if source.bits < dtype.bits else None)
        return known if known is not None and low <= known[0] and known[1] <= high else None
    if op == "reduce.max" or op == "reduce.min":
        return None
    ranges = [a.range for a in (args[1:] if op == "select" else args)]
    if op == "floormod" and ranges[1] is not None:
        return (0, ranges[1][0] - 1)
    if not ranges or any(r is None for r in ranges):
        if op in ("min", "max") and len(ranges) == 2:
            return _half_known(op, ranges, low, high)
        return None
    (a, b), (c, d) = ranges[0] or (0, 0), ranges[-1] or (0, 0)
    if op == "add":
        out = (a + c, b + d)
    elif op == "sub":
        out = (a - d, b - c)
    elif op == "mul":
        corners = (a * c, a * d, b * c, b * d)
        out = (min(corners), max(corners))
    elif op == "floordiv" and c > 0:
        out = (a // c, b // c)
    elif op == "min":
        out = (min(a, c), min(b, d))
    elif op == "max":
        out = (max(a, c), max(b, d))
    elif op == "select":
        out = (min(a, c), max(b, d))
    else:
        return None
    return out if low <= out[0] and out[1] <= high else None


def _half_known(op: str, ranges: list[Range | None], low: int, high: int) -> Range | None:
    """A minimum is at most what is known of one side, whatever the other is."""
    known = next((r for r in ranges if r is not None), None)
    if known is None:
        return None
    return (low, known[1]) if op == "min" else (known[0], high)
