"""Finds what TVM's own reader refuses in a text that irscope accepts: the liberties of lessons, of old dumps, and irscope's own syntax.

%hidden = nn.relu(%x);      TVM: bindings are numbered, or begin with let
return %2;                  TVM: the result is the last expression
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from irscope.formats.relay.lexer import Tokens, tokenize
from irscope.formats.relay.primitives import is_primitive
from irscope.formats.relay.provenance import RelayProvenance
from irscope.graph import Module

PLAIN_NAME = re.compile(r"%[A-Za-z0-9_]+$")
FLOAT = re.compile(r"(?:\d+\.\d*|\.\d+|\d+[eE])")
HEADER_WANTED = 'begin with #[version = "0.0.5"]'
COMMENT = re.compile(r"^[ \t]*# .*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Liberty:
    """A place in a text that TVM does not read: what is wrong, and how to write it for TVM."""

    offset: int
    length: int
    said: str
    instead: str


def liberties(module: Module) -> list[Liberty]:
    """Everything that TVM 0.7 to 0.19 refuses in the part of the text that a module was read from, in the order of the text."""
    read = module.provenance
    if not isinstance(read, RelayProvenance):
        return []
    text, version = module.source.text, module.attrs.get("version")
    tokens = tokenize(text, read.begin, read.end)
    found = [] if version == "0.0.5" else [
        Liberty(tokens.offsets[0], 1, "there is no header", HEADER_WANTED) if version is None else
        Liberty(max(0, text.rfind(version, 0, read.begin)), len(version), "the header is of another version", HEADER_WANTED)
    ]
    comments = COMMENT.finditer(text, read.begin, read.end)
    found += [Liberty(m.start(), len(m[0]), "a comment begins with #", "write // or /* */") for m in comments]
    brackets, binds = _structure(tokens)
    found += [
        Liberty(tokens.offsets[at], max(1, len(tokens.texts[at])), said, instead)
        for at in range(len(tokens.kinds))
        for said, instead in _at(tokens, at, brackets[at], at in binds)
    ]
    return sorted(found, key=lambda liberty: liberty.offset)


def _at(tokens: Tokens, at: int, bracket: int, binds: bool) -> Iterator[tuple[str, str]]:
    """The liberties at one token; ``bracket`` and ``binds`` as :func:`_structure` finds them."""
    kind, word = tokens.kinds[at], tokens.texts[at]
    before, after = (tokens.texts[at - 1] if at else ""), tokens.texts[at + 1] if at + 1 < len(tokens.texts) else ""
    if kind == "ident":
        if word == "return":
            yield "`return`", "end the body with the expression alone"
        elif is_primitive(word) and "." in word:
            yield f"`{word}` is irscope's own", "print the graph before it is expanded"
        elif before in ("(", ",") and after in (",", ")") and _in_shape(tokens, bracket):
            yield f"the dimension `{word}` has a name", "write ?"
        if after == "=" and at + 2 < len(tokens.texts) and tokens.texts[at + 2] == "(" and before in ("(", ","):
            yield f"the list of `{word}` is in parentheses", "write it in brackets"
    elif kind == "local":
        if not PLAIN_NAME.match(word) and not re.match(r"%\w+(?:\.\d+)+$", word):
            yield f"the name `{word}` contains characters other than letters, digits and _", "rename it"
        if after == "=" and not word[1:].isdigit() and before not in ("let", "("):
            yield f"`{word}` is bound without let", f"let {word} = ...;"
        if after == "=" and before not in (";", ";;", "{", "let", "(", "=>", ""):
            yield f"there is no `;` in front of `{word}`", "end every binding with ;"
    elif kind == "number" and FLOAT.match(word) and "f" not in word and not _projects(tokens, at):
        yield f"the float `{word}` has no suffix", f"{word}f"
    elif kind == "string" and "\\" in word:
        yield "a string with an escape", "TVM's strings know none"
    elif kind == "string" and before in ("(", ",") and after in (",", ")"):
        yield f"the attribute {word} has no name", "key=value"
    elif word in (";", ";;") and kind == "punct" and after == "}" and not binds:
        yield "`;` after the result", "leave it out"


def _projects(tokens: Tokens, at: int) -> bool:
    """Whether ``.0`` directly follows what it projects."""
    return tokens.texts[at][0] == "." and tokens.offsets[at] == tokens.offsets[at - 1] + len(tokens.texts[at - 1])


def _in_shape(tokens: Tokens, bracket: int) -> bool:
    """Whether a bracket is the parenthesis of ``Tensor[(...)``."""
    return bracket > 1 and tokens.texts[bracket - 2 : bracket + 1] == ["Tensor", "[", "("]


def _structure(tokens: Tokens) -> tuple[list[int], set[int]]:
    """The last bracket up to each token, and the semicolons that end a binding rather than a result."""
    last, brackets = 0, []
    binding, binds = [False], set()
    for at, word in enumerate(tokens.texts):
        if word in ("(", ")", "[", "]"):
            last = at
        brackets.append(last)
        if word in ("(", "[", "{"):
            binding.append(False)
        elif word in (")", "]", "}"):
            binding.pop()
            binding = binding or [False]
        elif word == "=":
            binding[-1] = True
        elif word in (";", ";;"):
            if binding[-1]:
                binds.add(at)
            binding[-1] = False
    return brackets, binds
