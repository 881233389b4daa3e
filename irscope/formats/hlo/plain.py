"""Checks literals as compilers print them with a few patterns, fast over megabytes; leaves any other literal to the cursor."""
from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from math import prod

from irscope.graph import DTYPES, DType, TensorType

SATURATING = frozenset(("f4e2m1fn", "f6e3m2fn", "f6e2m3fn"))  # neither infinity nor NaN: larger values round to the largest

ROW = re.compile(r"\{([^{}]*+)\}")
ROWS = re.compile(r"\s*+R(?:,\s*+R)*+\s*+")  # rows, each already replaced by an R
_EXPONENT = r"(?:[eE][+-]?\d++)?+"
_REAL = rf"(?:-?(?:\d{{1,18}}+(?:\.\d*+)?+|\.\d++){_EXPONENT}|-?inf|-?nan)"
# Too short and with too small an exponent to be beyond the range of f32.
_SMALL_REAL = r"(?:-?(?:\d{1,8}+(?:\.\d*+)?+|\.\d++)(?:[eE](?:-\d++|\+?[0-2]?\d(?!\d)))?+|-?inf|-?nan)"


def is_plain(text: str, type: TensorType) -> bool:
    """Whether a text is certainly a value of the type; False means only that the cursor must check it."""
    if not type.shape:
        return "{" not in text and _row_fits(text, type.dtype, 1)
    if text == "{...}":
        return True
    if not all(isinstance(d, int) and d > 0 for d in type.shape):
        return False
    last, outer = type.dims()[-1], type.dims()[:-1]
    if not outer:
        one = ROW.fullmatch(text)
        if one is not None:
            return _row_fits(one[1], type.dtype, last)
    return is_nested(text, ROW, outer, partial(_row_fits, dtype=type.dtype, count=last))


def is_nested(text: str, row: re.Pattern[str], outer: Sequence[int], fits: Callable[[str], bool]) -> bool:
    """Whether the rows of a text are nested in brackets as the outer dimensions say.

    ``row`` matches a row with its brackets and captures the elements, and ``fits`` says whether those are valid.
    """
    rows = 0
    for m in row.finditer(text):
        rows += 1
        if not fits(m[1]):
            return False
    if rows != prod(outer):
        return False
    # Reduce rows level by level, until one pair of brackets contains all.
    skeleton = row.sub("R", text)
    for size in reversed(outer):
        for m in row.finditer(skeleton):
            if ROWS.fullmatch(m[1]) is None or m[1].count(",") != size - 1:
                return False
        skeleton = row.sub("R", skeleton)
    return skeleton.strip() == "R"


def _row_fits(row: str, dtype: DType, count: int) -> bool:
    """Whether a row has ``count`` values that the element type can represent."""
    if row.count(",") != count - 1:
        return False
    if _row_of(dtype.name).fullmatch(row) is not None:
        return True
    if dtype.kind != "float" or ANY_REAL.fullmatch(row) is None:
        return False
    values = list(map(float, row.split(",")))
    if dtype.name not in ("f32", "f64", "bf16"):
        return all(math.isnan(v) or real_fits(v, dtype.name) for v in values)
    least, most = min(values), max(values)
    return "n" not in row and real_fits(least, dtype.name) and real_fits(most, dtype.name)


@cache
def _row_of(name: str) -> re.Pattern[str]:
    """The pattern of a row whose values certainly fit an element type."""
    dtype = DTYPES[name]
    if dtype.kind == "pred":
        return _row(r"(?:true|false|[01])")
    if dtype.is_integer:
        low, high = int_range(dtype)
        return _row(rf"(?:{_up_to(high)}|-{_up_to(-low)})" if low else _up_to(high))
    if name in ("f32", "f64", "bf16"):
        return _row(_SMALL_REAL)
    return _row(r"(?:-?[01](?:\.\d*+)?+(?:[eE]-\d++)?+|-?inf|-?nan)" if name not in SATURATING and name != "f8e8m0fnu" else r"(?!)")


def _row(value: str) -> re.Pattern[str]:
    return re.compile(rf"[ \n\t]*+{value}(?:,[ \n\t]*+{value})*+[ \n\t]*+", re.ASCII)


def _up_to(most: int) -> str:
    """A pattern for the decimal numbers from 0 to ``most``, ignoring leading zeros."""
    digits = str(most)
    ways = []
    for i, digit in enumerate(digits):
        if digit != "0":
            rest = len(digits) - 1 - i
            ways.append(f"{digits[:i]}[0-{int(digit) - 1}]" + (rf"\d{{{rest}}}" if rest else ""))
    shorter = [rf"\d{{1,{len(digits) - 1}}}"] if len(digits) > 1 else []
    return "(?:(?:" + "|".join([*ways, digits, *shorter]) + r")(?!\d))"


ANY_REAL = _row(_REAL)


def int_range(dtype: DType) -> tuple[int, int]:
    """The smallest and largest integer of an element type."""
    bits = dtype.bits
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if dtype.kind == "int" else (0, (1 << bits) - 1)


def real_fits(value: float, name: str) -> bool:
    """Whether a value written in digits rounds to a finite value of a float type."""
    if math.isinf(value):
        return False
    dtype = DTYPES[name]
    if abs(value) <= dtype.largest or name in SATURATING:
        return True
    # Less than half an ulp above the largest value still rounds down to it.
    return name != "f64" and abs(value) - dtype.largest < 2.0 ** (math.floor(math.log2(dtype.largest)) - dtype.significand)
