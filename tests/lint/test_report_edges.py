"""Edges, stages and sums in each output format: every optional part is told where it is known, and leaves nothing behind where not."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import irscope
from irscope.fusion import EdgeVerdict
from irscope.lint.edges import Edge
from irscope.lint.kernels import Kernel
from irscope.lint.planned import KernelCalls
from irscope.lint.proven.fix import FixAnswer, ProvenFix, Saving
from irscope.lint.report import FileReport, Report
from irscope.lint.reporters import reporter
from irscope.lint.reporters.full import alike, savings
from irscope.lint.stages import Stage, Stages
from irscope.source import Finding, Note, Place, Severity, SourceText

GRAPH = irscope.load("HloModule m\n\nENTRY e {\n  x = f32[4]{0} parameter(0)\n  p = f32[4]{0} tanh(x)\n  ROOT c = f32[4]{0} sine(p)\n}\n").module().main()
P, C = GRAPH.nodes[1], GRAPH.nodes[2]
RELEASES = (("xla-2", "none"), ("xla-1", "all"))
DIFFER = "fused up to xla-1, not fused since xla-2"
KERNEL = Kernel("c", ("p", "c"), "map")
IN_KERNEL = "the kernel of %c: elementwise operators and movement, 2 operators (%p, %c)"
FIX = FixAnswer(ProvenFix("twice", "compute %p twice", Saving(1.0, 0.0, 0.5), nodes=2))
APART = EdgeVerdict(GRAPH, P, C, "none")
FUSED = EdgeVerdict(GRAPH, P, C, "all")


def told(format: str, *edges: Edge, pair: tuple[str, str] | None = None, policy: str = "xla", everything: bool = False) -> str:
    """A report with these edges and nothing else."""
    return reporter(format)(Report([FileReport("a.hlo", edges=list(edges))], policy, pair=pair, everything=everything))


def test_concise_has_a_line_for_each_edge_that_is_not_fused() -> None:
    assert told("concise", Edge(replace(APART, reason="too dear"))) == "a.hlo: e: %p -> %c: fused none: too dear\nno findings"
    assert told("concise", Edge(APART, place=Place(6, 3))).startswith("a.hlo:6:3: e: %p -> %c: fused none: ")
    assert told("concise", Edge(FUSED)) == "no findings"
    some = told("concise", Edge(replace(FUSED, fused="some")))
    assert some.splitlines()[0] == "a.hlo: e: %p -> %c: fused some: "


def test_concise_tells_a_fused_edge_where_it_was_asked_for_or_releases_differ() -> None:
    assert told("concise", Edge(FUSED, kernel=KERNEL), pair=("p", "c")) == f"a.hlo: e: %p -> %c: fused all: in {IN_KERNEL}\nno findings"
    assert told("concise", Edge(replace(FUSED, releases=RELEASES))).splitlines()[0] == f"a.hlo: e: %p -> %c: fused all:  (releases differ: {DIFFER})"


def test_the_compilers_words_come_before_the_cause_and_that_before_the_kernel() -> None:
    reason, cause = replace(APART, reason="no case", cause="it is dear"), replace(APART, cause="it is dear")
    for format in ("concise", "markdown"):
        assert "no case" in told(format, Edge(reason, kernel=KERNEL)) and "dear" not in told(format, Edge(reason, kernel=KERNEL))
        assert "it is dear" in told(format, Edge(cause, kernel=KERNEL)) and "kernel of" not in told(format, Edge(cause, kernel=KERNEL))
        assert IN_KERNEL in told(format, Edge(APART, kernel=KERNEL)).replace("\\", "")


def lines(*edges: Edge, **more: bool) -> list[str]:
    """The lines about edges in the report for people, below the first."""
    return told("full", *edges, everything=more.get("everything", False)).split("\n\n")[0].splitlines()[1:]


def test_people_read_of_an_edge_what_is_known() -> None:
    assert lines(Edge(APART)) == ["  %p -> %c  fused: none  (e)"]
    ends = Edge(APART, ("tanh", "sine"), sources=("net.py:1", "net.py:2"), scopes=("layer", ""))
    assert lines(ends)[1:] == ["      tanh in layer at net.py:1 -> sine at net.py:2"]
    assert lines(replace(ends, carries="f32[4]", us=0.6, bytes=32.0))[1:] == [
        "      tanh in layer at net.py:1 -> sine at net.py:2; f32[4], costs at most 0.6 us, 32 B"]
    assert lines(replace(ends, ops=("", "sine"), carries="f32[4]"))[1:] == ["      f32[4]"]  # one end is not in the text
    assert lines(Edge(APART, ("tanh", "sine"), us=0.6, bytes=32.0))[1:] == ["      tanh -> sine; costs at most 0.6 us, 32 B"]
    assert lines(Edge(APART, ("tanh", "sine"), sources=("", "net.py:2")))[1:] == ["      tanh -> sine at net.py:2"]
    assert lines(Edge(APART, ("tanh", "sine"))) == ["  %p -> %c  fused: none  (e)"]  # neither cost nor line: operators alone say nothing
    assert lines(Edge(APART, origins=("x", "")))[0] == "  %p (made of %x) -> %c  fused: none  (e)"


def test_people_read_the_reason_the_cause_the_fix_and_what_releases_do() -> None:
    verdict = replace(APART, reason="No.", cause="it is dear", rule="dear", releases=RELEASES)
    assert lines(Edge(verdict, answer=FIX))[1:] == [
        "      xla says: No.", "      because: it is dear  [dear]", "      fix: compute %p twice",
        "        saves 1 kernel, by a plan of the changed program (all 2 operators)", f"      releases differ: {DIFFER}"]
    assert lines(Edge(replace(APART, cause="it is dear")))[1:] == ["      because: it is dear"]
    assert lines(Edge(replace(APART, rule="dear")))[1:] == []


def test_equal_edges_are_one_with_three_of_the_others() -> None:
    named = "%p -> %c, %p -> %c, %p -> %c"
    for n, others in ((1, []), (2, ["      2 times: also %p -> %c"]), (4, [f"      4 times: also {named}"]),
                      (5, [f"      5 times: also {named} and 1 more"]), (6, [f"      6 times: also {named} and 2 more"])):
        assert lines(*[Edge(APART)] * n)[1:] == others


def kinds(n: int) -> list[Edge]:
    """So many edges of different kinds, that cost 2, 3, ... us and as many bytes."""
    return [Edge(replace(APART, rule=f"r{i}"), us=i + 2.0, bytes=i + 2.0) for i in range(n)]


def test_twenty_kinds_of_edges_are_shown_and_the_rest_summed() -> None:
    assert len(lines(*kinds(20))) == 40 and "more" not in "\n".join(lines(*kinds(20)))
    assert told("full", *kinds(22)).splitlines()[-3] == "  and 2 more edges, which cost less (5 us, 5 B in all): --all shows them"
    assert "--all" not in told("full", *kinds(22), everything=True) and told("full", *kinds(22), everything=True).count("fused: none") == 22
    free = [replace(edge, us=0.0) for edge in kinds(21)]
    assert "and 1 more edge, which costs less (nothing in all)" in told("full", *free)
    where = [*kinds(20), Edge(replace(APART, releases=RELEASES))]  # releases differ: it is shown though it costs least
    assert told("full", *where).count("fused: none") == 21


def test_the_first_line_counts_edges_and_an_edge_that_was_asked_for_needs_no_count() -> None:
    edges = Edge(APART), Edge(FUSED), Edge(replace(FUSED, fused="some", releases=RELEASES))
    assert told("full", *edges).splitlines()[0] == (
        "a.hlo: 3 edges under xla, 2 of them not fused or not everywhere; on 1 of them the releases of the compiler differ")
    assert told("full", *edges[:2]).splitlines()[0] == "a.hlo: 2 edges under xla, 1 of them not fused or not everywhere"
    assert told("full", *edges, pair=("p", "c")).splitlines()[0] == "a.hlo: what became of it under xla"
    assert told("full", *edges, policy="") == "no findings"


def test_an_edge_that_was_asked_for_says_in_which_kernel_it_is() -> None:
    def asked(edge: Edge) -> list[str]:
        return told("full", edge, pair=("p", "c")).split("\n\n")[0].splitlines()[2:]

    never = "      no rule of xla keeps them apart; the value in between is never stored for this reader"
    assert asked(Edge(FUSED, kernel=KERNEL)) == [f"      in {IN_KERNEL}", never]
    assert asked(Edge(FUSED)) == ["      xla does not name the kernel of this edge", never]
    assert asked(Edge(replace(FUSED, rule="view"), kernel=KERNEL)) == [f"      in {IN_KERNEL}"]
    assert asked(Edge(replace(FUSED, fused="some"), kernel=KERNEL)) == [
        f"      in {IN_KERNEL}", "      %p is stored or computed again for its other readers"]
    assert asked(Edge(APART)) == []


def test_markdown_has_a_row_for_each_edge() -> None:
    def rows(*edges: Edge, pair: tuple[str, str] | None = None) -> list[str]:
        return told("markdown", *edges, pair=pair).split("\n\n")[3].splitlines()[2:] if edges else []

    verdict = replace(APART, reason="No.", releases=RELEASES)
    assert rows(Edge(verdict, sources=("net.py:1", ""), us=0.6, bytes=32.0, answer=FIX)) == [
        f"| `%p` net.py:1 | `%c` | none | No.<br>releases differ: {DIFFER}<br>fix: compute %p twice | 0.6 us, 32 B |"]
    assert rows(Edge(APART, answer=FixAnswer())) == ["| `%p` | `%c` | none |  |  |"]  # what was tried in vain is for people
    assert "| producer |" not in told("markdown", Edge(FUSED)) and "1 edge under xla, 0 of them" in told("markdown", Edge(FUSED))
    assert "edges" not in told("markdown")
    assert rows(Edge(FUSED), pair=("p", "c")) == ["| `%p` | `%c` | all |  |  |"]
    many = rows(*[Edge(APART)] * 103)
    assert len(many) == 101 and many[-1] == "| | | | and 3 more | |"
    assert len(rows(*[Edge(APART)] * 100)) == 100


WORTH = Stages("a machine", "inductor", [Stage("eager", 3, 3, 2048, 9.0), Stage("fused", 1, 1, 1024, 2.5)], {"FUS003": 2, "FUS004": 1},
               ["launch 1 us: measured"], KernelCalls(3, 2, 9))
CALLS = "5 kernel calls: 3 of generated kernels, which run 9 loop nests, and 2 of extern kernels"


def valued(format: str, worth: Stages) -> str:
    return reporter(format)(Report([FileReport("a.hlo", edges=[Edge(APART)], stages=[worth], remarks=["near"])], "inductor"))


def test_people_read_what_fusion_is_worth_as_a_table() -> None:
    assert valued("full", WORTH).split("\n\n")[1].splitlines() == [
        "  on a machine, fused by inductor:",
        "                     eager   fused",
        "    dispatches           3       1",
        "    kernel launches      3       1",
        "    memory traffic   2 KiB   1 KiB",
        "    estimated time    9 us  2.5 us",
        f"    fused: {CALLS}",
        "    lifted: FUS003 2 times, FUS004",
        "    launch 1 us: measured",
    ]
    assert "  note: near" in valued("full", WORTH)
    without = valued("full", replace(WORTH, lifted={}, calls=None))
    assert "    lifted: none that irscope can remove itself" in without and "kernel calls" not in without


def test_markdown_has_the_same_table() -> None:
    text = valued("markdown", WORTH)
    assert "On a machine; lifted: FUS003 2 times, FUS004." in text
    assert text.split("\n\n")[-1 if text.endswith("|") else -2].splitlines() == [
        "|  | eager | fused |", "|---|---:|---:|", "| dispatches | 3 | 1 |", "| kernel launches | 3 | 1 |",
        "| memory traffic | 2 KiB | 1 KiB |", "| estimated time | 9 us | 2.5 us |"]


def test_programs_read_the_stages_with_the_calls_where_the_policy_tells_them() -> None:
    (stages,) = json.loads(valued("json", WORTH))["files"][0]["stages"]
    assert stages["calls"] == {"generated": 3, "extern": 2, "loop_nests": 9} and stages["lifted"] == {"FUS003": 2, "FUS004": 1}
    assert stages["stages"][1] == {"name": "fused", "dispatches": 1, "launches": 1, "bytes": 1024, "us": 2.5}
    (plain,) = json.loads(valued("json", replace(WORTH, calls=None)))["files"][0]["stages"]
    assert "calls" not in plain
    rows = [json.loads(line) for line in valued("jsonl", WORTH).splitlines()]
    assert [sorted(row) for row in rows] == [["edge", "file"], ["file", "fusion"]] and rows[1]["fusion"] == stages


def as_json(edge: Edge) -> dict[str, object]:
    (row,) = json.loads(told("json", edge))["files"][0]["edges"]
    assert isinstance(row, dict)
    return row


def test_programs_read_null_for_what_is_not_known() -> None:
    bare = as_json(Edge(APART))
    assert all(bare[key] is None for key in ("reason", "rule", "cause", "counterfactual", "releases", "type", "line", "column"))
    assert bare["sources"] == [None, None] and not {"recorded", "origins", "fix", "kernel"} & set(bare)
    full = as_json(Edge(replace(APART, recorded=True, reason="No.", rule="dear", cause="it is", releases=RELEASES), origins=("x", ""),
                        answer=FIX, kernel=replace(KERNEL, loop_nests=2), sources=("net.py:1", ""), place=Place(6, 3), carries="f32[4]"))
    assert (full["recorded"], full["origins"], full["sources"], full["line"], full["column"]) == (True, ["x", None], ["net.py:1", None], 6, 3)
    assert (full["counterfactual"], full["releases"]) == ("compute %p twice", {"xla-2": "none", "xla-1": "all"})
    assert full["kernel"] == {"name": "c", "kind": "map", "nodes": ["p", "c"], "loop_nests": 2}
    vain = as_json(Edge(APART, answer=FixAnswer(why_not="it is optimised")))
    assert vain["counterfactual"] is None
    assert vain["fix"] == {"proven": False, "text": "none was tried: it is optimised", "tried": [], "untried": []}


def finding(**more: object) -> Finding:
    return replace(Finding("DTY001", "float64-leak", Severity.ERROR, "a message", SourceText("a.hlo", "x\n"), 0, 1, node="n"), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(("saves", "said"), [
    (None, ""), ({}, ""), ({"us": 0.0, "bytes": 0.0, "kernels": 0.0}, ""),
    ({"us": 3.0, "share": 0.02, "bytes": 12288.0, "kernels": 1.0}, "about 3 us (2 % of all), 12 KiB of traffic, 1 kernel"),
    ({"us": 3.0, "us_least": 1.5, "us_most": 10.0}, "about 3 us, 1.5 us to 10 us"),
    ({"us": 3.0, "share": 0.095}, "about 3 us (10 % of all)"), ({"us": 3.0, "share": 0.094}, "about 3 us (9.4 % of all)"),
    ({"kernels": 2.0}, "2 kernels"), ({"bytes": 10.0}, "10 B of traffic"),
])
def test_savings_in_words(saves: dict[str, float] | None, said: str) -> None:
    assert savings(saves) == said


def test_people_read_help_notes_costs_and_savings_of_a_finding_where_there_are_any() -> None:
    def whole(one: Finding) -> str:
        return reporter("full")(Report([FileReport("a.hlo", [one])]))

    bare = whole(finding())
    assert not any(word in bare for word in ("help:", "note:", "saves:", "costs:"))
    full = whole(finding(help="do this", notes=(Note("see here"),), saves={"us": 2.0}, costs={"us": 4.0, "kernels": 1.0}))
    assert "saves" not in whole(finding(severity=Severity.ERROR, saves={"us": 0.0}))  # only of a fact it is said that it saves nothing
    assert all(word in full for word in ("do this", "see here", "\n  costs: about 4 us, 1 kernel\n  saves: about 2 us\n"))


def test_equal_findings_name_three_of_the_others_and_what_all_save() -> None:
    def last(n: int, saves: dict[str, float] | None) -> str:
        text = reporter("full")(Report([FileReport("a.hlo", [finding(node=f"n.{i}", saves=saves) for i in range(n)])]))
        return text.split("\n\n")[-2].splitlines()[-1]

    assert last(2, {"us": 2.0}) == "  2 times: also at %n.1; about 4 us in all"
    assert last(4, {"us": 2.0}) == "  4 times: also at %n.1, %n.2, %n.3; about 8 us in all"
    assert last(5, None) == "  5 times: also at %n.1, %n.2, %n.3 and 1 more"
    assert last(6, None) == "  6 times: also at %n.1, %n.2, %n.3 and 2 more"
    assert "times" not in last(1, {"us": 2.0})
    groups = alike([finding(severity=Severity.INFO, saves={"us": 9.0}), finding(code="A"), finding(code="B", saves={"us": 1.0})])
    assert [group[0].code for group in groups] == ["B", "A", "DTY001"]  # the worst first, of these what saves most


def test_one_fact_that_is_left_out_is_one_fact() -> None:
    facts = [finding(severity=Severity.INFO, message=f"fact {i}", code=f"DTY{i:03}") for i in range(11)]
    assert "a.hlo: 1 more fact: --facts" in reporter("full")(Report([FileReport("a.hlo", facts)]))
    assert "--facts" not in reporter("full")(Report([FileReport("a.hlo", facts[:10])]))


def test_a_text_that_nothing_looked_at_says_why() -> None:
    text = reporter("full")(Report([FileReport("a.hlo", [], skipped=["its types are wrong"])]))
    assert text == "note: its types are wrong\n\nno findings"


def test_a_policy_that_texts_chose_is_told_once_for_all_of_them() -> None:
    files = [FileReport(f"{name}.hlo", policy="xla-cpu", why="no GPU") for name in "ab"]
    other = FileReport("c.hlo", policy="xla-gpu", why="a GPU")
    assert Report(files).chosen() == ["policy xla-cpu: no GPU"]
    assert Report([*files, other]).chosen() == ["policy xla-cpu: no GPU (2 files)", "policy xla-gpu: a GPU (c.hlo)"]
    assert Report([FileReport("d.hlo", policy="tvm")]).chosen() == []  # it was named
    assert reporter("full")(Report(files)).startswith("policy xla-cpu: no GPU\n\n")
    assert "policy xla-cpu: no GPU." in reporter("markdown")(Report(files))


def test_sums_count_in_the_singular_and_the_plural() -> None:
    one, two, info = finding(), finding(severity=Severity.WARNING), finding(severity=Severity.INFO)
    assert Report([FileReport("a.hlo")]).summary() == "no findings"
    assert Report([FileReport("a.hlo", [one])]).summary() == "1 finding (1 error)"
    assert Report([FileReport("a.hlo", [one, one, two, info, info])]).summary() == "5 findings (2 errors, 1 warning, 2 info)"
    assert reporter("markdown")(Report([FileReport("a.hlo", [one])])).splitlines()[2] == "1 file, 1 finding (1 error)."
    assert reporter("markdown")(Report([FileReport("a.hlo", [one]), FileReport("b.hlo")])).splitlines()[2] == "2 files, 1 finding (1 error)."


def test_statistics_are_a_line_a_rule_what_saves_most_first() -> None:
    files = [FileReport("a.hlo", [finding(), finding(code="FUS003", name="split", saves={"us": 2.0})]), FileReport("b.hlo", [finding()])]
    report = Report(files, statistics=True)
    assert reporter("full")(report).splitlines() == [
        "     1  FUS003  split                        error    1 file  saves about 2 us",
        "     2  DTY001  float64-leak                 error    2 files", "", "3 findings (3 errors)"]
    assert reporter("concise")(report).splitlines()[:2] == reporter("full")(report).splitlines()[:2]
    assert reporter("concise")(Report([FileReport("a.hlo")], statistics=True)) == "no findings"
    assert "###" not in reporter("markdown")(report)


def test_markdown_lists_clean_files_and_the_first_hundred_findings() -> None:
    found = FileReport("a.hlo", [finding(help="do `this`", source_line="net.py:3"), finding(node="")])
    text = reporter("markdown")(Report([found, FileReport("b.hlo"), FileReport("c`.hlo")]))
    assert "| error | DTY001 float64-leak | net.py:3 `%n` | a message<br>do \\`this\\` |  |" in text
    assert "| error | DTY001 float64-leak | line 1 | a message |  |" in text
    assert text.endswith("No findings in `b.hlo`, `c'.hlo`.")
    many = [found, *(FileReport(f"f{i}.hlo") for i in range(23))]
    assert reporter("markdown")(Report(many)).endswith("`f19.hlo` and 3 others.")
    assert "and 1 other" in reporter("markdown")(Report(many[:22]))
    assert reporter("markdown")(Report(many[:21])).endswith("`f19.hlo`.")
    assert "No findings in" not in reporter("markdown")(Report(many[1:]))
    rows = reporter("markdown")(Report([FileReport("a.hlo", [finding()] * 102)])).splitlines()
    assert rows[-1] == "| | | | and 2 more | |" and sum("DTY001" in row for row in rows) == 100
    assert "more" not in reporter("markdown")(Report([FileReport("a.hlo", [finding()] * 100)]))
