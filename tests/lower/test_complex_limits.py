"""Functions of complex numbers at zeros, infinities, NaN and far out: as numpy's where that is finite, and as the golden text everywhere."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from irscope.graph.dtypes import C64, C128
from tests.lower.test_scalar_arithmetic import INVERSE_OF_COMPLEX, UNARY_OF_COMPLEX, run

Golden = Callable[[str, str], None]
PARTS = [0.0, -0.0, 1.0, -1.0, 1e-9, -0.4, 0.8, 1.4, 45.0, -45.0, 720.0, math.inf, -math.inf, math.nan]
LIMITS = [0.0, -0.0, 1.0, -0.4, 45.0, 720.0, math.inf, -math.inf, math.nan]
FAR = [1e200, -1e-200, 1e305, 5e-310, 3.0]


def shown(z: complex) -> str:
    return f"{z.real:.9g} {z.imag:.9g}"


def points(parts: list[float]) -> Any:
    return np.array([complex(a, b) for a in parts for b in parts], np.complex128)


@pytest.mark.parametrize("name", [*UNARY_OF_COMPLEX, "abs"])
def test_functions(name: str, golden: Golden) -> None:
    z = points(PARTS)
    if name in ("abs", "sqrt", "sign", "rsqrt", "log"):
        z = np.concatenate([z, points(FAR)])
    got = run(C128, C128, [z], lambda k, x: k.complex(k.unary("abs", x), 0.0) if name == "abs" else k.unary(name, x), 1)
    with np.errstate(all="ignore"):
        want = np.abs(z) + 0j if name == "abs" else np.array([UNARY_OF_COMPLEX[name](v) for v in z])
    for x, g, w in zip(z, got, want, strict=True):
        if np.isfinite(w) and np.isfinite(g) and np.isfinite(x) and abs(x) < 1e150 and (name != "log1p" or abs(x) > 1e-6):
            assert abs(g - w) <= 1e-9 * abs(w) + 1e-300 or name == "cbrt", f"{name} of {x}: {g}, not {w}"
    some = {shown(x) for x in points(LIMITS)}
    golden(f"complex/{name}.txt", "".join(f"{shown(x):28} {shown(g)}\n" for x, g in zip(z, got, strict=True) if shown(x) in some))


@pytest.mark.parametrize("name", INVERSE_OF_COMPLEX)
def test_inverse_functions(name: str) -> None:
    """Each part for itself, with its sign: on both sides of every cut, at zeros, infinities and NaN, near zero and far out."""
    z = np.concatenate([points([0.0, -0.0, 1.0, -1.0, 2.0, -0.5, 1e-8, -1e30, math.inf, -math.inf, math.nan]), points([1e160, -1e-160, 1e149, 1e151, 0.999])])
    got = run(C128, C128, [z], lambda k, x: k.unary(name, x), 1)
    with np.errstate(all="ignore"):
        want = INVERSE_OF_COMPLEX[name](z)
    for part in ("real", "imag"):
        g, w = getattr(got, part), getattr(want, part)
        np.testing.assert_allclose(g, w, rtol=1e-12, err_msg=name)
        zeros = (w == 0) & (g == 0)
        np.testing.assert_array_equal(np.signbit(g)[zeros], np.signbit(w)[zeros], err_msg=name)


def test_exponentials_that_are_too_large_in_one_part_alone() -> None:
    z = np.array([710 + 1.57j, 711 - 1.57j, 715 + 1.5707j, 1.5707 * 2j + 700])
    got = run(C128, C128, [z], lambda k, x: k.unary("exp", x), 1)
    with np.errstate(over="ignore"):
        want = np.exp(z)
    assert np.isinf(want.imag).tolist() == [True, True, True, False]
    for part in ("real", "imag"):
        np.testing.assert_allclose(getattr(got, part), getattr(want, part), rtol=1e-12)


@pytest.mark.parametrize("name", ["mul", "div", "pow", "atan2"])
def test_functions_of_two(name: str, golden: Golden) -> None:
    z = points([0.0, -1.5, -math.inf, math.nan])
    x, y = np.repeat(z, len(z)), np.tile(z, len(z))
    got = run(C128, C128, [x, y], lambda k, a, b: k.binary(name, a, b), 1)
    golden(f"complex/{name}.txt", "".join(f"{shown(a):20} {shown(b):20} {shown(g)}\n" for a, b, g in zip(x, y, got, strict=True)))


def test_quotients_of_far_numbers() -> None:
    """Nothing overflows or vanishes where the quotient does not."""
    for scale in (1e-307, 1e-300, 1e-160, 1.0, 1e160, 1e300):
        x, y = np.array([(3 + 4j) * scale, 1j * scale]), np.array([(1 - 2j) * scale, (2 + 1j) * scale])
        got = run(C128, C128, [x, y], lambda k, a, b: k.binary("div", a, b), 1)
        assert np.allclose(got, [(3 + 4j) / (1 - 2j), 1j / (2 + 1j)], rtol=1e-14)
    x, y = np.array([1e30 + 1e30j], np.complex64), np.array([1e30 - 1e30j], np.complex64)
    assert run(C64, C64, [x, y], lambda k, a, b: k.binary("div", a, b), 1).tolist() == [1j]
