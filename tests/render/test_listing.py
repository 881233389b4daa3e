"""Lists of nodes keep operators and operands where there is little room."""
from __future__ import annotations

import re

import pytest

from irscope.render.listing import node_line, statement
from irscope.render.paint import Paint
from tests.analysis.texts import survey

TEXT = """HloModule m
ENTRY e {
  a_value_with_a_long_name.1 = f32[128,512,1024]{2,1,0} parameter(0)
  another_value_with_a_name.2 = f32[128,512,1024]{2,1,0} parameter(1)
  some_multiply_add_subtract_fusion.77 = f32[128,512,1024]{2,1,0} add(a_value_with_a_long_name.1, another_value_with_a_name.2)
  c = pred[] constant(true)
  s = f32[128,512,1024]{2,1,0} select(c, another_value_with_a_name.2, a_value_with_a_long_name.1)
  ROOT t = (f32[128,512,1024], f32[128,512,1024], f32[128,512,1024], f32[128,512,1024], f32[128,512,1024], f32[128,512,1024])
    tuple(s, s, a_value_with_a_long_name.1, another_value_with_a_name.2, s, a_value_with_a_long_name.1)
}"""


@pytest.mark.parametrize("width", [60, 72, 80])
def test_operator_and_operands_are_in_every_line(width: int) -> None:
    facts = survey(TEXT)
    graph = facts.module.main()
    for node in graph.nodes:
        line = node_line(facts, graph, node, Paint(width))
        assert len(line) <= width
        assert f" {node.op.name}" in line
        if node.operands:
            inside = re.search(rf" {node.op.name}\((.*)\)$", line.rstrip())
            assert inside is not None, line
            parts = inside[1].split(", ")
            more = int(parts[-1][1:]) if parts[-1].startswith("+") else 0
            shown = parts[:-1] if more else parts
            assert shown and len(shown) + more == len(node.operands)
            for part, operand in zip(shown, node.operands, strict=False):
                begin, _, end = part.removeprefix("%").partition("..")
                assert operand.name.startswith(begin) and operand.name.endswith(end)


def test_what_fits_is_not_cut() -> None:
    graph = survey("HloModule m\nENTRY e {\n x = f32[2,3] parameter(0)\n ROOT t = f32[3,2] transpose(x), dimensions={1,0}\n}\n").module.main()
    assert statement(graph.nodes[1], 40) == "f32[3,2] transpose {1,0}(%x)"
    assert statement(graph.nodes[1], 24) == "f32[3,2] transpose(%x)"
