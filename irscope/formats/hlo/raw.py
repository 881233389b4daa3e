"""Attributes that stay text: the reader checks their form; provenance parses their content on demand."""
from __future__ import annotations

from collections.abc import Callable
from math import prod

from irscope.formats.hlo.devices import ints, read_axes, read_iota, read_mesh
from irscope.formats.hlo.faults import ATTRIBUTE_VALUE, DEVICES, UNKNOWN_ATTRIBUTE, Faults, Refused, Span
from irscope.formats.hlo.lexer import Cursor
from irscope.source import did_you_mean

METADATA: dict[str, str] = {name: kind for kind, names in {
    "string": "op_type op_name source_file deduplicated_name scheduling_name metadata_payload",
    "int": "source_line source_end_line source_column source_end_column stack_frame_id size_of_generated_code_in_bytes "
           "size_of_memory_working_set_in_bytes creation_pass_id logical_creation_pass_id",
    "ints": "profile_type", "word": "preserve_layout", "braces": "profile_info",
}.items() for name in names.split()}
"""The fields of the metadata, and the kinds of their values."""
SHARDING_WORDS = frozenset("maximal replicated manual unknown unreduced last_tile_dim_replicate".split())
TILE_TYPES = frozenset("maximal replicated manual unreduced".split())


def check_raw(kind: str, cursor: Cursor, faults: Faults) -> None:
    """Step over the value of an attribute that stays text. Raises Refused where XLA rejects it."""
    CHECKS[kind](cursor, faults)


def _metadata(cursor: Cursor, faults: Faults) -> None:
    cursor.expect("{", "before the metadata", ATTRIBUTE_VALUE)
    seen: set[str] = set()
    while not cursor.sees("}"):
        cursor.eat(",")
        if cursor.kind != "attribute":
            cursor.refuse("expected a field of the metadata, such as op_name=", ATTRIBUTE_VALUE)
        name, at = cursor.value, cursor.at
        if name in seen:
            raise Refused(ATTRIBUTE_VALUE, f"the metadata gives {name} twice", at, len(name))
        seen.add(name)
        cursor.next()
        kind = METADATA.get(name)
        if kind is None:
            faults.add(UNKNOWN_ATTRIBUTE, f"the metadata has a field {name}, which irscope does not know", Span(at, len(name)),
                       did_you_mean(name, METADATA))
            step_over_value(cursor)
        elif kind == "string":
            cursor.string(f"a string for {name}", ATTRIBUTE_VALUE)
        elif kind == "int":
            cursor.int32(f"an integer for {name}", ATTRIBUTE_VALUE, name)
        elif kind == "ints":
            ints(cursor)
        else:
            step_over_value(cursor)
    cursor.next()


def _metadata_or_list(cursor: Cursor, faults: Faults) -> None:
    if cursor.sees("{") and cursor.peek() == ("mark", "{"):
        for _ in cursor.items("{}", "a list of metadata", ATTRIBUTE_VALUE, "at the end of the list of metadata"):
            _metadata(cursor, faults)
    else:
        _metadata(cursor, faults)


def _sharding(cursor: Cursor, faults: Faults) -> None:
    if cursor.sees("{") and cursor.peek() in (("mark", "{"), ("mark", "}")):
        for _ in cursor.items("{}", "the sharding", ATTRIBUTE_VALUE, "at the end of the sharding"):
            _one_sharding(cursor, faults)
    else:
        _one_sharding(cursor, faults)


def _one_sharding(cursor: Cursor, faults: Faults) -> None:
    begin = cursor.at
    cursor.expect("{", "before a sharding", ATTRIBUTE_VALUE)
    if cursor.kind == "word" and cursor.value in ("mesh", "maximal_mesh"):
        _named_sharding(cursor, faults)
        return
    words: set[str] = set()
    devices = tiles = 0
    while not cursor.sees("}"):
        if cursor.kind == "word" and cursor.value in SHARDING_WORDS:
            words.add(cursor.take())
        elif cursor.kind == "word" and cursor.value in ("shard_as", "shard_like"):
            cursor.next()
            cursor.integer("the number of the shard group", ATTRIBUTE_VALUE)
        elif cursor.eat_field("device"):
            cursor.integer("a device number", ATTRIBUTE_VALUE)
            devices = 1
        elif cursor.eat_field("devices"):
            tiles, devices = _tiles(cursor, faults)
        elif cursor.eat_field("metadata"):
            _metadata_or_list(cursor, faults)
        elif cursor.eat_field("last_tile_dims"):
            _tile_types(cursor)
        else:
            cursor.refuse("expected replicated, maximal, manual, unknown, unreduced, devices=, device=, last_tile_dims= or metadata=",
                          ATTRIBUTE_VALUE)
    length = cursor.after - begin
    cursor.next()
    whole = words & {"replicated", "manual", "unknown", "unreduced"}
    if whole and devices:
        raise Refused(ATTRIBUTE_VALUE, f"a sharding that is {min(whole)} has no devices", begin, length)
    if "maximal" in words and not whole and devices != 1:
        raise Refused(ATTRIBUTE_VALUE, "a maximal sharding has one device", begin, length)
    if not whole and "maximal" not in words and not tiles:
        raise Refused(ATTRIBUTE_VALUE, "a sharding needs devices=[...], or a word such as replicated", begin, length)


def _tiles(cursor: Cursor, faults: Faults) -> tuple[int, int]:
    """``[2,4]<=[8]`` or ``[2,2]0,1,2,3``: the number of dimensions and of devices."""
    begin = cursor.at
    cursor.expect("[", "before the shape of the devices", ATTRIBUTE_VALUE)
    dims = cursor.integers("a size", ATTRIBUTE_VALUE)
    cursor.expect("]", "after the shape of the devices", ATTRIBUTE_VALUE)
    if cursor.eat("<="):
        reshape, _ = read_iota(cursor)
        return len(dims), prod(reshape)
    count = 1
    cursor.integer("a device number", ATTRIBUTE_VALUE)
    while cursor.sees(",") and cursor.peek()[0] == "int":
        cursor.next()
        cursor.integer("a device number", ATTRIBUTE_VALUE)
        count += 1
    length = len(cursor.text[begin:cursor.at].rstrip())
    if count < 2:
        raise Refused(ATTRIBUTE_VALUE, "a sharding that is not maximal has more than one device", begin, length)
    if count != prod(dims):
        faults.add(DEVICES, f"{count} devices do not fill {'x'.join(map(str, dims))}", Span(begin, length))
    return len(dims), count


def _tile_types(cursor: Cursor) -> None:
    for _ in cursor.items("{}", "the types of the last tile dimensions", ATTRIBUTE_VALUE):
        cursor.one_of(TILE_TYPES, "expected maximal, replicated, manual or unreduced", ATTRIBUTE_VALUE)


def _named_sharding(cursor: Cursor, faults: Faults) -> None:
    """``mesh["x"=2,"y"=4], [{"x"}, {"y", ?}], replicated={"z"}}`` and its special forms; the brace before it is read."""
    if cursor.value == "maximal_mesh":
        cursor.next()
        cursor.expect("[", "after maximal_mesh", ATTRIBUTE_VALUE)
        cursor.field(("device_id",), "expected device_id=", ATTRIBUTE_VALUE)
        cursor.integer("a device number", ATTRIBUTE_VALUE)
        cursor.expect("]", "after the device", ATTRIBUTE_VALUE)
        cursor.eat(",")
        mesh = None
    else:
        mesh = read_mesh(cursor)
        cursor.eat(",")
        if cursor.kind == "word" and cursor.value in ("replicated", "unreduced", "manual"):
            cursor.next()
        elif cursor.sees("["):
            for _ in cursor.items("[]", "the axes of the dimensions", ATTRIBUTE_VALUE):
                read_axes(cursor, mesh, open_ok=True)
    while not cursor.sees("}"):
        cursor.eat(",")
        name = cursor.field((), "expected replicated=, unreduced=, manual= or metadata=", ATTRIBUTE_VALUE)
        if name == "metadata":
            _metadata_or_list(cursor, faults)
        elif mesh is not None and name in ("replicated", "unreduced", "manual"):
            if cursor.kind == "word":  # unreduced=sum{"x"}: how the parts are combined
                cursor.next()
            read_axes(cursor, mesh)
        else:
            cursor.refuse("expected replicated=, unreduced=, manual= or metadata=", ATTRIBUTE_VALUE)
    cursor.next()


def check_domain(cursor: Cursor, faults: Faults) -> None:
    """``{kind="sharding", entry={...}, exit={...}}``."""
    begin = cursor.at
    cursor.expect("{", "before the domain", ATTRIBUTE_VALUE)
    seen: set[str] = set()
    while not cursor.sees("}"):
        cursor.eat(",")
        if cursor.kind != "attribute" or cursor.value not in ("kind", "entry", "exit") or cursor.value in seen:
            cursor.refuse('expected kind="sharding", entry= and exit=, each once', ATTRIBUTE_VALUE)
        name = cursor.take()
        seen.add(name)
        if name != "kind":
            _sharding(cursor, faults)
        elif cursor.string("a string", ATTRIBUTE_VALUE) != "sharding":
            raise Refused(ATTRIBUTE_VALUE, "the one kind of domain is sharding", begin, max(1, cursor.at - begin))
    length = cursor.after - begin
    cursor.next()
    if len(seen) != 3:
        raise Refused(ATTRIBUTE_VALUE, "a domain needs kind=, entry= and exit=", begin, length)


def _frontend(cursor: Cursor, faults: Faults) -> None:
    for _ in cursor.items("{}", "the frontend attributes", ATTRIBUTE_VALUE, "at the end of the frontend attributes"):
        name = cursor.field((), "expected name=value", ATTRIBUTE_VALUE)
        if cursor.kind == "string":
            cursor.string("a string", ATTRIBUTE_VALUE)
        else:
            cursor.balanced(f"or a string for {name}", ATTRIBUTE_VALUE)


def _statistics(cursor: Cursor, faults: Faults) -> None:
    first = True
    for _ in cursor.items("{}", "the statistics", ATTRIBUTE_VALUE, "at the end of the statistics"):
        cursor.field((), "expected name=number", ATTRIBUTE_VALUE)
        if cursor.kind != "int" and (first or cursor.kind != "decimal"):
            cursor.refuse("expected a number", ATTRIBUTE_VALUE)
        cursor.next()
        first = False


def _bools(cursor: Cursor, faults: Faults) -> None:
    bool_list(cursor)


def bool_list(cursor: Cursor) -> tuple[bool, ...]:
    """``true``, or ``{true,false}``."""
    if cursor.kind == "word" and cursor.value in ("true", "false"):
        return (cursor.boolean(ATTRIBUTE_VALUE),)
    listed = cursor.items("{}", "a list of true and false", ATTRIBUTE_VALUE, "at the end of the list")
    return tuple([cursor.boolean(ATTRIBUTE_VALUE) for _ in listed])


def _origin(cursor: Cursor, faults: Faults) -> None:
    """``{"name" {0}}`` leaves in a tree of parentheses, or ``[synthetic_call]``."""
    cursor.expect("{", "before the origin", ATTRIBUTE_VALUE)
    if cursor.eat("["):
        cursor.name("synthetic_call", ATTRIBUTE_VALUE)
        cursor.expect("]", "after synthetic_call", ATTRIBUTE_VALUE)
        cursor.expect("}", "at the end of the origin", ATTRIBUTE_VALUE)
        return
    depth = 0
    while not cursor.sees("}"):
        if cursor.eat("("):
            depth += 1
        elif cursor.eat(")"):
            depth -= 1
        elif depth and cursor.eat(","):
            continue
        elif cursor.sees("{"):
            origin_leaf(cursor)
        else:
            cursor.refuse("expected a tree of {\"instruction\" {index}}", ATTRIBUTE_VALUE)
        if depth < 0:
            cursor.refuse("a ')' too many in the origin", ATTRIBUTE_VALUE, sees=False)
    cursor.next()


def origin_leaf(cursor: Cursor) -> None:
    """``{"name" {0}}`` or ``{}``."""
    cursor.expect("{", "before a value of the origin", ATTRIBUTE_VALUE)
    if cursor.kind == "string":
        cursor.string()
        if cursor.sees("{"):
            ints(cursor)
    cursor.expect("}", "after a value of the origin", ATTRIBUTE_VALUE)


def _config(cursor: Cursor, faults: Faults) -> None:
    if cursor.kind == "string":
        cursor.string("a string", ATTRIBUTE_VALUE)
    else:
        cursor.balanced("or a string for the backend_config", ATTRIBUTE_VALUE)


def step_over_value(cursor: Cursor) -> str:
    """Step over a value of unknown form and return its text: one token, or a balanced run of brackets and braces."""
    begin = end = cursor.at
    depth = 0
    while cursor.kind != "end":
        if cursor.kind == "mark" and cursor.value in "([{":
            if cursor.value == "{":
                at = cursor.at
                end = at + len(cursor.balanced("of the value", ATTRIBUTE_VALUE))
                if depth == 0 and not _goes_on(cursor):
                    break
                continue
            depth += 1
        elif cursor.kind == "mark" and cursor.value in ")]}":
            if depth == 0:
                break
            depth -= 1
        elif depth == 0 and (cursor.sees(",") or cursor.kind == "attribute"):
            break
        end = cursor.after
        cursor.next()
        if depth == 0 and not _goes_on(cursor):
            break
    return cursor.text[begin:end].strip()


def _goes_on(cursor: Cursor) -> bool:
    """Whether a value has a further part: ``[4,2]<=[8]T(1,0)``, ``mesh[...] {...}``."""
    if cursor.kind == "mark":
        return cursor.value in ("[", "(", "{", "<=", "->", "#", ":")
    return cursor.sees_word("T")


CHECKS: dict[str, Callable[[Cursor, Faults], None]] = {
    "metadata": _metadata, "sharding": _sharding, "frontend": _frontend, "statistics": _statistics, "bools": _bools, "origin": _origin,
    "config": _config,
}
