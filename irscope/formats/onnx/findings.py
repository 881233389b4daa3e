"""The findings of the reader of ONNX models."""
from __future__ import annotations

from irscope.graph import Reading
from irscope.source import Finding, Severity

MALFORMED = ("ONX001", "malformed-model", Severity.ERROR)
UNDEFINED = ("ONX002", "undefined-value", Severity.ERROR)
TWICE = ("ONX003", "value-defined-twice", Severity.ERROR)
NO_TYPES = ("ONX010", "types-not-inferred", Severity.WARNING)
MAX_FINDINGS = 20
"""So many are reported; the rest follow from them in most files."""

Fault = tuple[str, str, Severity]


def report(reading: Reading, fault: Fault, message: str, node: str = "", help: str = "") -> None:
    """Add a finding. An error clears ``reading.ok``."""
    if fault[2] is Severity.ERROR:
        reading.ok = False
    if len(reading.findings) < MAX_FINDINGS:
        reading.findings.append(Finding(*fault, message, reading.source, node=node, help=help))
