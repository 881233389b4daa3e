"""Identities of arithmetic hold over every element type that they are used for: wrapping integers, types without sign, zero or infinity."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irscope.graph import DTYPES, DType
from irscope.ops.numerics import convert
from irscope.passes import pass_named
from irscope.passes.algebra.arithmetic import passes_through
from tests.lower.whole import check, entry, module_of, reference

NUMBERS = [d for d in DTYPES.values() if d.kind in ("int", "uint", "float")]
TYPES = [DTYPES["pred"], *NUMBERS]


def values_of(dtype: DType) -> np.ndarray[Any, Any]:
    """Every value of a narrow type; of a wide one those around powers of two, of both signs (denormals, which may count as zeros, aside)."""
    if dtype.kind == "pred":
        return np.array([False, True])
    if dtype.is_float and dtype.storage == 1:
        return np.arange(1 << dtype.bits).astype(np.uint8).view(dtype.numpy())
    with np.errstate(all="ignore"):
        if dtype.is_float:
            powers = 2.0 ** np.arange(-126, 130)
            return np.concatenate([powers, -powers, powers * 1.7, powers + 1, [0.0, -0.0, np.inf, -np.inf, np.nan]]).astype(dtype.numpy())
        low, high = (int(v) for v in (dtype.lowest, dtype.highest))
        whole = {v for n in range(dtype.bits + 1) for e in (-1, 0, 1) for v in ((1 << n) + e, e - (1 << n))}
        return np.array([v for v in sorted(whole) if low <= v <= high], object).astype(dtype.numpy())


def same(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    """Equal, NaN like NaN, and zeros of one sign."""
    if not np.issubdtype(a.dtype, np.integer) and a.dtype != bool:
        a, b = a.astype(np.float64), b.astype(np.float64)
        return bool(np.all(((a == b) & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b))))
    return bool(np.array_equal(a.astype(object), b.astype(object)))


@pytest.mark.parametrize("source", TYPES, ids=str)
def test_a_conversion_that_is_left_out_changed_nothing(source: DType) -> None:
    values, used = values_of(source), 0
    with np.errstate(all="ignore"):
        for middle in TYPES:
            there = convert(values, middle)
            for target in TYPES:
                if passes_through(source, middle, target):
                    used += 1
                    assert same(convert(there, target), convert(values, target)), (middle, target)
    assert used or source.name in ("s64", "u64", "f64", "f8e8m0fnu")


IDENTITIES = {
    "negate": "n = $T negate(x)\n ROOT r = $T negate(n)",
    "multiply": "o = $E[] constant(1)\n b = $T broadcast(o), dimensions={}\n ROOT r = $T multiply(x, b)",
    "divide": "o = $E[] constant(1)\n b = $T broadcast(o), dimensions={}\n ROOT r = $T divide(x, b)",
    "subtract": "o = $E[] constant(0)\n b = $T broadcast(o), dimensions={}\n ROOT r = $T subtract(x, b)",
}


@pytest.mark.parametrize("name", IDENTITIES)
@pytest.mark.parametrize("dtype", [d for d in NUMBERS if d.name not in ("s1", "f8e8m0fnu")], ids=str)
def test_identities(dtype: DType, name: str) -> None:
    """s1 has no 1, f8e8m0fnu neither 0 nor negative numbers."""
    values = values_of(dtype)
    body = IDENTITIES[name].replace("$T", f"{dtype}[{len(values)}]").replace("$E", str(dtype))
    module = module_of(entry(f"x = {dtype}[{len(values)}] parameter(0)\n {body}"))
    made = pass_named("simplify-algebra").run(module)
    assert same(reference(made, [values])[0], reference(module, [values])[0])


def test_integers_by_way_of_a_float_saturate_when_compiled() -> None:
    model = check(entry("x = s16[5] parameter(0)\n f = f32[5] convert(x)\n ROOT r = s8[5] convert(f)"),
                  [np.array([300, -300, 5, 30000, -1], np.int16)], runs=1)
    assert model(np.array([300, -300, 5, 30000, -1], np.int16))[0].tolist() == [127, -128, 5, 127, -1]


@pytest.mark.parametrize("lines", [IDENTITIES["negate"], "ROOT r = $T negate(x)", "ROOT r = $T abs(x)"])
def test_a_type_without_sign_compiled(lines: str) -> None:
    values = values_of(DTYPES["f8e8m0fnu"])
    check(entry("x = $T parameter(0)\n ".replace("$T", f"f8e8m0fnu[{len(values)}]") + lines.replace("$T", f"f8e8m0fnu[{len(values)}]")), [values], runs=1)
