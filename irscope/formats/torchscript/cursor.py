"""A cursor over TorchScript text that reads the parts of statements: names, types, attributes."""
from __future__ import annotations

import re

from irscope.formats.syntax import SyntaxFault

SPACE = re.compile(r"(?:[ \t\n;]+|#[^\n]*|//[^\n]*)*")
# Blanks are taken a run at a time: the lookahead would else pass over the rest of a run from each blank in it.
NAME = re.compile(r"%((?:::|[^\s,:()=;{}]|[^\S\n]++)+?)(?=\s*(?:[,)=\n;{}]|:(?!:)|$))")
TYPE = re.compile(r"[\w.]+(?:\([^()]*\))?(?:\[\]|\?)*(?=\s*(?:,|=|\)|\n|;|$))")
HEAD = re.compile(r"\^?[A-Za-z_][\w.]*(?:::[\w.]+)*")
TAIL = re.compile(r"(?:, scope: ((?:(?! # |\n).)*))?[ \t]*(?:# ?([^\n]*))?")
STRING = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'', re.DOTALL)
STOPS = re.compile(r"[\"'()\[\]{}]")
KEY = re.compile(r"\s*([A-Za-z_]\w*)=")
OPEN, CLOSE = "([{", ")]}"


class TypeCursor:
    """A place in a text; every method steps over what it reads, or raises SyntaxFault."""

    def __init__(self, text: str, at: int = 0) -> None:
        self.text = text
        self.at = at

    def skip(self) -> None:
        """Skip blanks, line ends and comments."""
        found = SPACE.match(self.text, self.at)
        if found:
            self.at = found.end()

    def sees(self, word: str) -> bool:
        """Whether ``word`` is here."""
        return self.text.startswith(word, self.at)

    def take(self, word: str) -> bool:
        """Step over blanks and ``word``, if it follows."""
        self.skip()
        if self.text.startswith(word, self.at):
            self.at += len(word)
            return True
        return False

    def expect(self, word: str, where: str) -> None:
        """Step over ``word``, which must be here."""
        if not self.take(word):
            raise SyntaxFault(self.at, f"{word!r} is expected {where}, but here is {self.shown()}")

    def shown(self) -> str:
        """The text here, for a message."""
        if self.at >= len(self.text):
            return "the end of the text"
        return repr(self.text[self.at:self.at + 24].split("\n", 1)[0] or "a line end")

    def name(self) -> str:
        """``%x.1`` without the percent sign. Names may contain blanks, slashes and double colons."""
        found = NAME.match(self.text, self.at)
        if found is None:
            raise SyntaxFault(self.at, f"a value (%name) is expected, but here is {self.shown()}")
        self.at = found.end()
        return found[1].strip()

    def type(self) -> str:
        """The text of a type: up to a comma, ``=`` or closing bracket outside its own brackets."""
        while self.text.startswith(" ", self.at):
            self.at += 1
        found = TYPE.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
            return found[0]
        begin, depth, at, text = self.at, 0, self.at, self.text
        while at < len(text):
            c = text[at]
            if c in "([{<":
                depth += 1
            elif c in ")]}" or (c == ">" and text[at - 1] != "-"):
                if depth == 0:
                    break
                depth -= 1
            elif depth == 0 and (c in ",\n;" or (c == "=" and text[at - 1] == " ")):
                break
            at += 1
        self.at = at
        return text[begin:at].strip()

    def bracketed(self) -> str:
        """The text between the bracket here and the closing one, ignoring brackets in strings."""
        begin, awaited, at, text, unclosed = self.at, "", self.at, self.text, set[str]()
        while True:
            found = STOPS.search(text, at)
            if found is None:
                raise SyntaxFault(begin, f"this {text[begin]!r} is never closed", "the text seems to be cut off")
            c = found[0]
            if c in "\"'":
                at = _string_end(text, found.start(), unclosed)
                continue
            at = found.end()
            if c in OPEN:
                awaited += CLOSE[OPEN.index(c)]
            elif c != awaited[-1]:
                raise SyntaxFault(at - 1, f"{awaited[-1]!r} is expected, but here is {c!r}")
            else:
                awaited = awaited[:-1]
                if not awaited:
                    self.at = at
                    return text[begin + 1:at - 1]


def _string_end(text: str, at: int, unclosed: set[str]) -> int:
    """The end of the string at ``at``; for a quote that nothing closes, the place after it.

    ``unclosed`` has the kinds of quotes that are known not to be closed: behind the first one, only escaped ones follow.
    """
    quote = text[at]
    string = STRING.match(text, at) if quote not in unclosed else None
    if string is None:
        unclosed.add(quote)
        return at + 1
    return string.end()


def split_attributes(text: str) -> dict[str, str]:
    """``name="a", types=[Float(2), int]`` by key; a value ends at the next comma before a key, outside brackets and strings."""
    attrs: dict[str, str] = {}
    key, begin, at, depth, unclosed = "", 0, 0, 0, set[str]()
    found = KEY.match(text)
    if found is None:
        return {"": text} if text.strip() else {}
    key, begin, at = found[1], found.end(), found.end()
    while at < len(text):
        c = text[at]
        if c in "\"'":
            at = _string_end(text, at, unclosed)
            continue
        if c in OPEN:
            depth += 1
        elif c in CLOSE:
            depth -= 1
        elif c == "," and depth == 0:
            after = KEY.match(text, at + 1)
            if after is not None:
                attrs[key] = text[begin:at]
                key, begin, at = after[1], after.end(), after.end()
                continue
        at += 1
    attrs[key] = text[begin:]
    return attrs
