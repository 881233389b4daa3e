"""Findings of a reader: kinds of fault, the exception that carries a fault to where reading resumes, and their collection."""
from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from irscope.source import Finding, Note, Severity, SourceText

# Only the first faults of a broken text are reported.
MAX_FINDINGS = 100


@dataclass(frozen=True, slots=True)
class Fault:
    """A kind of fault. ``refuses``: the format's own parser stops there, so ``Reading.ok`` is false.

    ``spoils``: an instruction with it lacks an operand or attribute that its operator requires.
    """

    code: str
    name: str
    doc: str
    severity: Severity = Severity.ERROR
    refuses: bool = True
    spoils: bool = False


class Span(NamedTuple):
    """A range of the text, and the names of its node and graph."""

    offset: int
    length: int = 1
    node: str = ""
    graph: str = ""


class Refused(Exception):
    """Reading cannot continue here. Carries everything that a finding needs."""

    def __init__(self, fault: Fault, message: str, offset: int, length: int = 1, help: str = "", notes: tuple[Note, ...] = ()) -> None:
        super().__init__(message)
        self.fault, self.message, self.offset, self.length, self.help, self.notes = fault, message, offset, length, help, notes


class Faults:
    """The findings of one reading, and whether the format's own parser would have accepted the text."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.findings: list[Finding] = []
        self.ok = True
        self.left_out = 0
        self.spoilt = 0
        """The number of faults that make their instruction opaque."""

    def add(self, fault: Fault, message: str, span: Span, help: str = "", notes: tuple[Note, ...] = ()) -> None:
        """Add one fault."""
        if fault.refuses:
            self.ok = False
        self.spoilt += fault.spoils
        if len(self.findings) >= MAX_FINDINGS:
            self.left_out += 1
            return
        offset, length, node, graph = span
        self.findings.append(
            Finding(fault.code, fault.name, fault.severity, message, self.source, offset, max(1, length), notes, help, node, graph))

    def cut_off(self, fault: Fault, since: int, message: str, end: int, help: str) -> None:
        """Report that the text ends early, before all findings from one number on. Those in its last line are consequences: where exactly
        it ends becomes a note, and the others are dropped."""
        self.ok = False
        line = self.source.text.rfind("\n", 0, end) + 1
        last = [finding for finding in self.findings[since:] if finding.offset >= line]
        kept = [finding for finding in self.findings[since:] if finding.offset < line]
        found = Finding(fault.code, fault.name, fault.severity, message, self.source, end, help=help)
        where = next((finding for finding in last if finding.code == fault.code), None)
        if where is not None:
            found.offset, found.length, found.node, found.graph = where.offset, where.length, where.node, where.graph
            found.notes = (Note(where.message), *where.notes)
        self.findings[since:] = [found, *kept]

    def take(self, refused: Refused, node: str = "", graph: str = "") -> None:
        """Add the fault that an exception carries."""
        self.add(refused.fault, refused.message, Span(refused.offset, refused.length, node, graph), refused.help, refused.notes)

    def close(self) -> list[Finding]:
        """All findings in reading order, with a final one that counts those left out."""
        if self.left_out:
            last = self.findings[-1]
            self.findings.append(Finding(last.code, last.name, last.severity, f"and {self.left_out} more faults, not shown", self.source))
        return self.findings
