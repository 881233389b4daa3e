"""Scalar functions that are taken whole by one pattern come out as the line reader and the cursor give them, faults included."""
from __future__ import annotations

import pytest

from irscope.formats.hlo import body, reducers
from irscope.formats.hlo.assembly import Assembly
from tests.formats.hlo_same import difference
from tests.formats.hlo_texts import reading

FIRST = """HloModule m

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}
"""
ENTRY = """
ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4] parameter(0)
  ROOT %y = f32[4] all-reduce(%x), channel_id=1, replica_groups=[1,2]<=[2], use_global_device_ids=true, to_apply=%second
}
"""
TAKEN = {
    "as printed": """
%second (a.1: f32[], b.1: f32[]) -> f32[] {
  %a.1 = f32[] parameter(0)
  %b.1 = f32[] parameter(1)
  ROOT %sum.1 = f32[] add(%a.1, %b.1)
}
""",
    "without signs and signature": """
second {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}
""",
    "with metadata": """
%second (a.1: f32[], b.1: f32[]) -> f32[] {
  %a.1 = f32[] parameter(0), metadata={op_name="reduce_sum"}
  %b.1 = f32[] parameter(1), metadata={op_name="reduce_sum" source_line=3}
  ROOT %sum.1 = f32[] add(%a.1, %b.1), metadata={op_name="jit(f)/\\"reduce_sum" stack_frame_id=33}
}
""",
}
LEFT = {
    "operands turned round": "second {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT sum = f32[] add(b, a)\n}\n",
    "parameters turned round": "second {\n  a = f32[] parameter(1)\n  b = f32[] parameter(0)\n  ROOT sum = f32[] add(a, b)\n}\n",
    "two types": "second {\n  a = f32[] parameter(0)\n  b = s32[] parameter(1)\n  ROOT sum = f32[] add(a, b)\n}\n",
    "one name twice": "second {\n  a = f32[] parameter(0)\n  a = f32[] parameter(1)\n  ROOT sum = f32[] add(a, a)\n}\n",
    "the root is named as a parameter": "second {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT a = f32[] add(a, b)\n}\n",
    "the name of a type": "second {\n  a = f32[] parameter(0)\n  s32 = f32[] parameter(1)\n  ROOT sum = f32[] add(a, s32)\n}\n",
    "a reserved name": "second {\n  __a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT sum = f32[] add(__a, b)\n}\n",
    "another result": "second (a: f32[], b: f32[]) -> s32[] {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT sum = f32[] add(a, b)\n}\n",
    "a signature of other types":
        "second (a: s32[], b: s32[]) -> s32[] {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT sum = f32[] add(a, b)\n}\n",
    "metadata that is none": "second {\n  a = f32[] parameter(0), metadata={op_nam=3}\n  b = f32[] parameter(1)\n  ROOT sum = f32[] add(a, b)\n}\n",
    "an unknown opcode": "second {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT sum = f32[] adding(a, b)\n}\n",
    "an unknown type": "second {\n  a = f33[] parameter(0)\n  b = f33[] parameter(1)\n  ROOT sum = f33[] add(a, b)\n}\n",
    "one operand too many": "second {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT neg = f32[] negate(a, b)\n}\n",
    "a name that is taken": "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT sum = f32[] add(a, b)\n}\n" + TAKEN["as printed"],
    "not closed": "second {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT sum = f32[] add(a, b)\n",
    "an entry without a name": "ENTRY {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT sum = f32[] add(a, b)\n}\n" + TAKEN["as printed"],
}


@pytest.mark.parametrize("text", TAKEN.values(), ids=TAKEN)
def test_a_printed_reducer_is_taken_whole(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []

    def spied(assembly: Assembly, at: int) -> int:
        behind = reducers.read_reducer(assembly, at)
        taken.append(behind > at)
        return behind
    monkeypatch.setattr(body, "read_reducer", spied)
    assert reading(FIRST + text + ENTRY).ok
    assert taken == [True, False, False], "the first, which fills the tables, follows no other; ENTRY and the end are none"


@pytest.mark.parametrize("text", [*TAKEN.values(), *LEFT.values()], ids=[*TAKEN, *LEFT])
def test_it_is_what_the_lines_give(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = FIRST + text + ENTRY
    quick = reading(whole)
    monkeypatch.setattr(body, "read_reducer", lambda assembly, at: at)
    lines = reading(whole)
    assert [f.render() for f in quick.findings] == [f.render() for f in lines.findings]
    assert quick.ok == lines.ok
    for a, b in zip(quick.modules, lines.modules, strict=True):
        assert difference(a, b) == ""
        assert [n.loc for g in a.graphs.values() for n in g.nodes] == [n.loc for g in b.graphs.values() for n in g.nodes]
        assert [g.loc for g in a.graphs.values()] == [g.loc for g in b.graphs.values()]
