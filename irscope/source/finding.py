"""What irscope has to say about a place in a text: one Finding, and how it reads in a terminal."""
from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from irscope.source.text import Place, SourceText


class Severity(IntEnum):
    """How bad it is; ordered, so that thresholds compare."""

    INFO = 0
    WARNING = 1
    ERROR = 2

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Note:
    """Where a fault comes from; ``offset`` is a place in the same text, or -1."""

    text: str
    offset: int = -1


@dataclass(slots=True)
class Finding:
    """One thing irscope says.

    ``code`` is a family and three digits (``HLO001``) and never re-used, ``name`` what the pattern is called
    (``undefined-operand``), ``offset``/``length`` the place in the text (offset -1: none),
    ``node`` and ``graph`` the names of the node and its graph where there is one, ``source_line`` the user's own
    program line (``model.py:12``), ``saves`` what a fix would save (keys ``us``, ``bytes``, ``kernels``).
    """

    code: str
    name: str
    severity: Severity
    message: str
    source: SourceText | None = None
    offset: int = -1
    length: int = 1
    notes: tuple[Note, ...] = ()
    help: str = ""
    node: str = ""
    graph: str = ""
    source_line: str = ""
    saves: dict[str, float] | None = None

    def place(self) -> Place | None:
        """Line and column of the finding, or None when it concerns no place in the text."""
        if self.source is None or self.offset < 0:
            return None
        return self.source.place(self.offset)

    def headline(self) -> str:
        """``file:line:col: severity[CODE]: message``, on one line."""
        where = self.source.name if self.source else ""
        place = self.place()
        if place:
            where += f":{place}"
        return f"{where}: {self.severity}[{self.code}]: {self.message}" if where else f"{self.severity}[{self.code}]: {self.message}"

    def render(self) -> str:
        """The finding in full: headline, the line with carets, notes and help. Plain text, no final newline."""
        lines = [self.headline()]
        if self.source is not None and self.offset >= 0:
            lines += self.source.excerpt(self.offset, self.length)
        for note in self.notes:
            at = f" (line {self.source.place(note.offset)})" if self.source is not None and note.offset >= 0 else ""
            lines.append(f"   note: {note.text}{at}")
        if self.source_line:
            lines.append(f"   from: {self.source_line}")
        if self.help:
            lines.append(f"   help: {self.help}")
        return "\n".join(lines)
