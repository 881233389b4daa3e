"""Pretty forms with regions, signatures or a grammar of their own, which no row of parts describes."""
from __future__ import annotations

from irscope.formats.faults import Refused
from irscope.formats.stablehlo import signatures
from irscope.formats.stablehlo.attributes import Attribute, Text
from irscope.formats.stablehlo.draft import Draft
from irscope.formats.stablehlo.faults import ATTRIBUTE_VALUE, OPERAND_COUNT
from irscope.formats.stablehlo.form_types import give_types, read_attributes, read_tail
from irscope.formats.stablehlo.form_values import applied_operation
from irscope.formats.stablehlo.lexer import Cursor
from irscope.formats.stablehlo.operations import Region, applied
from irscope.formats.stablehlo.parser import Parser, Special
from irscope.graph import FunctionType, TupleType, Type

APPLIED = applied_operation("applied")


def _module(parser: Parser, cursor: Cursor, draft: Draft) -> None:
    """``module @name attributes {...} { operations }``."""
    if cursor.kind == "symbol":
        draft.attributes["sym_name"] = cursor.symbol()
    _attributes_word(parser, cursor, draft)
    draft.regions.append(parser.isolated(cursor, draft.name))


def _attributes_word(parser: Parser, cursor: Cursor, draft: Draft) -> None:
    """``attributes {...}``."""
    if cursor.eat_word("attributes"):
        if not cursor.sees("{"):
            cursor.refuse("expected '{' in attribute dictionary")
        draft.attributes.update(parser.values.dictionary(cursor))


def _function(parser: Parser, cursor: Cursor, draft: Draft) -> None:
    """``func.func public @main(%a: T {...}) -> (T {...}) attributes {...} { operations }``."""
    attributes = draft.attributes
    if cursor.kind == "word" and cursor.value in ("public", "private", "nested"):
        attributes["sym_visibility"] = cursor.take()
    attributes["sym_name"] = cursor.symbol("the name of a function, @name")
    arguments: list[tuple[str, int, Type]] = []
    types: list[Type] = []
    notes: list[dict[str, Attribute]] = []
    plain = signatures.arguments(cursor, parser.types)
    for argument in plain or ():
        arguments.append(argument[:3])
        if argument.place is not None:
            parser.locations.setdefault(*argument.place)
    if plain is not None:
        types, notes = [argument.type for argument in plain], [{}] * len(plain)
    for _ in cursor.items("()", "the arguments") if plain is None else ():
        name, at, type = parser.argument(cursor) if cursor.kind == "value" else ("", cursor.at, parser.types.read(cursor))
        types.append(type)
        if name:
            arguments.append((name, at, type))
        notes.append(parser.values.dictionary(cursor) if cursor.sees("{") else {})
        parser.location(cursor)
    results, result_notes = _results(parser, cursor) if cursor.eat("->") else ((), [])
    attributes["function_type"] = FunctionType(tuple(types), TupleType(results))
    if any(notes):
        attributes["arg_attrs"] = tuple(notes)
    if any(result_notes):
        attributes["res_attrs"] = tuple(result_notes)
    _attributes_word(parser, cursor, draft)
    draft.regions.append(parser.isolated(cursor, draft.name, arguments) if cursor.sees("{") else Region([]))


def _results(parser: Parser, cursor: Cursor) -> tuple[tuple[Type, ...], list[dict[str, Attribute]]]:
    """``T`` or ``(T {...}, T)``."""
    if not cursor.sees("("):
        return parser.types.results(cursor), []
    plain = signatures.results(cursor, parser.types)
    if plain is not None:
        return plain
    types: list[Type] = []
    notes: list[dict[str, Attribute]] = []
    for _ in cursor.items("()", "the results"):
        types.append(parser.types.read(cursor))
        notes.append(parser.values.dictionary(cursor) if cursor.sees("{") else {})
    return tuple(types), notes


def _in_parentheses(cursor: Cursor, draft: Draft) -> None:
    cursor.expect("(", "before the operands")
    draft.operands = cursor.operands()
    cursor.expect(")", "after the operands")


def _constant(parser: Parser, cursor: Cursor, draft: Draft) -> None:
    """``{...} dense<1.0> : tensor<f32>``, or ``() {value = ...} : () -> T``."""
    if cursor.sees("("):
        _in_parentheses(cursor, draft)
        read_tail(parser.values, cursor, draft)
        return
    read_attributes(parser.values, cursor, draft)
    at = cursor.at
    value = parser.values.read(cursor)
    draft.attributes["value"] = value
    type = getattr(value, "type", None)
    if not isinstance(type, Type):
        raise Refused(ATTRIBUTE_VALUE, "expected the value of a constant, such as dense<1.0> : tensor<f32>", at)
    draft.results = (type,)


def _while(parser: Parser, cursor: Cursor, draft: Draft) -> None:
    """``(%i = %a, %j = %b) : T, U attributes {...} cond { } do { }``."""
    names: list[tuple[str, int]] = []
    plain = signatures.pairs(cursor)
    for name, operand in plain or ():
        names.append(name)
        draft.operands.append(operand)
    for _ in cursor.items("()", "the values of the loop") if plain is None else ():
        names.append(cursor.operand())
        cursor.expect("=", "after the name of an argument")
        draft.operands.append(cursor.operand())
    types: tuple[Type, ...] = ()
    if names:
        cursor.expect(":", "before the types of the loop")
        at = cursor.at
        types = parser.types.list(cursor)
        give_types(draft, at, types, types)
    _attributes_word(parser, cursor, draft)
    arguments = [(name, at, type) for (name, at), type in zip(names, types, strict=True)]
    for word in ("cond", "do"):
        cursor.expect_word(word)
        draft.regions.append(parser.region(cursor, draft.name, arguments))


def _reduce(parser: Parser, cursor: Cursor, draft: Draft) -> None:
    """``(%a init: %b), (%c init: %d) across dimensions = [0] {...} : function type reducer(%p: T, %q: T) (...) { }``, or ``applies``."""
    inputs: list[tuple[str, int]] = []
    starts: list[tuple[str, int]] = []
    for _ in cursor.elements():
        cursor.expect("(", "before an input")
        inputs.append(cursor.operand())
        cursor.expect_word("init")
        cursor.expect(":", "after init")
        starts.append(cursor.operand())
        cursor.expect(")", "after an initial value")
    draft.operands = inputs + starts
    if cursor.eat_word("applies"):
        APPLIED(parser.values, cursor, draft)
    cursor.expect_word("across")
    cursor.expect_word("dimensions")
    cursor.expect("=", "after dimensions")
    draft.attributes["dimensions"] = parser.values.ints(cursor)
    read_tail(parser.values, cursor, draft)
    if draft.applied is not None:
        inner, at = draft.applied
        draft.regions.append(applied(inner, draft.types[-1], at))
    else:
        cursor.expect_word("reducer")
        arguments = _reducer_arguments(parser, cursor, len(inputs))
        draft.regions.append(parser.region(cursor, draft.name, arguments, draft.at))


def _reducer_arguments(parser: Parser, cursor: Cursor, count: int) -> list[tuple[str, int, Type]]:
    """``(%p: T, %q: T) (%r: U, %s: U)``: the arguments of the region are %p, %r, %q, %s."""
    pairs: list[list[tuple[str, int, Type]]] = []
    while cursor.sees("("):
        pairs.append(parser.signature(cursor))
        if len(pairs[-1]) != 2:
            raise Refused(OPERAND_COUNT, f"a reducer takes two arguments for each input, not {len(pairs[-1])}", cursor.at)
    if len(pairs) != count:
        cursor.refuse(f"expected two arguments of the reducer for each of {count} inputs", OPERAND_COUNT, sees=False)
    return [pair[side] for side in (0, 1) for pair in pairs]


def _manual_computation(parser: Parser, cursor: Cursor, draft: Draft) -> None:
    """``(%a) in_shardings=[...] out_shardings=[...] manual_axes={"x"} (%b: T) { } {...} : (T) -> T``."""
    if cursor.sees("<"):
        cursor.next()
        draft.attributes["name"] = cursor.string("the name of the computation")
        cursor.expect(">", "after the name of the computation")
    _in_parentheses(cursor, draft)
    while cursor.kind == "word" and cursor.value in ("in_shardings", "out_shardings", "manual_axes"):
        field = cursor.take()
        cursor.expect("=", f"after {field}")
        text = cursor.balanced() if cursor.kind == "mark" and cursor.value in "[{" else ""
        draft.attributes[field] = Text(f"#sdy<manual_axes{text}>" if field == "manual_axes" else f"#sdy.sharding_per_value<{text}>")
    arguments = parser.signature(cursor)
    draft.regions.append(parser.region(cursor, draft.name, arguments))
    read_tail(parser.values, cursor, draft)


SPECIALS: dict[str, Special] = {
    "builtin.module": _module, "func.func": _function, "sdy.manual_computation": _manual_computation,
    "sdy.named_computation": _manual_computation,
    **{f"{dialect}.{short}": special for dialect in ("stablehlo", "mhlo") for short, special in (
        ("constant", _constant), ("while", _while), ("reduce", _reduce))},
}
"""The readers of these forms, by the name of the operation."""
