"""The types that a pretty form has behind its colon."""
from __future__ import annotations

from collections.abc import Callable

from irscope.formats.faults import Refused
from irscope.formats.stablehlo.draft import Draft, Step
from irscope.formats.stablehlo.faults import OPERAND_COUNT, SYNTAX
from irscope.formats.stablehlo.lexer import Cursor
from irscope.formats.stablehlo.types import TypeTable, results_of
from irscope.formats.stablehlo.values import Values
from irscope.graph import DTYPES, FunctionType, NamedType, TensorType, TupleType, Type

Rule = Callable[[Draft, tuple[Type, ...], int], None]
"""Gives a draft its types; the number is their offset."""


def give_types(draft: Draft, at: int, operands: tuple[Type, ...], results: tuple[Type, ...]) -> None:
    """Set the types of a draft, which must be one for each operand."""
    if len(operands) != len(draft.operands):
        raise Refused(OPERAND_COUNT, f"{draft.name} has {len(draft.operands)} operands, but {len(operands)} types for them", at)
    draft.types, draft.results = operands, results


def _colon(cursor: Cursor) -> int:
    cursor.expect(":", "before the type")
    return cursor.at


def function_type(types: TypeTable, cursor: Cursor) -> FunctionType:
    """Step over ``(T) -> T``."""
    if not cursor.sees("("):
        cursor.refuse("expected function type, (T) -> T")
    return types.function(cursor)


def take_function_type(types: TypeTable, cursor: Cursor, draft: Draft) -> None:
    """Step over ``(T) -> T`` and set the types of a draft."""
    at = cursor.at
    type = function_type(types, cursor)
    give_types(draft, at, type.params, results_of(type))


def read_attributes(values: Values, cursor: Cursor, draft: Draft) -> None:
    """Step over ``{...}``, if it is here."""
    if cursor.sees("{"):
        draft.attributes.update(values.dictionary(cursor))


def read_tail(values: Values, cursor: Cursor, draft: Draft) -> None:
    """Step over ``{...} : (T) -> T``."""
    read_attributes(values, cursor, draft)
    cursor.expect(":", "before the type of the operation")
    take_function_type(values.types, cursor, draft)


def _types_function(values: Values, cursor: Cursor, draft: Draft) -> None:
    _colon(cursor)
    take_function_type(values.types, cursor, draft)


def _list_step(given: Rule) -> Step:
    """A step that reads a list of types and applies a rule to it."""
    def step(values: Values, cursor: Cursor, draft: Draft) -> None:
        at = _colon(cursor)
        given(draft, values.types.list(cursor), at)
    return step


def _or_function(given: Rule) -> Step:
    """A step that reads a function type, or else a list of types, to which it applies a rule."""
    def step(values: Values, cursor: Cursor, draft: Draft) -> None:
        at = _colon(cursor)
        if cursor.sees("("):
            take_function_type(values.types, cursor, draft)
        else:
            given(draft, values.types.list(cursor), at)
    return step


def _same(draft: Draft, types: tuple[Type, ...], at: int) -> None:
    if len(types) != 1:
        raise Refused(SYNTAX, f"{draft.name} has one type, for its operands and its result", at)
    give_types(draft, at, types * len(draft.operands), types)


def _compared(values: Values, cursor: Cursor, draft: Draft) -> None:
    """A comparison's function type, which must be present."""
    if not cursor.sees(":"):
        cursor.refuse("expected ':'")
    _types_function(values, cursor, draft)


def _select(draft: Draft, types: tuple[Type, ...], at: int) -> None:
    if len(types) != 2:
        raise Refused(SYNTAX, "stablehlo.select has two types, of the predicate and of the result", at)
    give_types(draft, at, (types[0], types[1], types[1]), types[1:])


def _complex(draft: Draft, types: tuple[Type, ...], at: int) -> None:
    type = types[0]
    if len(types) != 1 or not isinstance(type, TensorType) or not type.dtype.is_complex:
        raise Refused(SYNTAX, "expected tensor with complex element type", at)
    part = type.with_dtype(DTYPES["f32" if type.dtype.bits == 64 else "f64"])
    give_types(draft, at, (part, part), types)


def _tuple(draft: Draft, types: tuple[Type, ...], at: int) -> None:
    type = types[0]
    if len(types) != 1 or not isinstance(type, TupleType):
        raise Refused(SYNTAX, "expected tuple type", at)
    give_types(draft, at, type.elements, types)


def _all(values: Values, cursor: Cursor, draft: Draft) -> None:
    if draft.operands or cursor.sees(":"):
        _or_function(_each)(values, cursor, draft)


def _each(draft: Draft, types: tuple[Type, ...], at: int) -> None:
    """A type for each operand, which the results have too; ``after_all`` has one type for all."""
    if draft.name.endswith(".after_all"):
        give_types(draft, at, types[:1] * len(draft.operands), types[:1])
    else:
        give_types(draft, at, types, types)


def _operands(values: Values, cursor: Cursor, draft: Draft) -> None:
    """A type for each operand, and no result."""
    if draft.operands:
        _list_step(RULES["operands"])(values, cursor, draft)


def _arrow(values: Values, cursor: Cursor, draft: Draft) -> None:
    """``T, U -> V``, ``(T, U) -> V``, ``T to V``, or one type for all."""
    if not cursor.sees(":"):
        if draft.operands:
            cursor.refuse("expected ':'")
        return
    at = _colon(cursor)
    if cursor.sees("("):
        take_function_type(values.types, cursor, draft)
        return
    types = values.types.list(cursor)
    if cursor.eat("->") or cursor.eat_word("to"):
        results = values.types.results(cursor)
        give_types(draft, at, types * len(draft.operands) if len(types) == 1 else types, results)
    elif len(types) == 1:
        give_types(draft, at, types * len(draft.operands), types)
    else:
        give_types(draft, at, types, types[-1:])


def _no_types(values: Values, cursor: Cursor, draft: Draft) -> None:
    """The type is that of the value."""
    value = draft.attributes.get("value")
    type = getattr(value, "type", None)
    if isinstance(type, Type):
        draft.results = (type,)
    elif isinstance(value, bool):
        draft.results = (NamedType("i1"),)


RULES: dict[str, Rule] = {
    "same": _same, "select": _select, "complex": _complex, "tuple": _tuple, "all": _each,
    "operands": lambda draft, types, at: give_types(draft, at, types, ()),
    "results": lambda draft, types, at: give_types(draft, at, (), types),
}
"""What a list of types stands for, by the kind of the form; the other kinds take function types."""
TYPES: dict[str, Step] = {
    **{kind: _or_function(RULES[kind]) for kind in ("same", "select", "complex", "tuple")}, "function": _types_function,
    "compared": _compared, "all": _all, "operands": _operands, "results": _list_step(RULES["results"]), "arrow": _arrow, "none": _no_types,
}
