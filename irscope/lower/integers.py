"""Integer rules: folding with known ranges, and sub-byte arithmetic in bytes."""
from __future__ import annotations

import operator
from collections.abc import Callable

from irscope.graph import DTYPES, DType
from irscope.graph.dtypes import S8, S64, U8
from irscope.lower.expressions import Scalars
from irscope.lower.tile import Expr

_UNARY = frozenset("neg abs sign not popcnt clz".split())
_COMMUTES = frozenset("add mul and or xor min max".split())
_KEEPS = {0: frozenset("add sub or xor shl shr_logical shr_arithmetic".split()), 1: frozenset(("mul", "div"))}


def is_sub_byte(dtype: DType) -> bool:
    """Whether an integer is computed in a byte."""
    return dtype.is_integer and dtype.bits < 8


def byte_of(dtype: DType) -> DType:
    """The byte type that holds a sub-byte integer."""
    return S8 if dtype.kind == "int" else U8


def unary(k: Scalars, name: str, x: Expr) -> Expr:
    dtype = x.dtype
    if name not in _UNARY:
        raise TypeError(f"{name} of {dtype}")
    if dtype.kind == "uint" and name == "abs":
        return x
    if dtype.kind == "uint" and name == "sign":
        return k.binary("min", x, k.const(1, dtype))
    if is_sub_byte(dtype):
        if name in ("popcnt", "clz"):
            plain = k.convert(k.convert(x, DTYPES[f"u{dtype.bits}"]), U8)
            count = k.unary(name, plain)
            return k.convert(count if name == "popcnt" else k.binary("sub", count, 8 - dtype.bits), dtype)
        return k.convert(k.unary(name, k.widen(x)), dtype)
    if name == "neg" and dtype is S64 and x.lanes == 1:
        return k.index_mul(x, k.const(-1, S64))
    if x.op == "const" and x.lanes == 1:
        return k.const(_UNARY_FOLD[name](x.value, dtype), dtype)
    return k.make(name, (x,), dtype, x.lanes)


def binary(k: Scalars, name: str, x: Expr, y: Expr) -> Expr:
    dtype = x.dtype
    if name == "atan2":
        raise TypeError(f"{name} of {dtype}")
    if is_sub_byte(dtype):
        return _sub_byte_binary(k, name, x, y)
    if x.op == "const" and y.op == "const" and x.lanes == y.lanes == 1:
        fold = _BINARY_FOLD.get(name)
        if fold is not None:
            return k.const(fold(x.value, y.value), dtype)
    if name in _COMMUTES and x.op == "const":
        x, y = y, x
    if y.op == "const" and y.lanes == 1 and name in _KEEPS.get(y.value, ()):
        return x
    if name in ("min", "max") and x.lanes == y.lanes == 1:
        settled = _known_extreme(name, x, y)
        if settled is not None:
            return settled
    return k.lift(name, (x, y), dtype)


def _sub_byte_binary(k: Scalars, name: str, x: Expr, y: Expr) -> Expr:
    """Compute in bytes and wrap the result; a logical shift reads only the value's own bits, mulhi returns the upper half of its own."""
    dtype = x.dtype
    if name == "mulhi":
        product = k.binary("mul", k.widen(x), k.widen(y))
        return k.convert(k.binary("shr_arithmetic" if dtype.kind == "int" else "shr_logical", product, dtype.bits), dtype)
    if name == "shr_logical" and dtype.kind == "int":
        # A negative amount counts as out of range, and stays negative in a signed byte.
        plain = k.convert(k.convert(k.convert(x, DTYPES[f"u{dtype.bits}"]), U8), S8)
        return k.convert(k.binary(name, plain, k.widen(y)), dtype)
    return k.convert(k.binary(name, k.widen(x), k.widen(y)), dtype)


def lane_floor(k: Scalars, name: str, x: Expr, y: Expr) -> Expr:
    divisor = y.args[0] if y.op == "splat" else y
    if not x.dtype.is_integer or divisor.uniform is None or divisor.value <= 0:
        raise ValueError("// and % take integers and a positive constant")
    if divisor.value == 1:
        return x if name == "floordiv" else k.splat(k.const(0, x.dtype), x.lanes)
    return k.lift(name, (x, divisor), x.dtype)


def known_comparison(direction: str, x: Expr, y: Expr) -> bool | None:
    """The result of a comparison that the ranges of two integers decide, or None."""
    if x is y:
        return direction in ("EQ", "LE", "GE")
    if x.range is None or y.range is None:
        return None
    (a, b), (c, d) = x.range, y.range
    if direction in ("EQ", "NE"):
        if b < c or d < a:
            return direction == "NE"
        return direction == "EQ" if a == b == c == d else None
    if direction in ("GT", "GE"):
        return known_comparison({"GT": "LT", "GE": "LE"}[direction], y, x)
    if direction == "LT":
        return True if b < c else False if a >= d else None
    return True if b <= c else False if a > d else None


def _known_extreme(name: str, x: Expr, y: Expr) -> Expr | None:
    below = known_comparison("LE", x, y)
    if below is None and not known_comparison("LE", y, x):
        return None
    return (x if below else y) if name == "min" else (y if below else x)


_UNARY_FOLD: dict[str, Callable[[int, DType], int]] = {
    "neg": lambda x, t: -x, "abs": lambda x, t: abs(x), "sign": lambda x, t: (x > 0) - (x < 0), "not": lambda x, t: ~x,
    "popcnt": lambda x, t: (x & ((1 << t.bits) - 1)).bit_count(),
    "clz": lambda x, t: t.bits - (x & ((1 << t.bits) - 1)).bit_length(),
}

_BINARY_FOLD: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "and": operator.and_, "or": operator.or_, "xor": operator.xor,
    "min": min, "max": max,
}
