"""Words on floats: exact ones bit by bit, elementary functions within their documented error, all special values."""
from __future__ import annotations

import math

import numpy as np
import pytest

from irscope.graph import DTYPES, DType
from irscope.graph.dtypes import F32, F64, PRED
from irscope.ops.vocabulary import COMPARE
from tests.backends.running import assert_same, both, grid

FLOATS = [d for d in DTYPES.values() if d.is_float]
SPECIALS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 3.0, 7.0, 1e-3, -1e-3, 100.0, -77.25, 1e-40, -1e-40, 1e-310, 1e30, -1e30, 3e38,
            1e300, np.inf, -np.inf, np.nan]
EXACT_BINARY = "add sub mul div rem max min".split()
EXACT_UNARY = "neg abs sign sqrt floor ceil round_even round_away".split()
ELEMENTARY = {
    "exp": 2, "expm1": 3, "log": 2, "log1p": 2, "logistic": 4, "tanh": 7, "erf": 8, "sin": 3, "cos": 3, "tan": 5, "sinh": 3, "cosh": 3,
    "asin": 3, "acos": 3, "atan": 3, "asinh": 3, "acosh": 4, "atanh": 4, "cbrt": 2, "rsqrt": 3,
}


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_exact_words(dtype: DType, lanes: int) -> None:
    x, y = grid(SPECIALS, dtype)
    count = len(EXACT_BINARY) + len(EXACT_UNARY)
    got, want = both(lambda k, a, b: [*(k.binary(w, a, b) for w in EXACT_BINARY), *(k.unary(w, a) for w in EXACT_UNARY)], [x, y],
                     [dtype] * count, lanes, "exact")
    for word, g, w in zip([*EXACT_BINARY, *EXACT_UNARY], got, want, strict=True):
        try:
            assert_same(g, w, x, y)
        except AssertionError as error:
            raise AssertionError(f"{word} of {dtype}: {error}") from None


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_comparisons_selection_and_finiteness(dtype: DType) -> None:
    x, y = grid(SPECIALS, dtype)
    got, want = both(lambda k, a, b: [*(k.compare(d, a, b) for d in sorted(COMPARE)), k.unary("is_finite", a),
                                      k.select(k.compare("LT", a, b), a, b)], [x, y], [PRED] * 7 + [dtype], 8)
    for g, w in zip(got, want, strict=True):
        assert_same(g, w, x, y)


@pytest.mark.parametrize("precision", ["exact", "default"])
@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
def test_elementary_functions(dtype: DType, precision: str) -> None:
    rng = np.random.default_rng(3)
    drawn = np.concatenate([SPECIALS, rng.standard_normal(200) * 3, rng.uniform(-1, 1, 100), rng.standard_normal(100) * 1e4])
    x = rounded(drawn, dtype)
    got, want = both(lambda k, a: [k.unary(w, a) for w in ELEMENTARY], [x], [dtype] * len(ELEMENTARY), 64 // dtype.storage, precision)
    for (word, allowed), g, w in zip(ELEMENTARY.items(), got, want, strict=True):
        close(word, g, w, allowed, x)


def rounded(values: np.ndarray, dtype: DType) -> np.ndarray:
    with np.errstate(all="ignore"):
        return values.astype(dtype.numpy())


def close(word: str, got: np.ndarray, want: np.ndarray, allowed: float, *context: np.ndarray) -> None:
    """Specials equal, the rest within so many units of the last place (of the smallest normal number, where it is denormal)."""
    special = ~np.isfinite(want) | (want == 0)
    assert_same(got[special], want[special], *(c[special] for c in context))
    place = np.spacing(np.maximum(np.abs(want[~special]), np.finfo(want.dtype).tiny))
    with np.errstate(all="ignore"):
        error = np.abs(got[~special].astype(np.longdouble) - want[~special]) / place
    worst = int(np.argmax(error))
    assert error[worst] <= allowed, (word, [c[~special][worst] for c in context], got[~special][worst], want[~special][worst], error[worst])


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
def test_the_interpreter_and_numpy_agree_on_f64_sources(dtype: DType) -> None:
    x = np.array([0.25, 0.75, 1.5], dtype.numpy())
    (e, s), want = both(lambda k, a: [k.unary("exp", a), k.unary("sin", a)], [x], [dtype] * 2)
    assert np.allclose(e, np.exp(x), rtol=1e-6) and np.allclose(s, np.sin(x), rtol=1e-6)
    assert np.allclose(want[0], np.exp(x), rtol=1e-6)


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
def test_powers_and_angles(dtype: DType, lanes: int) -> None:
    x, y = grid([0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, 2.5, -7.75, 1e-30, 1e20, np.inf, -np.inf, np.nan, 1e17, 9007199254740993.0],
                dtype)
    (power, angle), want = both(lambda k, a, b: [k.binary("pow", a, b), k.binary("atan2", a, b)], [x, y], [dtype] * 2, lanes)
    close("pow", power, want[0], 2, x, y)
    close("atan2", angle, want[1], 3, x, y)


@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.0, 3.0, 4.0, -1.0, -2.0, 1.5])
def test_constant_powers(exponent: float) -> None:
    x = np.array([0.0, -0.0, 1.0, 2.0, -3.0, 1e-20, 5.5, np.inf, -np.inf, np.nan], np.float32)
    (got,), _ = both(lambda k, a: [k.binary("pow", a, exponent)], [x], [F32], 4)
    want = np.array([power(v, exponent) for v in x.tolist()])
    close("pow", got, rounded(want, F32), 2, x)


def power(x: float, y: float) -> float:
    """C's pow, whose zeros and infinities Python reports as errors."""
    if x == 0 and y < 0:
        return float(np.copysign(np.inf, x)) if y == -1.0 else np.inf
    try:
        return math.pow(x, y)
    except ValueError:
        return math.nan


@pytest.mark.parametrize("cpu", ["generic", "haswell"])
def test_other_processors_give_the_same(cpu: str) -> None:
    x = rounded(np.concatenate([SPECIALS, np.linspace(-20, 20, 70)]), F32)
    got, want = both(lambda k, a: [k.unary(w, a) for w in ELEMENTARY], [x], [F32] * len(ELEMENTARY), 8, cpu=cpu)
    for (word, allowed), g, w in zip(ELEMENTARY.items(), got, want, strict=True):
        close(word, g, w, allowed, x)


def test_large_arguments_of_the_circular_functions() -> None:
    # 6381956970095103 * 2**797 is the double that comes closest to a multiple of pi/2.
    x = np.array([1e5, 1e10, -1e22, 6381956970095103 * 2.0 ** 797, 1e300, -0.0], np.float64)
    (s, c), _ = both(lambda k, a: [k.unary("sin", a), k.unary("cos", a)], [x], [F64] * 2, 4)
    want_sine = [0.03574879797201651, -0.4875060250875107, 0.8522008497671888, 1.0, -0.8178819121159085, -0.0]
    want_cosine = [-0.9993608074382124, 0.873119622676856, 0.523214785395139, -4.687165924254628e-19, -0.5753861119575491, 1.0]
    assert np.allclose(s, want_sine, rtol=1e-15, atol=0) and np.signbit(s[-1])
    assert np.allclose(c, want_cosine, rtol=1e-15, atol=0)


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
def test_powers_of_two_scale_exactly(dtype: DType) -> None:
    integer = DTYPES["s32" if dtype is F32 else "s64"]
    values = np.array([1.0, -1.5, 3.25, 1e-40, 1e30, np.inf, np.nan, 0.0, -0.0, np.finfo(dtype.numpy()).smallest_subnormal], dtype.numpy())
    powers = np.array([0, 1, -1, 100, -100, 127, -149, 300, -300, 2000, -2200, 2 ** 30], integer.numpy())
    x, n = np.repeat(values, powers.size), np.tile(powers, values.size)
    (got,), _ = both(lambda k, a, b: [k.scale2(a, b)], [x, n], [dtype], 8)
    with np.errstate(all="ignore"):
        assert_same(got, np.ldexp(x, np.clip(n, -9999, 9999).astype(np.int32)), x, n)


@pytest.mark.parametrize("name", ["f32", "f64", "bf16", "f16"])
def test_fused_multiplication_rounds_once(name: str) -> None:
    dtype = DTYPES[name]
    rng = np.random.default_rng(0)
    x, y, z = (rng.standard_normal(64).astype(dtype.numpy()) for _ in range(3))
    (got,), want = both(lambda k, a, b, c: [k.fma(a, b, c)], [x, y, z], [dtype], 16)
    assert_same(got, want[0], x, y, z)


@pytest.mark.parametrize("word", ["add", "mul", "max", "min"])
@pytest.mark.parametrize("lanes", [2, 3, 8, 16])
def test_lanes_reduce_to_one(word: str, lanes: int) -> None:
    x = np.array([1.5, -2.0, 3.0, 0.5] * 4, np.float32)[:lanes]
    (got,), want = both(lambda k, a: [k.reduce(word, a)], [x], [F32], lanes)
    assert np.allclose(got, want[0])
    x[1] = np.nan
    (got,), _ = both(lambda k, a: [k.reduce(word, a)], [x], [F32], lanes)
    assert np.isnan(got).all()


def test_max_orders_the_zeros() -> None:
    x, y = np.array([0.0, -0.0, -0.0], np.float32), np.array([-0.0, 0.0, -0.0], np.float32)
    (most, least, relu), _ = both(lambda k, a, b: [k.binary("max", a, b), k.binary("min", a, b), k.binary("max", a, 0.0)], [x, y], [F32] * 3)
    assert np.signbit(most).tolist() == [False, False, True]
    assert np.signbit(least).tolist() == [True, True, True]
    assert np.signbit(relu).tolist() == [False, False, False]
