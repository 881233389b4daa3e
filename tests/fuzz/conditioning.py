"""Whether a difference between compiled code and the reference says something: not where a program loses its digits.

A varied program may subtract equal values, or choose by their last digit. The reference then gives results as different for inputs that
differ in their last digit.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from irscope.api import compiled_run
from irscope.api.options import RunOptions
from irscope.api.preparing import Preparation
from irscope.api.run_result import RunResult
from irscope.backends.comparison import ResultComparison, compare_all
from irscope.backends.varying import reference_results
from irscope.graph import Module

TIMES = 16.0
"""A difference counts when it is more than so many times what the last digits of the inputs change."""
TRIES = 4
Array = np.ndarray[Any, Any]


@contextmanager
def compared() -> Iterator[list[tuple[Module, list[Array], list[Array]]]]:
    """The modules, arguments and results that are compared with the reference inside."""
    found: list[tuple[Module, list[Array], list[Array]]] = []
    before = compiled_run._compared_with_reference

    def compare(options: RunOptions, ready: Preparation, result: RunResult) -> list[ResultComparison]:
        found.append((ready.module, list(ready.arrays.all()), list(result.outputs)))
        return before(options, ready, result)
    compiled_run._compared_with_reference = compare
    try:
        yield found
    finally:
        compiled_run._compared_with_reference = before


def loses_digits(run: Callable[[], object]) -> bool:
    """Whether the difference that a run reports is no larger than what the last digits of its inputs make."""
    with compared() as found:
        run()
    return bool(found) and all(_loses_digits(*one) for one in found)


def _loses_digits(module: Module, arguments: Sequence[Array], got: Sequence[Array]) -> bool:
    wanted = reference_results(module, arguments)
    moved = [reference_results(module, [_nudged(array, (number, place)) for place, array in enumerate(arguments)]) for number in range(TRIES)]
    for i, comparison in enumerate(compare_all(got, wanted)):
        if comparison.fault is not None:
            limit = max(_distance(one[i], wanted[i]) for one in moved)
            if not _distance(got[i], wanted[i]) <= TIMES * limit:
                return False
    return True


def _distance(x: Array, y: Array) -> float:
    """The largest absolute difference; infinite where one is NaN or infinite and the other is not."""
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    x, y = x.astype(wide), y.astype(wide)
    with np.errstate(all="ignore"):
        away = np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, np.abs(x - y))
    return float(np.where(np.isnan(away), np.inf, away).max(initial=0.0))


def _nudged(array: Array, seed: tuple[int, int]) -> Array:
    """The array with its floats, and those of complex numbers, one step up, down, or as they were."""
    if array.dtype.kind == "c":
        return _nudged(np.ascontiguousarray(array).view(array.real.dtype), seed).view(array.dtype).reshape(array.shape)
    if array.dtype.kind != "f":
        return array
    steps = np.random.default_rng(seed).integers(-1, 2, array.shape)
    up, down = np.nextafter(array, np.array(np.inf, array.dtype)), np.nextafter(array, np.array(-np.inf, array.dtype))
    return np.asarray(np.where(steps > 0, up, np.where(steps < 0, down, array)))
