"""Reads operations in a pretty form that irscope does not declare: their operands, and their types where these can be found."""
from __future__ import annotations

from irscope.formats.faults import Refused
from irscope.formats.stablehlo.draft import Draft
from irscope.formats.stablehlo.lexer import Cursor
from irscope.formats.stablehlo.types import results_of
from irscope.formats.stablehlo.values import Values
from irscope.graph import UNKNOWN, Type


def read_undeclared(values: Values, cursor: Cursor, draft: Draft) -> None:
    """Step over the rest of an operation's lines: every ``%name`` is an operand, what follows a colon outside brackets are types."""
    depth = 0
    last = draft.at
    types: tuple[Type, ...] = ()
    results: tuple[Type, ...] = ()
    while cursor.kind != "end" and not (depth == 0 and "\n" in cursor.text[last:cursor.at]):
        last = cursor.after
        if cursor.kind == "value":
            draft.operands.append((cursor.value, cursor.at))
        elif cursor.sees("{"):
            cursor.balanced()
            last = cursor.at
            continue
        elif cursor.kind == "mark":
            depth += (cursor.value in "([<") - (cursor.value in ")]>")
            if depth < 0:
                break
            if depth == 0 and cursor.value == ":":
                cursor.next()
                types, results = _types(values, cursor)
                break
        elif depth == 0 and cursor.sees_word("loc"):
            break
        cursor.next()
    if len(types) == 1:
        types *= len(draft.operands)
    draft.types = types if len(types) == len(draft.operands) else (UNKNOWN,) * len(draft.operands)
    draft.results = results if len(results) == draft.bound else (UNKNOWN,) * draft.bound


def _types(values: Values, cursor: Cursor) -> tuple[tuple[Type, ...], tuple[Type, ...]]:
    """The types of operands and results, empty where they are written in another way."""
    begin = cursor.at
    try:
        if cursor.sees("("):
            type = values.types.function(cursor)
            return type.params, results_of(type)
        types = values.types.list(cursor)
        if cursor.eat("->") or cursor.eat_word("to"):
            return types, values.types.results(cursor)
        return types, types[-1:]
    except Refused:
        end = cursor.text.find("\n", begin)
        cursor.goto(end if end >= 0 else cursor.end)
        return (), ()
