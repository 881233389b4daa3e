"""A cache of the results of a function."""
from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Memo(dict[K, V]):
    """The results of a function of one argument. ``memo[key]`` computes a result on first use and keeps it; ``get`` and ``in`` do not."""

    def __init__(self, compute: Callable[[K], V]) -> None:
        super().__init__()
        self.compute = compute

    def __missing__(self, key: K) -> V:
        made = self[key] = self.compute(key)
        return made
