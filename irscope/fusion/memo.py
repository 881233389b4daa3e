"""Results of a function that are kept."""
from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Memo(dict[K, V]):
    """The results of a function by its argument, each computed when it is first looked up."""

    def __init__(self, compute: Callable[[K], V]) -> None:
        super().__init__()
        self.compute = compute

    def __missing__(self, key: K) -> V:
        made = self[key] = self.compute(key)
        return made
