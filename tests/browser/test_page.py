"""The offline page as its reader uses it: with the mouse, the keys, the search, and the address."""
from __future__ import annotations

import pytest

from tests.analysis.texts import FUSED, LOOP, layers
from tests.browser.conftest import Open

pytestmark = pytest.mark.browser

WASTEFUL = """HloModule wasteful

ENTRY main {
  x = f32[64,1024] parameter(0)
  w = f32[1024,1024] parameter(1)
  product = f32[64,1024] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  narrow = bf16[64,1024] convert(product)
  wide = f32[64,1024] convert(narrow)
  ROOT out = f32[64,1024] tanh(wide)
}
"""


PROPERTIES = """HloModule properties

constructor {
  p = f32[1024] parameter(0)
  ROOT q = f32[1024] exponential(p)
}

__proto__ {
  p = f32[1024] parameter(0)
  ROOT q = f32[1024] exponential(p)
}

adder {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = f32[1024] parameter(0)
  zero = f32[] constant(0)
  called = f32[1024] call(x), to_apply=__proto__
  ROOT r = f32[] reduce(called, zero), dimensions={0}, to_apply=adder
}
"""


def test_the_page_needs_nothing_and_complains_of_nothing(open_page: Open) -> None:
    shown = open_page(FUSED)
    assert shown.value("irscopeReady") == {"nodes": 14, "boxes": shown.value("page.view.items.size")}
    assert shown.tab.title().startswith("fused")
    assert shown.tab.locator("#wait").is_hidden()
    assert shown.requests == [shown.file.as_uri()]
    assert shown.complaints == []


def test_a_click_on_a_box_tells_what_it_is(open_page: Open) -> None:
    shown = open_page(FUSED)
    shown.click("total")
    shown.until("document.querySelector('#right').textContent.includes('ROOT total')")
    told = shown.details()
    for part in ("reduce", "%total", "f32[8]", "jit(f)/pool/reduce_sum", "ROOT total = f32[8] reduce(biased, zero)"):
        assert part in told
    shown.tab.locator("#right button", has_text="%biased").click()
    assert "%biased" in shown.details() and "%dot" in shown.details()
    assert "node=main%2Fbiased" in shown.tab.url
    shown.tab.keyboard.press("Escape")
    assert shown.value("page.selected") is None


def test_the_address_brings_a_view_back(open_page: Open) -> None:
    shown = open_page(FUSED, fragment="#node=main%2Fdot")
    assert "dot" in shown.details() and "%dot" in shown.details()
    inside = open_page(LOOP, fragment="#graph=body&node=body%2Fy")
    assert inside.value("page.graph.name") == "body"
    assert "multiply" in inside.details()


def test_keys_walk_along_operands_and_users(open_page: Open) -> None:
    shown = open_page(FUSED)
    shown.click("total")
    for key, name in (("i", "biased"), ("i", "dot"), ("o", "biased"), ("o", "total")):
        shown.tab.keyboard.press(key)
        assert shown.value("page.graph.names[page.selected]") == name
    shown.tab.keyboard.press("?")
    assert "to an operand, to a user" in shown.tab.locator("#keys").inner_text()


def test_search_finds_names_operators_scopes_and_patterns(open_page: Open) -> None:
    shown = open_page(FUSED)
    found = shown.tab.locator("#found")
    for wanted, count, first in (("total", 1, "%total"), ("reduce", 1, "%total"), ("dense", 3, "%"), ("/^bia/", 2, "%bia"), ("nowhere", 0, "")):
        shown.tab.keyboard.press("/")
        shown.tab.locator("#search").fill(wanted)
        found.get_by_text(f"{count} found").wait_for()
        assert first in found.inner_text()
        shown.tab.keyboard.press("Escape")
    shown.tab.locator("#search").fill("/(/")
    found.get_by_text("regular expression").wait_for()
    shown.tab.locator("#search").fill("total")
    shown.tab.locator("#search").press("Enter")
    assert "%total" in shown.details()


def test_a_double_click_goes_into_a_loop_and_the_crumbs_lead_back(open_page: Open) -> None:
    shown = open_page(LOOP)
    shown.click("run", times=2)
    assert shown.value("page.graph.name") == "body"
    crumbs = shown.tab.locator("#crumbs")
    assert crumbs.inner_text().replace("\u203a", ">") == "main > body"
    crumbs.locator("button", has_text="main").click()
    assert shown.value("page.graph.name") == "main"
    shown.click("run")
    shown.tab.keyboard.press("Enter")
    shown.tab.keyboard.press("u")
    assert shown.value("[page.graph.name, page.graph.names[page.selected]]") == ["main", "run"]


def test_sections_close_and_open_in_outline_and_drawing(open_page: Open) -> None:
    shown = open_page(layers(12, scoped=True))
    opened, rows = shown.value("page.view.items.size"), len(shown.rows())
    section = shown.tab.locator("#rows .row[aria-expanded=true]", has_text="layer").first
    section.click()
    assert shown.value("page.view.items.size") < opened and len(shown.rows()) < rows
    shown.tab.locator("#rows .row[aria-expanded=false]", has_text="layer").first.click()
    assert (shown.value("page.view.items.size"), len(shown.rows())) == (opened, rows)
    assert ".".join(map(str, shown.value("[...page.graph.open].filter(s => s)"))) in shown.tab.url


def test_the_drawing_is_drawn_moved_and_zoomed(open_page: Open) -> None:
    shown = open_page(FUSED)
    colours = """() => { const c = $("canvas"), d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data, seen = new Set();
        for (let i = 0; i < d.length; i += 4) seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return seen.size; }"""
    assert shown.value(colours) > 10
    scale, x = shown.value("[page.scale, page.x]")
    shown.tab.mouse.move(700, 450)
    shown.tab.mouse.wheel(0, -400)
    shown.until(f"page.scale > {scale}")
    shown.tab.mouse.down()
    shown.tab.mouse.move(760, 480)
    shown.tab.mouse.up()
    assert shown.value("page.x") != x
    shown.tab.locator("#fit").click()
    assert shown.value("[page.scale, page.x]") == [scale, x]
    shown.tab.locator("#dark").click()
    assert shown.value("document.documentElement.classList.contains('dark')") is True
    shown.tab.mouse.move(*shown.place("dot"))
    assert "%dot = f32[8,16] dot" in shown.tab.locator("#tip").inner_text()


def test_hostile_names_stay_text(open_page: Open) -> None:
    bad = "<img src=x onerror=alert(1)></script>"
    shown = open_page(FUSED.replace("jit(f)/pool/reduce_sum", f"jit(f)/{bad}/reduce_sum"))
    shown.click("total")
    assert bad in shown.details()
    assert shown.tab.locator("img").count() == 0
    assert shown.complaints == []


def test_thousands_of_layers_stay_few_boxes_and_few_rows(open_page: Open) -> None:
    shown = open_page(layers(5000, scoped=True))
    assert shown.value("irscopeReady.nodes") == 5000 * 5 + 1
    assert shown.value("page.view.items.size") < 400
    assert len(shown.rows()) < 100
    shown.tab.locator("#search").fill("s4321_2")
    shown.tab.locator("#found").get_by_text("1 found").wait_for()
    shown.tab.locator("#search").press("Enter")
    assert "%s4321_2" in shown.details() and "negate" in shown.details()


def test_every_box_and_link_has_its_place_however_much_is_open(open_page: Open) -> None:
    shown = open_page(layers(60, scoped=True))
    counts = shown.value("""() => {
        const g = new GraphModel(page.data, 0), counts = [];
        for (let round = 0; round < 5; round++) {
            const view = g.layout();
            for (const i of view.items.values()) if (!(i.x >= 0 && i.y >= 0 && i.x <= view.width && i.y <= view.height)) throw new Error("outside: " + i.place);
            for (const link of view.links) if (!view.items.has(link.a) || !view.items.has(link.b)) throw new Error("a link to nowhere");
            counts.push(view.items.size);
            for (let s = 0; s < g.parent.length; s++) if (g.open.has(g.parent[s])) g.open.add(s);
        }
        return counts;
    }""")
    assert counts == [1, 4, 4, 4, 4]


def test_names_with_slashes_and_line_feeds_are_found(open_page: Open) -> None:
    shown = open_page(FUSED)
    names = shown.value("page.graph.names")
    given = {"x": "/a/x_output_0", "dot": "/a/dot_output_0", "biased": "a\nb", "total": "main/x"}
    shown.tab.evaluate("given => { for (const k in given) page.graph.names[page.graph.names.indexOf(k)] = given[k]; }", given)
    for old, new in given.items():
        assert shown.tab.evaluate("name => jump(`${page.graph.name}/${name}`)", new)
        assert shown.value("page.selected") == names.index(old)
        assert shown.tab.evaluate("name => find(name)", new) == [0, names.index(old)]
    shown.tab.evaluate("() => { page.data.costliest[0][0] = page.graph.name + '//a/dot_output_0'; openTab('costliest'); }")
    assert "%/a/dot_output_0" in shown.details()


def test_a_file_named_as_a_part_of_the_page_stays_a_name(open_page: Open) -> None:
    shown = open_page(FUSED, suffix="{{PROGRAM}}{{STYLE}}.hlo")
    assert "{{PROGRAM}}{{STYLE}}" in shown.tab.title()
    assert shown.complaints == []


def test_graphs_named_as_properties_of_objects_are_graphs(open_page: Open) -> None:
    shown = open_page(PROPERTIES, "--policy", "xla-cpu")
    for name in ("main", "constructor", "__proto__"):
        shown.tab.evaluate("name => go(numberOfGraph(name))", name)
        shown.value("select(0, true)")
        assert name in shown.details()
    assert shown.complaints == []


def test_graphs_named_as_properties_of_objects_have_no_memory_or_kernels_of_their_own(open_page: Open) -> None:
    shown = open_page(PROPERTIES, "--policy", "xla-cpu")
    shown.value("needMemory()")
    shown.until("page.memory !== null")
    for name in ("main", "constructor", "__proto__"):
        shown.tab.evaluate("name => go(numberOfGraph(name))", name)
        for colour in ("liveness", "fusion"):
            shown.tab.evaluate("name => chooseColour(name)", colour)
        shown.value("select(0, true)")
        shown.value("openTab('memory')")
        assert shown.value("page.memory.graphs.hasOwnProperty(page.graph.name)") or "has no temporaries of its own" in shown.details()
    assert shown.complaints == []


def test_a_graph_that_the_entry_does_not_reach_has_no_figures(open_page: Open) -> None:
    shown = open_page(PROPERTIES)
    shown.value("go(numberOfGraph('constructor'))")
    assert "work\n?" in shown.details() and "0 FLOP" not in shown.details()
    shown.value("select(1, true)")
    assert "?, ?" in shown.details()
    shown.value("go(numberOfGraph('adder'))")
    assert "work\n1 FLOP" in shown.details()


def test_going_along_open_boxes_lays_out_nothing_again(open_page: Open) -> None:
    shown = open_page(layers(40))
    shown.value("toggle(1)")
    shown.value("globalThis.layouts = 0")
    shown.value("(() => { const layout = page.graph.layout; page.graph.layout = function () { layouts++; return layout.call(this); }; })()")
    hidden = shown.value("page.graph.drawn.flatMap((nodes, s) => page.graph.open.has(s) ? [] : nodes)[0]")
    shown.tab.evaluate("v => select(v, true)", hidden)
    assert shown.value("layouts") == 1
    assert shown.tab.evaluate("v => page.view.items.has(v)", hidden)
    for key in ("i", "o", "i", "o"):
        shown.tab.keyboard.press(key)
    shown.tab.evaluate("v => select(v, true)", hidden)
    assert shown.value("layouts") <= 2


def test_a_cancelled_drag_moves_nothing_any_more(open_page: Open) -> None:
    shown = open_page(FUSED)
    shown.tab.mouse.move(*shown.place("dot"))
    shown.tab.mouse.down()
    shown.value("$('canvas').dispatchEvent(new PointerEvent('pointercancel'))")
    before = shown.value("[page.x, page.y]")
    shown.tab.mouse.move(600, 500)
    assert shown.value("[page.x, page.y]") == before
