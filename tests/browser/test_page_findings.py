"""Findings on the page: on boxes and closed sections, in a list by what they save, and in full with path, cost and fix."""
from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.analysis.texts import layers
from tests.browser.conftest import Open, Shown

pytestmark = pytest.mark.browser

WASTEFUL = (Path(__file__).parents[2] / "samples" / "wasteful.pre.hlo").read_text()
COLOUR = "colours(page.graph.names.indexOf(%r))[0]"


def lines_of(shown: Shown, name: str) -> str:
    """The words in the box of a node."""
    text: str = shown.value(f"page.view.items.get(page.graph.names.indexOf({name!r})).lines.join('|')")
    return text


def test_the_list_begins_with_what_fixing_saves_most(open_page: Open) -> None:
    shown = open_page(WASTEFUL, "--lint")
    shown.tab.get_by_role("tab", name="findings").click()
    rows = shown.tab.locator("#panel .item").all_inner_texts()
    saved = [float(found[1]) if (found := re.search(r"saves about ([\d.]+) us", row)) else 0.0 for row in rows]
    assert len(rows) == 6 and saved == sorted(saved, reverse=True) and saved[0] > 0
    assert "warning" in rows[0] and "DTY003" in rows[0] and "%convert_element_type.7" in rows[0]
    assert re.search(r"saves about [\d.]+ us, [\d.]+ us to [\d.]+ us \(", rows[0])
    shown.tab.get_by_role("button", name="2 warning").click()
    assert len(shown.tab.locator("#panel .item").all_inner_texts()) == 4


def test_a_finding_of_the_list_leads_to_its_node_and_shows_path_cost_and_fix(open_page: Open) -> None:
    shown = open_page(WASTEFUL, "--lint")
    shown.tab.get_by_role("tab", name="findings").click()
    shown.tab.locator("#panel .item", has_text="DTY003").click()
    assert shown.value("page.graph.names[page.selected]") == "convert_element_type.7"
    card = shown.tab.locator("#panel article", has_text="DTY003").inner_text()
    for part in ("warning", "cast-ping-pong", "costs", "saves", "fix", "%convert_element_type.6", "note:"):
        assert part in card
    shown.tab.locator("#panel article", has_text="DTY003").get_by_role("button", name="%convert_element_type.6").click()
    assert shown.value("page.graph.names[page.selected]") == "convert_element_type.6"


def test_a_finding_on_a_folded_constant_is_on_the_box_that_shows_it(open_page: Open) -> None:
    shown = open_page(WASTEFUL, "--lint", fragment="#node=main.5%2Fconstant.5")
    assert "DTY001" in shown.details() and "drawn as" in shown.details()
    assert "1 finding, worst: error" in lines_of(shown, "mul.4")
    shown.tab.locator("#colour").select_option("findings")
    assert shown.value(COLOUR % "mul.4") == "#ffb3ad" and shown.value(COLOUR % "tanh.2") not in ("#ffb3ad", "#ffe08a", "#cfe3ff")
    shown.click("mul.4")
    assert "float64-leak" in shown.details()


def test_several_findings_of_a_node_are_all_shown(open_page: Open) -> None:
    shown = open_page(WASTEFUL, "--lint", fragment="#node=main.5%2Fconvert_element_type.7")
    assert shown.tab.locator("#panel article").count() == 2
    assert "2 findings, worst: warning" in lines_of(shown, "convert_element_type.7")


def test_a_closed_section_counts_and_lists_the_findings_inside(open_page: Open) -> None:
    # In every layer, tanh of the product is computed twice.
    text = re.sub(r"negate\(s(\d+)_1\)", r"tanh(s\1_0)", layers(12, scoped=True))
    text = re.sub(r"add\(s(\d+)_2, \w+\)", r"add(s\1_2, s\1_1)", text)
    shown = open_page(text, "--lint")
    n = shown.value("page.data.findings.length")
    assert n > 0
    shown.value("[...page.graph.open].filter(s => s).forEach(s => page.graph.open.delete(s)), redo()")
    place = shown.value("[...page.view.extras.found.keys()].find(p => p < 0)")
    assert place is not None
    assert f"{n} finding" in shown.value(f"page.view.items.get({place}).lines.join('|')")
    shown.value(f"select({place})")
    assert shown.tab.locator("#panel article").count() == n
