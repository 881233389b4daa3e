"""Findings on drawings: marked in the box that shows the node, or that stands for it."""
from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from irscope.cli.main import main
from irscope.render.detail import detail_view
from irscope.render.dot import dot_text
from irscope.render.marks import found_lines, severity_of, tooltip_of
from irscope.render.overview import overview
from irscope.render.svg import svg_text
from irscope.render.view import Box, BoxOptions, Drawing
from irscope.source import Finding, Severity
from tests.analysis.texts import FUSED, layers, survey
from tests.render.test_json_and_html import packed

WASTEFUL = Path(__file__).parents[2] / "samples" / "wasteful.pre.hlo"


def found(node: str, graph: str = "", severity: Severity = Severity.WARNING, code: str = "DTY003") -> Finding:
    """A finding about a node."""
    return Finding(code, "some-name", severity, f"what is wrong with {node}", None, -1, 1, (), "", node, graph)


def box_of(view: Drawing, node: str) -> Box:
    """The box that shows a node."""
    return next(box for box in view.boxes if box.node is not None and box.node.name == node)


def test_a_box_has_the_findings_about_its_node_and_no_others() -> None:
    facts = survey(FUSED)
    main_name = facts.module.main().name
    view = detail_view(facts, facts.module.main(), BoxOptions(findings=[found("dot", main_name), found("total", main_name, Severity.ERROR)]))
    assert [box.node.name for box in view.boxes if box.findings and box.node] == ["dot", "total"]
    assert severity_of(box_of(view, "total")) == "error" and severity_of(box_of(view, "x")) == ""


def test_a_constant_is_marked_where_it_is_written() -> None:
    facts = survey(FUSED)
    graph = facts.module.main()
    constant = next(node for node in graph.nodes if node.op.name == "constant")
    view = detail_view(facts, graph, BoxOptions(findings=[found(constant.name, graph.name)]))
    assert [box.node.name for box in view.boxes if box.findings and box.node] == ["total"]


def test_a_closed_fusion_answers_for_what_is_in_it_and_an_open_one_does_not() -> None:
    facts = survey(FUSED)
    graph = facts.module.main()
    body = next(node.bodies[0] for node in graph.nodes if node.op.name == "fusion")
    findings = [found("sum", body.name)]
    closed = detail_view(facts, graph, BoxOptions(depth=0, findings=findings))
    opened = detail_view(facts, graph, BoxOptions(findings=findings))
    assert box_of(closed, "biased").findings == findings
    assert box_of(opened, "sum").findings == findings


def test_a_closed_loop_answers_for_what_its_body_calls_and_an_open_one_leaves_that_to_the_call() -> None:
    facts = survey("""HloModule m
inner {
  p = f32[4] parameter(0)
  ROOT deep = f32[4] tanh(p)
}
outer {
  q = f32[4] parameter(0)
  ROOT call = f32[4] call(q), to_apply=inner
}
ENTRY main {
  x = f32[4] parameter(0)
  n = f32[4] negate(x)
  ROOT top = f32[4] call(n), to_apply=outer
}
""")
    graph = facts.module.main()
    findings = [found("deep", "inner")]
    closed = detail_view(facts, graph, BoxOptions(depth=0, findings=findings))
    assert box_of(closed, "top").findings == findings
    opened = detail_view(facts, graph, BoxOptions(findings=findings))
    assert [box.node.name for box in opened.boxes if box.findings and box.node] == ["deep"]
    half = detail_view(facts, graph, BoxOptions(depth=1, findings=findings))
    assert [box.node.name for box in half.boxes if box.findings and box.node] == ["call"]


def test_nothing_is_told_of_what_was_not_picked() -> None:
    facts = survey(FUSED)
    graph = facts.module.main()
    picked = [node for node in graph.nodes if node.name in ("x", "biased")]
    view = detail_view(facts, graph, BoxOptions(picked=picked, findings=[found("dot", graph.name), found("x", graph.name)]))
    assert [finding.node for box in view.boxes for finding in box.findings] == ["x"]


def test_a_box_of_a_layer_that_repeats_counts_what_stands_in_all_its_copies() -> None:
    facts = survey(layers(24))
    graph = facts.module.main()
    products = [node for node in graph.nodes if node.op.name == "dot"]
    view = overview(facts, graph, BoxOptions(max_boxes=6, findings=[found(node.name, graph.name) for node in products]))
    assert sum(len(box.findings) for box in view.boxes) == len(products)
    section = max(view.boxes, key=lambda box: len(box.findings))
    assert re.fullmatch(r"DTY003 some-name ×\d+", found_lines(section)[0]) and len(section.findings) >= 24


def test_many_findings_stay_few_words() -> None:
    box = Box("add", "elementwise", findings=[found("a", code=f"ALG00{i}") for i in range(5)] + [found("a", severity=Severity.ERROR)] * 4)
    assert found_lines(box) == ["DTY003 some-name ×4", "ALG000 some-name", "ALG001 some-name", "and 3 more"]
    assert tooltip_of(box).splitlines()[-1] == "and 3 more findings"


@pytest.mark.parametrize("draw", [dot_text, svg_text])
def test_marks_are_drawn_in_both_layouts(draw: object) -> None:
    facts = survey(FUSED)
    graph = facts.module.main()
    text = draw(detail_view(facts, graph, BoxOptions(findings=[found("dot", graph.name)])))  # type: ignore[operator]
    assert "DTY003 some-name" in text and "what is wrong with dot" in text and "#e36209" in text
    plain = draw(detail_view(facts, graph, BoxOptions()))  # type: ignore[operator]
    assert "DTY003" not in plain and "#e36209" not in plain


def test_show_judges_the_dump_where_it_is_asked_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "w.dot"
    assert main(["show", str(WASTEFUL), "-o", str(out)]) == 0 and "DTY003" not in out.read_text()
    assert main(["show", str(WASTEFUL), "--lint", "-o", str(out)]) == 0 and "DTY003 cast-ping-pong" in out.read_text()
    assert main(["show", str(WASTEFUL), "--color-by", "findings", "-o", str(out)]) == 0 and "#ffe08a" in out.read_text()
    page = tmp_path / "w.html"
    assert main(["show", str(WASTEFUL), "--lint", "-o", str(page)]) == 0
    told = json.loads(packed(page.read_text(), "data"))["findings"]
    assert any(finding["node"] == "convert_element_type.7" and finding["code"] == "DTY003" for finding in told)
    assert main(["show", str(WASTEFUL), "--lint", "--format", "json"]) == 0
    assert "DTY003" in {finding["code"] for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert main(["show", str(WASTEFUL), "--lint"]) == 0
    assert "warning[DTY003]" in capsys.readouterr().out


def test_an_svg_with_marks_is_well_formed(tmp_path: Path) -> None:
    facts = survey(FUSED)
    graph = facts.module.main()
    finding = found("dot", graph.name)
    finding.message = 'f32[8] & "<b>"'
    ET.fromstring(svg_text(detail_view(facts, graph, BoxOptions(findings=[finding]))))
