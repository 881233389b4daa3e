"""Every element type to every other: machine code, the interpreter, ml_dtypes."""
from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from irscope.graph import DTYPES, DType
from irscope.graph.dtypes import C64, C128, F32, PRED
from irscope.lower.expressions import limits
from tests.backends.running import Array, assert_same, bits, both, compiled, elementwise

REAL = [d for d in DTYPES.values() if d.is_integer or d.is_float or d is PRED]
NARROW = [d for d in REAL if d.is_float and d.bits < 32]
VALUES = [0.0, -0.0, 0.5, -0.5, 0.999, 1.0, 1.5, -1.5, 2.5, -2.0, 7.0, -8.0, 15.9, 127.0, 128.0, 255.0, 256.0, -129.0, 448.0, 464.0, 57344.0,
          65504.0, 65520.0, 1e-3, 1e-8, 1e-40, 2147483647.0, 2147483648.0, -2147483648.0, 4294967295.0, 4294967296.0, 9.2e18, 1.85e19, -9.3e18, 1e30,
          3.4e38, np.inf, -np.inf, np.nan]


def source_values(dtype: DType) -> Array:
    if dtype.is_integer:
        low, high = limits(dtype)
        plain = [low, low + 1, low // 3, -1, 0, 1, 2, 3, high // 3, high - 1, high, 16777217, 33554435]
        return np.array(sorted({v for v in plain if low <= v <= high}), dtype=object).astype(
            np.int64 if dtype.kind == "int" else np.uint64).astype(dtype.numpy())
    with np.errstate(all="ignore"):
        return np.array(VALUES).astype(dtype.numpy())


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("source", REAL, ids=str)
def test_every_pair(source: DType, lanes: int) -> None:
    x = source_values(source)
    got, want = both(lambda k, a: [k.convert(a, d) for d in REAL], [x], REAL, lanes)
    for to, g, w in zip(REAL, got, want, strict=True):
        try:
            assert_same(g, w, x)
        except AssertionError as error:
            raise AssertionError(f"{source} to {to}: {error}") from None


@pytest.mark.parametrize("cpu", ["", "generic"])
@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_all_codes_of_the_narrow_floats(dtype: DType, cpu: str) -> None:
    unsigned = np.uint8 if dtype.storage == 1 else np.uint16
    codes = np.arange(1 << dtype.bits).astype(unsigned).view(dtype.numpy())
    wide, = compiled(elementwise(lambda k, a: [k.convert(a, F32)], [codes], [F32], 16), [codes], cpu)
    assert_same(wide, codes.astype(np.float32), codes)


def f32_samples(dtype: DType) -> Array:
    """Random bits, the type's own values, what lies half way between them, and their neighbours."""
    rng = np.random.default_rng(1)
    codes = np.arange(1 << min(dtype.bits, 12)).astype(np.uint8 if dtype.storage == 1 else np.uint16).view(dtype.numpy())
    with np.errstate(all="ignore"):
        own = codes.astype(np.float32)
        own = np.sort(own[np.isfinite(own)])
        middle = own[:-1] + (own[1:] - own[:-1]) / np.float32(2)
        near = [np.nextafter(middle, np.float32(to)) for to in (np.inf, -np.inf)]
        ordinary = (rng.standard_normal(20000) * 4).astype(np.float32)
        return np.concatenate([rng.integers(0, 1 << 32, 50000, dtype=np.uint64).astype(np.uint32).view(np.float32), ordinary, own, middle, *near])


@pytest.mark.parametrize("cpu", ["", "generic"])
@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_rounding_to_narrow_floats(dtype: DType, cpu: str) -> None:
    x = f32_samples(dtype)
    got, = compiled(elementwise(lambda k, a: [k.convert(a, dtype)], [x], [dtype], 16), [x], cpu)
    with np.errstate(all="ignore"):
        assert_same(got, x.astype(dtype.numpy()), x)


@pytest.mark.parametrize("dtype", [d for d in NARROW if d.name != "f8e8m0fnu"], ids=str)
def test_f64_rounds_once(dtype: DType) -> None:
    """Half way in f32, but not in f64: ml_dtypes, which goes through f32, rounds some of these the wrong way."""
    codes = np.arange(1 << min(dtype.bits, 11)).astype(np.uint8 if dtype.storage == 1 else np.uint16).view(dtype.numpy())
    own = codes.astype(np.float64)
    own = np.unique(own[np.isfinite(own)])
    x = np.concatenate([(a + b) / 2 * np.array([1 - 2.0 ** -45, 1.0, 1 + 2.0 ** -45]) for a, b in pairwise(own)])
    got, = compiled(elementwise(lambda k, a: [k.convert(a, dtype)], [x], [dtype], 8), [x])
    for value, result in zip(x.tolist(), got.astype(np.float64).tolist()):
        below, above = own[own <= value].max(), own[own >= value].min()
        low, high = Fraction(value) - Fraction(below), Fraction(above) - Fraction(value)
        if low != high:
            assert result == (below if low < high else above), (value, result)


@pytest.mark.parametrize("source", [C64, C128], ids=str)
def test_complex(source: DType) -> None:
    x = np.array([0, 1 + 2j, -3.5 - 0.25j, 1e30 + 1e-30j, complex(np.inf, np.nan), 0.5j], dtype=source.numpy())
    targets = [F32, DTYPES["s32"], PRED, C64, C128, DTYPES["bf16"]]
    got, want = both(lambda k, a: [k.convert(a, d) for d in targets], [x], targets, 4)
    for g, w in zip(got, want, strict=True):
        assert_same(g, w)
    assert got[2].tolist() == [False, True, True, True, True, True]
    back, _ = both(lambda k, a: [k.convert(a, C128)], [np.array([1.5, -2.0], np.float32)], [C128])
    assert back[0].tolist() == [1.5, -2.0]


PAIRS = [("f32", "s32"), ("f64", "u64"), ("bf16", "u16"), ("f16", "s16"), ("f8e5m2", "u8"), ("f8e4m3fn", "s8"), ("c64", "u64"), ("s4", "u4"),
         ("u4", "s4"), ("pred", "u8"), ("f4e2m1fn", "u4")]


@pytest.mark.parametrize(("one", "two"), PAIRS)
@pytest.mark.parametrize("lanes", [1, 4])
def test_bits_stay(one: str, two: str, lanes: int) -> None:
    a, b = DTYPES[one], DTYPES[two]
    rng = np.random.default_rng(5)
    raw = rng.integers(0, 1 << min(a.bits, 8) if one != "pred" else 2, (64, a.storage)).astype(np.uint8)
    x = raw.reshape(-1).view(a.numpy())
    (there, back), _ = both(lambda k, v: [k.bitcast(v, b), k.bitcast(k.bitcast(v, b), a)], [x], [b, a], lanes)
    assert (bits(back) == bits(x)).all()
    if two not in ("u4", "s4"):
        assert (there.view(np.uint8) == raw.reshape(-1)).all()
