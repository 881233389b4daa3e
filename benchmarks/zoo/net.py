"""One net of the zoo as data: how to build it, and what it is given."""
from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Input:
    """An array to draw: normal numbers, or integers below ``below`` where that is given (``below`` 0: all ones)."""

    shape: tuple[int, ...]
    below: int | None = None

    def draw(self, seed: str) -> np.ndarray[Any, Any]:
        """The same values in every process, by the name of net and input: f32, or s64."""
        random = np.random.default_rng(zlib.crc32(seed.encode()))
        if self.below is None:
            return random.standard_normal(self.shape, dtype=np.float32)
        return random.integers(0, self.below, self.shape) if self.below else np.ones(self.shape, np.int64)


@dataclass(frozen=True, slots=True)
class Net:
    """``build`` makes the module in its framework, with the weights it draws; ``reduced`` says how it differs from the published net."""

    name: str
    package: str
    build: Callable[[], Any]
    inputs: dict[str, Input]
    reduced: str = ""


def image(size: int, channels: int = 3, batch: int = 1) -> dict[str, Input]:
    """One picture, channels first."""
    return {"x": Input((batch, channels, size, size))}


def tokens(length: int = 12, below: int = 100, batch: int = 1) -> dict[str, Input]:
    """Indices of words, below the size of the vocabulary."""
    return {"input_ids": Input((batch, length), below)}
