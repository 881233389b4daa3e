"""Splits a log of passes into its modules."""

from __future__ import annotations

import re
from dataclasses import dataclass

from irscope.formats.marks import marks
from irscope.formats.relay.lexer import HEADER, METADATA

FUNCTION = re.compile(r"(?:^|[\s;}])def\s+@|^[ \t]*fn\s*(?:\[[^\]]*\])?\s*\(\s*%|^[ \t]*(?:free_var\s+)?%[\w.]+\s*(?::[^=\n]*)?[=;]",
                      re.MULTILINE)


CLOSED = re.compile(r"^\}[^\n]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ModulePart:
    """A module's place in a text. In a log ``when`` is ``before`` or ``after`` (empty if neither), and ``name`` the pass."""

    begin: int
    end: int
    when: str = ""
    name: str = ""

    @property
    def words(self) -> str:
        """``after FoldConstant``; empty in a text that is not a log."""
        return f"{self.when} {self.name}".strip()


def snapshots(text: str) -> list[ModulePart]:
    """The modules of a text: one, or those that TVM's instruments print before and after passes."""
    found = list(marks(text))
    ends = [*(mark.begin for mark in found[1:]), len(text)]
    parts = []
    for mark, end in zip(found, ends, strict=False):
        if FUNCTION.search(text, mark.end, end) or HEADER.match(text, mark.end, end):
            parts.append(ModulePart(mark.end, _end(text, mark.end, end), mark.when, mark.name))
    return parts or [ModulePart(0, len(text))]


def _end(text: str, begin: int, end: int) -> int:
    """The end of a module: log text after its last closing brace is not part of it, a table of constants is."""
    closed = list(CLOSED.finditer(text, begin, end))
    return closed[-1].end() if closed and METADATA.search(text, closed[-1].end(), end) is None else end
