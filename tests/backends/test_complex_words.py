"""Complex arithmetic against numpy's, which is the C library's, special values against C99 Annex G."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from irscope.graph import DType
from irscope.graph.dtypes import C64, C128, F32, PRED
from tests.backends.running import Array, assert_same, both

UNARY = "exp expm1 log log1p sqrt rsqrt tanh tan sin cos sinh cosh logistic sign neg cbrt".split()
INVERSE = "asin acos atan asinh acosh atanh".split()
NUMPY: dict[str, Callable[[Array], Array]] = {
    "rsqrt": lambda z: 1 / np.sqrt(z), "logistic": lambda z: 1 / (1 + np.exp(-z)), "sign": lambda z: np.where(z == 0, z, z / np.abs(z)),
    "neg": np.negative, "cbrt": lambda z: z ** (1 / 3), "log1p": lambda z: _log1p(z.real, z.imag),
}


def _log1p(a: Array, b: Array) -> Array:
    """numpy's own loses the small arguments."""
    exact: Array = np.log1p(2 * a + a * a + b * b) / 2 + 1j * np.arctan2(b, 1 + a)
    return exact


def values() -> Array:
    rng = np.random.default_rng(2)
    plain = rng.standard_normal(200) + 1j * rng.standard_normal(200)
    axis = np.array([1, -1, 1j, -1j, 2.5, -2.5, 0.5j, 3 + 4j, -3 + 4j, -3 - 4j, 1e-8 + 1e-9j, 0.999 + 1e-4j])
    return np.concatenate([plain, axis, plain * 10])


def error(got: Array, want: Array) -> Array:
    """Relative to the magnitude, in units of the type's precision."""
    eps = np.finfo(got.dtype).eps
    with np.errstate(all="ignore"):
        off = np.abs(got.astype(np.clongdouble) - want) / np.maximum(np.abs(want), np.finfo(got.dtype).tiny) / eps
    return np.where(got == want.astype(got.dtype), 0, off)


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("dtype", [C64, C128], ids=str)
def test_functions(dtype: DType, lanes: int) -> None:
    x = values()[::5 if lanes == 1 else 1].astype(dtype.numpy())
    got, interpreted = both(lambda k, a: [k.unary(w, a) for w in UNARY], [x], [dtype] * len(UNARY), lanes)
    for word, g, i in zip(UNARY, got, interpreted, strict=True):
        wide = x.astype(np.clongdouble)
        with np.errstate(all="ignore"):
            want = (NUMPY[word] if word in NUMPY else getattr(np, word))(wide)
        for result in (g, i):
            worst = error(result, want)
            assert worst.max() < (4 if dtype is C64 else 24), (word, x[worst.argmax()], result[worst.argmax()], want[worst.argmax()])


@pytest.mark.parametrize("dtype", [C64, C128], ids=str)
def test_inverse_functions(dtype: DType) -> None:
    """On both sides of their cuts, and of zeros, infinities and NaN; each part is exact by itself."""
    ends = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, 1e-8, 1e8, 1e-30, -1e30, np.inf, -np.inf, np.nan]
    grid = np.empty(len(ends) ** 2, np.complex128)
    grid.real, grid.imag = np.repeat(ends, len(ends)), np.tile(ends, len(ends))
    x = np.concatenate([values(), grid]).astype(dtype.numpy())
    got, interpreted = both(lambda k, a: [k.unary(w, a) for w in INVERSE], [x], [dtype] * len(INVERSE))
    for word, g, i in zip(INVERSE, got, interpreted, strict=True):
        with np.errstate(all="ignore"):
            want = getattr(np, "arc" + word[1:])(x)
        for result in (g, i):
            for part in ("real", "imag"):
                np.testing.assert_allclose(getattr(result, part), getattr(want, part), rtol=2e-6 if dtype is C64 else 1e-12, err_msg=word)


@pytest.mark.parametrize("dtype", [C64, C128], ids=str)
def test_arithmetic(dtype: DType) -> None:
    one = values()[::11]
    x, y = (a.astype(dtype.numpy()) for a in (np.repeat(one, one.size), np.tile(one, one.size)))
    words = "add sub mul div pow".split()
    got, _ = both(lambda k, a, b: [*(k.binary(w, a, b) for w in words), k.compare("EQ", a, b), k.compare("NE", a, b)], [x, y],
                  [dtype] * 5 + [PRED] * 2, 4)
    wide = x.astype(np.clongdouble), y.astype(np.clongdouble)
    for word, g in zip(words, got):
        want = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power}[word](*wide)
        usable = np.abs(want) < np.finfo(g.dtype).max / 4
        worst = np.where(usable & (np.abs(want) > 1e-30), error(g, want), 0)
        # The error of exp(y log x) grows with the exponent; c64 is computed in f64, and does not feel it.
        allowed = 1000 if word == "pow" and dtype is C128 else 4
        assert worst.max() < allowed, (word, x[worst.argmax()], y[worst.argmax()], g[worst.argmax()], want[worst.argmax()])
    assert (got[5] == (x == y)).all() and (got[6] == (x != y)).all()


def test_parts_and_magnitude() -> None:
    x = np.array([3 + 4j, -1e30 + 1e30j, complex(np.inf, np.nan), complex(np.nan, 1), 0, 1e-30 + 1e-30j], np.complex64)
    (re, im, length), _ = both(lambda k, a: [k.unary("real", a), k.unary("imag", a), k.unary("abs", a)], [x], [F32] * 3, 2)
    assert np.array_equal(re, x.real, equal_nan=True) and np.array_equal(im, x.imag, equal_nan=True)
    assert length[0] == 5 and np.isclose(length[1], 1.4142135e30) and np.isinf(length[2]) and np.isnan(length[3]) and length[4] == 0
    assert np.isclose(length[5], 1.4142135e-30)


def test_special_values_follow_annex_g() -> None:
    inf, nan = np.inf, np.nan
    x = np.array([complex(inf, 1), complex(1, inf), complex(-inf, 0), complex(0, 0), complex(-inf, nan)])
    (root, power, logarithm), _ = both(lambda k, a: [k.unary("sqrt", a), k.unary("exp", a), k.unary("log", a)], [x], [C128] * 3, 1)
    with np.errstate(all="ignore"):
        assert_same(root[:4], np.sqrt(x[:4]), x)
        assert_same(power[[0, 2, 3]], np.exp(x[[0, 2, 3]]), x)
        assert_same(logarithm[:4], np.log(x[:4]), x)
    assert power[4] == 0
    one, zero = np.array([1 + 1j, complex(inf, 0), 1 + 0j, 5e300 + 5e300j, complex(1, 0)]), np.array([0, 1, complex(inf, inf), 5e300 + 5e300j, 1e-310])
    (ratio,), _ = both(lambda k, a, b: [k.binary("div", a, b)], [one, zero], [C128], 1)
    assert np.isinf(ratio[0].real) and np.isinf(ratio[1].real) and ratio[2] == 0 and np.isclose(ratio[3], 1) and np.isclose(ratio[4], 1e310)
