"""The live bytes along a schedule as a timeline of few points."""
from __future__ import annotations

from collections.abc import Sequence

POINTS = 512
"""Points of a timeline; a longer schedule is divided into so many equal parts."""


def highest(live: Sequence[int], points: int = POINTS) -> list[int]:
    """The place of most live bytes in each of at most ``points`` equal parts of a schedule; the first of several.

    >>> highest([0, 5, 3, 9], 2)
    [1, 3]
    """
    return [max(part, key=live.__getitem__) for part in parts(len(live), points)]


def parts(length: int, most: int) -> list[range]:
    """``length`` places in at most ``most`` parts of nearly equal size.

    >>> parts(5, 2)
    [range(0, 2), range(2, 5)]
    """
    count = min(length, most)
    return [range(length * i // count, length * (i + 1) // count) for i in range(count)]
