"""The first lines of a module: its name, its attributes and the tables of stack frames."""
from __future__ import annotations

import re
from collections.abc import Callable

from irscope.formats.hlo.assembly import Assembly
from irscope.formats.hlo.devices import ints, read_alias
from irscope.formats.hlo.faults import (
    LOSSY_PRINT,
    MISPLACED_ATTRIBUTE,
    MODULE_ATTRIBUTE,
    REPEATED_ATTRIBUTE,
    UNKNOWN_ATTRIBUTE,
    Faults,
    Refused,
    Span,
)
from irscope.formats.hlo.lexer import Cursor
from irscope.formats.hlo.opcodes import KNOWN_ATTRIBUTES
from irscope.formats.hlo.raw import bool_list, check_raw, origin_leaf, step_over_value
from irscope.formats.hlo.types import TypeTable
from irscope.graph import UNKNOWN, TupleType, Type
from irscope.source import Note, did_you_mean

MODULE_ATTRIBUTES: dict[str, str] = {
    "is_scheduled": "bool", "replica_count": "int", "num_partitions": "int", "alias_passthrough_params": "bool",
    "entry_computation_layout": "layout", "input_output_alias": "aliases", "buffer_donor": "donors", "frontend_attributes": "frontend",
    "allow_spmd_sharding_propagation_to_parameters": "bools", "allow_spmd_sharding_propagation_to_output": "bools",
    "origin_recovery_table": "recovery", "debug_attributes": "braces",
}
TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
LOCATION = ("file_name_id", "function_name_id", "line", "end_line", "column", "end_column")
FRAME = ("file_location_id", "parent_frame_id")
_INDEX = r"\{((?:\d{1,9}(?:, ?\d{1,9})*)?)\}"
ALIAS = re.compile(rf" ?{_INDEX}: \((\d{{1,9}}), {_INDEX}(?:, (may-alias|must-alias))?\)(?:,(?= )|(?= ?\}}))", re.ASCII)
# A line of a table as XLA prints it.
PRINTED = {
    "FileNames": re.compile(r'\d{1,18} "(?:[^"\\\n]++|\\["\'\\nrt])*+"\n', re.ASCII),
    "FunctionNames": re.compile(r'\d{1,18} "(?:[^"\\\n]++|\\["\'\\nrt])*+"\n', re.ASCII),
    "FileLocations": re.compile(r"\d{1,18} \{" + " ".join(rf"{n}=\d{{1,9}}" for n in LOCATION) + r"\}\n", re.ASCII),
    "StackFrames": re.compile(r"\d{1,18} \{" + " ".join(rf"{n}=\d{{1,9}}" for n in FRAME) + r"\}\n", re.ASCII),
}


def read_header(assembly: Assembly, cursor: Cursor) -> int:
    """Step over ``HloModule name, attributes`` and the tables; returns the offset where the first computation should begin.

    Stores the attributes in ``module.attrs``: parsed where irscope understands them, else as text.
    """
    cursor.next()
    module = assembly.module
    if cursor.sees(","):
        assembly.faults.add(LOSSY_PRINT, "the module has no name: the text was printed without names (fingerprint or canonical options)",
                            Span(cursor.at), "print it again with the default HloPrintOptions")
    else:
        module.name = cursor.name("the name of the module", MODULE_ATTRIBUTE)
    seen: set[str] = set()
    while cursor.eat(","):
        if cursor.kind != "attribute":
            cursor.refuse("expected an attribute of the module, name=value", MODULE_ATTRIBUTE)
        _attribute(assembly, cursor, seen)
    if cursor.sees_word("FileNames"):
        begin = cursor.at
        at = _tables(assembly, cursor)
        module.attrs["stack_frames"] = (begin, at)
        return at
    return cursor.at


def check_aliases(assembly: Assembly) -> None:
    """Check that every alias names a part of the entry's result, each at most once."""
    module = assembly.module
    aliases, root = module.attrs.get("input_output_alias"), module.main().root if module.entry in module.graphs else None
    if not isinstance(aliases, tuple) or root is None or root.type is UNKNOWN:
        return
    seen: set[tuple[int, ...]] = set()
    for index, _ in aliases:
        type: Type = root.type
        for i in index:
            if not isinstance(type, TupleType) or not 0 <= i < len(type.elements):
                message = f"input_output_alias names the output {{{', '.join(map(str, index))}}}, but the entry returns {root.type}"
                assembly.tell(MODULE_ATTRIBUTE, message, Span(assembly.aliases_at, 18), "", (Note("its root is here", root.loc),))
                return
            type = type.elements[i]
        if index in seen:
            message = f"input_output_alias names the output {{{', '.join(map(str, index))}}} twice"
            assembly.tell(MODULE_ATTRIBUTE, message, Span(assembly.aliases_at, 18))
            return
        seen.add(index)


def _attribute(assembly: Assembly, cursor: Cursor, seen: set[str]) -> None:
    at, faults = cursor.at, assembly.faults
    name = cursor.take()
    kind = MODULE_ATTRIBUTES.get(name)
    value_at = cursor.at
    if name in seen:
        faults.add(REPEATED_ATTRIBUTE, f"the module gives {name} twice", Span(at, len(name)))
        kind = "any"
    elif kind is None:
        if name in KNOWN_ATTRIBUTES:
            faults.add(MISPLACED_ATTRIBUTE, f'unexpected attribute "{name}" on the module', Span(at, len(name)),
                       "it belongs to instructions")
        else:
            faults.add(UNKNOWN_ATTRIBUTE, f"the module has an attribute {name} that irscope does not know; it is kept as text",
                       Span(at, len(name)), did_you_mean(name, MODULE_ATTRIBUTES))
        kind = "any"
    seen.add(name)
    if kind == "aliases":
        assembly.aliases_at = at
    try:
        value = _value(cursor, kind, assembly.types, faults)
    except Refused as refused:
        refused.fault = MODULE_ATTRIBUTE if refused.fault.code == "HLO011" else refused.fault
        faults.take(refused)
        cursor.goto(value_at)
        value = step_over_value(cursor)
    assembly.module.attrs.setdefault(name, value)


def _value(cursor: Cursor, kind: str, types: TypeTable, faults: Faults) -> object:
    reader = READERS.get(kind)
    if reader is not None:
        return reader(cursor, types)
    begin = cursor.at
    if kind == "frontend":
        check_raw("frontend", cursor, faults)
    elif kind == "recovery":
        _recovery(cursor)
    else:
        return step_over_value(cursor)
    return cursor.text[begin:cursor.at].rstrip()


def _layout(cursor: Cursor, types: TypeTable) -> tuple[tuple[object, ...], object]:
    cursor.expect("{", "before the entry computation layout", MODULE_ATTRIBUTE)
    params = tuple(types.read(cursor) for _ in cursor.items("()", "the types of the parameters", MODULE_ATTRIBUTE))
    cursor.expect("->", "before the type of the result", MODULE_ATTRIBUTE)
    result = types.read(cursor)
    cursor.expect("}", "after the entry computation layout", MODULE_ATTRIBUTE)
    return params, result


def _aliases(cursor: Cursor) -> tuple[tuple[tuple[int, ...], tuple[int, tuple[int, ...], str]], ...]:
    """``{ {0}: (1, {}, may-alias), ... }``."""
    form = "as in {output index}: (parameter, {parameter index}, may-alias)"
    aliases = []
    if cursor.sees("{"):  # the cursor is too slow for a printed list of ten thousand
        begin, at = cursor.at, cursor.after
        m = ALIAS.match(cursor.text, at)
        while m is not None and m.end() < cursor.end:
            aliases.append((_index(m[1]), (int(m[2]), _index(m[3]), m[4] or "may-alias")))
            at = m.end()
            m = ALIAS.match(cursor.text, at)
        if aliases:
            cursor.goto(at)
            if cursor.eat("}"):
                return tuple(aliases)
            cursor.goto(begin)
            aliases.clear()
    for _ in cursor.items("{}", "the aliases", MODULE_ATTRIBUTE):
        out, number, index = read_alias(cursor, "a parameter", form)
        kind = "may-alias"
        if cursor.eat(","):
            kind = cursor.one_of(("may-alias", "must-alias"), "expected may-alias or must-alias", MODULE_ATTRIBUTE)
        cursor.expect(")", form, MODULE_ATTRIBUTE)
        aliases.append((out, (number, index, kind)))
    return tuple(aliases)


def _index(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(","))) if text else ()


def _donors(cursor: Cursor) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """``{ (0, {}), ... }``."""
    form, donors = "as in (parameter, {index})", []
    for _ in cursor.items("{}", "the buffer donors", MODULE_ATTRIBUTE):
        cursor.expect("(", form, MODULE_ATTRIBUTE)
        number = cursor.integer("the number of a parameter", MODULE_ATTRIBUTE)
        cursor.expect(",", form, MODULE_ATTRIBUTE)
        donors.append((number, ints(cursor)))
        cursor.expect(")", form, MODULE_ATTRIBUTE)
    return tuple(donors)


READERS: dict[str, Callable[[Cursor, TypeTable], object]] = {
    "bool": lambda cursor, types:
        bool_list(cursor)[0] if not cursor.sees("{") else cursor.refuse("expected true or false", MODULE_ATTRIBUTE),
    "int": lambda cursor, types: cursor.integer("an integer", MODULE_ATTRIBUTE),
    "bools": lambda cursor, types: bool_list(cursor), "layout": _layout, "aliases": lambda cursor, types: _aliases(cursor),
    "donors": lambda cursor, types: _donors(cursor),
}
"""The readers of the attributes that irscope parses, by kind; all others stay text."""


def _recovery(cursor: Cursor) -> None:
    """``{ {"a" {0}} : {"b"}, "HloModule ..." }``: which values replace which, and how to compute them."""
    cursor.expect("{", "before the recovery table", MODULE_ATTRIBUTE)
    while not cursor.sees("}"):
        origin_leaf(cursor)
        cursor.expect(":", "between a value and what replaces it", MODULE_ATTRIBUTE)
        origin_leaf(cursor)
        if cursor.eat(",") and cursor.kind == "string":
            cursor.string()
            cursor.eat(",")
    cursor.next()


def _tables(assembly: Assembly, cursor: Cursor) -> int:
    """Step over the four tables; returns the offset after them."""
    text = assembly.text
    for table in TABLES:
        if not cursor.sees_word(table):
            cursor.refuse(f"expected the table {table}", MODULE_ATTRIBUTE, f"the tables are {', '.join(TABLES)}, in this order")
        # Printed lines are matched by a pattern; the cursor is too slow for a table of a million frames.
        at = cursor.after
        line = text.find("\n", at) + 1
        if line and not text[at:line].strip():
            match = PRINTED[table].match
            m = match(text, line)
            while m is not None:
                line = m.end()
                m = match(text, line)
            at = line
        cursor.goto(at)
        _rows(cursor, table)
    return cursor.at


def _rows(cursor: Cursor, table: str) -> None:
    """Read rows of a table in another form than XLA prints."""
    fields = LOCATION if table == "FileLocations" else FRAME
    while cursor.kind == "int":
        cursor.integer()
        if table in ("FileNames", "FunctionNames"):
            cursor.string("a name in quotes", MODULE_ATTRIBUTE)
            continue
        cursor.expect("{", f"before a row of {table}", MODULE_ATTRIBUTE)
        seen: set[str] = set()
        while not cursor.sees("}"):
            cursor.eat(",")
            if cursor.kind != "attribute" or cursor.value not in fields or cursor.value in seen:
                cursor.refuse(f"expected {', '.join(f + '=' for f in fields if f not in seen)}", MODULE_ATTRIBUTE)
            seen.add(cursor.value)
            cursor.next()
            cursor.int32("an integer", MODULE_ATTRIBUTE, "the number")
        if len(seen) != len(fields):
            cursor.refuse(f"the row needs {', '.join(f + '=' for f in fields if f not in seen)}", MODULE_ATTRIBUTE, sees=False)
        cursor.next()
