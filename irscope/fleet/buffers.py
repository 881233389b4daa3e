"""XLA's own report of memory: the buffer-assignment file next to a dump."""
from __future__ import annotations

import re

from irscope.graph import Allocation, BufferAssignment

_ALLOCATION = re.compile(r"^allocation (\d{1,18}):(?: 0x[0-9a-f]+,)? size (\d{1,18}), (.*)$", re.MULTILINE)
_VALUE = re.compile(r"^ value: <\d+ (\S+?)(?:\{[\d,]*\})?(?: \(phi\))? @\d+> \(size=(\d{1,18}),offset=(\d+)\): (.*)$", re.MULTILINE)

BEGINS = {"buffer-assignment": re.compile(r"\s*BufferAssignment(?: OOM Debugging)?[.:]"),
          "memory-usage-report": re.compile(r"\s*Memory Space: .+? \(color=\d+\)")}
"""How the reports begin, by kind."""
_SPACE = re.compile(r"^Memory Space: (.+?) \(color=\d+\)\s*\nTotal bytes: (\d{1,18})\b", re.MULTILINE)


def parse_buffer_assignment(text: str) -> BufferAssignment:
    """Read a ``*-buffer-assignment.txt``; lines that it does not know are passed over.

    >>> parse_buffer_assignment("BufferAssignment:\\nallocation 0: size 8, parameter 0, shape |f32[2]|:\\n").total
    8
    """
    found: list[Allocation] = []
    starts = list(_ALLOCATION.finditer(text))
    for i, start in enumerate(starts):
        end = starts[i + 1].start() if i + 1 < len(starts) else len(text)
        values = sorted(((v[1], int(v[2])) for v in _VALUE.finditer(text, start.end(), end)), key=lambda v: -v[1])
        found.append(Allocation(int(start[1]), int(start[2]), _sort(start[3]), tuple(values)))
    return BufferAssignment(found)


def kind_of_report(text: str) -> str | None:
    """The kind of a report, by its beginning; None where a text is none."""
    return next((kind for kind, pattern in BEGINS.items() if pattern.match(text)), None)


def parse_memory_usage(text: str) -> dict[str, int]:
    """Read a ``*-memory-usage-report.txt``: bytes by memory space.

    >>> parse_memory_usage("Memory Space: default (color=0)\\nTotal bytes: 112680 (110.0KiB)\\n")
    {'default': 112680}
    """
    return {m[1]: int(m[2]) for m in _SPACE.finditer(text)}


def _sort(words: str) -> str:
    if words.startswith("parameter"):
        return "parameter"
    if "thread-local" in words:
        return "thread-local"
    if "preallocated-temp" in words:
        return "temporary"
    if "constant" in words:
        return "constant"
    return "output" if "output" in words or "maybe-live-out" in words else "temporary"
