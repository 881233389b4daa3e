"""Splits Relay text into tokens: names, numbers, strings, punctuation; keeps comments with types."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from irscope.formats.syntax import SyntaxFault

TOKEN = re.compile(
    r"""[ \t\r\n\ufeff]*(?:
    (?P<local>%(?:"(?:[^"\\]|\\.)*"|(?:[A-Za-z0-9_.$-]|::|/(?![*/%\s]))+))
  | (?P<global>@(?:"[^"]*"|[A-Za-z_$][\w.$]*))
  | (?P<number>(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?(?:[fiu]\d*)?)
  | (?P<ident>match\?|[A-Za-z_$][\w$]*(?:\.[A-Za-z_]\w*)*)
  | (?P<string>"(?:[^"\\\n]|\\.)*"|'[^'\n]*')
  | (?P<comment>//[^\n]*|/\*(?:[^*/]+|\*(?!/)|/(?!\*))*+\*/)
  | (?P<nested>/\*)
  | (?P<hash>\#\[[^\]\n]*\]|\#[^\n]*)
  | (?P<punct>->|=>|==|!=|<=|>=|;;|\.\.\.|[()\[\]{},;:=+\-*/<>.?|&])
  | (?P<bad>.)
  | (?P<end>\Z)
)""",
    re.VERBOSE | re.DOTALL,
)

ASIDE = frozenset(("comment", "nested", "hash", "bad"))
"""Kinds of matches that are not tokens, or need a check first."""

MAX_DIGITS = 400
"""The longest double has 309 digits before the point; Python's own limit for an int is 4300."""
COMMENT_EDGE = re.compile(r"/\*|\*/")
METADATA = re.compile(r"^[ \t]*(?:\#\[metadata\]|METADATA:|/\* meta data \*/|\# meta data[ \t]*$)", re.MULTILINE)
HEADER = re.compile(r"(?:\s|\ufeff|/\*(?:[^*]|\*(?!/))*\*/|//[^\n]*\n)*(?:\#\[\s*version\s*=\s*\"([^\"]*)\"\s*\]|v(0\.0\.\d))")


@dataclass(slots=True)
class Tokens:
    """The tokens of a text, as parallel lists. ``notes`` has the type (``ty=...``) or span from the comments after a token."""

    kinds: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    notes: dict[int, str] = field(default_factory=dict)
    end: int = 0


def tokenize(text: str, start: int, end: int) -> Tokens:
    """The tokens between two places. Raises SyntaxFault for an unterminated comment or string."""
    made = Tokens(end=end)
    kinds, texts, offsets = made.kinds, made.texts, made.offsets
    add_kind, add_text, add_offset = kinds.append, texts.append, offsets.append
    at = start
    while at >= 0:
        begin, at = at, -1
        for found in TOKEN.finditer(text, begin, end):
            kind = found.lastgroup
            if kind is None or kind == "end":
                break
            word = found[kind]
            if kind not in ASIDE or word.startswith("#[v"):
                if kind == "number" and len(word) > MAX_DIGITS:
                    at = found.end() - len(word)
                    raise SyntaxFault(at, f"no element type can represent a number of {len(word)} characters", length=len(word))
                add_kind(kind)
                add_text(word)
                add_offset(found.end() - len(word))
            elif kind == "comment":
                _note(made, word[2:-2].strip() if word[:2] == "/*" else "")
            elif kind == "nested":
                at = _nested(text, found.end() - 2, end)
                _note(made, text[found.end() : at - 2].strip())
                break
            elif kind == "hash" and word.startswith("# ty="):
                made.notes[len(kinds) - 1] = word[1:].strip()
            elif kind == "bad":
                if word == '"':
                    raise SyntaxFault(found.end() - 1, "this string is never closed")
                add_kind(kind)
                add_text(word)
                add_offset(found.end() - 1)
    for _ in range(4):  # a look-ahead of one or two still sees the end
        add_kind("end")
        add_text("")
        add_offset(end)
    return made


def _note(made: Tokens, inside: str) -> None:
    """Store the type or span that a comment states for the token before it."""
    if inside.startswith(("ty=", "span=")):
        made.notes[len(made.kinds) - 1] = inside


def _nested(text: str, begin: int, end: int) -> int:
    """The offset after a comment that may contain others."""
    at, depth = begin, 0
    while True:
        found = COMMENT_EDGE.search(text, at, end)
        if found is None:
            raise SyntaxFault(begin, "this comment is never closed", length=2)
        depth += 1 if found[0] == "/*" else -1
        at = found.end()
        if depth == 0:
            return at
