"""Findings: what irscope reports about a place in a text, and how a terminal shows it."""
from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

from irscope.source.notebook import Viewable
from irscope.source.text import Place, SourceText
from irscope.source.visible import visible


class Severity(IntEnum):
    """The severity of a finding; ordered, for thresholds."""

    INFO = 0
    WARNING = 1
    ERROR = 2

    def __str__(self) -> str:
        return self.name.lower()


class Level(StrEnum):
    """What a finding says: something is wrong, something costs time that a known change saves, or something is so."""

    WRONG = "wrong"
    COSTLY = "costly"
    FACT = "fact"


def level_of(severity: Severity, timed: bool) -> Level:
    """The level of a finding. ``timed``: it is about time, and has a severity above information only if a priced change saves enough.

    >>> str(level_of(Severity.WARNING, timed=True)), str(level_of(Severity.WARNING, timed=False)), str(level_of(Severity.INFO, timed=True))
    ('costly', 'wrong', 'fact')
    """
    if severity is Severity.INFO:
        return Level.FACT
    return Level.COSTLY if timed and severity is Severity.WARNING else Level.WRONG


@dataclass(frozen=True, slots=True)
class Note:
    """Where a fault comes from; ``offset`` is a place in the same text, or -1."""

    text: str
    offset: int = -1


@dataclass(frozen=True, slots=True)
class Step:
    """One operator that a finding is about: name, operator, result type, place in the text, the user's line; ``here``: the finding is at
    this one."""

    node: str
    op: str
    type: str
    offset: int = -1
    source_line: str = ""
    here: bool = False


@dataclass(slots=True)
class Finding(Viewable):
    """One reported problem.

    ``code`` is a family and three digits (``HLO001``), never re-used, ``name`` the name of the pattern
    (``undefined-operand``), ``offset``/``length`` the place in the text (offset -1: none),
    ``node`` and ``graph`` the names of the node and its graph, if any, ``source_line`` the user's own
    program line (``model.py:12``), ``saves`` the saving of a fix (keys ``us``, ``bytes``, ``kernels``).
    ``path`` are the operators it is about, in text order, ``costs`` the present costs of the kernels that compute them (the keys of
    ``saves``).
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
    path: tuple[Step, ...] = field(default=(), kw_only=True)
    costs: dict[str, float] | None = field(default=None, kw_only=True)

    def __repr__(self) -> str:
        return f"<{self.headline()}>"

    @property
    def level(self) -> Level:
        """Wrong, costly, or a fact."""
        return level_of(self.severity, timed=False)

    def place(self) -> Place | None:
        """Line and column of the finding, or None when it has no place in the text."""
        if self.source is None or self.offset < 0:
            return None
        return self.source.place(self.offset)

    def headline(self) -> str:
        """``file:line:col: severity[CODE]: message``, on one line."""
        where = self.source.name if self.source else ""
        place = self.place()
        if place:
            where += f":{place}"
        return visible((f"{where}: " if where else "") + f"{self.severity}[{self.code}]: {self.message}")

    def render(self) -> str:
        """The finding in full: headline, the line with carets, notes and help. Plain text, no final newline."""
        lines = [self.headline()]
        if self.source is not None and self.offset >= 0:
            lines += self.source.excerpt(self.offset, self.length)
        for note in self.notes:
            at = f" (line {self.source.place(note.offset)})" if self.source is not None and note.offset >= 0 else ""
            lines.append(f"   note: {note.text}{at}")
        lines += self._path()
        if self.source_line and len(self.path) < 2:
            lines.append(f"   from: {self.source_line}")
        if self.help:
            lines.append(f"   help: {self.help}")
        return visible("\n".join(lines))

    def _path(self) -> list[str]:
        """The operators in columns, with an arrow at the one of the finding; a single one is already in the line with the carets."""
        if len(self.path) < 2:
            return []
        rows = [(f"%{step.node}", step.type, step.op) for step in self.path]
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        lines = []
        for step, row in zip(self.path, rows, strict=True):
            cells = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            lines.append(f"         {cells}  {'<- ' if step.here else '   '}{step.source_line}".rstrip())
        return ["   path: " + lines[0].lstrip(), *lines[1:]]
