"""The text that was read, and places in it as line and column."""
from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from irscope.source.visible import visible

# Longer caret lines are useless on a terminal; XLA prints lines of 100 kB.
MAX_SHOWN_COLUMNS = 160


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Line and column, both counted from 1, of a character in a text."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


@dataclass(slots=True, eq=False)
class SourceText:
    """A named text. ``name`` is the path as the user gave it (``-`` for standard input)."""

    name: str
    text: str
    _starts: list[int] | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return f"<text {self.name!r}: {len(self.text):,} characters>"

    def starts(self) -> list[int]:
        """Offsets of the line beginnings; computed on demand, because most texts need none."""
        if self._starts is None:
            starts = [0]
            at = self.text.find("\n")
            while at >= 0:
                starts.append(at + 1)
                at = self.text.find("\n", at + 1)
            self._starts = starts
        return self._starts

    def place(self, offset: int) -> Place:
        """The place of the character at ``offset``; the end of the text when the offset is beyond it."""
        offset = max(0, min(offset, len(self.text)))
        starts = self.starts()
        line = bisect_right(starts, offset)
        return Place(line, offset - starts[line - 1] + 1)

    def line(self, number: int) -> str:
        """The text of a line (from 1), without its line end."""
        starts = self.starts()
        if not 1 <= number <= len(starts):
            return ""
        end = starts[number] if number < len(starts) else len(self.text)
        return self.text[starts[number - 1]:end].rstrip("\r\n")

    def excerpt(self, offset: int, length: int = 1) -> list[str]:
        """The line of ``offset`` with a line of carets under it, cut to what a terminal can show."""
        place = self.place(offset)
        line = visible(self.line(place.line).replace("\t", " "))
        begin = place.column - 1
        length = max(1, min(length, len(line) - begin)) if begin < len(line) else 1
        if len(line) > MAX_SHOWN_COLUMNS:
            cut = max(0, begin - MAX_SHOWN_COLUMNS // 3)
            head, tail = "..." if cut else "", "..." if cut + MAX_SHOWN_COLUMNS < len(line) else ""
            line = head + line[cut:cut + MAX_SHOWN_COLUMNS] + tail
            begin += len(head) - cut
            length = min(length, MAX_SHOWN_COLUMNS - begin + len(head))
        number = f"{place.line:>5} | "
        return [number + line, " " * (len(number) - 2) + "| " + " " * begin + "^" * max(1, length)]
