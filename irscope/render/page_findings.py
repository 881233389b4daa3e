"""The findings of a page: everything that a report says of them, what fixing saves most first."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from irscope.source import Finding, Note


def by_gain(findings: Iterable[Finding]) -> list[Finding]:
    """The findings by what fixing saves: time, then traffic; of equal ones the more severe first, then as they came."""
    return sorted(findings, key=lambda finding: (-_saved(finding, "us"), -_saved(finding, "bytes"), -finding.severity))


def finding_data(finding: Finding, entry: str) -> dict[str, Any]:
    """A finding for ``page/findings.js``; one that names no graph is about the graph ``entry``."""
    place = finding.place()
    return {
        "code": finding.code, "name": finding.name, "severity": str(finding.severity), "message": finding.message,
        "at": f"line {place}" if place is not None else "", "node": finding.node, "graph": finding.graph or entry, "help": finding.help,
        "from": finding.source_line, "notes": [_note(note, finding) for note in finding.notes],
        "path": [[step.node, step.op, step.type, step.source_line, int(step.here)] for step in finding.path],
        "costs": finding.costs, "saves": finding.saves,
    }


def _note(note: Note, finding: Finding) -> str:
    if finding.source is None or note.offset < 0:
        return note.text
    return f"{note.text} (line {finding.source.place(note.offset)})"


def _saved(finding: Finding, what: str) -> float:
    return (finding.saves or {}).get(what, 0.0)
