"""Workflow commands that GitHub shows as annotations."""

from __future__ import annotations

from irscope.lint.report import Report
from irscope.lint.reporters.user_line import user_line
from irscope.source import Finding, Severity
from irscope.source.visible import visible

LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def write(report: Report) -> str:
    """``::warning file=...,line=...,col=...,title=CODE name::message``, a line each, at the user's line where it is in the repository."""
    return "\n".join(_line(finding) for finding in report.findings())


def _line(finding: Finding) -> str:
    place, user = finding.place(), user_line(finding)
    dump = (finding.source.name if finding.source else "") + (f":{place}" if place else "")
    where = finding.source_line
    if user is not None and user.inside:
        at = f"file={_escape(user.file, True)},line={user.line}" + (f",col={user.column}" if user.column else "")
        where = dump
    else:
        at = f"file={_escape(finding.source.name, True)}" if finding.source else ""
        at += f",line={place.line},col={place.column}" if place else ""
    message = finding.message + (f" ({where})" if where else "") + (f"\n{finding.help}" if finding.help else "")
    return f"::{LEVELS[finding.severity]} {at},title={_escape(f'{finding.code} {finding.name}', True)}::{_escape(message)}"


def _escape(text: str, property: bool = False) -> str:
    """The escapes of GitHub's toolkit: percent and line ends, in properties also colon and comma."""
    text = visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if property else text
