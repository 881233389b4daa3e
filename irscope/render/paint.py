"""Colour, width and line characters of a terminal; the other files of this package decide what to print, this one how."""
from __future__ import annotations

from dataclasses import dataclass

from irscope.source.links import linked

_CODES = {
    "bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "magenta": "35", "cyan": "36",
    "contraction": "34", "reduction": "35", "elementwise": "33", "movement": "32", "fusion": "1", "control": "36", "collective": "31",
    "custom": "36", "parameter": "2", "constant": "2", "free": "2", "unknown": "31",
}
_EIGHTHS = " ▏▎▍▌▋▊▉█"


@dataclass(frozen=True, slots=True)
class Paint:
    """``width`` columns; ``colour``, ``unicode`` and ``links`` say what the terminal can."""

    width: int = 100
    colour: bool = False
    unicode: bool = True
    links: bool = False

    def __call__(self, text: str, style: str) -> str:
        """The text in a style: ``bold``, ``dim``, a colour, or a class of work."""
        code = _CODES.get(style) if self.colour and text else None
        return f"\x1b[{code}m{text}\x1b[0m" if code else text

    def link(self, text: str, place: str) -> str:
        """The text as a link to a line of a file (``model.py:12``), where the terminal follows links and the file is on this machine."""
        return linked(text, place) if self.links and self.colour else text

    def bar(self, share: float, width: int) -> str:
        """A bar of ``width`` columns, filled to ``share``."""
        share = min(1.0, max(0.0, share))
        if not self.unicode:
            return ("#" * round(share * width)).ljust(width)
        eighths = round(share * width * 8)
        if share > 0:
            eighths = max(1, eighths)
        whole, part = divmod(eighths, 8)
        return ("█" * whole + (_EIGHTHS[part] if part else "")).ljust(width)

    def branch(self, last: bool) -> str:
        if self.unicode:
            return "└─ " if last else "├─ "
        return "`- " if last else "|- "

    def stem(self, last: bool) -> str:
        if last:
            return "   "
        return "│  " if self.unicode else "|  "

    @property
    def times(self) -> str:
        return "×" if self.unicode else "x"

    @property
    def dot(self) -> str:
        return "·" if self.unicode else "-"

    @property
    def to(self) -> str:
        return "→" if self.unicode else "->"
