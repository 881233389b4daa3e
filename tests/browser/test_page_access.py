"""The page by keys alone and to screen readers; its drawing saved as SVG and PNG; its small map."""
from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.analysis.texts import FUSED, LOOP, layers
from tests.browser.conftest import Open

pytestmark = pytest.mark.browser

SAMPLES = Path(__file__).parents[2] / "samples"
NAMED = """() => [...document.querySelectorAll("button, select, input, canvas[tabindex], [role=tree], [role=tabpanel]")]
    .filter(e => !e.hidden && e.offsetParent !== null && e.getAttribute("aria-hidden") !== "true")
    .filter(e => !(e.getAttribute("aria-label") || e.getAttribute("aria-labelledby") || e.textContent.trim() || e.title || (e.labels && e.labels.length)))
    .map(e => e.outerHTML.slice(0, 80))"""


def test_everything_that_can_be_used_has_a_name_and_is_reached_by_tab(open_page: Open) -> None:
    shown = open_page((SAMPLES / "wasteful.pre.hlo").read_text(), "--lint", "--policy", "xla-cpu,irscope")
    for tab in ("1", "2", "3", "4"):
        shown.tab.locator("#canvas").focus()
        shown.tab.keyboard.press(tab)
        assert shown.value(NAMED) == []
    reached = set()
    for _ in range(60):
        shown.tab.keyboard.press("Tab")
        reached.add(shown.value("document.activeElement.id || document.activeElement.className"))
    assert {"policy", "colour", "critical", "fit", "save", "dark", "help", "search", "outline", "canvas", "tab-edges", "panel", "item"} <= reached
    assert shown.value("document.querySelectorAll('a:not([href]), [onclick]').length") == 0


def test_the_outline_is_a_tree_that_keys_open_and_walk(open_page: Open) -> None:
    shown = open_page(layers(12, scoped=True))
    outline = shown.tab.locator("#outline")
    outline.focus()
    shown.tab.keyboard.press("Home")
    rows = shown.value("page.rows.length")
    shown.tab.keyboard.press("ArrowDown")
    row = shown.tab.locator("#" + str(outline.get_attribute("aria-activedescendant")))
    assert row.get_attribute("role") == "treeitem" and row.get_attribute("aria-level") == "2" and row.get_attribute("aria-posinset") == "2"
    while shown.value("page.rows[page.row].node === undefined && page.graph.open.has(page.rows[page.row].section)"):
        shown.tab.keyboard.press("ArrowRight")
    shown.tab.keyboard.press("Enter")
    assert shown.value("page.selected") is not None
    shown.tab.keyboard.press("Home")
    shown.tab.keyboard.press("ArrowDown")
    shown.tab.keyboard.press("ArrowLeft")
    assert shown.value("page.rows.length") < rows
    shown.tab.keyboard.press("ArrowRight")
    assert shown.value("page.rows.length") == rows


def test_boxes_and_lines_are_walked_and_announced(open_page: Open) -> None:
    shown = open_page((SAMPLES / "wasteful.pre.hlo").read_text(), "--lint", "--policy", "xla-cpu")
    shown.tab.locator("#canvas").focus()
    seen = []
    for _ in range(shown.value("page.view.items.size")):
        shown.tab.keyboard.press("n")
        seen.append(shown.value("page.graph.names[page.selected]"))
    assert len(set(seen)) == len(seen) and seen[0] in ("x.1", "w.1", "bias.1") and seen[-1] == "add.13"
    shown.tab.keyboard.press("N")
    assert shown.value("page.graph.names[page.selected]") == seen[-2]
    shown.tab.evaluate("select(page.graph.names.indexOf('mul.4'))")
    assert "multiply %mul.4" in shown.tab.locator("#said").inner_text() and "1 finding, worst: error" in shown.tab.locator("#said").inner_text()
    shown.tab.evaluate("select(page.graph.names.indexOf('tanh.2'))")
    shown.tab.keyboard.press("e")
    shown.tab.keyboard.press("e")
    assert "not fused" in shown.tab.locator("#said").inner_text() and "rule" in shown.details()


def test_tabs_are_switched_by_arrows_and_a_dialog_keeps_its_keys(open_page: Open) -> None:
    shown = open_page(LOOP)
    shown.tab.locator("#tab-details").focus()
    shown.tab.keyboard.press("ArrowRight")
    assert shown.value("[page.tab, document.activeElement.id]") == ["findings", "tab-findings"]
    shown.tab.keyboard.press("?")
    shown.tab.keyboard.press("p")
    assert shown.value("page.critical") is False
    shown.tab.keyboard.press("Escape")
    assert shown.value("$('keys').open") is False


def test_the_drawing_is_saved_as_svg_with_names_escaped(open_page: Open, tmp_path: Path) -> None:
    bad = "<b>&\\u001b[31m"
    shown = open_page(FUSED.replace("jit(f)/pool/reduce_sum", "jit(f)/<b>x/reduce_sum"), "--policy", "xla-cpu")
    shown.value(f"page.graph.names[0] = '{bad}', page.data.titles[page.graph.raw.title[0]] = '{bad}', redo()")
    with shown.tab.expect_download() as download:
        shown.tab.locator("#save").select_option("svg")
    path = tmp_path / "out.svg"
    download.value.save_as(path)
    assert download.value.suggested_filename.endswith(".svg")
    root = ET.fromstring(path.read_text())
    texts = ["".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert any("%total" in text for text in texts) and any("<b>&\u241b[31m" in text for text in texts)
    assert "\x1b" not in path.read_text() and "<b>" not in path.read_text()
    boxes = shown.value("page.view.items.size")
    assert len(texts) >= 2 * boxes
    assert shown.complaints == []


def test_the_drawing_is_saved_as_png_of_all_that_is_open(open_page: Open, tmp_path: Path) -> None:
    shown = open_page((SAMPLES / "transformer.opt.hlo").read_text())
    shown.tab.locator("#canvas").focus()
    with shown.tab.expect_download() as download:
        shown.tab.keyboard.press("S")
    path = tmp_path / "out.png"
    download.value.save_as(path)
    data = path.read_bytes()
    width, height = (int.from_bytes(data[at:at + 4], "big") for at in (16, 20))
    assert data.startswith(b"\x89PNG") and height >= shown.value("page.view.height") and width >= shown.value("page.view.width")


def test_the_small_map_shows_and_moves_the_view(open_page: Open) -> None:
    shown = open_page(layers(40, scoped=True))
    shown.value("fit()")
    shown.until("document.querySelector('#map').hidden")
    shown.value("page.scale = 2, draw()")
    shown.until("!document.querySelector('#map').hidden")
    box = shown.tab.locator("#map").bounding_box()
    assert box is not None
    before = shown.value("[page.x, page.y]")
    shown.tab.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] - 10)
    assert shown.value("[page.x, page.y]") != before
    middle = shown.value("($('canvas').clientHeight / 2 - page.y) / page.scale")
    assert middle > shown.value("page.view.height") / 2
    shown.tab.locator("#canvas").focus()
    shown.tab.keyboard.press("m")
    shown.until("document.querySelector('#map').hidden")


def test_control_characters_of_names_are_visible(open_page: Open) -> None:
    shown = open_page(FUSED)
    shown.value("page.data.scopes.forEach((_, i) => { page.data.scopes[i] = 'a\\u202eb\\u001b[1m'; }), jump('main/total')")
    assert "a\ufffdb\u241b[1m" in shown.details() and "\u202e" not in shown.details()
