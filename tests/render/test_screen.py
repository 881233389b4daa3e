"""The terminal view: what it says, that it fits, and that nothing is coloured where nobody asked."""
from __future__ import annotations

from collections.abc import Callable

import pytest

from irscope import api
from irscope.query.choose import Wanted, choose
from irscope.render.paint import Paint
from irscope.render.screen import ScreenOptions, screen
from tests.analysis.texts import FUSED, LOOP, layers

TEXTS = {"fused": FUSED, "loop": LOOP, "layers": layers(6), "scoped": layers(6, scoped=True)}


def shown(text: str, width: int = 80, wanted: Wanted | None = None, colour: bool = False, unicode: bool = True,
          options: ScreenOptions | None = None) -> list[str]:
    reading = api.load(text)
    choice = choose(reading.module(), wanted or Wanted(), True)
    return list(screen(reading, choice, Paint(width, colour, unicode), options or ScreenOptions()))


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("width", [80, 140])
def test_the_view_is_as_it_was(name: str, width: int, golden: Callable[[str, str], None]) -> None:
    golden(f"{name}.{width}.txt", "\n".join(shown(TEXTS[name], width)) + "\n")


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 160])
def test_no_line_is_wider_than_the_terminal(name: str, width: int) -> None:
    for wanted in (Wanted(), Wanted(where="op=*")):
        lines = shown(TEXTS[name], width, wanted)
        assert [line for line in lines if len(line) > width] == []


OLD = """HloModule old

ENTRY %main (x: f32[4,4]) -> f32[4,4] {
  %x = f32[4,4]{1,0} parameter(0)
  %dot = f32[4,4]{1,0} dot(f32[4,4]{1,0} %x, f32[4,4]{1,0} %x), lhs_contracting_dims={1}, rhs_contracting_dims={0}, \
metadata={op_type="MatMul" op_name="net/dense/MatMul" source_file="/home/u/model.py" source_line=42}
  %tanh = f32[4,4]{1,0} tanh(f32[4,4]{1,0} %dot), metadata={op_type="Tanh" op_name="net/act/Tanh" source_file="/home/u/model.py" source_line=43}
  ROOT %exp = f32[4,4]{1,0} exponential(f32[4,4]{1,0} %tanh), \
metadata={op_type="Exp" op_name="net/act/Exp" source_file="/home/u/model.py" source_line=43}
}
"""
NEW = """HloModule new

FileNames
1 "/home/u/model.py"

FunctionNames
1 "net"

FileLocations
1 {file_name_id=1 function_name_id=1 line=42 end_line=42 column=0 end_column=0}
2 {file_name_id=1 function_name_id=1 line=43 end_line=43 column=0 end_column=0}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=1}


ENTRY %main (x: f32[4,4]) -> f32[4,4] {
  %x = f32[4,4]{1,0} parameter(0)
  %dot = f32[4,4]{1,0} dot(%x, %x), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="net/dense/dot" stack_frame_id=1}
  %tanh = f32[4,4]{1,0} tanh(%dot), metadata={op_name="net/act/tanh" stack_frame_id=2}
  ROOT %exp = f32[4,4]{1,0} exponential(%tanh), metadata={op_name="net/act/exp" stack_frame_id=2}
}
"""


@pytest.mark.parametrize("text", [OLD, NEW])
def test_tree_lines_and_nodes_are_told_with_the_users_line(text: str) -> None:
    lines = shown(text, 120, options=ScreenOptions(by="scope"))
    for scope, at in {"net": 43, "dense": 42, "act": 43}.items():
        [line] = [line for line in lines if f"─ {scope} " in line]
        assert line.endswith(f"  /home/u/model.py:{at}")
    [listed] = [line for line in shown(text, 120, Wanted(where="op=tanh")) if "%tanh" in line]
    assert listed.endswith("/home/u/model.py:43")
    assert not any("model.py" in line for line in shown(text, 80, Wanted(where="op=tanh")))


def test_colour_changes_nothing_but_colour() -> None:
    import re

    plain, painted = shown(FUSED), shown(FUSED, colour=True)
    assert plain != painted
    assert [re.sub(r"\x1b\[\d+m", "", line) for line in painted] == plain


def test_a_terminal_without_unicode_gets_ascii() -> None:
    assert all(line.isascii() for line in shown(TEXTS["scoped"], unicode=False))


def test_a_node_is_told_in_full() -> None:
    lines = "\n".join(shown(FUSED, 100, Wanted(around="dot", radius=1)))
    for words in ("dot {1}x{0}  f32[8,16]", "graph      main", "scope      jit(f)/dense/dot_general", "1.02 kFLOP", "lhs_contracting_dims=(1,)",
                  "%x f32[8,4]", "%biased fusion kLoop", "4 nodes within 1 of %dot", "> %dot = f32[8,16]"):
        assert words in lines


def test_findings_of_the_reader_are_shown() -> None:
    lines = "\n".join(shown(FUSED.replace("reduce(biased, zero)", "frobnicate(biased, zero)")))
    assert "errors, 0 warnings" in lines
    assert "frobnicate" in lines
    assert "unknown    frobnicate 1" in lines


def test_hints_say_how_to_go_on() -> None:
    lines = shown(FUSED, options=ScreenOptions(hints=True))
    assert lines[-1].startswith("more: irscope show <text> --around %")


def test_a_graph_that_the_entry_does_not_reach_is_shown() -> None:
    text = "HloModule m\n\nother {\n  p = f32[4] parameter(0)\n  ROOT e = f32[4] exponential(p)\n}\n\n" \
           "ENTRY main {\n  a = f32[4] parameter(0)\n  ROOT b = f32[4] tanh(a)\n}\n"
    lines = shown(text, wanted=Wanted(graph="other"), options=ScreenOptions(of_graph=True, operators=True))
    assert any("other" in line and "4 FLOP" in line for line in lines)
    assert any("exponential %e" in line for line in lines)
