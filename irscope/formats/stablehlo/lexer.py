"""The cursor: reads MLIR token by token. Slower than the line reader, and accepts and diagnoses all of the grammar."""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NoReturn

from irscope.formats.faults import Fault, Refused
from irscope.formats.stablehlo.faults import LIMIT, SYNTAX, TRUNCATED
from irscope.formats.text_cursor import TextCursor

STRING = r'"(?:[^"\\\n]|\\.)*+"'
NAME = r"[A-Za-z$._\-][\w$.\-]*+|\d++"
"""The name of a value, a block or an alias (MLIR's suffix-id)."""
VALUE = re.compile(rf"%((?:{NAME})(?:#\d++)?+)", re.ASCII)
VALUES = re.compile(rf"{VALUE.pattern}(?:, {VALUE.pattern})*+", re.ASCII)
SPACE = re.compile(r"(?:[ \t\r\n]++|//[^\n]*+)*+")
ALIAS_USE = re.compile(rf'{STRING}|#({NAME})', re.ASCII)
"""An alias in a location, or a string, which has none."""
BLANK = " \n\t\r/"
"""What blanks and comments begin with."""
TOKEN = re.compile(
    rf"%(?P<value>(?:{NAME})(?:\#\d++)?+)|(?P<word>[A-Za-z_][\w$.]*+)|(?P<mark>->|::|\.\.\.|\{{-\#|\#-\}}|[=,:(){{}}\[\]<>?*+|/])"
    rf"|(?P<hex>0x[0-9a-fA-F]++)|(?P<float>-?\d++\.\d*+(?:[eE][+-]?\d++)?+)|(?P<int>-?\d++)|(?P<string>{STRING})"
    rf"|(?P<symbol>@(?:[A-Za-z_][\w$.]*+|{STRING}))|\#(?P<attribute>{NAME})|!(?P<type>{NAME})|\^(?P<block>{NAME})|(?P<minus>-)",
    re.ASCII)
ESCAPE = re.compile(rb"\\(?:[0-9A-Fa-f]{2}|[\s\S])")
BRACKETS = re.compile(rf"->|[()\[\]{{}}<>]|{STRING}|\"|//[^\n]*+")
CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}


class Cursor(TextCursor):
    """A position in a text and the token that begins there.

    ``kind`` is ``value`` (``%x``, ``%0#1``), ``word``, ``mark``, ``int``, ``hex``, ``float``, ``string``, ``symbol`` (``@f``),
    ``attribute`` (``#x``), ``type`` (``!x``), ``block`` (``^bb0``), ``minus``, ``end`` or ``odd``; ``value`` is its text, without ``%``,
    ``#``, ``!`` and ``^``; ``at`` and ``after`` are its begin and end; ``depth`` is the nesting depth of the caller.
    """

    __slots__ = ("last",)
    max_nesting = 300
    limit, syntax = LIMIT, SYNTAX

    def next(self) -> None:
        """Go to the next token."""
        at = self.last = self.after
        if self.text[at:at + 1] in BLANK:
            space = SPACE.match(self.text, at, self.end)
            at = space.end() if space else at
        self.at = at
        if at >= self.end:
            self.kind, self.value, self.after = "end", "", at
            return
        m = TOKEN.match(self.text, at, self.end)
        if m is None:
            if self.text[at] == '"':
                end = self.text.find("\n", at, self.end)
                at_end = end < 0 or not self.text[end:self.end].strip()
                raise Refused(TRUNCATED if at_end else SYNTAX, "a string begins here and is never closed", at, 1,
                              "was the dump cut off?" if at_end else "")
            if self.text[at] < " " or self.text[at] in "`\x7f":
                raise Refused(SYNTAX, f"unexpected character {self.text[at]!r}", at, 1,
                              "Markdown's fences are no part of a dump" if self.text[at] == "`" else "")
            self.kind, self.value, self.after = "odd", self.text[at], at + 1
            return
        self.after = m.end()
        self.kind = kind = str(m.lastgroup)
        self.value = m[kind]

    def expect_word(self, word: str) -> None:
        """Step over a word that must be here."""
        if not self.eat_word(word):
            self.missing(f"expected {word!r}")

    def items(self, brackets: str, what: str, fault: Fault | None = None) -> Iterator[None]:
        """Step over ``[item, item]``: the body of the loop steps over each item."""
        self.expect(brackets[0], f"before {what}", fault)
        if self.eat(brackets[1]):
            return
        yield from self.elements()
        self.expect(brackets[1], f"after {what}", fault)

    def word(self, what: str, fault: Fault | None = None) -> str:
        """Step over a word."""
        if self.kind != "word":
            self.refuse(f"expected {what}", fault)
        return self.take()

    def string(self, what: str = "a string", fault: Fault | None = None) -> str:
        """Step over a quoted string and return its content."""
        if self.kind != "string":
            self.refuse(f"expected {what}", fault)
        return unescape(self.take())

    def symbol(self, what: str = "a symbol, @name") -> str:
        """Step over ``@name``, ``@"name"`` or ``@a::@b``, and return it without ``@`` and quotes."""
        if self.kind != "symbol":
            self.refuse(f"expected {what}")
        parts: list[str] = []
        while self.kind == "symbol":
            name = self.take()[1:]
            parts.append(unescape(name) if name[0] == '"' else name)
            if not self.eat("::"):
                break
            if self.kind != "symbol":
                self.refuse("expected a symbol after '::'")
        return "::".join(parts)

    def operand(self) -> tuple[str, int]:
        """Step over ``%name``; returns the name and its offset."""
        if self.kind != "value":
            self.refuse("expected an operand, %name")
        found = self.value, self.at
        self.next()
        return found

    def operands(self) -> list[tuple[str, int]]:
        """Step over ``%name`` and further ones after commas; a comma before anything else stays."""
        found: list[tuple[str, int]] = []
        while self.kind == "value":
            listed = VALUES.match(self.text, self.at, self.end)
            end = listed.end() if listed else self.after
            found += [(m[1], m.start()) for m in VALUE.finditer(self.text, self.at, end)]
            self.goto(end)
            if not (self.sees(",") and self._peeks_value()):
                break
            self.next()
        return found

    def _peeks_value(self) -> bool:
        space = SPACE.match(self.text, self.after, self.end)
        return self.text.startswith("%", space.end() if space else self.after)

    def refuse(self, message: str, fault: Fault | None = None, help: str = "", sees: bool = True) -> NoReturn:
        """Stop with a fault at this token. The end of the text has its own fault."""
        if self.kind == "end" and sees:
            needs = message.replace("expected", "needs", 1)
            raise Refused(TRUNCATED, f"the text ends here, but {needs}", self.last, 1, "was the dump cut off?")
        tail = f", but here is {self.shown()}" if sees else ""
        raise Refused(fault or SYNTAX, message + tail, self.at, max(1, min(self.after - self.at, 80)), help)

    def missing(self, message: str, fault: Fault | None = None) -> NoReturn:
        """Stop with a fault behind the token before this one, where something is missing; MLIR's parser reports it there."""
        if self.kind == "end":
            self.refuse(message, fault)
        raise Refused(fault or SYNTAX, f"{message}, but here is {self.shown()}", self.last, 1)

    def balanced(self) -> str:
        """Step over ``<...>``, ``(...)``, ``[...]`` or ``{...}``, matching only brackets and strings, and return its text."""
        begin = self.at
        end = closing(self.text, begin, self.end)
        if end < 0:
            if not self.text[self.text.find("\n", begin):].strip("\n"):
                at = len(self.text[:self.end].rstrip())
                raise Refused(TRUNCATED, f"the text ends here, but needs '{CLOSING[self.value]}'", at, 1, "was the dump cut off?")
            raise Refused(SYNTAX, f"the {self.value!r} here is never closed", begin)
        self.goto(end)
        return self.text[begin:end]


def closing(text: str, at: int, end: int) -> int:
    """The offset after the bracket that closes the one at ``at``; -1 where there is none or where they do not match."""
    awaited: list[str] = []
    for m in BRACKETS.finditer(text, at, end):
        mark = m[0]
        if mark in CLOSING:
            awaited.append(CLOSING[mark])
        elif mark in ")]}>":
            if not awaited or awaited.pop() != mark:
                return -1
            if not awaited:
                return m.end()
        elif mark == '"':  # an unterminated string
            return -1
    return -1


class Closings:
    """Where the brackets of a text close, for a reader that asks for many of them: each bracket is read once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._known: dict[int, int] = {}

    def after(self, at: int) -> int:
        """What ``closing`` says of the bracket at ``at``."""
        if at not in self._known:
            self._find(at)
        return self._known[at]

    def _find(self, at: int) -> None:
        opened: list[tuple[int, str]] = []
        while (m := BRACKETS.search(self._text, at)) is not None:
            mark, at = m[0], m.end()
            if mark in CLOSING:
                opened.append((m.start(), CLOSING[mark]))
                if (end := self._known.get(m.start(), 0)) < 0:
                    break
                if end:
                    opened.pop()
                    at = end
            elif mark in ")]}>":
                if opened[-1][1] != mark:
                    break
                self._known[opened.pop()[0]] = at
                if not opened:
                    return
            elif mark == '"':  # an unterminated string
                break
        self._known.update((begin, -1) for begin, _ in opened)


def unescape(quoted: str) -> str:
    """The content of a quoted string of MLIR: bytes as two hexadecimal digits, ``\\n``, ``\\t``, ``\\\\`` and ``\\"``."""
    body = quoted[1:-1]
    if "\\" not in body:
        return body
    return ESCAPE.sub(_byte, body.encode("utf-8", "surrogatepass")).decode("utf-8", "replace")


def _byte(m: re.Match[bytes]) -> bytes:
    code = m[0][1:]
    return bytes((int(code, 16),)) if len(code) == 2 else {b"n": b"\n", b"t": b"\t"}.get(code, code)
