"""Memory on the page: the timeline, what lives at a place of it, what lowers the peak, an out-of-memory error; and the colours."""
from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.conftest import Open, Shown
from tests.conftest import Cli

pytestmark = pytest.mark.browser

SAMPLES = Path(__file__).parents[2] / "samples"
TRANSFORMER = (SAMPLES / "transformer.opt.hlo").read_text()
RECOMPUTED = """HloModule m, is_scheduled=true
ENTRY e {
  x = f32[1024] parameter(0), sharding={devices=[2]<=[2]}
  wide = f32[64,1024]{1,0} broadcast(x), dimensions={1}
  a = f32[1,1024]{1,0} slice(wide), slice={[0:1], [0:1024]}
  other = f32[64,1024]{0,1} broadcast(x), dimensions={1}
  exp = f32[64,1024]{0,1} exponential(other)
  b = f32[1,1024]{1,0} slice(exp), slice={[0:1], [0:1024]}
  c = f32[1,1024]{1,0} slice(wide), slice={[1:2], [0:1024]}
  s = f32[1,1024]{1,0} add(a, b)
  ROOT r = f32[1,1024]{1,0} add(s, c)
}
"""


def test_the_timeline_shows_what_the_audit_says(open_page: Open, cli: Cli) -> None:
    shown = open_page(TRANSFORMER)
    assert shown.value("page.memory") is None, "unpacked when it is wanted"
    shown.tab.get_by_role("tab", name="memory").click()
    shown.until("page.memory !== null")
    said = cli("lint", SAMPLES / "transformer.opt.hlo", "--audit", "memory", "--exit-zero").stdout
    names = [line.split()[0] for line in said.splitlines() if line.startswith("  %")]
    listed = shown.tab.locator("#panel .item").all_inner_texts()
    assert len(names) == len(listed) == 3 and all(name in row for name, row in zip(names, listed, strict=True))
    assert "48.0 KiB live at the peak, %ynn_fusion.17; parameters hold 587 KiB besides" in shown.details()
    assert shown.tab.locator("#panel svg text").first.inner_html() == "peak 48.0 KiB"
    assert shown.complaints == []


def test_a_click_on_the_chart_selects_what_lives_there(open_page: Open) -> None:
    shown = open_page(TRANSFORMER)
    shown.tab.keyboard.press("6")
    chart = shown.tab.locator("#panel .chart")
    box = chart.bounding_box()
    assert box is not None
    shown.tab.mouse.click(box["x"] + box["width"] * 0.6, box["y"] + box["height"] / 2)
    at = shown.value("page.instant")
    assert at is not None and at != shown.value("memoryOf(page.graph).at")
    assert shown.value("page.colour") == "liveness"
    record = shown.value("(r => ({own: r.own, ends: [...r.ends]}))(memoryOf(page.graph))")
    alive = {v for v, end in enumerate(record["ends"]) if v <= at <= end}
    assert set(shown.value("page.hits.get(0)")) == alive and len(shown.tab.locator("#panel .item").all()) == len(alive)
    legend = shown.tab.locator("#legend span").all_inner_texts()
    assert f"runs at %{shown.value(f'page.graph.names[{at}]')}" in legend
    shown.tab.locator("#panel .chart").focus()
    shown.tab.keyboard.press("ArrowRight")
    assert shown.value("page.instant") > at and shown.value("document.activeElement.getAttribute('role')") == "slider"
    shown.tab.get_by_role("button", name="go to the peak").click()
    assert shown.value("page.instant") == shown.value("memoryOf(page.graph).at")
    shown.tab.locator("#panel .item").first.click()
    assert "lives 59..60" in shown.details()


def test_proposals_lead_to_their_values(open_page: Open) -> None:
    shown = open_page(RECOMPUTED)
    shown.tab.keyboard.press("6")
    shown.until("page.memory !== null")
    row = shown.tab.locator("#panel .item", has_text="compute %wide again for %c")
    assert "less" in row.inner_text()
    row.click()
    assert shown.value("page.graph.names[page.selected]") == "wide"


def test_the_buffers_of_an_error_are_found_on_the_page(open_page: Open, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4096 bytes.\nPeak buffers:\n\tBuffer 1:\n\t\tSize: 256.0KiB\n"
                   "\t\tXLA Label: exponential\n\t\tShape: f32[64,1024]\n\t\t==========================\n")
    shown = open_page(RECOMPUTED, "--oom", str(log))
    shown.tab.keyboard.press("6")
    shown.until("page.memory !== null")
    assert "XLA ran out of memory when 4 KiB more were requested" in shown.details()
    shown.tab.locator("#panel .item", has_text="found by type").click()
    assert shown.value("page.graph.names[page.selected]") == "exp"


def legend(shown: Shown) -> list[str]:
    texts: list[str] = shown.tab.locator("#legend span").all_inner_texts()
    return texts


def test_every_meaning_of_colours_has_its_legend(open_page: Open) -> None:
    shown = open_page(RECOMPUTED)
    choices = shown.tab.locator("#colour option").evaluate_all("all => all.map(o => o.value)")
    assert choices == ["class", "cost", "bytes", "dtype", "fusion", "layout", "sharding", "roofline", "liveness", "findings"]
    expected = {"layout": ["row-major", "column-major", "no layout"], "sharding": ["split", "not stated"], "dtype": ["f32"],
                "findings": ["none"], "roofline": ["far below the ridge", "no FLOPs"]}
    for choice in choices:
        shown.tab.select_option("#colour", choice)
        shown.until("page.colour !== 'liveness' || page.memory !== null")
        if choice in expected:
            assert legend(shown) == expected[choice], choice
    assert legend(shown) == ["none"]
    shown.tab.select_option("#colour", "liveness")
    assert legend(shown) == ["runs at the peak", "alive at the peak", "of the caller", "freed before", "computed later"]
    for dark in (False, True):
        shown.value(f"dark({str(dark).lower()})")
        fills = shown.value("[...page.view.items.keys()].map(p => colours(p)[0])")
        assert set(fills) <= set(shown.value("meaning().map(row => row[1][0])")), "each box has a colour of the legend"


def test_colours_on_the_page_are_those_of_pictures(open_page: Open, cli: Cli, tmp_path: Path) -> None:
    shown = open_page(RECOMPUTED, "--color-by", "layout")
    assert shown.value("page.colour") == "layout" and shown.tab.locator("#colour").input_value() == "layout"
    source = tmp_path / "again.hlo"
    source.write_text(RECOMPUTED)
    for choice in ("layout", "sharding", "roofline", "liveness"):
        done = cli("show", source, "--color-by", choice, "--format", "dot")
        assert done.exit_code == 0
        shown.tab.select_option("#colour", choice)
        shown.until("page.colour !== 'liveness' || page.memory !== null")
        for name in ("other", "exp", "r"):
            fill = shown.value(f"colours(page.graph.names.indexOf('{name}'))[0]")
            line = next(line for line in done.stdout.splitlines() if f'id="e/{name}"' in line)
            assert f'fillcolor="{fill}"' in line, (choice, name)


def test_changes_against_another_dump(open_page: Open, tmp_path: Path) -> None:
    before = tmp_path / "before.hlo"
    before.write_text(RECOMPUTED.replace("exponential(other)", "tanh(other)"))
    shown = open_page(RECOMPUTED, "--against", str(before), "--color-by", "diff")
    changed = shown.value("[...page.view.items.keys()].filter(p => placedCategories().get(p) === 1).map(p => page.graph.names[p])")
    assert changed == ["exp"]
    assert legend(shown) == ["changed", "same"]
    assert "1 changed" in shown.details()
