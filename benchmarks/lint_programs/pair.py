"""A fault and its cure: two small programs that are timed and linted side by side. Needs jax."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Function = Callable[..., Any]
Shape = tuple[Any, ...]


@dataclass(frozen=True)
class Pair:
    """A fault and its cure. ``shapes`` are those of the arguments; the last element of one may be an element type.

    ``same``: both halves give the same numbers (but for rounding); a fault that is wrong, or another model, does not.
    """

    name: str
    rule: str
    bad: Function
    fixed: Function
    shapes: tuple[Shape, ...]
    x64: bool = False
    same: bool = True
    below: dict[int, int] = field(default_factory=dict)

    @property
    def about(self) -> str:
        """What is wrong, in a sentence."""
        return (self.bad.__doc__ or "").strip()

    def arguments(self) -> list[np.ndarray]:
        """Normal numbers, and whole ones below what ``below`` says of an argument (else 100)."""
        return arguments(self.shapes, self.below)


def arguments(shapes: tuple[Shape, ...], below: dict[int, int]) -> list[np.ndarray]:
    """The same numbers in every process."""
    draw = np.random.default_rng(0)
    made = []
    for number, shape in enumerate(shapes):
        plain, dtype = (shape, np.dtype(np.float32)) if all(isinstance(n, int) for n in shape) else (shape[:-1], np.dtype(shape[-1]))
        whole = dtype.kind in "iu"
        values = draw.integers(0, below.get(number, 100), plain) if whole else draw.standard_normal(plain, dtype=np.float32)
        made.append(np.asarray(values).astype(dtype))
    return made


PAIRS: list[Pair] = []


def pair(rule: str, fixed: Function, *shapes: Shape, **more: Any) -> Callable[[Function], Function]:
    """Enter a function as the bad half of a pair."""

    def enter(bad: Function) -> Function:
        PAIRS.append(Pair(bad.__name__, rule, bad, fixed, shapes, **more))
        return bad

    return enter
