"""JUnit's XML: a suite a file, a failed test a finding, for dashboards that count tests."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from irscope.lint.report import FileReport, Report
from irscope.source import Finding, Severity
from irscope.source.visible import visible


def write(report: Report) -> str:
    """Errors and warnings are failures, what is information passes and says what it says; a clean file is one test that passes."""
    failures = sum(_fails(finding) for finding in report.findings())
    tests = sum(max(1, len(file.findings)) for file in report.files)
    lines = ['<?xml version="1.0" encoding="utf-8"?>', f'<testsuites name="irscope" tests="{tests}" failures="{failures}" errors="0">']
    for file in report.files:
        lines += _suite(file)
    return "\n".join([*lines, "</testsuites>"])


def _fails(finding: Finding) -> bool:
    return finding.severity > Severity.INFO


def _suite(file: FileReport) -> list[str]:
    failures = sum(_fails(finding) for finding in file.findings)
    name = _attribute(file.file)
    lines = [f'  <testsuite name={name} tests="{max(1, len(file.findings))}" failures="{failures}" errors="0" skipped="0" time="0">']
    if not file.findings:
        lines.append(f'    <testcase classname={name} name="no findings" time="0"/>')
    for finding in file.findings:
        place = finding.place()
        what = f"{finding.code} {finding.name}" + (f" %{finding.node}" if finding.node else "") + (f" (line {place.line})" if place else "")
        lines.append(f'    <testcase classname={name} name={_attribute(what)} time="0">')
        tag = "failure" if _fails(finding) else "system-out"
        head = f" type={_attribute(str(finding.severity))} message={_attribute(finding.message)}" if _fails(finding) else ""
        lines += [f"      <{tag}{head}>{escape(visible(finding.render()))}</{tag}>", "    </testcase>"]
    return [*lines, "  </testsuite>"]


def _attribute(text: str) -> str:
    return quoteattr(visible(text), {"\n": "&#10;"})
