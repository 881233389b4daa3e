"""The slider of stages: what stays has one place, colours show what a pass did, and the last stage is as it was."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import Open, Shown
from tests.conftest import Cli

pytestmark = pytest.mark.browser

SAMPLES = Path(__file__).parents[2] / "samples"
PLACES = "Object.fromEntries([...page.view.items.values()].map(i => [i.place >= 0 ? page.graph.names[i.place] : pathOf(page.graph, sectionOfPlace(i.place)), [i.x, i.y]]))"
CATEGORY = "name => page.data.palettes.diff.names[placedCategories().get(page.graph.names.indexOf(name))]"


@pytest.fixture
def open_passes(open_page: Open, cli: Cli, tmp_path: Path) -> Any:
    """The page of passes over a sample, opened in place of a plain one."""
    def opened(sample: str, passes: str) -> Shown:
        shown = open_page((SAMPLES / sample).read_text())
        page = tmp_path / "passes.html"
        done = cli("opt", SAMPLES / sample, "--passes", passes, "-o", page)
        assert done.exit_code == 0, done.stderr
        shown.tab.goto(page.as_uri())
        shown.until("globalThis.irscopeReady !== undefined && page.base !== undefined")
        return shown
    return opened


def overlaps(shown: Shown) -> int:
    """Pairs of boxes that cover each other."""
    n: int = shown.value("""(all => all.flatMap((a, i) => all.slice(i + 1).filter(b => Math.abs(a.x - b.x) < (a.w + b.w) / 2 - 1 && Math.abs(a.y - b.y) < (a.h + b.h) / 2 - 1)).length)
      ([...page.view.items.values()])""")
    return n


def test_what_stays_has_one_place_in_all_stages(open_passes: Any) -> None:
    shown = open_passes("wasteful.pre.hlo", "share-equal,simplify-algebra,fold-constants,remove-dead")
    assert shown.tab.locator("#stage-name").inner_text().startswith("5 of 5: after remove-dead")
    known: dict[str, list[float]] = {}
    words = []
    for stage in (0, 1, 2, 3, 4, 0):
        shown.tab.locator("#stage").fill(str(stage))
        shown.until(f"page.stage === {stage} && page.shared !== undefined")
        words.append(shown.tab.locator("#stage-name").inner_text())
        for name, place in shown.value(PLACES).items():
            assert known.setdefault(name, place) == pytest.approx(place), (stage, name)
        assert overlaps(shown) == 0
    assert words[2] == "3 of 5: after simplify-algebra; 0 came, 2 went" and words[3] == "4 of 5: after fold-constants; no change"
    assert "add.8" in known and len(known) == 25
    assert shown.complaints == []


def test_colours_show_what_a_pass_did(open_passes: Any) -> None:
    shown = open_passes("wasteful.pre.hlo", "share-equal,simplify-algebra,fold-constants,remove-dead")
    shown.tab.keyboard.press("<")
    shown.until("page.stage === 3 && page.shared !== undefined")
    assert shown.value("page.colour") == "diff"
    for _ in range(2):
        shown.tab.keyboard.press("<")
    shown.until("page.stage === 1")
    assert shown.tab.evaluate(CATEGORY, "add.9") == "removed" and shown.tab.evaluate(CATEGORY, "reduce_min.7") == "changed"
    assert shown.tab.locator("#legend span").all_inner_texts() == ["changed", "removed", "same"]
    shown.tab.keyboard.press(">")
    shown.until("page.stage === 2")
    assert shown.value("page.graph.names.includes('add.9')") is False


def test_sections_keep_their_places_and_the_last_stage_is_whole(open_passes: Any) -> None:
    shown = open_passes("transformer.pre.hlo", "fold-constants,share-equal,simplify-algebra,remove-dead")
    places = []
    for stage in (3, 2, 4):
        shown.value(f"chooseStage({stage})")
        shown.until(f"page.stage === {stage} && page.shared !== undefined")
        places.append(shown.value(PLACES))
        assert overlaps(shown) == 0
    for one in places[1:]:
        for name in places[0].keys() & one.keys():
            assert one[name] == pytest.approx(places[0][name]), name
    shown.tab.keyboard.press("6")
    shown.until("page.memory !== null")
    assert "live at the peak" in shown.details()
    shown.value("chooseStage(0)")
    shown.until("page.stage === 0")
    assert "the memory of the last stage is on the page" in shown.details()
    assert shown.complaints == []


def test_folders_and_logs_have_the_slider(open_page: Open, cli: Cli, tmp_path: Path) -> None:
    shown = open_page((SAMPLES / "mlp.pre.hlo").read_text())
    assert shown.tab.locator("#stages").is_hidden()
    folder = tmp_path / "dump"
    folder.mkdir()
    (folder / "module_0001.jit_mlp.before_optimizations.txt").write_text((SAMPLES / "mlp.pre.hlo").read_text())
    (folder / "module_0001.jit_mlp.cpu_after_optimizations.txt").write_text((SAMPLES / "mlp.opt.hlo").read_text())
    log = tmp_path / "passes.log"
    log.write_text(cli("opt", SAMPLES / "wasteful.pre.hlo", "--passes", "share-equal,remove-dead", "--print-before", "all", "--print-after",
                       "all").stderr)
    for source, count in ((folder, 2), (log, 4)):
        page = tmp_path / f"{source.name}.html"
        assert cli("show", source, "-o", page).exit_code == 0
        shown.tab.goto(page.as_uri())
        shown.until("globalThis.irscopeReady !== undefined && page.base !== undefined")
        assert shown.value("page.base.stages.length") == count
        shown.value("chooseStage(0)")
        shown.until("page.stage === 0 && page.allStages !== undefined")
        assert shown.value("page.graph.n") > 5 and overlaps(shown) == 0
    assert shown.complaints == []
