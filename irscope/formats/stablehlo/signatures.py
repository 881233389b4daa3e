"""Signatures as compilers print them, each by one pattern: the arguments and results of functions, the values of loops.

What a pattern does not take is left to the cursor, which reads all of the grammar and reports the faults.
"""
from __future__ import annotations

import re
from typing import NamedTuple

from irscope.formats.stablehlo.attributes import Attribute
from irscope.formats.stablehlo.lexer import NAME, Cursor
from irscope.formats.stablehlo.types import TypeTable
from irscope.graph import Type

_TENSOR = r'tensor<[^<>"\n]++>'
_NOTE = r'(?: \{([A-Za-z_][\w$.]*+) = "([^"\\\n]*+)"\})?+'
"""A dictionary of one string, which most results of functions have."""
ARGUMENT = re.compile(rf"%({NAME}): ({_TENSOR})(?: loc\(#({NAME})\))?+", re.ASCII)
RESULT = re.compile(rf"({_TENSOR}){_NOTE}", re.ASCII)
PAIR = re.compile(rf"%({NAME}) = %((?:{NAME})(?:#\d++)?+)", re.ASCII)


def _listed(item: re.Pattern[str]) -> re.Pattern[str]:
    """Items between commas, in parentheses."""
    return re.compile(rf"\((?:{item.pattern}(?:, {item.pattern})*+)?+\)", re.ASCII)


ARGUMENTS, RESULTS, PAIRS = map(_listed, (ARGUMENT, RESULT, PAIR))


class Argument(NamedTuple):
    """An argument of a function, with its offset; ``place`` is the alias of its location and the offset of that, if it has one."""

    name: str
    at: int
    type: Type
    place: tuple[str, int] | None


def arguments(cursor: Cursor, types: TypeTable) -> list[Argument] | None:
    """Step over ``(%a: T, %b: T loc(#loc1))``; None where the cursor has to read it."""
    whole = ARGUMENTS.match(cursor.text, cursor.at, cursor.end)
    found = list(ARGUMENT.finditer(cursor.text, whole.start(), whole.end())) if whole is not None else []
    known = [type for m in found if (type := types.plain(m[2])) is not None]
    if whole is None or len(known) != len(found):
        return None
    cursor.goto(whole.end())
    return [Argument(m[1], m.start(), type, (m[3], m.start(3) - 1) if m[3] else None) for m, type in zip(found, known, strict=True)]


def results(cursor: Cursor, types: TypeTable) -> tuple[tuple[Type, ...], list[dict[str, Attribute]]] | None:
    """Step over ``(T {name = "text"}, T)``; None where the cursor has to read it."""
    whole = RESULTS.match(cursor.text, cursor.at, cursor.end)
    found = list(RESULT.finditer(cursor.text, whole.start(), whole.end())) if whole is not None else []
    known = tuple([type for m in found if (type := types.plain(m[1])) is not None])
    if whole is None or len(known) != len(found):
        return None
    cursor.goto(whole.end())
    return known, [{m[2]: m[3]} if m[2] else {} for m in found]


def pairs(cursor: Cursor) -> list[tuple[tuple[str, int], tuple[str, int]]] | None:
    """Step over ``(%i = %a, %j = %b#1)``, names with their offsets; None where the cursor has to read it."""
    whole = PAIRS.match(cursor.text, cursor.at, cursor.end)
    if whole is None:
        return None
    found = [((m[1], m.start()), (m[2], m.start(2) - 1)) for m in PAIR.finditer(cursor.text, whole.start(), whole.end())]
    cursor.goto(whole.end())
    return found
