"""Rules on structure reach the formats that have operators of their own, and speak in their names."""

from __future__ import annotations

import irscope
from irscope.lint import find_rule, lint_module
from irscope.lint.primitives import lint_primitives

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
    assert lint_primitives(module, [find_rule("ALG006")]) == []
