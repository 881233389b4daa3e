"""Compares results with expected values."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from irscope.analysis.rounding import step
from irscope.graph import DType
from irscope.lazy import Array, np

RTOL = {"float64": 1e-9, "complex128": 1e-9, "float32": 1e-4, "complex64": 1e-4, "float16": 5e-3, "bfloat16": 2e-2}
"""Default relative tolerance by element type; 8-bit floats have 0.15, integers none."""

SUMMED = frozenset(("float32", "float64", "complex64", "complex128"))
"""The types in which sums are accumulated; values of narrower types are such sums, rounded."""

BLOCK = 1 << 20
"""Elements that are widened and compared at a time."""


@dataclass(slots=True)
class ResultComparison:
    """One output compared with its expected value; ``fault`` is None when it is within the tolerance."""

    name: str
    max_abs: float
    max_rel: float
    fault: str | None


@dataclass(frozen=True, slots=True)
class Allowed:
    """The tolerance of a comparison, relative to each value and absolute.

    Without ``atol`` it is ``rtol`` of the largest expected value: sums may be computed in any order. ``way`` is the coarsest type of the
    values that the output is computed from; it applies where no ``rtol`` is given (:func:`tolerance`). ``flushed``: denormals count as
    zeros (``Module.flushes_denormals``); which operators keep their bits is left open.
    """

    rtol: float | None = None
    atol: float | None = None
    way: DType | None = None
    flushed: bool = False


def compare(name: str, got: Array, expected: Array, allowed: Allowed = Allowed()) -> ResultComparison:
    """Compare one output."""
    if got.shape != expected.shape:
        return ResultComparison(name, float("inf"), float("inf"), f"has the shape {list(got.shape)}, not {list(expected.shape)}")
    if got.dtype != expected.dtype:
        return ResultComparison(name, float("inf"), float("inf"), f"is {got.dtype}, not {expected.dtype}")
    if not got.size:
        return ResultComparison(name, 0.0, 0.0, None)
    exact = got.dtype.kind in "biu"
    rtol = allowed.rtol if allowed.rtol is not None else 0.0 if exact else tolerance(got.dtype.name, allowed.way)
    with np.errstate(all="ignore"):
        largest = max(_largest(e) for _, e in _blocks(got, expected, allowed.flushed))
        atol = allowed.atol if allowed.atol is not None else rtol * largest
        n, max_abs, worst, place = 0, 0.0, -1.0, 0
        for number, (g, e) in enumerate(_blocks(got, expected, allowed.flushed)):
            same, least = (g == e) | (np.isnan(g) & np.isnan(e)), 0.0
            if exact:  # f64 does not tell large integers apart
                here = slice(number * BLOCK, (number + 1) * BLOCK)
                same, least = got.reshape(-1)[here] == expected.reshape(-1)[here], 1.0
            distance = np.where(same, 0.0, np.maximum(np.abs(_apart(g, e)), least))
            bad = ~same & ~(distance <= atol + rtol * np.abs(_finite(e)))
            distance = np.where(np.isnan(distance), np.inf, distance)
            n, max_abs = n + int(bad.sum()), max(max_abs, float(distance.max()))
            far = np.where(bad, distance, -1.0)
            if float(far.max()) > worst:
                worst, place = float(far.max()), number * BLOCK + int(far.argmax())
    max_rel = max_abs / largest if largest else (0.0 if max_abs == 0 else float("inf"))
    if not n:
        return ResultComparison(name, max_abs, max_rel, None)
    index = np.unravel_index(place, got.shape)
    at = "[" + ",".join(map(str, index)) + "]" if got.ndim else ""
    fault = f"{n} of {got.size} values differ, the most at {name}{at}: {got[index]} instead of {expected[index]}"
    return ResultComparison(name, max_abs, max_rel, fault)


def _blocks(got: Array, expected: Array, flushed: bool) -> Iterator[tuple[Array, Array]]:
    """Both as f64 or c128, :data:`BLOCK` elements at a time; ``flushed``: without denormals."""
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    for at in range(0, got.size, BLOCK):
        g, e = (x.reshape(-1)[at:at + BLOCK].astype(wide) for x in (got, expected))
        yield (_flushed(g, got.dtype), _flushed(e, expected.dtype)) if flushed else (g, e)


def _apart(x: Array, y: Array) -> Array:
    """The difference, f64 or c128; 0 in parts that are equal, infinite ones too."""
    a, b = x.view(np.float64), y.view(np.float64)
    return np.where(a == b, 0.0, a - b).view(x.dtype)


def _finite(x: Array) -> Array:
    """f64 or c128, with 0 for each part that is infinite or NaN."""
    parts = x.view(np.float64)
    return np.where(np.isfinite(parts), parts, 0.0).view(x.dtype)


def _largest(x: Array) -> float:
    """The largest absolute value of the finite parts; 0 where there is none."""
    return float(np.abs(_finite(x)).max(initial=0.0))


def _flushed(x: Array, dtype: np.dtype[Any]) -> Array:
    """f64 or c128, with values that are denormal in the computing type of ``dtype`` flushed to zero."""
    if x.dtype.kind == "c":
        parts = np.stack([_flushed(x.real, dtype), _flushed(x.imag, dtype)], axis=-1)
        return parts.view(np.complex128)[..., 0]
    if dtype.kind in "biu":
        return x
    least = np.finfo(np.float64 if dtype.name in ("float64", "complex128") else np.float32).tiny
    return np.where(np.abs(x) < least, 0.0, x)


def tolerance(name: str, way: DType | None = None) -> float:
    """The relative tolerance of floats of a numpy type that are computed from values of another type.

    Sums in f32 round at every addition, so values converted from them are no more accurate. A sum is rounded to a narrower type
    once: one step.
    """
    own = RTOL.get(name, 0.15)
    if way is None:
        return own
    return max(own, RTOL[way.numpy_name] if way.numpy_name in SUMMED else step(way))


def compare_all(got: Sequence[Array], expected: Sequence[Array | None], rtol: float | None = None,
                atol: float | None = None, way: Sequence[DType | None] = (), flushed: bool = False) -> list[ResultComparison]:
    """Compare outputs in order; None where nothing is expected. ``way`` holds the types of :class:`Allowed`, by output."""
    given = [*way, *[None] * (len(got) - len(way))]
    return [compare(f"out{i}", g, e, Allowed(rtol, atol, given[i], flushed))
            for i, (g, e) in enumerate(zip(got, expected)) if e is not None]
