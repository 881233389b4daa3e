"""Every output format says the same, in the form that its readers want."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest

import irscope
from irscope.lint import RuleFinding, lint_reading
from irscope.lint.audits import FileAudit, auditor, write_audits
from irscope.lint.audits.table import AUDITS
from irscope.lint.baseline import fingerprint
from irscope.lint.report import FileReport, Report
from irscope.lint.reporters import FORMATS, reporter, sarif
from irscope.lint.reporters.json_ import finding_dict
from irscope.lint.reporters.user_line import user_line
from irscope.lint.savings import human_us
from irscope.source import Finding, Note, Severity, SourceText
from tests.conftest import Cli
from tests.schemas import conforms

SCHEMA = json.loads((Path(irscope.__file__).parent / "lint" / "report.schema.json").read_text())
HOSTILE = Finding(
    "DTY001", "float64-leak", Severity.ERROR, "a <b> & \"c\" | `d`\n%e ::error::\x07", SourceText("a b|c.hlo", "x\n"), 0, 1,
    (Note("from <there>"),), "use [f32](x)", "n|<i>", "g", "model dir/net.py:12:5", {"us": 1.5, "bytes": 2048.0, "kernels": 1.0},
)  # fmt: skip


@pytest.fixture
def report(samples: Path) -> Report:
    """A dump with findings, a clean one, and a finding made of what could end a format's own text."""
    files = []
    for name in ("wasteful.pre.hlo", "mlp.pre.hlo"):
        reading = irscope.load(samples / name, name=f"samples/{name}")
        files.append(FileReport(f"samples/{name}", lint_reading(reading)))
    return Report([*files, FileReport("a b|c.hlo", [HOSTILE])])


def test_the_json_follows_the_schema_that_is_shipped(report: Report, samples: Path, cli: Cli) -> None:
    report.statistics = True
    assert conforms(json.loads(reporter("json")(report)), SCHEMA, SCHEMA) == []
    judged = cli("lint", samples / "mlp.pre.hlo", "--why-not-fused", "--format", "json", "--isolated")
    assert conforms(json.loads(judged.stdout), SCHEMA, SCHEMA) == []
    assert conforms({"version": 2, "files": [{"file": 1}]}, SCHEMA, SCHEMA) != []


def test_the_command_offers_exactly_the_formats_that_there_are() -> None:
    from irscope.cli.lint import AUDITS as OFFERED
    from irscope.cli.reporting import FORMATS as NAMES

    assert set(NAMES) == set(FORMATS)
    assert set(OFFERED) == set(AUDITS)


@pytest.mark.parametrize("name", FORMATS)
def test_every_finding_is_told_in_every_format_and_the_text_is_the_same_each_time(name: str, report: Report) -> None:
    text = reporter(name)(report)
    assert text == reporter(name)(report)
    for finding in report.findings():
        assert text.count(finding.code) >= sum(f.code == finding.code for f in report.findings())


@pytest.mark.parametrize("name", FORMATS)
def test_a_run_without_findings_is_a_whole_document(name: str) -> None:
    text = reporter(name)(Report([FileReport("a.hlo")]))
    if name in ("json", "sarif", "gitlab"):
        json.loads(text)
    if name == "junit":
        assert ElementTree.fromstring(text.encode()).find("testsuite/testcase") is not None


# The parts of the SARIF 2.1.0 schema that bind what we write: https://docs.oasis-open.org/sarif/sarif/v2.1.0/
REGION = {"type": "object", "additionalProperties": False, "required": ["startLine"],
          "properties": {"startLine": {"type": "integer", "minimum": 1}, "startColumn": {"type": "integer", "minimum": 1}}}
MESSAGE = {"type": "object", "required": ["text"], "additionalProperties": False, "properties": {"text": {"type": "string"}}}
MARKED = {"type": "object", "required": ["text"], "additionalProperties": False,
          "properties": {"text": {"type": "string"}, "markdown": {"type": "string"}}}
LOCATION = {"type": "object", "additionalProperties": False, "properties": {
    "id": {"type": "integer", "minimum": 0}, "message": MESSAGE,
    "physicalLocation": {"type": "object", "required": ["artifactLocation"], "additionalProperties": False, "properties": {
        "artifactLocation": {"type": "object", "properties": {"uri": {"type": "string", "pattern": r"^[A-Za-z0-9._~:/?#@!$&'()*+,;=%\-]*$"}}},
        "region": REGION}},
    "logicalLocations": {"type": "array", "items": {"type": "object", "additionalProperties": False, "properties": {
        "name": {"type": "string"}, "fullyQualifiedName": {"type": "string"}, "kind": {"type": "string"}}}}}}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
SARIF = {"type": "object", "required": ["version", "runs"], "additionalProperties": False, "properties": {
    "$schema": {"type": "string"}, "version": {"const": "2.1.0"},
    "runs": {"type": "array", "items": {"type": "object", "required": ["tool"], "additionalProperties": False, "properties": {
        "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
        "invocations": {"type": "array", "items": {"type": "object", "required": ["executionSuccessful"]}},
        "tool": {"type": "object", "required": ["driver"], "additionalProperties": False, "properties": {
            "driver": {"type": "object", "required": ["name"], "additionalProperties": False, "properties": {
                "name": {"type": "string"}, "version": {"type": "string"},
                "rules": {"type": "array", "items": {"type": "object", "required": ["id"], "additionalProperties": False, "properties": {
                    "id": {"type": "string"}, "name": {"type": "string"}, "shortDescription": MARKED, "fullDescription": MARKED, "help": MARKED,
                    "defaultConfiguration": {"type": "object", "properties": {"level": LEVEL}}}}}}}}},
        "results": {"type": "array", "items": {"type": "object", "required": ["message"], "additionalProperties": False, "properties": {
            "ruleId": {"type": "string"}, "ruleIndex": {"type": "integer", "minimum": 0}, "level": LEVEL, "message": MESSAGE,
            "locations": {"type": "array", "items": LOCATION}, "relatedLocations": {"type": "array", "items": LOCATION},
            "partialFingerprints": {"type": "object"}, "properties": {"type": "object"}}}}}}}}}


def test_sarif_is_what_its_standard_asks_for(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    told = json.loads(reporter("sarif")(report))
    assert conforms(told, SARIF, SARIF) == []
    run = told["runs"][0]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(set(rules)) == len(rules)
    assert len(run["results"]) == len(report.findings())
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
    assert {r["partialFingerprints"]["irscope/v1"] for r in run["results"]} == {fingerprint(f) for f in report.findings()}
    levels = [("error", "warning", "note").index(result["level"]) for result in run["results"]]
    assert levels == sorted(levels)
    monkeypatch.setattr(sarif, "MAX_RESULTS", 2)
    cut = json.loads(reporter("sarif")(report))["runs"][0]
    assert conforms(json.loads(reporter("sarif")(report)), SARIF, SARIF) == []
    assert len(cut["results"]) == 2
    assert f"{len(report.findings()) - 2} findings" in cut["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]


def test_sarif_stands_at_the_users_line_where_the_dump_names_it(report: Report) -> None:
    results = json.loads(reporter("sarif")(report))["runs"][0]["results"]
    [hostile] = [r for r in results if r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "model%20dir/net.py"]
    assert hostile["locations"][0]["physicalLocation"]["region"] == {"startLine": 12, "startColumn": 5}
    related = hostile["relatedLocations"][0]["physicalLocation"]
    assert related["artifactLocation"]["uri"] == "a%20b%7Cc.hlo"
    assert related["region"] == {"startLine": 1, "startColumn": 1}
    in_dump = next(r for r in results if r["ruleId"] == "DTY001" and r is not hostile)
    assert in_dump["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "samples/wasteful.pre.hlo"


def test_gitlab_issues_have_unique_fingerprints_and_known_severities(report: Report) -> None:
    report.files.append(FileReport("a b|c.hlo", [HOSTILE]))
    issues = json.loads(reporter("gitlab")(report))
    assert len({issue["fingerprint"] for issue in issues}) == len(issues) == len(report.findings())
    assert {issue["severity"] for issue in issues} <= {"info", "minor", "major", "critical", "blocker"}
    assert issues[-1]["location"] == {"path": "model dir/net.py", "lines": {"begin": 12}}


def test_junit_counts_what_it_holds(report: Report) -> None:
    suites = ElementTree.fromstring(reporter("junit")(report).encode())
    failed = [case for case in suites.iter("testcase") if case.find("failure") is not None]
    assert int(suites.attrib["failures"]) == len(failed) == sum(f.severity > Severity.INFO for f in report.findings())
    assert int(suites.attrib["tests"]) == len(list(suites.iter("testcase")))
    assert [suite.attrib["name"] for suite in suites] == [file.file for file in report.files]
    assert "a <b> & \"c\" | `d`\n" in failed[-1].findall("failure")[0].attrib["message"]


def test_markdown_cells_hold_no_markup_of_a_stranger(report: Report) -> None:
    text = reporter("markdown")(report)
    row = next(line for line in text.splitlines() if "net.py" in line)
    assert "<b>" not in row and "<i>" not in row.replace("`%n\\|<i>`", "")
    assert len(re.split(r"(?<!\\)\|", row)) == 7  # five cells between six bars
    assert "### `samples/mlp.pre.hlo`" in text


def test_github_keeps_each_annotation_on_its_line(report: Report) -> None:
    lines = reporter("github")(report).split("\n")
    assert len(lines) == len(report.findings())
    assert all(re.match(r"::(error|warning|notice) file=", line) for line in lines)
    assert lines[-1].startswith("::error file=model dir/net.py,line=12,col=5,title=DTY001 float64-leak::a <b>")
    assert "(a b|c.hlo:1:1)" in lines[-1]
    assert lines[0].startswith("::error file=samples/wasteful.pre.hlo,line=")


def test_a_users_line_is_told_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for source, file, inside in ((f"{tmp_path}/net.py:3", "net.py", True), ("/usr/lib/jax/core.py:9:2", "/usr/lib/jax/core.py", False)):
        told = user_line(replace(HOSTILE, source_line=source))
        assert told is not None
        assert (told.file, told.inside) == (file, inside)
    assert user_line(replace(HOSTILE, source_line="<string>")) is None


def test_of_facts_people_read_the_costliest_in_a_line_each_and_programs_all() -> None:
    costs = {"us": 0.0, "bytes": 0.0, "kernels": 1.0}
    facts = [replace(HOSTILE, severity=Severity.INFO, message=f"fact {i}!", saves=None, costs={**costs, "us": 20.0 + i}) for i in range(13)]
    report = Report([FileReport("a.hlo", [replace(HOSTILE, message="the error"), *facts])])
    text = reporter("full")(report)
    assert "the error" in text and [f"fact {i}!" in text for i in range(13)] == [False] * 3 + [True] * 10
    assert "info[DTY001]: fact 12! (in kernels of 32 us)\na b|c.hlo:1:1: info[DTY001]: fact 11!" in text
    assert "a.hlo: 3 more facts: --facts" in text
    for name in set(FORMATS) - {"full"}:
        assert all(f"fact {i}!" in reporter(name)(report) for i in range(13)), name
    whole = reporter("full")(replace(report, everything=True))
    assert all(f"fact {i}!" in whole for i in range(13)) and "--facts" not in whole


def test_a_fact_that_costs_nothing_says_so() -> None:
    none = {"us": 0.0, "bytes": 0.0, "kernels": 0.0}
    fact = replace(HOSTILE, severity=Severity.INFO, saves=none, costs={**none, "us": 3.0})
    assert "(saves 0 us of 3 us)" in reporter("full")(Report([FileReport("a.hlo", [fact])]))
    assert "saves: nothing" in reporter("full")(Report([FileReport("a.hlo", [fact])], everything=True))


def test_levels_come_from_the_severity_and_from_whether_a_finding_is_about_time() -> None:
    """A finding about time keeps its severity only where a change saves enough: lint/collect.py."""
    for severity, timed, level in ((Severity.ERROR, True, "wrong"), (Severity.WARNING, True, "costly"), (Severity.WARNING, False, "wrong"),
                                   (Severity.INFO, True, "fact"), (Severity.INFO, False, "fact")):
        finding = RuleFinding("DTY003", "cast-ping-pong", severity, "a message", timed=timed)
        assert finding.level == level
        assert finding_dict(finding)["level"] == level
    assert HOSTILE.level == "wrong"


def test_people_read_equal_findings_of_equal_layers_once(cli: Cli, samples: Path) -> None:
    file = str(samples / "transformer.pre.hlo")
    few, whole = (cli("lint", file, "--exit-zero", "--isolated", *more).stdout for more in ((), ("--facts",)))
    times = [int(n) for n in re.findall(r"; (\d+) times\)$", few, re.M)]
    assert times
    assert few.count("info[") - len(times) + sum(times) == whole.count("info[")
    assert " times: also at" not in whole
    assert few.splitlines()[-1] == whole.splitlines()[-1]


def test_all_of_a_file_is_shown_on_request(cli: Cli, tmp_path: Path) -> None:
    """Twelve operators of different kinds, each computed twice."""
    names = ("exponential", "tanh", "sine", "cosine", "log", "sqrt", "rsqrt", "cbrt", "logistic", "tan", "abs", "negate")
    twice = "".join(f"  {name}.{i} = f32[64,64] {name}(x)\n" for name in names for i in (1, 2))
    results = ", ".join(f"{name}.{i}" for name in names for i in (1, 2))
    types = ", ".join(["f32[64,64]"] * 24)
    file = str(tmp_path / "m.hlo")
    Path(file).write_text(f"HloModule m\n\nENTRY e {{\n  x = f32[64,64] parameter(0)\n{twice}  ROOT r = ({types}) tuple({results})\n}}\n")
    few, whole = cli("lint", file, "--exit-zero", "--select", "ALG002"), cli("lint", file, "--exit-zero", "--select", "ALG002", "--facts")
    assert "2 more facts: --facts" in few.stdout and "--facts" not in whole.stdout
    assert whole.stdout.count("info[") == 12 and few.stdout.count("info[") == 10


def test_statistics_count_by_rule(report: Report, cli: Cli, samples: Path) -> None:
    rows = {row.code: row for row in report.by_rule()}
    assert sum(row.count for row in rows.values()) == len(report.findings())
    assert rows["DTY001"].files == 2
    shown = cli("lint", samples / "wasteful.pre.hlo", "--statistics", "--isolated")
    assert re.search(r"1  DTY001  float64-leak +error +1 file  saves about", shown.stdout)
    assert "wasteful.pre.hlo:" not in shown.stdout
    told = json.loads(cli("lint", samples / "wasteful.pre.hlo", "--statistics", "--isolated", "--format", "json").stdout)
    assert {row["code"]: row["count"] for row in told["statistics"]}["DTY001"] == 1
    assert "| DTY001 float64-leak | error | 1 | 1 |" in cli(
        "lint", samples / "wasteful.pre.hlo", "--statistics", "--isolated", "--format", "markdown").stdout


AUDITED = """HloModule m
ENTRY e {
  p = bf16[4,6]{1,0} parameter(0)
  c = f32[4,6]{1,0} convert(p)
  a = f32[4,6]{1,0} exponential(c)
  b = f32[4,6]{1,0} tanh(c)
  s = f32[4,6]{1,0} add(a, b)
  t = f32[6,4]{1,0} transpose(s), dimensions={1,0}
  ROOT r = bf16[6,4]{1,0} convert(t)
}
"""


def test_audits_tell_figures_that_a_reader_can_check() -> None:
    module = irscope.load(AUDITED).module()
    dtype = auditor("dtype")(module)
    assert ("bf16 -> f32", 1, "casts", "144 B") in dtype.rows  # 48 read and 96 written
    assert ("f32", 4, "3 elementwise, 1 movement", "384 B") in dtype.rows
    layout = auditor("layout")(module)
    assert layout.title == "1 transpositions and copies move 192 B in a run; 0 more lie inside fusions"
    assert layout.rows[-1][1:] == ("%t", "f32[4,6]{1,0} to f32[6,4]{1,0}, for convert", "192 B")
    parallel = auditor("parallel")(module)
    assert parallel.rows == [(2, 2, "384 B", "1 exponential, 1 tanh", "%s")]
    memory = auditor("memory")(module)
    assert memory.title == "192 B at the peak, %a; parameters hold 48 B besides"
    assert {row[0] for row in memory.rows} == {"%a", "%c"}
    assert memory.timeline is not None and max(memory.timeline.live) == 192 and memory.timeline.at[memory.timeline.live.index(192)] == "a"
    shape = auditor("shape")(module)
    assert ("f32[..., 6]", "%c", "the next size that fits is 8", 4, "1 convert, 1 exponential, 1 tanh, 1 add") in shape.rows


def test_an_open_dimension_is_followed_from_where_it_enters() -> None:
    text = "graph(%x : Float(*, 8),\n      %w : Float(8, 8)):\n  %y : Float(*, 8) = aten::relu(%x)\n  %z : Float(*, 8) = aten::tanh(%y)\n  return (%z)\n"
    table = auditor("shape")(irscope.load(text, format="torchscript").module())
    assert [(row[1], row[2], row[3]) for row in table.rows][:1] == [("%x", "enters here", 2)]


@pytest.mark.parametrize("name", AUDITS)
def test_every_audit_is_written_in_every_text(name: str, samples: Path, cli: Cli) -> None:
    module = irscope.load(samples / "transformer.pre.hlo").module()
    table = auditor(name)(module)
    assert all(len(row) == len(table.columns) for row in table.rows)
    told = json.loads(write_audits([FileAudit("x.hlo", [table])], "json"))
    assert conforms(told, SCHEMA, SCHEMA) == []
    shown = cli("lint", samples / "transformer.pre.hlo", "--audit", name, "--isolated")
    assert shown.exit_code == 0
    assert table.title in shown.stdout
    assert table.title in cli("lint", samples / "transformer.pre.hlo", "--audit", name, "--isolated", "--format", "markdown").stdout
    line = cli("lint", samples / "transformer.pre.hlo", "--audit", name, "--isolated", "--format", "jsonl").stdout
    assert json.loads(line)["title"] == table.title


def test_an_audit_is_no_list_of_findings(samples: Path, cli: Cli) -> None:
    refused = cli("lint", samples / "mlp.pre.hlo", "--audit", "dtype", "--format", "sarif", "--isolated")
    assert refused.exit_code == 2
    assert "full, concise, json, jsonl, markdown" in refused.stderr


@pytest.mark.parametrize(("us", "said"), [(0.0, "0 us"), (0.667, "0.667 us"), (12.34, "12.3 us"), (999.4, "999 us"), (999.9, "1 ms"), (9850.0, "9.85 ms"),
                                          (30400.0, "30.4 ms"), (2.5e6, "2.5 s"), (9.9995e8, "1,000 s")])
def test_times_are_told_in_the_unit_that_fits(us: float, said: str) -> None:
    assert human_us(us) == said


def test_a_fact_of_which_a_saving_is_not_known_saves_at_least_the_others() -> None:
    saves, costs = {"us": 2.0, "bytes": 0.0, "kernels": 0.0}, {"us": 8.0, "bytes": 0.0, "kernels": 1.0}
    fact = Finding("FUS021", "activation-after-movement", Severity.INFO, "a fact", SourceText("a.hlo", "x\n"), 0, 1, saves=saves, costs=costs)
    known, partly = [fact, fact], [fact, replace(fact, saves=None, costs=None)]
    assert reporter("full")(Report([FileReport("a.hlo", known)])).splitlines()[0].endswith("(saves 4 us of 16 us; 2 times)")
    assert reporter("full")(Report([FileReport("a.hlo", partly)])).splitlines()[0].endswith("(saves at least 2 us of at least 8 us; 2 times)")
