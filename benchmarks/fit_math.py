"""Fits the polynomials of the vector mathematics and writes irscope/backends/llvm_coefficients.py.

Each is a minimax polynomial (Remez' exchange in 60 digits) for a weighted error, rounded to the width afterwards.
Needs mpmath, which irscope itself does not:  pip install mpmath && python benchmarks/fit_math.py
"""
from __future__ import annotations

import struct
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mpmath import mp, mpf

mp.dps = 60
Function = Callable[[Any], Any]
TARGET = Path(__file__).resolve().parent.parent / "irscope" / "backends" / "llvm_coefficients.py"


def minimax(f: Function, weight: Function, low: Any, high: Any, degree: int) -> tuple[list[Any], Any]:
    """The polynomial of a degree that makes max |weight * (f - p)| smallest, lowest coefficient first, and that maximum."""
    low, high, n = mpf(low), mpf(high), degree + 2
    points = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * i / (n - 1)) for i in range(n)]
    grid = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * i / 400) for i in range(401)]
    values = [(x, f(x), weight(x)) for x in grid]
    for _ in range(30):
        matrix = mp.matrix(n, n)
        right = mp.matrix(n, 1)
        for i, x in enumerate(points):
            for j in range(degree + 1):
                matrix[i, j] = x ** j
            matrix[i, degree + 1] = (-1) ** i / weight(x)
            right[i] = f(x)
        solved = mp.lu_solve(matrix, right)
        coefficients = [solved[j] for j in range(degree + 1)]
        level = abs(solved[degree + 1])
        errors = [(x, w * (y - mp.polyval(coefficients[::-1], x))) for x, y, w in values]
        peaks = _peaks(errors)
        while len(peaks) > n:
            peaks.pop(0 if abs(peaks[0][1]) < abs(peaks[-1][1]) else -1)
        worst = max(abs(e) for _, e in errors)
        if len(peaks) < n or worst < level * mpf("1.02"):
            break
        points = [x for x, _ in peaks]
    return coefficients, worst


def _peaks(errors: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """The largest error of each run of one sign."""
    peaks: list[tuple[Any, Any]] = []
    for x, e in errors:
        if e == 0:
            continue
        if peaks and (peaks[-1][1] > 0) == (e > 0):
            if abs(e) > abs(peaks[-1][1]):
                peaks[-1] = (x, e)
        else:
            peaks.append((x, e))
    return peaks


def near_zero(f: Function, coefficients: list[Any]) -> Function:
    """``f``, but its series where the direct form cancels."""
    return lambda x: mp.polyval(coefficients[::-1], x) if abs(x) < mpf("1e-4") else f(x)


def fits() -> dict[str, tuple[Function, Function, Any, Any, dict[int, int]]]:
    """name -> function, weight, interval, degree for each width."""
    half = mp.log(2) / 2 * mpf("1.001")
    tangent = mp.tan(mp.pi / 8) * mpf("1.001")
    quarter = (mp.pi / 4 * mpf("1.01")) ** 2
    third = [mpf(2) / (2 * i + 3) for i in range(12)]
    exp = near_zero(lambda r: (mp.exp(r) - 1 - r) / r ** 2, [1 / mp.factorial(i + 2) for i in range(12)])
    log = near_zero(lambda f: (mp.log1p(f) - f + f * f / 2) / f ** 3, [mpf((-1) ** i) / (i + 3) for i in range(16)])
    ratio = near_zero(lambda z: ((mp.atanh(mp.sqrt(z)) * 2 / mp.sqrt(z)) - 2) / z, third)
    fifth = near_zero(lambda z: ((mp.atanh(mp.sqrt(z)) * 2 / mp.sqrt(z)) - 2 - 2 * z / 3) / z ** 2, third[1:])
    sin = near_zero(lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, [(-1) ** (i + 1) / mp.factorial(2 * i + 3) for i in range(10)])
    cos = near_zero(lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z ** 2, [(-1) ** i / mp.factorial(2 * i + 4) for i in range(10)])
    atan = near_zero(lambda z: (mp.atan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, [mpf((-1) ** (i + 1)) / (2 * i + 3) for i in range(12)])
    asin = near_zero(lambda z: (mp.asin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
                     [mp.factorial(2 * i + 2) / (4 ** (i + 1) * mp.factorial(i + 1) ** 2 * (2 * i + 3)) for i in range(14)])
    erf = near_zero(lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1,
                    [2 / mp.sqrt(mp.pi) * (-1) ** i / (mp.factorial(i) * (2 * i + 1)) - (1 if i == 0 else 0) for i in range(12)])

    def tail(u: Any) -> Any:
        t = 2 * (1 + u) / (1 - u)
        return mp.exp(t * t) * mp.erfc(t)

    return {
        "exp": (exp, lambda r: abs(r) + mpf("1e-3"), -half, half, {32: 4, 64: 10}),
        "log": (log, lambda f: f * f + mpf("1e-3"), mp.sqrt(mpf("0.5")) - 1, mp.sqrt(2) - 1, {32: 7}),
        "log_ratio": (ratio, lambda z: z + mpf("1e-4"), 0, mpf("0.0295"), {64: 6}),
        "log_fifth": (fifth, lambda z: z * z + mpf("1e-6"), 0, mpf("0.0295"), {64: 8}),
        "sin": (sin, lambda z: z + mpf("1e-3"), 0, quarter, {32: 2, 64: 5}),
        "cos": (cos, lambda z: z * z + mpf("1e-3"), 0, quarter, {32: 2, 64: 5}),
        "atan": (atan, lambda z: z + mpf("1e-3"), 0, tangent ** 2, {32: 4, 64: 10}),
        "asin": (asin, lambda z: z + mpf("1e-3"), 0, mpf("0.2501"), {32: 4, 64: 12}),
        "erf": (erf, lambda z: mpf(1), 0, 1, {64: 12}),
        "erfcx": (tail, lambda u: mp.exp(-(2 * (1 + u) / (1 - u)) ** 2), mpf(-1) / 3 - mpf("1e-6"), mpf("0.5"), {64: 14}),
    }


def rounded(value: Any, bits: int) -> float:
    """The float of the width that is nearest."""
    wide = float(value)
    return struct.unpack("<f", struct.pack("<f", wide))[0] if bits == 32 else wide


def two_over_pi(bits: int) -> int:
    """The first bits of the fraction of 2/pi."""
    with mp.workprec(bits + 64):
        return int(mp.floor(2 / mp.pi * mpf(2) ** bits))


def _pieces(digits: str) -> list[str]:
    """A long number as lines of text."""
    lines = [f'    "{digits[i:i + 100]}"' for i in range(0, len(digits), 100)]
    return [*lines[:-1], lines[-1] + ","]


def _row(bits: int, coefficients: Sequence[float]) -> list[str]:
    """The coefficients for one width, as many on a line as there is room for."""
    return textwrap.wrap(f"{bits}: {tuple(coefficients)!r},", 140, initial_indent=" " * 8, subsequent_indent=" " * 13)


def main() -> None:
    lines = ['"""Coefficients of the vector mathematics, highest power first. Written by benchmarks/fit_math.py; do not edit."""',
             "from __future__ import annotations", "", "COEFFICIENTS: dict[str, dict[int, tuple[float, ...]]] = {"]
    for name, (f, weight, low, high, degrees) in fits().items():
        lines.append(f'    "{name}": {{')
        for bits, degree in degrees.items():
            coefficients, worst = minimax(f, weight, low, high, degree)
            print(f"{name:10} f{bits} degree {degree:2}: largest weighted error 2^{float(mp.log(worst, 2)):.1f}")
            lines += _row(bits, [rounded(c, bits) for c in reversed(coefficients)])
        lines.append("    },")
    lines.append("}")
    lines += ["", "TWO_OVER_PI_BITS = 1280", "TWO_OVER_PI = int(", *_pieces(f"{two_over_pi(1280):x}"), "    16)",
              '"""The first bits of the fraction of 2/pi."""', ""]
    TARGET.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
