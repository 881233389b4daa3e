"""SARIF 2.1.0: what GitHub's code scanning and most editors read."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from irscope.lint.baseline import fingerprint
from irscope.lint.gate import all_documented
from irscope.lint.report import FileReport, Report
from irscope.lint.reporters.user_line import user_line
from irscope.source import Finding, Severity, Step
from irscope.source.data_text import strict_json
from irscope.version import __version__

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
MAX_RESULTS = 25_000
"""GitHub takes no more in one run; the worst come first, and the rest are counted in a notification."""


def write(report: Report) -> str:
    """One run. A result stands at the line of the user's program where the dump names it, and at the line of the dump otherwise."""
    described = [(file, finding) for file in report.files for finding in file.findings]
    described.sort(key=lambda pair: (-pair[1].severity, -_saved(pair[1])))
    shown = described[:MAX_RESULTS]
    codes = sorted({finding.code for _, finding in shown})
    places = {code: number for number, code in enumerate(codes)}
    names = {finding.code: finding.name for _, finding in shown}
    run: dict[str, object] = {
        "tool": {
            "driver": {"name": "irscope", "version": __version__, "rules": [_rule(code, names[code]) for code in codes]},
        },
        "columnKind": "unicodeCodePoints",
        "results": [_result(file, finding, places) for file, finding in shown],
    }
    if len(described) > len(shown):
        left = f"{len(described) - len(shown)} findings of least weight are left out: a run holds {MAX_RESULTS}"
        notes = [{"level": "warning", "message": {"text": left}}]
        run["invocations"] = [{"executionSuccessful": True, "toolExecutionNotifications": notes}]
    return strict_json({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1)


def _saved(finding: Finding) -> float:
    return finding.saves.get("us", 0.0) if finding.saves else 0.0


def _rule(code: str, name: str) -> dict[str, object]:
    """What the run says of a rule; what readers report has no page of its own."""
    rule = next((rule for rule in all_documented() if rule.code == code), None)
    title = rule.title() if rule else name.replace("-", " ")
    described: dict[str, object] = {"id": code, "name": name, "shortDescription": {"text": title}}
    if rule is not None:
        described["fullDescription"] = {"text": "\n\n".join(section.text for section in rule.sections()[:2])}
        text = "\n\n".join(f"## {section.heading}\n{section.text}" for section in rule.sections())
        described["help"] = {"text": f"irscope rule {code}", "markdown": text}
        described["defaultConfiguration"] = {"level": LEVELS[rule.severity]}
    return described


def _result(file: FileReport, finding: Finding, places: dict[str, int]) -> dict[str, Any]:
    text = finding.message + (f"\n{finding.help}" if finding.help else "")
    described: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": places[finding.code],
        "level": LEVELS[finding.severity],
        "message": {"text": text},
        "locations": [_location(file, finding)],
        "partialFingerprints": {"irscope/v1": fingerprint(finding)},
    }
    own = _in_dump(file, finding)
    if user_line(finding) is not None:
        described["relatedLocations"] = [{**own, "id": 0, "message": {"text": "in the dump"}}]
    if len(finding.path) > 1:
        steps = [_step(file, finding, step, number) for number, step in enumerate(finding.path, 1)]
        described["relatedLocations"] = [*described.get("relatedLocations", []), *steps]
    properties: dict[str, Any] = {"level": str(finding.level)}
    if finding.notes:
        properties["notes"] = [note.text for note in finding.notes]
    if finding.saves:
        properties["saves"] = finding.saves
    if finding.costs:
        properties["costs"] = finding.costs
    described["properties"] = properties
    return described


def _step(file: FileReport, finding: Finding, step: Step, number: int) -> dict[str, Any]:
    """An operator on the path of a finding, at its place in the dump."""
    place = finding.source.place(step.offset) if finding.source is not None and step.offset >= 0 else None
    region = {"startLine": place.line, "startColumn": place.column} if place else {"startLine": 1}
    at = f" at {step.source_line}" if step.source_line else ""
    message = {"text": f"%{step.node} {step.type} {step.op}{at}"}
    return {"id": number, "message": message, "physicalLocation": {"artifactLocation": {"uri": uri(file.file)}, "region": region}}


def _location(file: FileReport, finding: Finding) -> dict[str, Any]:
    user = user_line(finding)
    if user is None:
        return _in_dump(file, finding)
    region = {"startLine": user.line, **({"startColumn": user.column} if user.column else {})}
    return _named({"physicalLocation": {"artifactLocation": {"uri": uri(user.file)}, "region": region}}, finding)


def _in_dump(file: FileReport, finding: Finding) -> dict[str, Any]:
    place = finding.place()
    region = {"startLine": place.line, "startColumn": place.column} if place else {"startLine": 1}
    return _named({"physicalLocation": {"artifactLocation": {"uri": uri(file.file)}, "region": region}}, finding)


def _named(location: dict[str, object], finding: Finding) -> dict[str, object]:
    if finding.node:
        location["logicalLocations"] = [{"name": finding.node, "fullyQualifiedName": f"{finding.graph}/{finding.node}", "kind": "member"}]
    return location


def uri(path: str) -> str:
    """A path as a URI reference: slashes, what is no letter of a URI escaped, relative paths kept relative."""
    text = quote(PurePath(path).as_posix())
    return f"file://{text}" if text.startswith("/") else text
