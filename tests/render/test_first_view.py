"""The first view of a program: what stands out is named, and the drawing fits a screen."""
from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from irscope import api
from irscope.analysis.highlights import highlights
from irscope.query.choose import Wanted, choose
from irscope.render.drawing import view_of
from irscope.render.folding import Fold
from irscope.render.html import html_page
from irscope.render.opening import Folded, focus_of, open_sections
from irscope.render.room import screens_of
from irscope.render.svg import svg_text
from irscope.render.view import Box, BoxLink, BoxOptions, Drawing
from irscope.source import Finding, Severity
from tests.analysis.test_highlights import PROGRAM
from tests.analysis.texts import layers, survey
from tests.render.test_json_and_html import as_json, packed


def first_view(text: str, **options: Any) -> Drawing:
    """What ``-o x.svg`` draws."""
    reading = api.load(text)
    return view_of(reading, choose(reading.module(), Wanted(), False), BoxOptions(**options, generous=bool(options)))


def chain(n: int) -> Drawing:
    """Boxes below each other."""
    boxes = [Box(f"step {i}", "section") for i in range(n)]
    return Drawing("chain", boxes, [BoxLink(a, b) for a, b in pairwise(boxes)])


def all_badges(view: Drawing) -> Iterator[str]:
    """The badges of all boxes."""
    for box in view.boxes:
        yield from box.badges


def test_the_heading_names_what_stands_out() -> None:
    view = first_view(PROGRAM)
    heading = "\n".join(view.heading)
    for part in ("costliest kernel %product, 524 kFLOP", "5 runs", "largest copy %copied, 16 KiB", "dtype leak f64: 4 values, the largest %halves",
                 "dtype leak bf16 -> f32: 1 value", "costliest unfused edge %product -> %smooth"):
        assert part in heading
    assert all(line.replace(">", "&gt;") in svg_text(view) for line in view.heading)


def test_boxes_have_badges_and_links_say_what_is_not_fused() -> None:
    view = first_view(PROGRAM)
    badges = set(all_badges(view))
    assert {"costliest kernel %product", "largest copy %copied", "not fused with %product"} <= badges
    assert any(badge.startswith("1 f64") for badge in badges)
    product = next(box for box in view.boxes if box.node is not None and box.node.name == "product")
    assert "highlight" in product.tags
    assert [link.label for link in view.links if link.source is product] == ["not fused: 16 KiB"]


def test_a_closed_box_has_the_badges_of_what_is_in_it() -> None:
    reading = api.load(PROGRAM)
    view = view_of(reading, choose(reading.module(), Wanted(), False), BoxOptions(depth=0))
    run = next(box for box in view.boxes if box.node is not None and box.node.name == "run")
    assert run.badges == ["costliest kernel %product", "not fused: %product -> %smooth"]


def test_boxes_of_our_own_svg_are_nodes() -> None:
    view = first_view(PROGRAM)
    assert svg_text(view).count('class="node"') == len(view.boxes)


def test_a_part_of_a_program_has_no_heading() -> None:
    reading = api.load(PROGRAM)
    assert view_of(reading, choose(reading.module(), Wanted(around="product", radius=1), False), BoxOptions()).heading == []


def test_sections_around_a_highlight_open_before_costlier_ones() -> None:
    text = layers(30, scoped=True).replace("negate(s20_1)", "copy(s20_1)")
    facts = survey(text)
    graph = facts.module.main()
    copy = next(node for node in graph.nodes if node.op.name == "copy")
    root = facts.outline_of(graph)
    outline = Folded(root, [Fold.BOX] * len(graph.nodes))
    assert copy in focus_of(facts, graph, highlights(facts))
    holding = {section for section in root.walk() if copy in section.all_nodes()}
    opened = open_sections(outline, BoxOptions(20), [copy])
    assert holding <= opened | {root}


def test_the_loop_with_the_costliest_kernel_is_open() -> None:
    steps = "\n".join(f"  s{i} = f32[64,64] {'tanh' if i % 2 else 'sine'}({'x' if i == 0 else f's{i - 1}'})" for i in range(70))
    text = PROGRAM.replace("  b = bf16", steps + "\n  b = bf16").replace("fusion(x)", "fusion(s69)")
    view = first_view(text)
    frame = next(cluster for cluster in view.clusters if cluster.title == "body of %run x5")
    inside = {box.node.name: box for box in view.boxes if box.node is not None and box.cluster is frame}
    assert {"product", "smooth"} <= set(inside)
    assert "costliest kernel %product" in inside["product"].badges
    assert [link.target.cluster for link in view.links if link.label == "runs"] == [frame]


def test_a_chain_of_boxes_is_measured_in_screens() -> None:
    assert screens_of(chain(4)) < 1 < screens_of(chain(40))
    assert screens_of(Drawing("empty")) == 0


@pytest.mark.parametrize("n", [90, 400])
def test_an_overview_fits_a_screen(n: int) -> None:
    # Steps of which no two are alike
    lines = ["HloModule m", "ENTRY main {", "  v0 = f32[1] parameter(0)"]
    lines += [f"  v{i} = f32[{i + 1}] concatenate(v{i - 1}, v0), dimensions={{0}}" for i in range(1, n)]
    view = first_view("\n".join([*lines, "}"]))
    assert 5 <= len(view.boxes) <= 20
    assert len(first_view("\n".join([*lines, "}"]), max_boxes=60).boxes) > len(view.boxes)


def test_the_code_of_a_sort_is_drawn_where_there_is_little_else() -> None:
    steps = "\n".join(f"  s{i} = f32[] add({'a' if i == 0 else f's{i - 1}'}, b)" for i in range(20))
    view = first_view(f"HloModule m\nless {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n{steps}\n"
                      "  ROOT c = pred[] compare(s19, b), direction=LT\n}\n"
                      "ENTRY main {\n  x = f32[64] parameter(0)\n  ROOT y = f32[64] sort(x), dimensions={0}, to_apply=less\n}")
    assert len(view.boxes) == 2 + 23


def test_a_program_that_is_one_large_fusion_is_drawn_inside() -> None:
    steps = "\n".join(f"  s{i} = f32[{i + 2}] concatenate({'p' if i == 0 else f's{i - 1}'}, q), dimensions={{0}}" for i in range(90))
    view = first_view(f"HloModule m\nfused {{\n  p = f32[1] parameter(0)\n  q = f32[1] parameter(1)\n{steps}\n  ROOT r = f32[91] negate(s89)\n}}\n"
                      "ENTRY main {\n  x = f32[1] parameter(0)\n  y = f32[1] parameter(1)\n"
                      "  ROOT all = f32[91] fusion(x, y), kind=kLoop, calls=fused\n}")
    assert 5 <= len(view.boxes) <= 40
    assert any("inside %all" in note for note in view.notes)


def test_the_json_holds_the_highlights() -> None:
    found = as_json(PROGRAM)["modules"][0]["highlights"]
    assert set(found) == {"kernels", "copies", "leaks", "edges"}
    assert found["kernels"][0]["nodes"] == ["product"]
    assert found["leaks"][0]["nodes"] == ["halved/half", "halved/halves", "halved/wide", "halved/scaled"]
    assert found["edges"][0]["nodes"] == ["product", "smooth"]


def test_the_page_holds_heading_badges_leaks_and_findings() -> None:
    facts = survey(PROGRAM)
    finding = Finding("DTY001", "float64-leak", Severity.ERROR, "double precision", None, -1, 1, (), "", "wide", "halved")
    data = json.loads(packed(html_page(facts, [finding]), "data"))
    assert data["highlights"][0][1] == "body/product"
    main = next(graph for graph in data["graphs"] if graph["name"] == "main")
    names = main["names"]
    assert [names.index("run"), "costliest kernel %product"] in main["badges"]
    assert [names.index("scaled"), "f64", 4] in main["leaks"]
    assert main["found"] == [[names.index("scaled"), 0]]
    assert data["findings"][0]["severity"] == "error" and data["findings"][0]["graph"] == "halved"


def test_the_page_opens_the_sections_that_matter() -> None:
    facts = survey(layers(400, scoped=True))
    data = json.loads(packed(html_page(facts), "data"))
    graph = data["graphs"][0]
    assert graph["opened"]
    assert all(graph["sections"][row][1] >= 0 for row in graph["opened"])
