"""How a reshape groups dimensions: XLA's ``CommonFactors`` and what follows from it (util.cc, shape_util.cc)."""
from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

Dims = Sequence[int]


def common_factors(a: Dims, b: Dims) -> list[tuple[int, int]]:
    """The positions at which both shapes have covered equally many elements: pairs of positions, from (0, 0) to both ends.

    ``common_factors((2, 6), (2, 2, 3))`` is ``[(0, 0), (1, 1), (2, 3)]``.
    """
    if tuple(a) == tuple(b):
        return [(i, i) for i in range(len(a) + 1)]
    bounds: list[tuple[int, int]] = []
    i = j = 0
    last = (-1, -1)
    while i < len(a) and j < len(b) and a[i] == b[j]:
        last = (i, j)
        bounds.append(last)
        i, j = i + 1, j + 1
    mine = theirs = 1
    while True:
        if mine == theirs and (i, j) != last:
            last = (i, j)
            bounds.append(last)
            continue
        here, there = i < len(a), j < len(b)
        if not (here or there):
            return bounds
        step_a = here and (mine < theirs or not there or (mine == theirs and a[i] <= b[j]))
        step_b = there and (theirs < mine or not here or (mine == theirs and b[j] <= a[i]))
        if not (step_a or step_b):
            return bounds
        if step_a:
            mine, i = mine * a[i], i + 1
        if step_b:
            theirs, j = theirs * b[j], j + 1


def unmodified(before: Dims, after: Dims) -> list[tuple[int, int]]:
    """The dimensions that a reshape leaves as they are: (position before, position after)."""
    bounds = common_factors(before, after)
    return [p for p, q in pairwise(bounds) if q[0] - p[0] == 1 and q[1] - p[1] == 1]


def unmodified_places(before: Dims, after: Dims, chosen: Dims) -> list[int] | None:
    """The positions of the chosen dimensions after a reshape; None if it changes one of them."""
    places = dict(unmodified(before, after))
    return [places[d] for d in chosen] if all(d in places for d in chosen) else None


def inserted_or_deleted(before: Dims, after: Dims) -> tuple[list[int], list[int]] | None:
    """(deleted, inserted) dimensions of size 1, if a reshape does nothing else; None otherwise."""
    same = dict(unmodified(before, after))
    deleted = [d for d in range(len(before)) if d not in same]
    inserted = [d for d in range(len(after)) if d not in same.values()]
    return (deleted, inserted) if all(before[d] == 1 for d in deleted) and all(after[d] == 1 for d in inserted) else None


def inverse(order: Dims) -> tuple[int, ...]:
    """The inverse of a permutation."""
    return tuple(sorted(range(len(order)), key=order.__getitem__))


def is_sorted(dims: Dims) -> bool:
    return all(a <= b for a, b in pairwise(dims))


def without(dims: Dims, gone: Sequence[int]) -> tuple[int, ...]:
    """A shape without some of its dimensions."""
    left = set(gone)
    return tuple(n for d, n in enumerate(dims) if d not in left)
