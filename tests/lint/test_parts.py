"""Texts that rules can only look at in part: cut off in the middle, or with sizes that are open."""

from __future__ import annotations

import pytest

import irscope
from irscope.api import LintOptions, lint
from irscope.lint import parts
from irscope.source import Finding

CUT = """HloModule m

inner {
  q = f32[256,256]{1,0} parameter(0)
  v = f64[256,256]{1,0} convert(q)
  ROOT w = f32[256,256]{1,0} convert(v)
}

body {
  p = f32[256,256]{1,0} parameter(0)
  a = f64[256,256]{1,0} convert(p)
  b = f64[256,256]{1,0} tanh(a)
  c = f32[256,256]{1,0} convert(b)
  d = f32[256,256]{1,0} call(c), to_apply=inner
  t = f32[256,256]{1,0} transpose(d), dimensions={1,0}
  ROOT u = f32[256,256]{1,0} transpose(t), dimensions={1,0}
}

other {
  o = f32[256,256]{1,0} parameter(0)
  ROOT e = f32[256,256]{1,0} call(o), to_apply=inner
}

ENTRY main {
  x = f32[256,256]{1,0} parameter(0)
  f = f64[256,256]{1,0} convert(x)
  k = f32[256,256]{1,0} call(x), to_app"""


def findings(text: str, format: str = "hlo", select: tuple[str, ...] = ()) -> list[Finding]:
    """What lint finds, without what the reader said."""
    return [f for f in lint(irscope.load(text, format=format), LintOptions(isolated=True, select=select)).findings if f.node]


def test_the_complete_computations_of_a_text_that_is_cut_off_are_linted() -> None:
    found = findings(CUT)
    assert {("DTY001", "a", "body"), ("LAY001", "u", "body")} <= {(f.code, f.node, f.graph) for f in found}
    assert "main" not in {f.graph for f in found}  # it is not complete


def test_what_two_complete_computations_call_is_linted_once() -> None:
    inner = [(f.code, f.node) for f in findings(CUT) if f.graph == "inner"]
    assert ("DTY001", "v") in inner and len(set(inner)) == len(inner)


def test_findings_of_a_part_claim_nothing_because_nobody_knows_how_often_it_runs() -> None:
    assert all(f.saves is None and f.costs is None for f in findings(CUT))


def test_a_computation_with_an_error_is_left_out() -> None:
    """What it holds cannot be trusted; the others are complete and sound."""
    wrong = CUT.replace("tanh(a)", "tanh(zz)")
    assert ("error", "body") in {(str(f.severity), f.graph) for f in irscope.load(wrong, format="hlo").findings}
    assert {f.graph for f in findings(wrong)} == {"inner"}


def test_rules_on_whole_programs_do_not_look_at_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule on memory would find something in these computations, if they were programs."""
    assert findings(CUT, select=("MEM",)) == []
    monkeypatch.setattr(parts, "OF_PROGRAMS", ("FUS",))
    assert {f.code for f in findings(CUT, select=("MEM",))} == {"MEM002"}


OPEN = """module @m {
  func.func public @main(%x: tensor<4x2xf32>, %y: tensor<?x2xf32>) -> tensor<?x2xf32> {
    %0 = stablehlo.negate %y : tensor<?x2xf32>
    return %0 : tensor<?x2xf32>
  }
}
"""


def test_open_sizes_are_one_finding_at_the_parameter_that_has_them() -> None:
    (one,) = findings(OPEN, "stablehlo")
    assert (one.code, one.name, one.node, one.help) == ("SHL035", "open-sizes", "y", "--shape y=8,3 binds them")
    place = one.place()
    assert place is not None and OPEN.splitlines()[place.line - 1][place.column - 1:].startswith("%y")
    assert one.length == len("%y")
    assert "%y is " in one.message
    assert "SHL035" not in {f.code for f in findings(OPEN.replace("?", "4"), "stablehlo")}
