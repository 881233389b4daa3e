"""Pass logs: the lines that TVM's instruments and ``irscope opt --print-after`` print before each module."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MARKER = re.compile(
    r"^.*?(?:PrintIR\((?P<header>[^)\n]*)\):|Print IR (?P<when>before|after): (?P<plain>[\w.:-]+)"
    r"|(?P<run>Before|After) Running Pass: .*?(?:pass name: (?P<listed>[\w.:-]+)|name=\"(?P<named>[^\"]+)\")).*$",
    re.MULTILINE,
)
WHEN = re.compile(r"(before|after)[ :]+(.+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Mark:
    """One such line: its begin and end, ``before`` or ``after`` (empty if neither), and the name of the pass."""

    begin: int
    end: int
    when: str
    name: str


def marks(text: str, begin: int = 0, end: int | None = None) -> Iterator[Mark]:
    """The lines of a text that name the pass before or after which a module was printed."""
    end = len(text) if end is None else end
    if text.find("Print", begin, end) < 0 and text.find("Running Pass", begin, end) < 0:
        return
    for mark in MARKER.finditer(text, begin, end):
        when = (mark["when"] or mark["run"] or "").lower()
        said = (mark["header"] or mark["plain"] or mark["listed"] or mark["named"] or "").strip()
        told = WHEN.fullmatch(said) if not when else None
        yield Mark(mark.start(), mark.end(), told[1].lower() if told else when, told[2] if told else said)
