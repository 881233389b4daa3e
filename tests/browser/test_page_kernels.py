"""Fusion policies on the page: kernels in frames, edges that are not fused, and why."""
from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.browser.conftest import Open, Shown
from tests.conftest import Cli

pytestmark = pytest.mark.browser

SAMPLES = Path(__file__).parents[2] / "samples"
WASTEFUL = (SAMPLES / "wasteful.pre.hlo").read_text()
FRAMES = "page.view.frames.filter(f => f.kernel).map(f => page.graph.title(placeOfSection(f.section)))"
MIDDLE = """([a, b]) => {
  const v = name => page.graph.names.indexOf(name), link = page.view.links.find(l => l.a === v(a) && l.b === v(b));
  const path = route(page.view.items.get(link.a), page.view.items.get(link.b), link.points), [x0, y0] = path[0], [x1, y1] = path[1];
  const r = $("canvas").getBoundingClientRect();
  return [r.left + page.x + (x0 + x1) / 2 * page.scale, r.top + page.y + (y0 + y1) / 2 * page.scale];
}"""


def click_line(shown: Shown, producer: str, consumer: str) -> None:
    """Clicks the middle of the line between two boxes."""
    x, y = shown.tab.evaluate(MIDDLE, [producer, consumer])
    shown.tab.mouse.click(x, y)


def test_kernels_are_framed_and_the_policy_is_switched(open_page: Open) -> None:
    shown = open_page(WASTEFUL, "--policy", "xla-cpu,irscope")
    first = shown.value(FRAMES)
    assert "kernel of %reduce_sum.7" in first
    shown.tab.locator("#policy").select_option("1")
    second = shown.value(FRAMES)
    assert second and second != first
    assert "policy=irscope" in shown.tab.url
    shown.tab.locator("#policy").select_option("")
    assert shown.value(FRAMES) == [] and shown.value("page.view.links.some(l => l.stored.length)") is False


def test_a_line_that_is_not_fused_says_what_lint_says(open_page: Open, cli: Cli) -> None:
    shown = open_page(WASTEFUL, "--policy", "xla-cpu")
    click_line(shown, "tanh.2", "reduce_max.7")
    card = shown.tab.locator("#panel article").inner_text()
    said = cli("lint", "--why-not-fused", SAMPLES / "wasteful.pre.hlo", "tanh.2", "reduce_max.7", "--policy", "xla-cpu", "--format", "json").stdout
    edge = json.loads(said)["files"][0]["edges"][0]
    for key in ("rule", "reason", "cause"):
        assert edge[key] and edge[key] in card, key
    assert (edge["counterfactual"] or "no fix: ") in card
    assert "128 KiB" in card and "not fused" in card


def test_the_list_leads_to_the_line_and_the_address_brings_it_back(open_page: Open) -> None:
    shown = open_page(WASTEFUL, "--policy", "xla-cpu")
    shown.tab.get_by_role("tab", name="not fused").click()
    costs = shown.value("currentPlan().edges.map(row => row[7])")
    assert len(costs) == 9
    shown.tab.locator("#panel .item").first.click()
    assert shown.value("page.edge.edges.length") == 1 and "edge=" in shown.tab.url
    before = shown.tab.locator("#panel article").inner_text()
    again = open_page(WASTEFUL, "--policy", "xla-cpu", fragment="#" + shown.tab.url.partition("#")[2])
    assert again.tab.locator("#panel article").inner_text() == before


def test_a_fused_line_and_a_page_without_policy_say_so(open_page: Open) -> None:
    shown = open_page(WASTEFUL, "--policy", "xla-cpu")
    click_line(shown, "convert_element_type.8", "mul.4")
    assert "one kernel, of %reduce_sum.7, computes both ends" in shown.details()
    plain = open_page(WASTEFUL)
    click_line(plain, "tanh.2", "reduce_max.7")
    assert "--policy auto says whether this edge is fused" in plain.details() and "f32[8,2048]" in plain.details()


def test_a_closed_section_counts_its_kernels(open_page: Open) -> None:
    shown = open_page((SAMPLES / "transformer.opt.hlo").read_text(), "--policy", "xla-cpu")
    attention = "[...page.view.items.values()].find(i => i.place < 0 && page.graph.title(i.place).startsWith('attention')).lines"
    assert "21 kernels" in shown.value(attention)


def test_every_frame_and_line_has_its_place(open_page: Open) -> None:
    shown = open_page((SAMPLES / "transformer.pre.hlo").read_text(), "--policy", "xla-cpu,irscope")
    for number in (0, 1):
        shown.value(f"choosePlan({number})")
        faults = shown.value("""() => {
            const faults = [];
            for (let round = 0; round < 4; round++) {
                for (let s = 0; s < page.graph.parent.length; s++) if (page.graph.open.has(page.graph.parent[s])) page.graph.open.add(s);
                const view = page.graph.layout();
                for (const i of view.items.values()) if (!(i.x >= 0 && i.y >= 0 && i.x <= view.width && i.y <= view.height)) faults.push(i.place);
                for (const f of view.frames) if (!(f.x >= 0 && f.x + f.w <= view.width + 1 && f.y + f.h <= view.height + 1)) faults.push(f.section);
                for (const link of view.links) if (!view.items.has(link.a) || !view.items.has(link.b)) faults.push([link.a, link.b]);
            }
            return faults;
        }""")
        assert faults == []


SQUARE = """HloModule square

ENTRY main {
  x = f32[64,64] parameter(0)
  e = f32[64,64] exponential(x)
  s = f32[64,64] dot(e, e), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = f32[64,64] tanh(s)
}
"""


def test_a_view_without_kernels_is_brought_back_by_its_address(open_page: Open) -> None:
    shown = open_page(SQUARE, "--policy", "xla-cpu", fragment="#policy=")
    assert shown.value("page.plan") is None
    assert shown.tab.locator("#policy").input_value() == ""
    shown.tab.locator("#policy").select_option("0")
    assert "policy" not in shown.value("location.hash")
    shown.tab.locator("#policy").select_option("")
    assert shown.value("location.hash").startswith("#policy=")


def test_a_value_that_is_read_twice_by_one_node_is_counted_once(open_page: Open) -> None:
    shown = open_page(SQUARE, "--policy", "xla-cpu")
    link = "page.view.links.find(l => l.a === page.graph.names.indexOf('e'))"
    assert len(shown.value(link + ".stored")) == 1


def test_tuples_of_tuples_are_looked_through_once(open_page: Open) -> None:
    """Fifty tuples, each of the one before twice: two to the fifty ways to the same value."""
    shown = open_page(SQUARE)
    assert shown.value(WAYS) == 1


WAYS = """(() => {
  const n = 52, g = page.graph, raw = { ...g.raw, fold: "b" + "v".repeat(n - 2) + "b", operands: Array.from({ length: n }, (_, v) => v ? [1, 1] : []), same: {} };
  Object.assign(g, { n, raw, section: new Array(n).fill(0), same: new Int32Array(n).fill(-2), _edges: null });
  return g.edges().from.length;
})()"""
