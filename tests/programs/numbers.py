"""Which numbers a type holds exactly, and what becomes of a value's range under arithmetic."""
from __future__ import annotations

from dataclasses import replace
from math import ceil, floor, isinf

from tests.programs.program import Value

DIGITS = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8, "f8e4m3fn": 4, "f8e5m2": 3, "c64": 24, "c128": 53}
"""Bits of the significand, the hidden one included (IEEE 754; OCP 8-bit floating point 1.0; bfloat16 as in Intel's white paper)."""
LARGEST = {"f64": 1e300, "f32": 1e30, "f16": 30000.0, "bf16": 1e30, "f8e4m3fn": 240.0, "f8e5m2": 28672.0, "c64": 1e30, "c128": 1e300}
SMALLEST = {"f16": 2.0 ** -12, "f8e4m3fn": 2.0 ** -5, "f8e5m2": 2.0 ** -12}
"""The grain may not be finer: below are the denormals."""
INTEGERS = {f"{sign}{bits}": bits for sign in "su" for bits in (4, 8, 16, 32, 64)}
NARROW = ("bf16", "f16", "f8e4m3fn", "f8e5m2")


def is_float(dtype: str) -> bool:
    return dtype in DIGITS and dtype[0] != "c"


def is_complex(dtype: str) -> bool:
    return dtype in ("c64", "c128")


def fits(dtype: str, most: float, grain: float) -> bool:
    """Whether a type holds every multiple of ``grain`` up to ``most``."""
    if dtype not in DIGITS:
        return True
    return most <= LARGEST[dtype] and most / grain <= 2.0 ** DIGITS[dtype] and grain >= SMALLEST.get(dtype, 2.0 ** -60)


def ends(dtype: str) -> tuple[float, float]:
    """The least and greatest number of an integer type; 0 and 1 of pred."""
    if dtype == "pred":
        return 0, 1
    bits = INTEGERS[dtype]
    return (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1) - 1) if dtype[0] == "s" else (0, 2.0 ** bits - 1)


def rounded(value: Value) -> Value:
    """The value rounded to whole numbers, in whichever direction."""
    low, high = (bound if isinf(bound) else towards(bound) for bound, towards in ((value.low, floor), (value.high, ceil)))
    return replace(value, low=low, high=high, grain=max(1.0, value.grain))


def summed(value: Value, count: int) -> Value | None:
    """The value of a sum of ``count`` elements; None where its digits do not fit, or where it could cancel."""
    count = max(count, 1)
    low, high = min(value.low * count, value.low, 0), max(value.high * count, value.high, 0)
    made = replace(value, low=low, high=high)
    if not is_float(value.dtype) and not is_complex(value.dtype):
        return made
    if value.grade == "exact":
        return made if fits(value.dtype, made.most, value.grain) else None
    if value.grade == "positive" and value.dtype in ("f32", "f64") and high < 1e12:
        return replace(made, low=value.low)
    return None


def added(a: Value, b: Value, sign: int = 1) -> Value | None:
    """a + b or a - b; None where the sum may not be formed."""
    low, high = (a.low + b.low, a.high + b.high) if sign > 0 else (a.low - b.high, a.high - b.low)
    made = replace(a, low=low, high=high, grain=min(a.grain, b.grain))
    if a.dtype not in DIGITS:
        return made
    if a.grade == b.grade == "exact":
        return made if fits(a.dtype, made.most, made.grain) else None
    positive = all(v.grade == "positive" or (v.grade == "exact" and v.low >= 0) for v in (a, b))
    if positive and sign > 0 and a.dtype in ("f32", "f64"):
        return replace(made, grade="positive")
    return None


def multiplied(a: Value, b: Value) -> Value | None:
    """a * b; None where the product may not be formed."""
    corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    made = replace(a, low=min(corners), high=max(corners), grain=a.grain * b.grain)
    if a.dtype not in DIGITS:
        return made
    if is_complex(a.dtype):
        made = replace(made, low=-2 * a.most * b.most, high=2 * a.most * b.most)
    if a.grade == b.grade == "exact":
        return made if fits(a.dtype, made.most, made.grain) else None
    if a.dtype in NARROW or "rough" in (a.grade, b.grade) or is_complex(a.dtype) or made.most > 1e12:
        return None
    positive = all(v.grade == "positive" or (v.grade == "exact" and v.low >= 0) for v in (a, b))
    return replace(made, grade="positive" if positive else "signed")


def contracted(a: Value, b: Value, count: int) -> Value | None:
    """A sum of ``count`` products. Narrow types add in a wider one and round once: what is left is an error of each element."""
    wide = "f32" if a.dtype in NARROW else a.dtype
    product = multiplied(replace(a, dtype=wide), replace(b, dtype=wide))
    if product is None:
        return None
    if product.grade == "signed":
        return replace(product, dtype=a.dtype, grade="rough")
    total = summed(product, count)
    if total is None:
        return None
    total = replace(total, dtype=a.dtype)
    if total.grade == "exact" and a.dtype in NARROW and not fits(a.dtype, total.most, total.grain):
        return replace(total, grade="rough") if total.most <= LARGEST[a.dtype] else None
    return total


def joined(values: list[Value]) -> Value | None:
    """What is known of an array that may hold any of the values; None where they are of grades that do not mix."""
    grades = {v.grade for v in values}
    low, high, grain = min(v.low for v in values), max(v.high for v in values), min(v.grain for v in values)
    if grades == {"exact"}:
        return replace(values[0], low=low, high=high, grain=grain) if fits(values[0].dtype, max(abs(low), abs(high)), grain) else None
    if "rough" in grades:
        return None
    grade = "positive" if low >= 0 and grades <= {"exact", "positive"} else "signed"
    return replace(values[0], low=low, high=high, grain=grain, grade=grade)
