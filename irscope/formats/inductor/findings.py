"""Findings of the readers of Inductor's texts."""
from __future__ import annotations

from irscope.formats.syntax import SyntaxFault
from irscope.graph import Reading
from irscope.source import Finding, Severity

NOT_COMPLETE = ("IND001", "incomplete-text")
NOT_UNDERSTOOD = ("IND002", "malformed-text")
UNDEFINED = ("IND003", "undefined-buffer")
BAD_PAYLOAD = ("IND010", "damaged-payload")
BAD_RECORD = ("IND011", "damaged-record")

WHOLE = "TORCH_COMPILE_DEBUG=1 writes the whole folder again; copy files only after the program has ended"


def report(reading: Reading, faults: list[SyntaxFault]) -> None:
    """Add the faults of a text to its reading, which is then not ok."""
    for fault in faults:
        code, name = NOT_COMPLETE if "end" in fault.message or "cut" in fault.message else NOT_UNDERSTOOD
        reading.findings.append(Finding(code, name, Severity.ERROR, fault.message, reading.source, fault.offset, fault.length,
                                        help=fault.help or WHOLE))
        reading.ok = False
