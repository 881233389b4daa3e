"""The careful cursor: reads HLO token by token. Slower than the line reader, and accepts and diagnoses all of HLO."""
from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import NoReturn

from irscope.formats.hlo.faults import LIMIT, SYNTAX, TRUNCATED, Fault, Refused
from irscope.formats.text_cursor import TextCursor
from irscope.graph import DTYPES

RESERVED_TYPES = frozenset(DTYPES) - {"tuple", "buffer"}
STRING = r'"(?:[^"\\]|\\.)*+"|\'(?:[^\'\\]|\\.)*+\''
PAYLOAD = r"(?:\(0x[0-9a-fA-F]+\))?"

BLANKS = re.compile(r"(?:[ \t\r\n]++|/\*(?:[^*]++|\*(?!/))*+\*/|//[^\r\n]*+)*+")
TOKEN = re.compile(r"(?P<labels>[0-9bf?]{2,}_[0-9io?]{2,}->[0-9bf?]{2,})" r"|(?P<word>[A-Za-z_][A-Za-z0-9_.\-]*+)(?P<touch>[:=]?)"
                   r"|%(?P<name>[A-Za-z_][A-Za-z0-9_.\-]*+)"
                   r"|(?P<decimal>-?(?:(?:\d+\.\d*|\d*\.\d+|\d+)[eE][+-]?\d+|\d+\.\d*|\d*\.\d+)|-nan" + PAYLOAD + ")"
                   r"|(?P<dxd>\d+(?:x\d+)+)" r"|(?P<pad>-?\d+_-?\d+(?:_\d+)?(?:x-?\d+_-?\d+(?:_\d+)?)*)" r"|(?P<int>-?\d+)|(?P<inf>-inf)"
                   r"|(?P<mark>->|<=|\.\.\.|[=,:*#+~\[\]{}()?])" r"|(?P<string>" + STRING + ")", re.DOTALL | re.ASCII)
NAN_PAYLOAD = re.compile(r"\(0x[0-9a-fA-F]+\)")
ESCAPE = re.compile(r"\\(?:[0-7]{1,3}|[xX][0-9a-fA-F]+|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[\s\S])")
SIMPLE_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "'": "'", "\\": "\\", "?": "?", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


class Cursor(TextCursor):
    """A position in a text and the token that begins there.

    ``kind`` is ``mark``, ``word``, ``name`` (``%x`` or ``x:``), ``attribute`` (``x=``), ``type``, ``int``, ``decimal``, ``inf``,
    ``labels``, ``dxd``, ``pad``, ``string``, ``end`` or ``odd``; ``value`` is its text without ``%``, ``:`` and ``=``; ``at`` and
    ``after`` are its begin and end; ``depth`` is the nesting depth of the caller.
    """

    __slots__ = ()
    max_nesting = 400  # XLA's limit is 8192 levels, but Python's stack is shorter.
    limit, syntax = LIMIT, SYNTAX

    def next(self) -> None:
        """Go to the next token."""
        blanks = BLANKS.match(self.text, self.after, self.end)
        at = blanks.end() if blanks else self.after
        self.at = at
        if at >= self.end:
            self.kind, self.value, self.after = "end", "", at
            return
        m = TOKEN.match(self.text, at, self.end)
        if m is None:
            self._odd(at)
            return
        self.after = m.end()
        kind = str(m.lastgroup)
        if kind == "touch":
            self._word(m)
            return
        self.kind, self.value = kind, m[kind]

    def peek(self) -> tuple[str, str]:
        """Kind and value of the token after this one."""
        keep = self.kind, self.value, self.at, self.after
        self.next()
        ahead = self.kind, self.value
        self.kind, self.value, self.at, self.after = keep
        return ahead

    def items(self, brackets: str, what: str, fault: Fault | None = None, end: str = "") -> Iterator[None]:
        """Step over ``{item, item}``: the body of the loop steps over each item. A trailing comma is allowed."""
        self.expect(brackets[0], f"before {what}", fault)
        while not self.sees(brackets[1]):
            yield
            if not self.eat(","):
                break
        self.expect(brackets[1], end or f"after {what}", fault)

    def integers(self, what: str = "an integer", fault: Fault | None = None) -> tuple[int, ...]:
        """Step over integers between commas, one or more."""
        return tuple([self.integer(what, fault) for _ in self.elements()])

    def int32(self, what: str, fault: Fault, shown: str = "") -> int:
        """Step over an integer of 32 bits; ``shown`` names it in the message, instead of its value."""
        at, length = self.at, self.after - self.at
        value = self.integer(what, fault)
        if not -(1 << 31) <= value < 1 << 31:
            raise Refused(fault, f"{shown or value} does not fit into 32 bits", at, length)
        return value

    def field(self, names: Collection[str], message: str, fault: Fault) -> str:
        """Step over ``name=``, which must be one of the names, or any name if none are given."""
        if self.kind != "attribute" or (names and self.value not in names):
            self.refuse(message, fault)
        return self.take()

    def eat_field(self, name: str) -> bool:
        """Step over ``name=`` if it is here."""
        if self.kind == "attribute" and self.value == name:
            self.next()
            return True
        return False

    def name(self, what: str = "a name", fault: Fault | None = None) -> str:
        """Step over a name, with or without ``%``."""
        if self.kind not in ("name", "word"):
            self.refuse(f"expected {what}", fault)
        return self.take()

    def string(self, what: str = "a string", fault: Fault | None = None) -> str:
        """Step over a quoted string and return its content."""
        if self.kind != "string":
            self.refuse(f"expected {what}", fault)
        value = unescape(self.value)
        if value is None:
            self.refuse("the string has an escape that HLO does not know", fault, sees=False)
        self.next()
        return value

    def refuse(self, message: str, fault: Fault | None = None, help: str = "", sees: bool = True) -> NoReturn:
        """Stop with a fault at this token. The end of the text, also in the middle of a word, has its own fault."""
        cut = self.after >= self.end and "\n" in self.text[:self.at]
        if (self.kind == "end" or cut) and sees:
            at = self.at if cut and self.kind != "end" else max(0, self.at - 1)
            raise Refused(TRUNCATED, f"the text ends here, but {message.replace('expected', 'needs', 1)}", at, max(1, self.after - at),
                          "was the dump cut off?")
        tail = f", but here is {self.shown()}" if sees else ""
        raise Refused(fault or SYNTAX, message + tail, self.at, max(1, min(self.after - self.at, 80)), help)

    def balanced(self, where: str, fault: Fault | None = None) -> str:
        """Step over ``{...}``, matching only braces and strings, and return its text."""
        if not self.sees("{"):
            self.refuse(f"expected '{{' {where}", fault)
        end = closing_brace(self.text, self.at, self.end)
        if end < 0:
            raise Refused(TRUNCATED, f"the '{{' {where} is never closed", self.at, 1, "was the dump cut off?")
        text = self.text[self.at:end]
        self.goto(end)
        return text

    def _word(self, m: re.Match[str]) -> None:
        word, touch = m["word"], m["touch"]
        self.value = word
        if touch == ":":
            self.kind = "name"
        elif touch == "=":
            self.kind = "attribute"
        elif word in RESERVED_TYPES:
            self.kind = "type"
        elif word == "nan":
            payload = NAN_PAYLOAD.match(self.text, self.after, self.end)
            if payload:
                self.after = payload.end()
                self.value = self.text[self.at:self.after]
            self.kind = "decimal"
        else:
            self.kind = "word"

    def _odd(self, at: int) -> None:
        text = self.text
        if text.startswith("/*", at):
            raise Refused(TRUNCATED, "a comment begins here and is never closed", at, 2, "close it with */")
        if text[at] in "\"'":
            raise Refused(TRUNCATED, "a string begins here and is never closed", at, 1, "was the dump cut off?")
        self.kind, self.value, self.after = "odd", text[at], at + 1


def braces(depth: int) -> str:
    """A pattern for ``{...}`` with braces nested to a depth; braces in strings do not count."""
    inner = r'[^{}"\n]++|"(?:[^"\\\n]++|\\.)*+"'
    return r"\{(?:" + inner + ("|" + braces(depth - 1) if depth else "") + r")*+\}"


BRACES = re.compile(r'[{}]|"(?:[^"\\]|\\.)*+"|"', re.DOTALL)


def closing_brace(text: str, at: int, end: int) -> int:
    """The offset after the brace that closes the one at ``at``; -1 where there is none."""
    depth = 0
    for m in BRACES.finditer(text, at, end):
        mark = text[m.start()]
        if mark == "{":
            depth += 1
        elif mark == "}":
            depth -= 1
            if depth == 0:
                return m.end()
        elif m.end() == m.start() + 1:  # an unterminated string
            return -1
    return -1


def unescape(quoted: str) -> str | None:
    """The content of a quoted string; None for an escape that C does not have, or that is no character."""
    body = quoted[1:-1]
    if "\\" not in body:
        return body
    out: list[str] = []
    at = 0
    for m in ESCAPE.finditer(body):
        out.append(body[at:m.start()])
        at = m.end()
        code = m[0][1:]
        if code[0] in "01234567":
            out.append(chr(int(code, 8) & 255))
        elif code[0] in "xX" and len(code) > 1:
            out.append(chr(int(code[1:], 16) & 255))
        elif code[0] in "uU" and len(code) > 1:
            point = min(int(code[1:], 16), 0x10FFFF)
            if 0xD800 <= point < 0xE000:  # half of a pair of UTF-16, which no text can hold
                return None
            out.append(chr(point))
        elif code in SIMPLE_ESCAPES:
            out.append(SIMPLE_ESCAPES[code])
        else:
            return None
    out.append(body[at:])
    return "".join(out)
