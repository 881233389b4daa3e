"""Arrays for the inputs of a random program."""
from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from irscope.graph import DTYPES
from tests.programs.program import Program, Value

Array = np.ndarray[Any, Any]

SPECIAL = 0.08
"""The share of elements that are special, in programs that have such."""


def arrays_of(program: Program, seed: int = 0) -> list[Array]:
    """One array for each input, by its name and the seed."""
    return [array_of(value, program.special and not value.plain, seed) for value in program.inputs]


def array_of(value: Value, special: bool, seed: int) -> Array:
    """Multiples of the grain between the bounds; among them NaN, infinities, zeros of both signs and denormals if they may be special."""
    rng = np.random.default_rng([seed, *value.name.encode()])
    dtype = DTYPES[value.dtype]
    low, high = round(value.low / value.grain), round(value.high / value.grain)
    numbers = rng.integers(low, high, value.shape, endpoint=True) * value.grain
    if dtype.is_complex:
        return np.asarray(numbers + 1j * rng.integers(low, high, value.shape, endpoint=True) * value.grain).astype(dtype.numpy())
    made = np.asarray(numbers).astype(dtype.numpy())
    if special and dtype.is_float and made.size and rng.random() < 0.7:
        at = rng.random(value.shape) < SPECIAL
        made = np.where(at, rng.choice(odd_numbers(made.dtype), value.shape), made).astype(made.dtype)
    return made


def odd_numbers(dtype: np.dtype[Any]) -> Array:
    """NaN, infinities where the type has them, zeros of both signs, the least denormals."""
    info: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    with np.errstate(all="ignore"):
        found = [np.nan, 0.0, -0.0, float(info.smallest_subnormal), -float(info.smallest_subnormal)]
        if np.isinf(np.asarray(np.inf).astype(dtype)):
            found += [np.inf, -np.inf]
        return np.array(found).astype(dtype)
