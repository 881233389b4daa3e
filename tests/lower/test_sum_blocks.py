"""Sums of a contraction in blocks: which axis is split, and into which steps."""
from __future__ import annotations

from typing import Any

import pytest

from irscope.lower.build import KernelBuilder
from irscope.lower.templates.affine import Axis
from irscope.lower.templates.micro import Tile
from irscope.lower.templates.nest import _blocks


@pytest.mark.parametrize(("sizes", "block", "steps"), [
    ((1000,), 1000, [(1000,)]), ((1000,), 300, [(300,), (100,)]), ((1000,), 500, [(500,)]), ((1000,), 2000, [(1000,)]),
    ((7, 100), 300, [(3, 100), (1, 100)]), ((7, 100), 100, [(1, 100)]), ((7, 100), 99, [(99,), (1,)]), ((6, 100), 300, [(3, 100)]),
    ((2, 3, 50), 150, [(1, 3, 50)]), ((2, 3, 50), 120, [(2, 50), (1, 50)]), ((2, 3, 50), 30, [(30,), (20,)]),
])
def test_blocks(sizes: tuple[int, ...], block: int, steps: list[tuple[int, ...]]) -> None:
    k = KernelBuilder("k")
    start: Any = k.index(0)
    sums = [Axis("sum", size, 10 ** (n + 3), 10 ** n) for n, size in enumerate(sizes)]
    found = []
    for _, _, axes, stack in _blocks(k, Tile(start, start, [0], 1, 1, sums), block):
        found.append(tuple(axis.size for axis in axes))
        assert [(axis.lhs, axis.rhs) for axis in axes] == [(axis.lhs, axis.rhs) for axis in sums[-len(axes):]]
        stack.close()
    assert found == steps
