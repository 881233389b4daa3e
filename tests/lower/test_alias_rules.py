"""Which operands may be written directly into the memory of a result, and where they are in it."""
from __future__ import annotations

import pytest

from irscope.graph import Node
from irscope.graph.dtypes import F32
from irscope.lower.aliasing import can_alias_operands, is_update, parts_of
from irscope.lower.program import Slot
from irscope.lower.storage import Storage
from tests.lower.whole import entry, module_of

PARAMS = """
x = f32[2,3] parameter(0)
h = bf16[2,3] parameter(1)
z = f32[] parameter(2)
i = s32[] parameter(3)
v = s32[1] parameter(4)
hz = bf16[] parameter(5)
u = f32[1,3] parameter(6)
hu = bf16[1,3] parameter(7)
"""


def root(line: str) -> Node:
    return module_of(entry(f"{PARAMS}ROOT r = {line}")).main().result()


@pytest.mark.parametrize(("line", "want"), [
    ("f32[4,3] concatenate(x, x), dimensions={0}", True), ("f32[4,3] concatenate(x, h), dimensions={0}", False),
    ("f32[4,3] concatenate(h, x), dimensions={0}", False), ("f32[3,3] pad(x, z), padding=1_0x0_0", True), ("f32[2,3] pad(x, z), padding=0_0x0_0", True),
    ("f32[2,3] pad(x, z), padding=-1_1x0_0", False), ("f32[2,3] pad(x, z), padding=1_-1x0_0", False), ("f32[3,2] pad(x, z), padding=1_0x-1_0", False),
    ("f32[3,3] pad(x, z), padding=0_0_1x0_0", True), ("f32[3,3] pad(x, hz), padding=1_0x0_0", False), ("f32[2,3] negate(x)", False),
])
def test_operands_that_are_parts_of_a_result(line: str, want: bool) -> None:
    assert can_alias_operands(root(line)) is want


@pytest.mark.parametrize(("line", "want"), [
    ("f32[2,3] dynamic-update-slice(x, u, i, i)", True), ("f32[2,3] dynamic-update-slice(x, hu, i, i)", False), ("f32[2,3] add(x, x)", False),
    ("f32[1,3] dynamic-slice(x, i, i), dynamic_slice_sizes={1,3}", False),
])
def test_updates(line: str, want: bool) -> None:
    assert is_update(root(line)) is want


@pytest.mark.parametrize(("line", "want"), [
    ("f32[4,3] concatenate(x, x), dimensions={0}", [((2, 3), (3, 1), 0), ((2, 3), (3, 1), 6)]),
    ("f32[2,7] concatenate(x, x, v1), dimensions={1}", [((2, 3), (7, 1), 0), ((2, 3), (7, 1), 3), ((2, 1), (7, 1), 6)]),
    ("f32[4,6] pad(x, z), padding=1_1x2_1", [((2, 3), (6, 1), 8)]), ("f32[3,5] pad(x, z), padding=0_0_1x0_0_1", [((2, 3), (10, 2), 0)]),
    ("f32[4,6] pad(x, z), padding=1_0_1x0_1_1", [((2, 3), (12, 2), 6)]),
])
def test_places_in_the_result(line: str, want: list[tuple[tuple[int, ...], tuple[int, ...], int]]) -> None:
    node = module_of(entry(f"{PARAMS}v1 = f32[2,1] parameter(8)\nROOT r = {line}")).main().result()
    dims = node.type.dims()  # type: ignore[attr-defined]
    strides: list[int] = []
    total = 1
    for n in reversed(dims):
        strides.insert(0, total)
        total *= n
    whole = Storage(Slot("r", F32, total, "output", 0), F32, tuple(dims), tuple(strides), 0)
    assert [(s.shape, s.strides, s.offset) for _, s in parts_of(node, whole)] == want
