"""Kernels that a fusion policy makes, framed in drawings."""
from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import irscope
from irscope.analysis.survey import Survey
from irscope.api.options import LintOptions
from irscope.api.planning import kernel_plan
from irscope.cli.main import main
from irscope.graph import Module
from irscope.lint.fusion import plans
from irscope.lint.kernels import kernels_by_node
from irscope.lint.proven.words import answer_lines
from irscope.query.choose import Wanted, choose
from irscope.render.dot import dot_text
from irscope.render.drawing import view_of
from irscope.render.overview import overview
from irscope.render.svg import svg_text
from irscope.render.view import Box, BoxOptions, Drawing
from tests.render.test_json_and_html import packed

SAMPLES = Path(__file__).parents[2] / "samples"
TEXT = """HloModule m
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[64,512]{1,0} parameter(0)
  w = f32[512,512]{1,0} parameter(1)
  zero = f32[] constant(0)
  d = f32[64,512]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  n = f32[64,512]{1,0} negate(d)
  a = f32[64,512]{1,0} abs(n)
  s = f32[64]{0} reduce(a, zero), dimensions={1}, to_apply=sum
  m = f32[64,512]{1,0} maximum(n, d)
  ROOT t = (f32[64]{0}, f32[64,512]{1,0}) tuple(s, m)
}
"""


def drawn(text: str, policy: str) -> Drawing:
    """The drawing of a text with the kernels of a policy."""
    reading = irscope.load(text)
    options = BoxOptions(plan=kernel_plan(reading, reading.module(), policy))
    return view_of(reading, choose(reading.module(), Wanted(None, 2, None, None, None, None), False), options)


def frames(view: Drawing) -> dict[str, list[str]]:
    """The boxes in each frame."""
    found: dict[str, list[str]] = {}
    for box in view.boxes:
        if box.cluster is not None and box.node is not None:
            found.setdefault(box.cluster.title, []).append(box.node.name)
    return found


def box_of(view: Drawing, name: str) -> Box:
    """The box of a node."""
    return next(box for box in view.boxes if box.node is not None and box.node.name == name)


def named(module: Module, name: str) -> tuple[str, ...]:
    """The kernels of a node under XLA's CPU policy."""
    kernels = kernels_by_node(module, plans(module, "xla-cpu"))
    return next((k for node, k in kernels.items() if node.name == name), ())


def test_a_node_knows_the_kernels_that_compute_it() -> None:
    module = irscope.load(TEXT).module()
    assert named(module, "a") == ("s",) and named(module, "m") == ("m",) and named(module, "d") == ("d",)
    assert set(named(module, "n")) == {"s", "m"}


def test_a_kernel_of_several_boxes_has_a_frame_and_one_of_one_box_none() -> None:
    view = drawn(TEXT, "xla-cpu")
    assert frames(view) == {"kernel of %s": ["a", "s"]}
    assert "in 2 kernels" in box_of(view, "n").lines
    assert [cluster.title for cluster in view.clusters] == ["kernel of %s"]
    assert view.notes[0].startswith("frames are kernels under xla-cpu@jaxlib-")


def test_operators_of_other_formats_are_framed_as_written() -> None:
    view = drawn((SAMPLES / "conv_cast_relu.relay").read_text(), "tvm")
    assert frames(view) == {"kernel of %3": ["0", "1", "2", "3"]}


def test_a_drawing_of_sections_counts_the_kernels_of_each() -> None:
    view = drawn((SAMPLES / "transformer.opt.hlo").read_text(), "xla-cpu")
    assert any("sections count the kernels of xla-cpu@jaxlib-" in note for note in view.notes)
    attention = next(box for box in view.boxes if box.title == "attention")
    assert attention.node is None and "21 kernels" in attention.lines


def test_edges_through_memory_are_marked_with_their_verdict() -> None:
    view = drawn(TEXT, "xla-cpu")
    stored = {(link.source.node.name, link.target.node.name): link for link in view.links if link.stored and link.source.node and link.target.node}
    assert set(stored) == {("d", "n"), ("d", "m")}
    edge = stored["d", "n"].stored[0]
    assert edge.verdict.rule and edge.verdict.cause in edge.describe() and edge.bytes > 0
    assert any(note.startswith("dashed lines are not fused") for note in view.notes)
    for text in (dot_text(view), svg_text(view)):
        assert "not fused, " in text and "#bc4c00" in text and "fix: " in text
    ET.fromstring(svg_text(view))


def test_the_verdicts_are_those_of_the_linter() -> None:
    text = (SAMPLES / "transformer.pre.hlo").read_text()
    reading = irscope.load(text)
    linted = irscope.lint(text, LintOptions(why=True, policy="xla-cpu", isolated=True)).report.files[0].edges
    apart = {edge.verdict.names: (edge.verdict.rule, edge.verdict.cause, answer_lines(edge.answer)[0] if edge.answer else "", edge.bytes, edge.us)
             for edge in linted if edge.is_apart}
    plan = kernel_plan(reading, reading.module(), "xla-cpu")
    assert apart == {edge.verdict.names: (edge.verdict.rule, edge.verdict.cause, edge.fix, edge.bytes, edge.us)
                     for edge in plan.edges}
    assert [edge.group for edge in plan.edges] == sorted(edge.group for edge in plan.edges)


def test_fusions_of_the_text_are_in_the_kernels_of_what_they_hold() -> None:
    reading = irscope.load((SAMPLES / "transformer.opt.hlo").read_text())
    fusions = [node for node in reading.module().main().nodes if node.bodies]
    as_compiled = kernel_plan(reading, reading.module(), "xla-cpu")
    assert all(len(as_compiled.kernels[node]) == 1 for node in fusions)
    assert as_compiled.count(fusions) == len(fusions)
    assert kernel_plan(reading, reading.module(), "irscope").count(fusions) < len(fusions)
    inside = set(reading.module().main().nodes)
    assert all(edge.producer in inside and edge.consumer in inside for edge in as_compiled.edges)


def test_a_page_holds_several_policies_and_a_drawing_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = str(SAMPLES / "wasteful.pre.hlo"), tmp_path / "k.html"
    assert main(["show", source, "--policy", "xla-cpu,irscope,xla-gpu", "--device", "a100", "-o", str(out)]) == 0
    plans = json.loads(packed(out.read_text(), "data"))["plans"]
    assert [plan["name"].partition("@")[0] for plan in plans] == ["xla-cpu", "irscope", "xla-gpu"]
    assert all(plan["edges"] and plan["graphs"] for plan in plans)
    assert main(["show", source, "--policy", "xla-cpu,irscope", "-o", str(tmp_path / "k.svg")]) == 2
    assert "of one policy" in capsys.readouterr().err


def test_show_frames_kernels_in_pictures_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = str(SAMPLES / "wasteful.pre.hlo"), tmp_path / "k.dot"
    assert main(["show", source, "--policy", "xla-cpu", "-o", str(out)]) == 0
    assert 'label="kernel of %reduce_sum.7"' in out.read_text() and "xla-cpu@jaxlib-" in out.read_text()
    assert main(["show", source, "--policy", "xla-gpu", "--device", "a100", "--color-by", "fusion", "-o", str(out)]) == 0
    assert main(["show", source, "--policy", "xla-cpu"]) == 2 and "in a drawing or on a page" in capsys.readouterr().err
    assert main(["show", source, "--device", "a100", "-o", str(out)]) == 2 and "without a policy" in capsys.readouterr().err
    assert main(["show", source, "--policy", "nope", "-o", str(out)]) == 2


@pytest.mark.parametrize(("format", "policy"), [("svg", ""), ("dot", " "), ("html", ""), ("html", " , ")])
def test_a_drawing_for_no_policy_is_refused(policy: str, format: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.hlo").write_text(TEXT)
    assert main(["show", str(tmp_path / "m.hlo"), "--format", format, "--policy", policy]) == 2
    assert "--policy names no policy" in capsys.readouterr().err


def test_an_overview_counts_a_value_that_is_read_twice_by_one_node_once() -> None:
    steps = [f"  e{i} = f32[64,64] exponential(d{i - 1})\n"
             f"  d{i} = f32[64,64] dot(e{i}, e{i}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n" for i in range(1, 31)]
    reading = irscope.load("HloModule m\n\nENTRY e {\n  d0 = f32[64,64] parameter(0)\n" + "".join(steps) + "  ROOT t = f32[64,64] tanh(d30)\n}\n")
    plan = kernel_plan(reading, reading.module(), "xla-cpu")
    view = overview(Survey(reading.module()), reading.module().main(), BoxOptions(max_boxes=80, plan=plan))
    stored = [link.stored for link in view.links if link.stored]
    assert stored and all(len(edges) == len({id(edge) for edge in edges}) for edges in stored)
