"""Rules on structure reach the formats that have operators of their own, and speak in their names."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

import irscope
from irscope.cli.lint import command as lint
from irscope.lint import Context, find_rule, lint_module
from irscope.lint.primitives import lint_primitives
from irscope.lint.settings import Settings

SOFTMAX = """graph(%x : Float(8, 128)):
  %e : Float(8, 128) = aten::exp(%x)
  %one : int = prim::Constant[value=1]()
  %at : int[] = prim::ListConstruct(%one)
  %yes : bool = prim::Constant[value=1]()
  %nothing : NoneType = prim::Constant()
  %s : Float(8, 1) = aten::sum(%e, %at, %yes, %nothing)
  %y : Float(8, 128) = aten::div(%e, %s)
  return (%y)
"""


def test_a_finding_stands_at_the_users_operator() -> None:
    module = irscope.load(SOFTMAX, format="torchscript").module()
    (finding,) = lint_module(module, [find_rule("ALG006")])
    assert (finding.code, finding.node) == ("ALG006", "e")
    place = finding.place()
    assert place is not None
    assert place.line == 2
    assert "%s sums them up" in finding.notes[0].text


def test_a_module_without_primitives_gives_nothing() -> None:
    module = irscope.load("graph(%x : Tensor):\n  %y : Tensor = aten::exp(%x)\n  return (%y)\n", format="torchscript").module()
    assert lint_primitives(Context(module), [find_rule("ALG006")]) == []


def test_all_rules_can_be_asked_for_by_one_word(tmp_path: Path) -> None:
    """A rule that is off by default speaks up under --select ALL, and not without."""
    text = """HloModule m

ENTRY e {
  x = f32[4096] parameter(0)
  c = f32[] constant(8)
  b = f32[4096] broadcast(c), dimensions={}
  ROOT y = f32[4096] divide(x, b)
}
"""
    (tmp_path / "x.hlo").write_text(text)
    runner = CliRunner()
    every = runner.invoke(lint, [str(tmp_path / "x.hlo"), "--select", "ALL", "--format", "concise"])
    assert "ALG007" in every.output
    usual = runner.invoke(lint, [str(tmp_path / "x.hlo"), "--format", "concise"])
    assert "ALG007" not in usual.output


def test_a_shape_that_the_text_leaves_open_can_be_given(tmp_path: Path) -> None:
    file = tmp_path / "open.txt"
    file.write_text("graph(%x : Tensor, %y : Tensor):\n  %one : int = prim::Constant[value=1]()\n"
                    "  %z : Tensor = aten::add(%x, %y, %one)\n  return (%z)\n")
    runner = CliRunner()
    plain = runner.invoke(lint, [str(file), "--isolated"])
    assert "BRD006" not in plain.output
    given = runner.invoke(lint, [str(file), "--isolated", "--shape", "x=64,1", "--shape", "y=64"])
    assert "BRD006" in given.output
    assert "Float(64, 1) and Float(64) give Float(64, 64)" in given.output


def test_a_call_is_no_wall() -> None:
    """What JAX leaves in a computation of its own is seen with what stands around the call, and told where it is written."""
    text = """HloModule m

inner {
  p = f32[256,256] parameter(0)
  ROOT t = f32[256,256] transpose(p), dimensions={1,0}
}

ENTRY e {
  x = f32[256,256] parameter(0)
  a = f32[256,256] transpose(x), dimensions={1,0}
  ROOT c = f32[256,256] call(a), to_apply=inner
}
"""
    (finding,) = lint_module(irscope.load(text, format="hlo").module(), [find_rule("LAY001")])
    assert (finding.node, finding.graph) == ("t", "inner")
    assert "%t undoes %a" in finding.message


def test_constants_of_a_text_without_types_are_compared() -> None:
    """A graph that cannot be expanded is looked at as it is written, whatever its constants are."""
    lines = [f"  %{i + 2} : Tensor = aten::mul(%{i + 1 if i else 'x'}, %c)" for i in range(80)]
    text = "graph(%x : Tensor):\n  %c : Tensor = prim::Constant[value={2}]()\n" + "\n".join(lines) + "\n  return (%81)\n"
    module = irscope.load(text, format="torchscript").module()
    assert Context(module).view.primitive is None
    assert lint_module(module, [find_rule("CTL002")]) == []


CALLED_TWICE = """HloModule m

half {
  a = f32[128,1024] parameter(0)
  ROOT h = f32[128,1024] tanh(a)
}

ENTRY e {
  p = f32[128,1024] parameter(0)
  x = f32[128,1024] call(p), to_apply=half
  y = f32[128,1024] call(p), to_apply=half
  ROOT r = f32[128,1024] multiply(x, y)
}
"""


def test_a_value_does_not_compute_itself_again() -> None:
    """The two copies of a function's line are one line of the text."""
    assert lint_module(irscope.load(CALLED_TWICE).module(), [find_rule("ALG002")]) == []


HOISTED = """HloModule m

cond {
  p = (s32[], f32[128,128], f32[128,128]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(10)
  ROOT c = pred[] compare(i, n), direction=LT
}
body {
  p = (s32[], f32[128,128], f32[128,128]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[128,128] get-tuple-element(p), index=1
  w = f32[128,128] get-tuple-element(p), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  s = f32[128,128] exponential(w)
  y = f32[128,128] add(x, s)
  ROOT t = (s32[], f32[128,128], f32[128,128]) tuple(j, y, w)
}

ENTRY e {
  x = f32[128,128] parameter(0)
  w = f32[128,128] parameter(1)
  z = s32[] constant(0)
  a = (s32[], f32[128,128], f32[128,128]) tuple(z, x, w)
  l = (s32[], f32[128,128], f32[128,128]) while(a), condition=cond, body=body
  ROOT r = f32[128,128] get-tuple-element(l), index=1
}
"""


def test_what_xla_hoists_saves_nothing() -> None:
    """XLA moves the exponential out of the loop itself; irscope's compiler does not."""
    module = irscope.load(HOISTED).module()
    saved = {}
    for policy in ("irscope", "xla-cpu", "xla-gpu"):
        (finding,) = lint_module(module, [find_rule("CTL003")], Settings(policy))
        assert finding.saves is not None
        saved[policy] = finding.saves["us"]
    assert saved["irscope"] > 1
    assert saved["xla-cpu"] == saved["xla-gpu"] == 0
