"""What the cursors of formats that are read token by token share."""
from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from irscope.formats.faults import Fault, Refused


class TextCursor(ABC):
    """A position in a text and the token that begins there.

    ``kind`` and ``value`` are the token's; ``at`` and ``after`` are its begin and end; ``depth`` is the nesting depth of the caller.
    ``max_nesting`` limits nested Python calls, far above what any dump needs; beyond it, reading stops with the fault ``limit``.
    """

    __slots__ = ("after", "at", "depth", "end", "kind", "text", "value")
    max_nesting: ClassVar[int]
    limit: ClassVar[Fault]

    def __init__(self, text: str, at: int = 0, end: int | None = None) -> None:
        self.text = text
        self.end = len(text) if end is None else end
        self.depth = 0
        self.kind = self.value = ""
        self.at = self.after = at
        self.next()

    @abstractmethod
    def next(self) -> None:
        """Go to the next token."""

    def goto(self, offset: int) -> None:
        """Go to the first token at or after an offset."""
        self.after = offset
        self.next()

    def sees(self, mark: str) -> bool:
        """Whether this token is the given mark."""
        return self.value == mark and self.kind == "mark"

    def eat(self, mark: str) -> bool:
        """Step over a mark if it is here."""
        if self.value == mark and self.kind == "mark":
            self.next()
            return True
        return False

    def nest(self, calls: int) -> None:
        """Enter one more level, which costs ``calls`` Python calls; refuses beyond the limit."""
        self.depth += calls
        if self.depth > self.max_nesting:
            raise Refused(self.limit, f"nested more than {self.max_nesting // calls} levels deep", self.at, 1,
                          "no compiler prints such text; is it damaged?")

    def shown(self) -> str:
        """This token for a message."""
        if self.kind == "end":
            return "the end of the text"
        text = self.text[self.at:self.after]
        return repr(text if len(text) <= 40 else text[:37] + "...")
