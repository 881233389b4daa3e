"""Logs of TVM's instruments: the module that each pass got, and the one that it gave, one after the other in one text."""

from __future__ import annotations

import re

from irscope.formats.relay.lexer import HEADER

MARKER = re.compile(
    r"^.*?(?:PrintIR\((?P<header>[^)\n]*)\):|Print IR (?P<when>before|after): (?P<plain>[\w.:]+)"
    r"|(?P<run>Before|After) Running Pass: .*?(?:pass name: (?P<listed>[\w.:]+)|name=\"(?P<named>[^\"]+)\")).*$",
    re.MULTILINE,
)
FUNCTION = re.compile(
    r"(?:^|[\s;}])def\s+@|^[ \t]*fn\s*(?:\[[^\]]*\])?\s*\(\s*%|^[ \t]*(?:free_var\s+)?%[\w.]+\s*(?::[^=\n]*)?[=;]", re.MULTILINE
)


def snapshots(text: str) -> list[tuple[str, int, int]]:
    """The modules of a text as (name, begin, end): one, or those that TVM's instruments print before and after passes."""
    marks = list(MARKER.finditer(text)) if "Print" in text or "Running Pass" in text else []
    parts = []
    for i, mark in enumerate(marks):
        end = marks[i + 1].start() if i + 1 < len(marks) else len(text)
        if FUNCTION.search(text, mark.end(), end) or HEADER.match(text, mark.end(), end):
            when = (mark["when"] or mark["run"] or "").lower()
            said = mark["header"] or mark["plain"] or mark["listed"] or mark["named"] or ""
            parts.append((f"{when} {said}".strip(), mark.end(), end))
    return parts or [("", 0, len(text))]
