"""A form as one pattern for a line, made of the same row of parts. The steps of the form read what its groups find.

``$ , dims = broadcast_dimensions:ints {} :function`` finds the list, the dictionary and the types in the text
``%, dims = [0] : (tensor<4xf32>) -> tensor<4x4xf32>``, a line whose names of values are cut out.
"""
from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import NamedTuple

from irscope.formats.hlo.lexer import braces
from irscope.formats.stablehlo.dialects import known
from irscope.formats.stablehlo.draft import Step
from irscope.formats.stablehlo.forms import OPTIONAL, TOKEN, form_of, step_of

GENERIC = "$* ) [ < {} > ] {} :function"
"""What follows ``"name"(`` in the generic form of an operation without regions."""
_CONSTANT = "{} value:value :none"
_REDUCE = "( $ init : $ ) applies inner:applied across dimensions = dimensions:ints {} :function"
LINES = {"stablehlo.constant": _CONSTANT, "mhlo.constant": _CONSTANT, "stablehlo.reduce": _REDUCE, "mhlo.reduce": _REDUCE}
"""What is printed on one line of operations whose other forms only the cursor reads."""
OPERANDS = r"(?:%(?: *+, *+%)*+)?+"
TAIL = ": *+(.++)"
TAILS = {"none": "", "operands": f"(?:{TAIL})?+"}
"""What the types behind a form look like where they are not ``: types``."""
_LIST = r"\[[^\[\]]*+\]"
_INTEGER, _WORD, _SYMBOL = r"(-?\d++)", r"(\w++)", r"(@[A-Za-z_][\w$.]*+)"
PARTS = {
    "": f"({braces(3)})?+", "i64": _INTEGER, "i32": _INTEGER, "bool": _WORD, "word": _WORD, "format": _WORD, "applied": r"([\w.]++)",
    "ints": f"({_LIST})", "ranges": f"({_LIST})", "text": r'("[^"\\]*+")', "symbol": _SYMBOL, "callee": _SYMBOL, "dot": r"([^{}:%]++)",
    "conv": f"({_LIST}x{_LIST}->{_LIST})", "window": "([^{}%]*+)", "value": "(.++)",
}
"""What the values of attributes look like as compilers print them, by their kind; the empty one is the dictionary of other attributes."""


class Pattern(NamedTuple):
    """``steps`` read the groups of a match, but for the last one where ``types`` is the kind of the types that it finds.

    ``tokens`` are the parts of the form that the steps read: ``dimension:i64``, or ``{}``.
    """

    regex: re.Pattern[str]
    steps: tuple[Step, ...]
    tokens: tuple[str, ...]
    types: str


@lru_cache(1024)
def line_pattern(name: str, is_generic: bool) -> Pattern | None:
    """The pattern of what follows the name of an operation; None where it is unknown or has no form that a pattern reads."""
    form = GENERIC if is_generic else LINES.get(name) or form_of(name)
    return pattern_of(form) if form is not None and known(name) else None


@cache
def pattern_of(form: str) -> Pattern | None:
    """The pattern of a form; None where it has a part that only the cursor reads."""
    parts: list[str] = []
    read: list[str] = []
    types, is_optional = "", False
    tokens = TOKEN.findall(form)
    for before, token, following in zip(("", *tokens), tokens, (*tokens[1:], ""), strict=False):
        parts.append(" ++" if before.isalpha() and token[0].isalpha() else " *+")
        if token == "$":
            parts.append("%")
        elif token == "$*":
            parts.append(OPERANDS)
        elif token == "[" and following in OPTIONAL:
            parts.append("(?:")
            is_optional = True
        elif token == "]" and is_optional:
            parts.append(")?+")
            is_optional = False
        elif token[0] == ":" and len(token) > 1:
            types = token[1:]
            parts.append(TAILS.get(types, TAIL))
        elif token == "{}" or ":" in token[1:]:
            kind = token.partition(":")[2]
            if kind not in PARTS:
                return None
            parts.append(PARTS[kind])
            read.append(token)
        else:
            parts.append(re.escape(token))
    return Pattern(re.compile("".join(parts), re.ASCII), tuple(map(step_of, read)), tuple(read), types)
