"""What a finding rests on is told with it: operators with types and lines, what they cost, what mending saves."""

from __future__ import annotations

import json

import pytest

import irscope
from irscope.api import scalar_loops
from irscope.graph import Node
from irscope.lint import Context, Fixture, Rule, all_rules
from irscope.lint.baseline import fingerprint
from irscope.lint.findings import RuleFinding
from irscope.lint.report import FileReport, Report
from irscope.lint.reporters import reporter
from irscope.lint.rule import Fix
from irscope.lint.run import lint_context
from irscope.lint.settings import Settings
from irscope.source import Finding

FIXTURES = [(rule, fixture) for rule in all_rules() for fixture in rule.bad]
TEXT = """HloModule m

FileNames
1 "model.py"

FunctionNames
1 "step"

FileLocations
1 {file_name_id=1 function_name_id=1 line=41 end_line=41 column=4 end_column=9}
2 {file_name_id=1 function_name_id=1 line=42 end_line=42 column=4 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=1}

ENTRY e {
  x = f32[512,512] parameter(0)
  d.7 = f32[512,512] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="a" stack_frame_id=1}
  n.8 = bf16[512,512] convert(d.7), metadata={op_name="b" stack_frame_id=2}
  w.9 = f32[512,512] convert(n.8), metadata={op_name="c" stack_frame_id=2}
  ROOT r.10 = f32[512,512] exponential(w.9)
}
"""


def told(rule: type[Rule], fixture: Fixture) -> tuple[Context, list[Finding]]:
    module = irscope.load(fixture.text, format=fixture.format).module()
    context = Context(module, Settings(fixture.policy, loops=scalar_loops))
    return context, lint_context(context, [rule])


@pytest.mark.parametrize(("rule", "fixture"), FIXTURES, ids=lambda x: getattr(x, "code", getattr(x, "format", "")))
def test_no_rule_keeps_back_what_it_could_tell(rule: type[Rule], fixture: Fixture) -> None:
    """Every finding about a node has its operators with types; where the module can be planned, what they cost."""
    context, findings = told(rule, fixture)
    for finding in findings:
        if not finding.node:
            continue  # it is about the whole text
        assert [step.node for step in finding.path if step.here] == [finding.node]
        assert all(step.op and step.type for step in finding.path)
        if any(node.name == finding.node for node in computed(context)):
            assert finding.costs is not None
            assert finding.costs["us"] >= 0
            assert not context.costs.total_us or "share" in finding.costs


def computed(context: Context) -> set[Node]:
    """The nodes of the text that some kernel of the plan computes."""
    sound = context.sound
    plans = sound.costs.planned.plans if sound.costs.planned is not None else []
    own = (sound.view.original(node, plan.graph) for plan in plans for group in plan.groups for node in group.nodes)
    return {node for node in own if node is not None}


NO_CLAIM = {"FUS017": {"torchscript"}, "CTL003": {"hlo"}}
"""Where a finding claims nothing: what torch copies computes nothing in primitives; XLA hoists code out of loops itself."""


@pytest.mark.parametrize("rule", [rule for rule in all_rules() if rule.fix is Fix.REWRITE], ids=lambda rule: rule.code)
def test_what_can_be_rewritten_is_tried_on_a_copy_in_each_format(rule: type[Rule]) -> None:
    """The claim is the difference between two plans, in every format in which the rule looks."""
    claimed = set()
    for fixture in rule.bad:
        _, findings = told(rule, fixture)
        if any(isinstance(f, RuleFinding) and f.edit is not None and f.saves is not None for f in findings):
            claimed.add(fixture.format)
    assert claimed == {fixture.format for fixture in rule.bad} - NO_CLAIM.get(rule.code, set())


def finding(text: str) -> Finding:
    return next(f for f in lint_context(Context(irscope.load(text).module())) if f.code == "DTY003")


def test_the_path_names_operators_types_and_lines_of_the_program() -> None:
    shown = finding(TEXT)
    assert [(s.node, s.op, s.type, s.source_line, s.here) for s in shown.path] == [
        ("d.7", "dot", "f32[512,512]", "model.py:41", False),
        ("n.8", "convert", "bf16[512,512]", "model.py:42", False),
        ("w.9", "convert", "f32[512,512]", "model.py:42", True),
    ]
    lines = shown.render().splitlines()
    assert "   path: %d.7  f32[512,512]   dot         model.py:41" in lines
    assert "         %w.9  f32[512,512]   convert  <- model.py:42" in lines


def test_every_format_for_machines_has_the_path_and_the_costs() -> None:
    report = Report([FileReport("m.hlo", [finding(TEXT)])])
    (row,) = json.loads(reporter("json")(report))["files"][0]["findings"]
    first = row["path"][0]
    assert (first["node"], first["type"], first["source"]) == ("d.7", "f32[512,512]", "model.py:41")
    assert row["costs"]["us"] > 0
    assert 0 < row["costs"]["share"] <= 1
    (result,) = json.loads(reporter("sarif")(report))["runs"][0]["results"]
    texts = [place["message"]["text"] for place in result["relatedLocations"]]
    assert texts[1:] == ["%d.7 f32[512,512] dot at model.py:41", "%n.8 bf16[512,512] convert at model.py:42",
                         "%w.9 f32[512,512] convert at model.py:42"]  # fmt: skip
    assert len({place["id"] for place in result["relatedLocations"]}) == len(texts)
    assert "  costs: about " in reporter("full")(report)


def test_a_baseline_knows_a_finding_by_its_operators_whatever_their_names() -> None:
    renamed = TEXT.replace("d.7", "product").replace("n.8", "narrow").replace("w.9", "wide.3")
    assert fingerprint(finding(renamed)) == fingerprint(finding(TEXT))
    assert fingerprint(finding(TEXT.replace("512", "256"))) != fingerprint(finding(TEXT))


def test_a_baseline_survives_the_numbers_of_torchscript() -> None:
    """Torch numbers values in order: one line more in front renames all that follow."""
    text = """graph(%x : Float(64, strides=[1])):
  %{0} : int = prim::Constant[value=5]()
  %{1} : bool = prim::Constant[value=0]()
  %{2} : NoneType = prim::Constant()
  %{3} : int = prim::Constant[value=6]()
  %{4} : Half(64, strides=[1]) = aten::to(%x, %{0}, %{1}, %{1}, %{2})
  %{5} : Float(64, strides=[1]) = aten::to(%{4}, %{3}, %{1}, %{1}, %{2})
  return (%{5})
"""
    found = []
    for first in (1, 11):
        module = irscope.load(text.format(*range(first, first + 6)), format="torchscript").module()
        found.append([fingerprint(f) for f in lint_context(Context(module)) if f.code == "DTY003"])
    assert found[0]
    assert found[0] == found[1]
