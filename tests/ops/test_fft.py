"""Fourier transforms of all kinds and lengths, against numpy in double precision."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irscope.ops import TypeFault
from irscope.ops.fft import factors
from tests.ops.running import check, read, typed
from tests.ops.test_contraction import spell

LENGTHS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 17, 19, 30, 34, 64, 97, 100, 128, 210, 251]


def transform(kind: str, lengths: Any, operand: Any, result: str, shape: Any, tolerance: float) -> Any:
    """One fft, by reference and machine code."""
    names = {"complex64": "c64", "complex128": "c128", "float32": "f32", "float64": "f64"}
    found, = check(f"ENTRY e {{ x = {names[operand.dtype.name]}[{spell(operand.shape)}] parameter(0)\n "
                   f"ROOT r = {result}[{spell(shape)}] fft(x), fft_type={kind}, fft_length={{{spell(lengths)}}} }}", operand, tolerance=tolerance,
                   interpret=max(lengths) < (20 if len(lengths) == 1 else 9) and len(lengths) < 3)
    return found


def noise(rng: Any, shape: Any, kind: Any) -> Any:
    """Normal numbers, complex where the kind is."""
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape)).astype(kind) if np.dtype(kind).kind == "c" else x.astype(kind)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize(("name", "kind", "tolerance"), [("c64", np.complex64, 1e-6), ("c128", np.complex128, 1e-14)])
def test_any_length(n: int, name: str, kind: Any, tolerance: float) -> None:
    rng = np.random.default_rng(n)
    x = noise(rng, (2, n), kind)
    for which, function in (("FFT", np.fft.fft), ("IFFT", np.fft.ifft)):
        found = transform(which, (n,), x, name, (2, n), tolerance)
        assert np.abs(found - function(x.astype(np.complex128))).max() <= tolerance * np.abs(function(x)).max()


@pytest.mark.parametrize("n", [1, 2, 5, 8, 9, 17, 64, 100])
def test_real_signals_and_back(n: int) -> None:
    rng = np.random.default_rng(n)
    x = noise(rng, (3, n), np.float32)
    spectrum = transform("RFFT", (n,), x, "c64", (3, n // 2 + 1), 1e-6)
    back = transform("IRFFT", (n,), spectrum, "f32", (3, n), 1e-6)
    assert np.abs(back - x).max() < 1e-5


@pytest.mark.parametrize("lengths", [(4, 6), (5, 7), (3, 4, 5), (17, 2)])
def test_several_dimensions(lengths: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    shape, half = (2, *lengths), (2, *lengths[:-1], lengths[-1] // 2 + 1)
    z, x, s = noise(rng, shape, np.complex64), noise(rng, shape, np.float32), noise(rng, half, np.complex64)
    transform("FFT", lengths, z, "c64", shape, 1e-6)
    transform("IFFT", lengths, z, "c64", shape, 1e-6)
    transform("RFFT", lengths, x, "c64", half, 1e-6)
    transform("IRFFT", lengths, s, "f32", shape, 2e-6)


def test_nothing_transforms_to_zeros() -> None:
    found, = check("ENTRY e { x = c64[2,1] parameter(0)\n ROOT r = c64[2,1] fft(x), fft_type=FFT, fft_length={0} }", np.ones((2, 1), np.complex64))
    assert not found.any()


def test_only_small_factors_are_mixed() -> None:
    assert factors(4 * 3 * 5 * 13) == [4, 3, 5, 13] and factors(17) is None and factors(1) == []


@pytest.mark.parametrize(("text", "words"), [
    ("ENTRY e { x = f32[8] parameter(0)\n ROOT r = f32[8] fft(x), fft_type=FFT, fft_length={8} }", "complex"),
    ("ENTRY e { x = c64[8] parameter(0)\n ROOT r = c64[5] fft(x), fft_type=RFFT, fft_length={8} }", "f32 or f64"),
    ("ENTRY e { x = c64[4] parameter(0)\n ROOT r = f32[8] fft(x), fft_type=IRFFT, fft_length={8} }", "must be 5"),
    ("ENTRY e { x = c64[3,64] parameter(0)\n ROOT r = c64[3,64] fft(x), fft_type=FFT, fft_length={32} }", "must be 32"),
    ("ENTRY e { x = c64[3,64] parameter(0)\n ROOT r = c64[3,64] fft(x), fft_type=IFFT, fft_length={3,65} }", "must be 65"),
    ("ENTRY e { x = c64[4] parameter(0)\n ROOT r = c64[4] fft(x), fft_type=FFT, fft_length={4,4} }", "2 dimensions"),
])
def test_what_does_not_fit_is_said(text: str, words: str) -> None:
    with pytest.raises(TypeFault) as fault:
        typed(read(text))
    assert words in fault.value.message
