"""Graphs are the same whatever their names and the order of lines; what differs is told, and gates fail on it."""
from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import irscope
from irscope.cli.main import group
from irscope.diff import Comparison, compare, parse_gate
from irscope.source import UserError

BEFORE = """HloModule a
add { x = f32[] parameter(0)
      y = f32[] parameter(1)
      ROOT s = f32[] add(x, y) }
ENTRY e {
  p = f32[8,4] parameter(0)
  q = f32[8,4] parameter(1)
  z = f32[] constant(0)
  m = f32[8,4] multiply(p, q)
  n = f32[8,4] negate(p)
  t = f32[8,4] add(m, n)
  ROOT r = f32[8] reduce(t, z), dimensions={1}, to_apply=add
}
"""
RENAMED = """HloModule b
combine { u = f32[] parameter(0)
          v = f32[] parameter(1)
          ROOT w = f32[] add(u, v) }
ENTRY main {
  zero = f32[] constant(0.0)
  b = f32[8,4]{1,0} parameter(1)
  a = f32[8,4]{1,0} parameter(0)
  neg.7 = f32[8,4] negate(a)
  mul.3 = f32[8,4] multiply(a, b), metadata={op_name="x"}
  sum.1 = f32[8,4] add(mul.3, neg.7)
  ROOT out = f32[8] reduce(sum.1, zero), dimensions={1}, to_apply=combine
}
"""


def difference(before: str, after: str) -> Comparison:
    return compare(irscope.load(before).module(), irscope.load(after).module())


def test_names_order_layout_and_metadata_do_not_count() -> None:
    assert difference(BEFORE, RENAMED).same
    assert difference(BEFORE, BEFORE).same


@pytest.mark.parametrize(("old", "new", "told"), [
    ("multiply(p, q)", "multiply(q, p)", []),
    ("negate(p)", "negate(q)", []),
    ("negate(p)", "exponential(p)", [("negate", None), (None, "exponential")]),
    ("dimensions={1}", "dimensions={1}, to_apply=add\n  x = f32[8,4] negate(q)\n  y = f32[8] reduce(x, z), dimensions={1}", []),
    ("constant(0)", "constant(1)", [("constant", "constant")]),
])
def test_what_is_computed_counts(old: str, new: str, told: list[tuple[str | None, str | None]]) -> None:
    after = BEFORE.replace(old, new)
    comparison = difference(BEFORE, after)
    dead_only = "x = f32" in new
    assert comparison.same == dead_only
    changes = [(c.before and c.before.op.name, c.after and c.after.op.name) for c in comparison.pairs[0].changes]
    assert [c for c in changes if c in told] == told


def test_a_value_computed_twice_is_another_graph() -> None:
    twice = BEFORE.replace("t = f32[8,4] add(m, n)", "k = f32[8,4] negate(p)\n  j = f32[8,4] add(n, k)\n  t = f32[8,4] add(m, j)")
    once = BEFORE.replace("t = f32[8,4] add(m, n)", "j = f32[8,4] add(n, n)\n  t = f32[8,4] add(m, j)")
    assert not difference(once, twice).same


def test_changed_attributes_are_told_with_both_values() -> None:
    before = "HloModule m\nENTRY e {\n  p = f32[4,4] parameter(0)\n  ROOT t = f32[4,4] transpose(p), dimensions={1,0}\n}\n"
    after = before.replace("{1,0}", "{0,1}")
    changes = difference(before, after).pairs[0].changes
    assert [c.why for c in changes] == ["dimensions: (1, 0) became (0, 1)"]


@pytest.mark.parametrize(("text", "fails"), [
    ("kernels>+0", True), ("kernels<=+0", False), ("nodes>+10%", False), ("ops.negate>1", True), ("ops.negate>2", False), ("flops>1k", False),
])
def test_gates(text: str, fails: bool) -> None:
    after = BEFORE.replace("t = f32[8,4] add(m, n)", "k = f32[8,4] negate(m)\n  t = f32[8,4] add(k, n)")
    assert bool(parse_gate(text).fails(difference(BEFORE, after))) == fails


def test_gates_on_operators_of_torch() -> None:
    text = "graph(%x : Float(4)):\n  %y : Float(4) = aten::relu(%x)\n  return (%y)\n"
    found = difference(text, text.replace("  return", "  %z : Float(4) = aten::relu(%y)\n  return").replace("(%y)\n", "(%z)\n"))
    assert parse_gate("ops.aten::relu>+0").fails(found) == "ops.aten::relu>+0: ops.aten::relu went from 1 to 2 (+1)"
    assert not parse_gate("ops.aten::relu > 2").fails(found)


def test_gates_tell_figures_to_the_last_digit() -> None:
    before = "ENTRY e { p = f32[1234567] parameter(0)\n ROOT n = f32[1234567] negate(p) }"
    found = difference(before, before.replace("1234567", "1234568"))
    assert parse_gate("bytes>+0").fails(found) == "bytes>+0: bytes went from 9876536 to 9876544 (+8)"
    assert parse_gate("bytes>+0%").fails(found) == "bytes>+0%: bytes went from 9876536 to 9876544 (+8e-05 %)"


@pytest.mark.parametrize("text", ["kernels", "kernels>>1", "kernals>+0", "", "ops.>0", "kernels>+\u0663", "kernels>0\n>1"])
def test_conditions_that_are_none(text: str) -> None:
    with pytest.raises(UserError):
        parse_gate(text)


def test_the_command_says_same_as_json_and_fails_on_gates(tmp_path: Path) -> None:
    a, b = tmp_path / "a.hlo", tmp_path / "b.hlo"
    a.write_text(BEFORE)
    b.write_text(RENAMED.replace("negate(a)", "exponential(a)"))
    run = CliRunner().invoke(group, ["diff", str(a), str(b), "--format", "json", "--fail-if", "ops.exponential>0"])
    assert json.loads(run.stdout)["same"] is False
    assert "gate failed: ops.exponential>0" in run.stderr
    same = CliRunner().invoke(group, ["diff", str(a), str(a)])
    assert "are the same graph" in same.stdout


def test_the_page_shows_both_texts_and_holds_whatever_stands_in_them(tmp_path: Path) -> None:
    before, after, page = tmp_path / "a<b>.hlo", tmp_path / "b.hlo", tmp_path / "diff.html"
    before.write_text(BEFORE)
    after.write_text(BEFORE.replace("n = f32[8,4] negate(p)", 'n = f32[8,4] exponential(p), metadata={op_name="<script>x</script>"}'))
    result = CliRunner().invoke(group, ["diff", str(before), str(after), "--format", "html", "-o", str(page), "--fail-if", "ops.exponential>0"])
    assert result.exit_code == 1, result.output
    text = page.read_text()
    assert "<td class=\"text before\"><small>10</small> n = f32[8,4] negate(p)</td>" in text
    assert "&lt;script&gt;x&lt;/script&gt;" in text
    assert "a&lt;b&gt;.hlo" in text
    assert "gate failed: ops.exponential" in text
    assert "http:" not in text and "https:" not in text, "the page needs no network"


def test_the_page_of_equal_graphs_says_so(tmp_path: Path) -> None:
    for name, text in (("a.hlo", BEFORE), ("b.hlo", RENAMED)):
        (tmp_path / name).write_text(text)
    result = CliRunner().invoke(group, ["diff", str(tmp_path / "a.hlo"), str(tmp_path / "b.hlo"), "--format", "html"])
    assert result.exit_code == 0
    assert "They are the same graph." in result.output
