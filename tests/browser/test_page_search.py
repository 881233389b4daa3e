"""Search, queries, the costliest operations, the critical path and a user's numbers on the page."""
from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from irscope import api
from irscope.analysis.cost import estimate
from irscope.analysis.levels import critical_path
from irscope.analysis.summary import costliest
from irscope.analysis.survey import Survey
from irscope.query import parse
from tests.analysis.texts import FUSED, LOOP
from tests.browser.conftest import Open, Shown

pytestmark = pytest.mark.browser

SAMPLES = Path(__file__).parents[2] / "samples"
QUERIES = (
    "op=dot", "op=reduce*", "op!=dot and bytes>1kB", "dot or tanh", "not fused and users=1", "scope~attention", "scope!~attention and op=add", "shape=2,16,64",
    "shape=[2,*,64]", "shape=2x16x64", "rank>=3 & class=contraction", "type~f32", "dtype=f32 and elements<100", "level>30", "times>1", "root", "scalar",
    "entry and not known", "known=false", "line<40", "source~make.py", "text~contracting", "text~'dimensions=..1'", "calls~region", "operands=2 | operands=0",
    "/^(add|mul)/", "(op=add or op=multiply) and not users>1", "intensity>1", "flops>=1k and traffic<64KiB", "near(%dot_general.40, 1)", "deps(dot_general.40)",
    "uses(dot_general.40) and op=add", "path(dot_general.40, dot_general.43)", "between(dot_general.40, dot_general.43)",
    "dominators(dot_general.43)", "dominators(dot_general.40, dot_general.43)", "postdominators(dot_general.40)",
    "near(dot_general.40, 2, tuples, fan-out)", "near(dot_general.40, 3, fan-out)", "graph=region_0.1", 'name="add.1"',
)
WRONG = ("op=", "bytes=many", "nothing=1", "(op=dot", "scope~'('", "near(nowhere)", "not bytes", "op=dot op=add", "fused=maybe", "dominators()",
         "near(total, 2, hubs)")


def found(shown: Shown, query: str) -> list[list[str]]:
    """The nodes that a query finds on the page, as [graph, name]."""
    names: list[list[str]] = shown.tab.evaluate("""q => [...byQuery(q).hits].flatMap(([i, nodes]) => nodes.map(v => [graph(i).name, graph(i).names[v]]))""", query)
    return sorted(names)


@pytest.mark.parametrize("sample", ["transformer.pre.hlo", "transformer.opt.hlo"])
def test_queries_find_what_the_command_finds(open_page: Open, sample: str) -> None:
    text = (SAMPLES / sample).read_text()
    survey = Survey(api.load(text).module())
    shown = open_page(text)
    shown.until("page.text !== undefined")
    node = next(n.name for n in survey.module.main().nodes if n.op.name in ("dot", "fusion"))
    last = survey.module.main().result().name
    hits = 0
    for query in QUERIES:
        if "dot_general" in query:
            query = query.replace("dot_general.40", node).replace("dot_general.43", last)
        wanted = sorted([graph.name, n.name] for graph, n in parse(query).select(survey))
        assert found(shown, query) == wanted, query
        hits += bool(wanted)
    assert hits > 25


@pytest.mark.parametrize(("pattern", "fits"), [
    ("*", True), ("aab*", True), ("*ab", False), ("a?b*c", True), ("?a*c", True), ("*b*b*", False), ("aabc?", False), ("aabc*", True), ("b*", False),
    ("*a*a*b*c", True), ("*abc", True), ("*" * 200 + "x", False), ("*a" * 200, False),
])
def test_stars_stand_for_any_text_and_take_no_time(open_page: Open, pattern: str, fits: bool) -> None:
    long = "a" * 3000
    shown = open_page(f"ENTRY e {{\n p = f32[4] parameter(0)\n {long} = f32[4] negate(p)\n ROOT aabc = f32[4] negate({long})\n}}")
    assert (["e", "aabc"] in found(shown, f"name={pattern}")) == fits


def test_a_wrong_query_says_where(open_page: Open) -> None:
    shown = open_page(FUSED)
    for query in WRONG:
        shown.tab.locator("#search").fill(query)
        shown.until("document.querySelector('#found .fault') !== null")
        assert shown.tab.locator("#found .fault").inner_text()
        shown.tab.locator("#search").fill("")
        shown.until("document.querySelector('#found').hidden")


def test_words_are_found_in_types_attributes_and_sources(open_page: Open) -> None:
    shown = open_page((SAMPLES / "transformer.opt.hlo").read_text())
    shown.until("page.text !== undefined")
    for word, where in (("f32[2,16,64]", "[2,16,64]"), ("lhs_contracting_dims", "in its text"), ("make.py:40", "make.py:40")):
        shown.tab.locator("#search").fill(word)
        shown.until("page.hits !== null && page.hits.size > 0")
        assert where in shown.tab.locator("#found").inner_text()
        shown.tab.locator("#search").fill("")
        shown.until("page.hits === null")


def test_results_are_chosen_by_keys_and_ringed(open_page: Open) -> None:
    shown = open_page(FUSED)
    shown.tab.keyboard.press("/")
    shown.tab.keyboard.type("op=parameter and entry")
    shown.until("page.hits !== null && page.hits.size > 0")
    assert shown.value("hitPlaces().size") >= 2
    shown.tab.keyboard.press("ArrowDown")
    shown.tab.keyboard.press("ArrowDown")
    marked = shown.tab.locator("#found [aria-selected=true]")
    name = marked.inner_text().split()[0]
    assert marked.get_attribute("id") == shown.tab.locator("#search").get_attribute("aria-activedescendant")
    shown.tab.keyboard.press("Enter")
    assert shown.value("'%' + page.graph.names[page.selected]") == name


def test_the_costliest_are_those_of_the_summary_and_lead_to_their_nodes(open_page: Open) -> None:
    text = (SAMPLES / "newton.opt.hlo").read_text()
    survey = Survey(api.load(text).module())
    shown = open_page(text)
    shown.tab.get_by_role("tab", name="costliest").click()
    rows = shown.tab.locator("#panel .list").first.locator(".item")
    wanted = costliest(survey, 10)
    assert [row[0] for row in shown.value("page.data.costliest")] == [f"{one.graph.name}/{one.node.name}" for one in wanted]
    assert rows.count() == len(wanted)
    rows.nth(1).click()
    assert shown.value("page.graph.name + '/' + page.graph.names[page.selected]") == f"{wanted[1].graph.name}/{wanted[1].node.name}"


@pytest.mark.parametrize("sample", ["transformer.opt.hlo", "wasteful.pre.hlo"])
def test_the_critical_path_is_that_of_the_summary_and_is_drawn(open_page: Open, sample: str) -> None:
    text = (SAMPLES / sample).read_text()
    survey = Survey(api.load(text).module())
    entry = survey.module.main()
    times = [estimate(survey.costs.flops(node, entry), survey.costs.traffic(node, entry)) for node in entry.nodes]
    shown = open_page(text)
    assert shown.value("criticalPath(page.graph).nodes.map(v => page.graph.names[v])") == [node.name for node in critical_path(entry, times)]
    shown.tab.keyboard.press("p")
    assert shown.tab.locator("#critical").get_attribute("aria-pressed") == "true"
    drawn = shown.value("""() => {
        const lines = criticalPlaces().lines;
        return [lines.size, page.view.links.filter(l => lines.has(l.a + ":" + l.b)).length];
    }""")
    assert drawn[0] > 2 and drawn[1] >= drawn[0] - 1


@pytest.mark.parametrize(("name", "content"), [
    ("times.json", json.dumps({"total": 30.5, "%dot": 10, "nowhere": 3})),
    ("times.csv", 'name,time\ntotal,20.5\n"total",10\ndot;10\nnowhere\t3\n'),
    ("pairs.json", json.dumps([["total", 30.5], ["main/dot", 10], ["nowhere", 3]])),
])
def test_numbers_of_the_user_colour_the_boxes(open_page: Open, tmp_path: Path, name: str, content: str) -> None:
    shown = open_page(FUSED)
    file = tmp_path / name
    file.write_text(content)
    shown.tab.get_by_role("tab", name="costliest").click()
    shown.tab.locator("#numbers").set_input_files(str(file))
    shown.until("page.numbers !== null")
    panel = shown.details()
    assert "2 of 3 names are in this program" in panel and "nowhere" in panel and name in panel
    assert shown.tab.locator("#panel .list").first.locator(".item").first.inner_text().startswith("30.5")
    fills = shown.value("['total', 'dot', 'x'].map(n => colours(page.graph.names.indexOf(n))[0])")
    assert fills[0] == "rgb(215,60,45)" and len(set(fills)) == 3
    assert "30.5" in shown.value("page.view.items.get(page.graph.names.indexOf('total')).lines")
    shown.click("total")
    assert "30.5" in shown.details()


def test_a_profile_is_matched_by_instruction_name(open_page: Open, tmp_path: Path) -> None:
    shown = open_page(LOOP)
    event = {"ph": "X", "pid": 1, "tid": 2, "ts": 0}
    module = shown.value("page.data.name")
    trace = {"traceEvents": [
        {"ph": "M", "name": "process_name"},
        {**event, "name": "y", "dur": 5, "args": {"hlo_op": "y", "hlo_module": module}},
        {**event, "name": "kernel", "dur": 7.5, "args": {"hlo_op": "y", "hlo_module": f"{module}(12)"}},
        {**event, "name": "y", "dur": 1000, "args": {"hlo_op": "y", "hlo_module": "jit_other"}},
        {**event, "name": "PjitFunction(f)", "dur": 20},
    ]}
    file = tmp_path / "profile.trace.json.gz"
    file.write_bytes(gzip.compress(json.dumps(trace).encode()))
    shown.tab.get_by_role("tab", name="costliest").click()
    shown.tab.locator("#numbers").set_input_files(str(file))
    shown.until("page.numbers !== null")
    assert "12.5 us" in shown.details() and "1 of 2 names" in shown.details()
    assert "12.5 us" in shown.value("page.view.items.get(page.graph.names.indexOf('run')).lines")
    shown.tab.locator("#panel .list").first.locator(".item").first.click()
    assert shown.value("[page.graph.name, page.graph.names[page.selected]]") == ["body", "y"]


def test_numbers_that_cannot_be_read_or_fit_nothing_are_refused(open_page: Open, tmp_path: Path) -> None:
    shown = open_page(FUSED)
    shown.tab.get_by_role("tab", name="costliest").click()
    for content, said in (("{}", "no numbers"), ('{"a": "b"}', "no numbers"), ("hello", "name,number"), ('{"zz": 1}', "none of the 1 names"), ("{", "JSON")):
        file = tmp_path / "bad.json"
        file.write_text(content)
        shown.tab.locator("#numbers").set_input_files(str(file))
        shown.until("document.querySelector('#panel .fault') !== null")
        assert said in shown.tab.locator("#panel .fault").inner_text()
        shown.value("details()")
    assert shown.complaints == []


def test_the_command_puts_numbers_on_the_page(open_page: Open, tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("total,3\n</script><b>,4\n")
    shown = open_page(FUSED, "--numbers", str(file))
    assert shown.value("page.numbers.matched") == 1 and shown.value("page.colour") == "numbers"
    assert shown.complaints == []


def test_the_text_and_the_drawing_lead_to_each_other(open_page: Open) -> None:
    text = (SAMPLES / "transformer.opt.hlo").read_text()
    shown = open_page(text)
    shown.until("page.text !== undefined")
    shown.tab.get_by_role("tab", name="text").click()
    lines = text.splitlines()
    assert shown.tab.locator(".code > *").count() < 120 and lines[0][:40] in shown.details()
    name = shown.value("page.graph.names[page.graph.drawn.flat()[5]]")
    shown.value(f"jump('main.19/{name}')")
    marked = shown.tab.locator(".code .here")
    number = next(i for i, line in enumerate(lines, 1) if line.strip().startswith((f"%{name} =", f"ROOT %{name} =")))
    assert marked.get_attribute("data-line") == str(number) and f"%{name} = " in marked.inner_text()
    assert marked.bounding_box() is not None
    wanted = int(str(shown.tab.locator(".here ~ button").first.get_attribute("data-line")))
    shown.tab.locator(f".code [data-line='{wanted}']").click()
    assert shown.value("page.graph.lines[page.selected]") == wanted
    assert shown.tab.locator(".code .here").get_attribute("data-line") == str(wanted)
    assert shown.value("page.tab") == "text"


def test_a_page_without_its_text_says_so(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("irscope.render.html.MAX_TEXT", 10)
    shown = open_page(FUSED)
    shown.tab.get_by_role("tab", name="text").click()
    assert "the page holds no text" in shown.details()


@pytest.mark.parametrize(("text", "rows"), [
    ('[["e", 1], ["e", 2], {"name": "v"}]', [["e", 3]]),
    ('{"traceEvents": [{"ph": "X", "name": "e", "dur": 2}, {"ph": "X", "name": "v", "dur": null}, {"ph": "X", "name": "v", "dur": []}]}', [["e", 2]]),
])
def test_numbers_of_one_name_are_summed_and_what_is_no_number_is_left_out(open_page: Open, text: str, rows: list[list[object]]) -> None:
    shown = open_page(FUSED)
    assert shown.tab.evaluate("text => [...readNumbers(text, 'a.json').rows]", text) == rows
