"""What drawings hold: every value once, constants folded, crowds stubbed, large graphs as sections."""
from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from irscope import api
from irscope.query.choose import Wanted, choose
from irscope.render import dot
from irscope.render.detail import detail_view
from irscope.render.dot import dot_text, draw
from irscope.render.drawing import drawing, view_of
from irscope.render.overview import overview
from irscope.render.svg import svg_text
from irscope.render.view import MAX_LINKS_OF_A_VALUE, BoxOptions, Drawing
from irscope.source import UserError
from tests.analysis.texts import FUSED, LOOP, layers, survey


def links(view: Drawing) -> set[tuple[str, str]]:
    def name(box: object) -> str:
        node = getattr(box, "node", None)
        return node.name if node is not None else str(getattr(box, "title", ""))
    return {(name(link.source), name(link.target)) for link in view.links}


def test_fusions_are_drawn_in_place_and_constants_as_text() -> None:
    facts = survey(FUSED)
    view = detail_view(facts, facts.module.main(), BoxOptions())
    assert links(view) == {("x", "dot"), ("w", "dot"), ("dot", "sum"), ("bias", "wide"), ("wide", "sum"), ("sum", "total")}
    total = next(box for box in view.boxes if box.node is not None and box.node.name == "total")
    assert total.inputs == ["0"]
    assert total.title == "reduce add {1}"
    assert "result" in total.tags
    assert [cluster.title for cluster in view.clusters] == ["fusion kLoop  %biased"]


def test_loop_bodies_have_frames_and_plumbing_is_looked_through() -> None:
    facts = survey(LOOP)
    view = detail_view(facts, facts.module.main(), BoxOptions())
    assert {c.title for c in view.clusters} == {"cond", "body x5"}
    assert ("x", "run") in links(view)
    assert not any(box.node is not None and box.node.op.name in ("tuple", "get-tuple-element", "constant") for box in view.boxes)


def test_depth_keeps_bodies_closed() -> None:
    facts = survey(FUSED)
    view = detail_view(facts, facts.module.main(), BoxOptions(depth=0))
    assert not view.clusters
    assert ("dot", "biased") in links(view)


def test_values_with_crowds_of_users_are_written_and_not_drawn() -> None:
    users = MAX_LINKS_OF_A_VALUE + 4
    lines = ["HloModule m", "ENTRY main {", "  x = f32[4] parameter(0)", "  hub = f32[4] negate(x)"]
    lines += [f"  u{i} = f32[4] tanh(hub)" for i in range(users)]
    lines += [f"  ROOT r = ({', '.join(['f32[4]'] * users)}) tuple({', '.join(f'u{i}' for i in range(users))})", "}"]
    facts = survey("\n".join(lines))
    view = detail_view(facts, facts.module.main(), BoxOptions())
    hub = next(box for box in view.boxes if box.node is not None and box.node.name == "hub")
    assert not any(link.source is hub for link in view.links)
    assert f"used by {users}" in hub.lines
    assert next(box for box in view.boxes if box.node is not None and box.node.name == "u3").inputs == ["%hub"]


def test_picked_nodes_say_what_is_missing() -> None:
    reading = api.load(FUSED)
    view = view_of(reading, choose(reading.module(), Wanted(around="biased", radius=1), False), BoxOptions(depth=0))
    assert {box.node.name for box in view.boxes if box.node is not None} == {"dot", "bias", "biased", "total"}
    dotted = {box.node.name for box in view.boxes if box.node is not None and "open" in box.tags}
    assert dotted == {"dot"}
    assert view.notes[0] == "within 1 of %biased"


@pytest.mark.parametrize("scoped", [False, True])
@pytest.mark.parametrize("n", [12, 400])
def test_an_overview_holds_every_node_and_few_boxes(n: int, scoped: bool) -> None:
    facts = survey(layers(n, scoped))
    view = overview(facts, facts.module.main(), BoxOptions(max_boxes=10))
    assert 1 <= len(view.boxes) <= 10
    steps = sum(1 for node in facts.module.main().nodes if node.op.name != "parameter")
    closed = [box for box in view.boxes if box.node is None]
    if closed and n == 400:
        assert any(box.times > 1 or "x400" in str(box.cluster.title if box.cluster else "") for box in view.boxes) or len(closed) > 1
    assert steps == 4 * n


def test_an_open_section_that_repeats_shows_the_way_to_the_next_copy() -> None:
    facts = survey(layers(50, scoped=True))
    view = overview(facts, facts.module.main(), BoxOptions(max_boxes=10))
    assert [c.title for c in view.clusters][-1] == "layer_0..49 x50"
    assert any(text.endswith("of the copy before") for box in view.boxes for text in box.inputs)
    assert {box.node.op.name for box in view.boxes if box.node is not None} == {"dot", "tanh", "negate", "add"}


def test_a_graph_without_structure_is_cut_into_stretches() -> None:
    lines = ["HloModule m", "ENTRY main {", "  v0 = f32[1] parameter(0)"]
    # No two steps look alike: shapes grow.
    lines += [f"  v{i} = f32[{i + 1}] concatenate(v{i - 1}, v0), dimensions={{0}}" for i in range(1, 900)]
    facts = survey("\n".join([*lines, "}"]))
    view = overview(facts, facts.module.main(), BoxOptions(max_boxes=40))
    assert 5 <= len(view.boxes) <= 40
    assert len(view.links) >= len(view.boxes) - 2


def test_dot_text_is_the_same_for_the_same_graph_and_limits_its_time() -> None:
    facts = survey(FUSED)
    texts = {dot_text(detail_view(facts, facts.module.main(), BoxOptions())) for _ in range(3)}
    assert len(texts) == 1
    text = texts.pop()
    assert "nslimit=1" in text
    assert text.count("{") == text.count("}")
    assert "ortho" not in text


@pytest.mark.parametrize("color_by", ["class", "cost", "dtype", "fusion", "findings"])
@pytest.mark.parametrize("dark", [False, True])
def test_colours_are_colours(color_by: str, dark: bool) -> None:
    facts = survey(FUSED)
    text = dot_text(detail_view(facts, facts.module.main(), BoxOptions()), color_by, dark)
    assert set(re.findall(r'(?:fillcolor|fontcolor|color)="([^"]*)"', text)) <= set(re.findall(r"#[0-9a-f]{6}", text))


def test_hostile_names_stay_inside_their_quotes() -> None:
    text = FUSED.replace("jit(f)/dense/dot_general", 'a"];<script>&/b').replace('op_name="a"];', 'op_name="a];')
    facts = survey(text)
    view = detail_view(facts, facts.module.main(), BoxOptions())
    assert "<script>" not in svg_text(view)
    ET.fromstring(svg_text(view))


def test_our_own_svg_is_well_formed_and_holds_every_box() -> None:
    facts = survey(LOOP)
    view = detail_view(facts, facts.module.main(), BoxOptions())
    tree = ET.fromstring(svg_text(view, dark=True))
    assert len(tree.findall(".//{*}g/{*}rect")) == len(view.boxes)


def test_without_graphviz_svg_is_ours_and_png_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dot, "has_wheel", lambda: False)
    monkeypatch.setenv("PATH", "/nonexistent")
    reading = api.load(FUSED)
    choice = choose(reading.module(), Wanted(), False)
    assert drawing(reading, choice, "svg", BoxOptions()).startswith(b"<svg")
    with pytest.raises(UserError) as error:
        drawing(reading, choice, "png", BoxOptions())
    assert "irscope[draw]" in error.value.help


def test_dot_on_the_path_draws(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    from pathlib import Path

    folder = Path(str(tmp_path))
    program = folder / "dot"
    program.write_text('#!/bin/sh\nread first\ncase "$1 $first" in\n"-Tpng digraph irscope {") printf drawn;;\n*) echo bad >&2; exit 1;;\nesac\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    facts = survey(FUSED)
    assert draw(dot_text(detail_view(facts, facts.module.main(), BoxOptions())), "png") == b"drawn"
    with pytest.raises(UserError, match="graphviz failed: bad"):
        draw("no graph", "png")


def test_too_many_picked_nodes_are_refused_with_advice() -> None:
    reading = api.load(layers(100))
    with pytest.raises(UserError, match="too many to read") as error:
        view_of(reading, choose(reading.module(), Wanted(where="op=*"), False), BoxOptions())
    assert "--max-nodes" in error.value.help


@pytest.mark.skipif(not dot.can_draw(), reason="no graphviz here")
@pytest.mark.parametrize("name", ["main", "biased", "dense", "x"])
def test_names_of_any_length_are_drawn(name: str) -> None:
    facts = survey(re.sub(rf"\b{name}\b", name + "_" * 20_000, FUSED))
    text = dot_text(detail_view(facts, facts.module.main(), BoxOptions()))
    assert max(map(len, text.splitlines())) < 16_384
    assert draw(text, "svg").startswith(b"<?xml")
