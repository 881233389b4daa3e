"""Relay text in pieces: names, numbers, strings, punctuation; comments are kept where they say types."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

TOKEN = re.compile(
    r"""[ \t\r\n\ufeff]*(?:
    (?P<local>%(?:"(?:[^"\\]|\\.)*"|(?:[A-Za-z0-9_.$-]|::|/(?![*/%\s]))+))
  | (?P<global>@(?:"[^"]*"|[A-Za-z_$][\w.$]*))
  | (?P<number>(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?(?:[fiu]\d*)?)
  | (?P<ident>match\?|[A-Za-z_$][\w$]*(?:\.[A-Za-z_]\w*)*)
  | (?P<string>"(?:[^"\\\n]|\\.)*"|'[^'\n]*')
  | (?P<comment>//[^\n]*|/\*)
  | (?P<hash>\#\[[^\]\n]*\]|\#[^\n]*)
  | (?P<punct>->|=>|==|!=|<=|>=|;;|\.\.\.|[()\[\]{},;:=+\-*/<>.?|&])
  | (?P<bad>.)
  | (?P<end>\Z)
)""",
    re.VERBOSE | re.DOTALL,
)

COMMENT_EDGE = re.compile(r"/\*|\*/")
METADATA = re.compile(r"^[ \t]*(?:\#\[metadata\]|METADATA:|/\* meta data \*/|\# meta data[ \t]*$)", re.MULTILINE)
HEADER = re.compile(r"(?:\s|\ufeff|/\*(?:[^*]|\*(?!/))*\*/|//[^\n]*\n)*(?:\#\[\s*version\s*=\s*\"([^\"]*)\"\s*\]|v(0\.0\.\d))")


class SyntaxFault(Exception):
    """The text does not go on as it should: where, what, and what to do."""

    def __init__(self, offset: int, message: str, help: str = "", length: int = 1) -> None:
        super().__init__(message)
        self.offset = offset
        self.message = message
        self.help = help
        self.length = length


@dataclass(slots=True)
class Tokens:
    """The pieces of a text, side by side. ``notes`` holds what the comments behind a piece said of its type (``ty=...``) or span."""

    kinds: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    notes: dict[int, str] = field(default_factory=dict)
    end: int = 0


def tokenize(text: str, start: int, end: int) -> Tokens:
    """The tokens between two places. Raises SyntaxFault for a comment or string that is never closed."""
    made = Tokens(end=end)
    kinds, texts, offsets = made.kinds, made.texts, made.offsets
    add_kind, add_text, add_offset = kinds.append, texts.append, offsets.append
    at = start
    match = TOKEN.match
    while True:
        found = match(text, at, end)
        kind = found.lastgroup if found is not None else "end"
        if found is None or kind is None or kind == "end":
            break
        word = found[kind]
        at = found.end()
        if kind == "comment":
            if word == "/*":
                at = _comment(text, at - 2, end, made)
            continue
        if kind == "hash" and (not word.startswith("#[") or word.startswith("#[irscope")):
            if word.startswith("# ty="):
                made.notes[len(kinds) - 1] = word[1:].strip()
            continue
        if kind == "bad" and word == '"':
            raise SyntaxFault(at - 1, "this string is never closed")
        add_kind(kind)
        add_text(word)
        add_offset(at - len(word))
    for _ in range(4):  # who looks one or two ahead still sees the end
        add_kind("end")
        add_text("")
        add_offset(end)
    return made


def _comment(text: str, at: int, end: int, made: Tokens) -> int:
    """Behind the comment that begins here; comments nest."""
    depth, begin = 0, at
    while True:
        found = COMMENT_EDGE.search(text, at, end)
        if found is None:
            raise SyntaxFault(begin, "this comment is never closed", length=2)
        depth += 1 if found[0] == "/*" else -1
        at = found.end()
        if depth == 0:
            break
    inside = text[begin + 2 : at - 2].strip()
    if inside.startswith(("ty=", "span=")):
        made.notes[len(made.kinds) - 1] = inside
    return at
