"""Vectors of indices whose lanes are evenly spaced: the first index and the step."""
from __future__ import annotations

from collections.abc import Callable

import pytest

from irscope.graph.dtypes import S64
from irscope.lower.build import KernelBuilder
from irscope.lower.pull import along_lanes
from irscope.lower.tile import Expr

Make = Callable[[KernelBuilder, Expr, Expr], Expr]


def splat(k: KernelBuilder, value: Expr | int) -> Expr:
    return k.splat(k.as_index(value), 4)


@pytest.mark.parametrize(("make", "first", "step"), [
    (lambda k, lane, i: lane, lambda k, i: k.index(0), 1),
    (lambda k, lane, i: splat(k, i), lambda k, i: i, 0),
    (lambda k, lane, i: k.binary("add", lane, splat(k, i)), lambda k, i: i, 1),
    (lambda k, lane, i: k.binary("sub", splat(k, i), lane), lambda k, i: i - 0, -1),
    (lambda k, lane, i: k.binary("mul", splat(k, 3), lane), lambda k, i: k.index(0), 3),
    (lambda k, lane, i: k.binary("mul", k.binary("add", lane, splat(k, i)), splat(k, 3)), lambda k, i: i * 3, 3),
    (lambda k, lane, i: k.binary("sub", k.binary("mul", lane, splat(k, 5)), k.binary("sub", lane, splat(k, i))), lambda k, i: 0 - (0 - i), 4),
])
def test_evenly_spaced_lanes(make: Make, first: Callable[[KernelBuilder, Expr], Expr], step: int) -> None:
    k = KernelBuilder("k", lanes=4)
    k.buffer("y", S64, (64,), "out")
    with k.loop(0, 8) as i:
        found = along_lanes(k, make(k, k.lane(4), i))
        assert found is not None
        assert (str(found[0]), found[1]) == (str(first(k, i)), step)


@pytest.mark.parametrize("make", [
    lambda k, lane, i: k.binary("mul", lane, lane), lambda k, lane, i: k.binary("mul", lane, splat(k, i)), lambda k, lane, i: k.binary("min", lane, splat(k, 3)),
    lambda k, lane, i: k.binary("add", lane, k.binary("mul", lane, lane)), lambda k, lane, i: k.binary("sub", k.binary("mul", lane, lane), lane),
])
def test_other_lanes(make: Make) -> None:
    k = KernelBuilder("k", lanes=4)
    with k.loop(0, 8) as i:
        assert along_lanes(k, make(k, k.lane(4), i)) is None
