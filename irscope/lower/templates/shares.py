"""Loops with a smaller last iteration, written so that all iterations can be divided among threads."""
from __future__ import annotations

from collections.abc import Iterator

from irscope.lower.build import KernelBuilder
from irscope.lower.tile import Expr


def runs(size: int, step: int) -> list[tuple[int, int, int]]:
    """(first, count, step) of the whole steps, then of the remainder as one step; an empty part is omitted."""
    whole = size // step * step
    return ([(0, whole, step)] if whole else []) + ([(whole, size - whole, size - whole)] if size > whole else [])


def vectors(k: KernelBuilder, size: int, lanes: int, parallel: bool = True) -> Iterator[tuple[Expr, Expr | None]]:
    """(position, mask) of each vector along ``size`` elements; the mask of a whole one is None. The loop is open while each is emitted."""
    for i, count in stepped(k, size, lanes, parallel):
        yield i, k.first_lanes(count, lanes) if count < lanes else None


def stepped(k: KernelBuilder, size: int, step: int, parallel: bool = True, last_apart: bool = False) -> Iterator[tuple[Expr, int]]:
    """(position, width) of whole steps and of the remainder; the loop over them is open while each is emitted.

    ``last_apart``: the last step is emitted separately, at a known position, even if it is a whole one.

        for i, width in stepped(k, 10, 4):        par i in 0..12 step 4:
            write(i, width)                         if i < 8: write(i, 4)
                                                    else: write(8, 2)
    """
    whole = (size - last_apart) // step * step
    if whole in (0, size):
        width = step if whole else size
        with (k.par if parallel else k.loop)(0, size, width) as i:
            yield i, width
    elif parallel:
        with k.par(0, size, step) as i:
            with k.when(k.compare("LT", i, k.index(whole))):
                yield i, step
            with k.otherwise():
                yield k.index(whole), size - whole
    else:
        with k.loop(0, whole, step) as i:
            yield i, step
        yield k.index(whole), size - whole
