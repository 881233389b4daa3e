"""The base of the cursors that read HLO and MLIR token by token."""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterator
from typing import ClassVar, NoReturn

from irscope.formats.faults import Fault, Refused


class TextCursor(ABC):
    """A position in a text and the token that begins there.

    ``kind`` and ``value`` are the token's; ``at`` and ``after`` are its begin and end; ``depth`` is the nesting depth of the caller.
    ``max_nesting`` limits nested Python calls, far above what any dump needs; beyond it, reading stops with the fault ``limit``.
    ``syntax`` is the fault of text that the grammar does not allow.
    """

    __slots__ = ("after", "at", "depth", "end", "kind", "text", "value")
    max_nesting: ClassVar[int]
    limit: ClassVar[Fault]
    syntax: ClassVar[Fault]

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

    @abstractmethod
    def refuse(self, message: str, fault: Fault | None = None, help: str = "", sees: bool = True) -> NoReturn:
        """Stop with a fault (default: ``syntax``) at this token."""

    def missing(self, message: str, fault: Fault | None = None) -> NoReturn:
        """Stop with a fault where something is missing."""
        self.refuse(message, fault)

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

    def sees_word(self, word: str) -> bool:
        """Whether this token is the given word."""
        return self.value == word and self.kind == "word"

    def eat_word(self, word: str) -> bool:
        """Step over a word if it is here."""
        if self.value == word and self.kind == "word":
            self.next()
            return True
        return False

    def take(self) -> str:
        """Step over this token and return its value."""
        value = self.value
        self.next()
        return value

    def expect(self, mark: str, where: str, fault: Fault | None = None) -> None:
        """Step over a mark that must be here; ``where`` completes "expected '(' ..."."""
        if not self.eat(mark):
            self.missing(f"expected {mark!r} {where}", fault)

    def elements(self) -> Iterator[None]:
        """Step over one or more items, with commas between them: the body of the loop steps over each item."""
        yield
        while self.eat(","):
            yield

    def one_of(self, words: Container[str], message: str, fault: Fault) -> str:
        """Step over a word, which must be one of these, and return it."""
        if self.kind != "word" or self.value not in words:
            self.refuse(message, fault)
        return self.take()

    def boolean(self, fault: Fault) -> bool:
        """Step over true or false and return it as a bool."""
        return self.one_of(("true", "false"), "expected true or false", fault) == "true"

    def integer(self, what: str = "an integer", fault: Fault | None = None) -> int:
        """Step over an integer of at most 64 bits, signed or not."""
        if self.kind not in ("int", "hex"):
            self.refuse(f"expected {what}", fault)
        value = (int(self.value, 16) if self.kind == "hex" else int(self.value)) if len(self.value) < 40 else 1 << 64
        if not -(1 << 63) <= value < 1 << 64:
            self.refuse(f"the integer {self.value[:40]} does not fit into 64 bits", fault, sees=False)
        self.next()
        return value

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
