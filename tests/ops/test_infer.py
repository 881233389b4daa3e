"""Whether the parts of a node fit its operator, where a text may be wrong."""
from __future__ import annotations

import pytest

import irscope
from irscope.graph import Node
from irscope.ops.infer import fits_operands


def node(lines: str, name: str = "r") -> Node:
    graph = irscope.load(f"ENTRY e {{\n  x = f32[2,3] parameter(0)\n  {lines}\n}}\n", format="hlo").module().main()
    return next(n for n in graph.nodes if n.name == name)


@pytest.mark.parametrize(("lines", "fits"), [
    ("ROOT r = f32[2,3] add(x, x)", True),
    ("ROOT r = f32[3,2] add(x, x)", False),
    ("ROOT r = bf16[2,3] add(x, x)", True),  # precision is not a question of shape
    ("y = f32[3] parameter(1)\n  ROOT r = f32[2,3] add(x, y)", False),
    ("ROOT r = f32[3,2] transpose(x), dimensions={1,0}", True),
    ("ROOT r = f32[2,3] transpose(x), dimensions={1,0}", False),
    ("ROOT r = f32[2,3] multiply(x, gone)", False),
])
def test_fits_operands(lines: str, fits: bool) -> None:
    assert fits_operands(node(lines)) is fits
