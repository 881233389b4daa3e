"""Element types: what the table says of floats is what numpy and ml_dtypes say, and which types hold which is what conversions show."""
from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from irscope.graph import DTYPES, DType, dtype_of

FLOATS = [d for d in DTYPES.values() if d.is_float]
NUMBERS = [d for d in DTYPES.values() if d.is_float or d.is_integer or d.kind == "pred"]
SMALL = [d for d in NUMBERS if d.bits <= 16]
finfo: Any = ml_dtypes.finfo


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_what_is_said_of_floats(dtype: DType) -> None:
    known = finfo(dtype.numpy())
    assert (dtype.significand, dtype.exponent) == (known.nmant + 1, known.nexp)
    assert (dtype.largest, 2.0 ** dtype.min_exponent) == (float(known.max), float(known.smallest_normal))
    assert dtype.lowest in (float("-inf"), float(known.min))
    with np.errstate(all="ignore"):
        assert dtype.has_nan == bool(np.isnan(np.asarray(np.nan).astype(dtype.numpy()).astype(np.float64)))
        assert dtype.has_infinity == bool(np.isinf(np.asarray(np.inf).astype(dtype.numpy()).astype(np.float64)))


def every_value(dtype: DType) -> Any:
    """All values of a type of up to 16 bits."""
    if dtype.kind == "pred":
        return np.asarray([False, True])
    if dtype.is_integer:
        return np.arange(dtype.lowest, int(dtype.highest) + 1).astype(dtype.numpy())
    return np.arange(1 << dtype.bits).astype(np.uint16 if dtype.bits > 8 else np.uint8).view(dtype.numpy())


@pytest.mark.parametrize("small", SMALL, ids=str)
@pytest.mark.parametrize("wide", [d for d in NUMBERS if d.kind != "pred"], ids=str)
def test_a_type_holds_another_if_a_conversion_and_back_changes_nothing(small: DType, wide: DType) -> None:
    with np.errstate(all="ignore"):
        values = every_value(small).astype(np.float64)
        if wide.is_float:
            there = values.astype(wide.numpy()).astype(np.float64)
        else:
            there = np.where(np.isfinite(values), np.clip(np.trunc(values), wide.lowest, float(wide.highest)), 0)
    same = bool(np.all(((there == values) & (np.signbit(there) == np.signbit(values))) | (np.isnan(there) & np.isnan(values))))
    normal = not (small.is_float and wide.is_float) or small.min_exponent >= wide.min_exponent
    assert wide.holds(small) == (same and normal)


@pytest.mark.parametrize(("wide", "small", "held"), [
    ("c64", "f32", True), ("c64", "bf16", True), ("c64", "f64", False), ("c128", "c64", True), ("c64", "c128", False), ("c64", "s16", True),
    ("f32", "c64", False), ("f64", "s32", True), ("f32", "s32", False), ("s64", "u32", True), ("s32", "u32", False), ("u64", "s8", False),
    ("f32", "f8e8m0fnu", False), ("pred", "u8", False), ("token", "s8", False)])
def test_wide_types(wide: str, small: str, held: bool) -> None:
    assert DTYPES[wide].holds(DTYPES[small]) is held


def test_every_type_is_found_by_its_numpy_type() -> None:
    for dtype in NUMBERS:
        assert dtype_of(dtype.numpy()) is dtype
    with pytest.raises(KeyError):
        dtype_of(np.dtype("S3"))
