"""The lines of a text that holds printed graphs, without the prefixes of logs, with their places in the text."""
from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from irscope.source.budget import tick

PREFIX = re.compile(r"[VIWEF]\d{4} \d\d:\d\d:\d\d\.\d+ \d+ \S+\] (?:\[[^\]\n]*\] )*?\[__\w+\] ?")
"""What torch's logger writes before each line: ``V1122 13:54:15.980000 12 a/b.py:34] [0/0] [__graph_code] ``."""
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
OPENING, CLOSING = "([{", ")]}"
TOKEN = re.compile(r"#[^\n]*|\"(?:[^\"\\\n]|\\.)*+\"?|'(?:[^'\\\n]|\\.)*+'?|[()\[\]{}]")
"""A comment, a string (to the end of the line where nothing closes it), or a bracket."""
MOST_JOINED = 20_000
"""The maximal number of lines of one statement: a graph of so many inputs may state each on a line."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line: the offset of its first character that is no blank, how far it is indented, and its text without the indent."""

    offset: int
    indent: int
    text: str

    @property
    def is_comment(self) -> bool:
        return self.text.startswith("#")


def lines_of(text: str) -> list[Line]:
    """All lines that are not blank."""
    made: list[Line] = []
    at = 0
    logged = PREFIX.search(text) is not None
    coloured = "\x1b" in text
    for line in text.split("\n"):
        begin = at
        at += len(line) + 1
        if coloured and "\x1b" in line:
            line = ANSI.sub("", line)
        if logged:
            found = PREFIX.match(line)
            if found is not None:
                begin += found.end()
                line = line[found.end():]
        shown = line.rstrip().expandtabs(4)
        bare = shown.lstrip(" ")
        if bare:
            made.append(Line(begin + len(line) - len(line.lstrip()), len(shown) - len(bare), bare))
        tick()
    return made


def joined(lines: list[Line], at: int) -> tuple[str, int]:
    """The statement that begins with a line, with the lines after it while a bracket is open, and the number of the line after it.

    The comments in it are kept: they end with their lines.
    """
    depth, text, first = _depth(lines[at].text), lines[at].text, at
    at += 1
    if depth <= 0:
        return text, at
    parts = [text]
    while depth > 0 and at < len(lines) and at - first < MOST_JOINED and lines[at].indent >= lines[first].indent \
            and not lines[at].text.startswith(("class ", "def ")):
        parts.append(lines[at].text)
        depth += _depth(lines[at].text)
        at += 1
    if depth > 0:
        return text, first + 1  # the bracket is never closed: its own line is the faulty one
    return "\n".join(parts), at


def unclosed(text: str) -> int:
    """The offset of the first bracket that nothing closes, or -1."""
    stack: list[int] = []
    for found in TOKEN.finditer(text):
        if found[0] in OPENING:
            stack.append(found.start())
        elif found[0] in CLOSING and stack:
            stack.pop()
    return stack[0] if stack else -1


def _depth(text: str) -> int:
    """How many brackets a line opens and does not close."""
    if "#" not in text and '"' not in text and "'" not in text:
        return sum(map(text.count, OPENING)) - sum(map(text.count, CLOSING))
    return sum((found[0] in OPENING) - (found[0] in CLOSING) for found in TOKEN.finditer(text))


def words(lines: list[Line], at: int) -> Iterator[str]:
    """The texts of the lines from one on."""
    for line in lines[at:]:
        yield line.text
