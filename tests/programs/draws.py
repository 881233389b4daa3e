"""Draws from one integer seed, the same under every version of Python and every hash seed: all come from ``Random.random``."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Draws:
    """What generators draw from."""

    def __init__(self, *seed: object) -> None:
        self._random = Random(" ".join(map(str, seed)))  # a string is hashed by SHA-512, not by the process

    def chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def between(self, low: int, high: int) -> int:
        """An integer, both ends included."""
        return low + int(self._random.random() * (high - low + 1))

    def one(self, values: Sequence[T]) -> T:
        return values[self.between(0, len(values) - 1)]

    def late(self, values: Sequence[T]) -> T:
        """One of the values, the last ones more often."""
        return values[-1 - int(len(values) * self._random.random() ** 2.5)]

    def weighted(self, weights: Mapping[T, float]) -> T:
        at = self._random.random() * sum(weights.values())
        for value, weight in weights.items():
            at -= weight
            if at < 0:
                return value
        return next(reversed(list(weights)))

    def order(self, values: Sequence[T]) -> list[T]:
        """A permutation."""
        left = list(values)
        return [left.pop(self.between(0, len(left) - 1)) for _ in range(len(left))]

    def some(self, values: Sequence[T], count: int) -> list[T]:
        """So many of the values, in their order."""
        kept = sorted(self.order(range(len(values)))[:count])
        return [values[i] for i in kept]
