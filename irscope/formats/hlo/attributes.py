"""The attribute lists of instructions: by the cursor with every fault told, and quickly for text as compilers print it."""
from __future__ import annotations

import re
from typing import Any

from irscope.formats.hlo.assembly import ANY, CONSTANT, PARAMETER, Assembly, Entry
from irscope.formats.hlo.checks import LOOKS
from irscope.formats.hlo.faults import (
    LIMIT,
    MISPLACED_ATTRIBUTE,
    MISSING_ATTRIBUTE,
    MISSING_COMPUTATION,
    REPEATED_ATTRIBUTE,
    TRUNCATED,
    UNKNOWN_ATTRIBUTE,
    Refused,
)
from irscope.formats.hlo.lexer import Cursor
from irscope.formats.hlo.opcodes import COMMON, KNOWN_ATTRIBUTES, OPCODES, RAW_KINDS, Opcode
from irscope.formats.hlo.raw import bool_list, check_raw, step_over_value
from irscope.formats.hlo.values import quick_value, read_value
from irscope.graph import NO_ATTRS, Graph
from irscope.source import Note, did_you_mean

BODY_ORDER = ("to_apply", "calls", "condition", "body", "true_computation", "false_computation", "branch_computations",
              "called_computations", "select", "scatter")


class Attributes:
    """What an attribute list gives: parsed values, called computations, and where each name stood."""

    __slots__ = ("at", "bodies", "values")

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.bodies: dict[str, tuple[Graph, ...]] = {}
        self.at: dict[str, int] = {}

    def graphs(self) -> tuple[Graph, ...]:
        """The called computations in their fixed order."""
        if not self.bodies:
            return ()
        return tuple(g for name in BODY_ORDER for g in self.bodies.get(name, ()))


def read_attributes(assembly: Assembly, cursor: Cursor, spec: Opcode, opcode: str, opcode_at: int, owner: str) -> Attributes:
    """Step over ``, name=value`` as often as it comes. ``opcode`` is the word in the text, ``owner`` the name of the instruction."""
    found = Attributes()
    while cursor.eat(","):
        if cursor.kind != "attribute":
            cursor.refuse("expected an attribute, name=value with nothing between the name and =")
        _attribute(assembly, cursor, spec, opcode, owner, found)
    for name in spec.required:
        if name not in found.at:
            assembly.tell(MISSING_ATTRIBUTE, f"{opcode} needs the attribute {name}", opcode_at, len(opcode), _example(name, spec), owner)
    return found


def _attribute(assembly: Assembly, cursor: Cursor, spec: Opcode, opcode: str, owner: str, found: Attributes) -> None:
    name, at = cursor.value, cursor.at
    kind = spec.kind(name)
    cursor.next()
    value_at = cursor.at
    if name in found.at:
        first = (Note("it is given first here", found.at[name]),)
        assembly.tell(REPEATED_ATTRIBUTE, f"the attribute {name} is given twice", at, len(name), "", owner, first)
        kind = "any"
    elif kind is None:
        _tell_stranger(assembly, spec, opcode, name, at, owner)
        kind = "any"
    try:
        _read(assembly, cursor, name, kind, owner, found)
    except Refused as refused:
        if refused.fault in (TRUNCATED, LIMIT):
            raise
        assembly.faults.take(refused, owner, assembly.scope.graph.name)
        cursor.goto(value_at)
        step_over_value(cursor)
    found.at.setdefault(name, at)


def _read(assembly: Assembly, cursor: Cursor, name: str, kind: str, owner: str, found: Attributes) -> None:
    """Read a value into ``found``."""
    if kind == "any":
        step_over_value(cursor)
    elif kind == "computation":
        found.bodies[name] = (_computation(assembly, cursor, f"{owner}.{name}"),)
    elif kind == "computations":
        found.bodies[name] = _computations(assembly, cursor, owner)
    elif kind == "predecessors":
        found.values["control_predecessors"] = _predecessors(assembly, cursor)
    elif name == "parameter_replication":
        found.values[name] = bool_list(cursor)
    elif kind in RAW_KINDS:
        check_raw(kind, cursor, assembly.faults)
    else:
        value = read_value(kind, cursor, assembly.types)
        if name not in COMMON:
            found.values[name] = value


def _computation(assembly: Assembly, cursor: Cursor, name: str) -> Graph:
    if cursor.sees("{"):
        from irscope.formats.hlo.body import read_nested  # which reads attributes in its turn
        return read_nested(assembly, cursor, name)
    at, length = cursor.at, cursor.after - cursor.at
    called = cursor.name("the name of a computation")
    graph = assembly.module.graphs.get(called)
    return graph if graph is not None else _missing(assembly, called, at, length)


def _missing(assembly: Assembly, name: str, at: int, length: int) -> Graph:
    """A computation that the text does not hold (yet): an empty graph without a root."""
    graph = assembly.missing.get(name)
    if graph is None:
        graph = assembly.missing[name] = Graph(name, notes={"missing": True})
        later = re.compile(rf"^[ \t]*(?:ENTRY[ \t]+)?%?{re.escape(name)}[ \t]*[({{]", re.MULTILINE).search(assembly.text, at)
        note = (Note("it is defined later, here; a computation stands before its callers", later.end() - 1 - len(name)),) if later else ()
        near = did_you_mean(name, assembly.module.graphs)
        assembly.tell(MISSING_COMPUTATION, f"there is no computation {name} before this one", at, length, near, "", note)
    return graph


def _computations(assembly: Assembly, cursor: Cursor, owner: str) -> tuple[Graph, ...]:
    cursor.expect("{", "before the computations")
    graphs: list[Graph] = []
    while not cursor.sees("}"):
        graphs.append(_computation(assembly, cursor, f"{owner}.branch_{len(graphs)}"))
        if not cursor.eat(","):
            break
    cursor.expect("}", "behind the computations")
    return tuple(graphs)


def _predecessors(assembly: Assembly, cursor: Cursor) -> tuple[str, ...]:
    cursor.expect("{", "before the control predecessors")
    names: list[str] = []
    while True:
        at = cursor.at
        name = cursor.name("the name of an instruction")
        assembly.operand(name, at)
        names.append(name)
        if not cursor.eat(","):
            break
    cursor.expect("}", "behind the control predecessors")
    return tuple(names)


def _tell_stranger(assembly: Assembly, spec: Opcode, opcode: str, name: str, at: int, owner: str) -> None:
    """An attribute that the opcode does not have: misplaced when another has it, else unknown."""
    own = sorted(spec.attributes)
    takes = f"{opcode} takes {', '.join(own)}" if own else f"{opcode} takes no attributes of its own"
    if name in KNOWN_ATTRIBUTES:
        others = [o.name for o in OPCODES.values() if name in o.attributes]
        has = f"; {name} belongs to {', '.join(others[:3])}{' and others' if len(others) > 3 else ''}" if others else ""
        assembly.tell(MISPLACED_ATTRIBUTE, f'unexpected attribute "{name}" on {opcode}', at, len(name), takes + has, owner)
    else:
        message = f"{opcode} has an attribute {name} that irscope does not know; it is kept as text"
        assembly.tell(UNKNOWN_ATTRIBUTE, message, at, len(name), did_you_mean(name, [*own, *COMMON]) or takes, owner)


def _example(name: str, spec: Opcode) -> str:
    kind = spec.kind(name) or ""
    example = {"ints": "{0}", "int": "0", "computation": "%computation", "bool": "true", "slices": "{[0:2]}", "padding": "0_1x0_1",
               "dim_labels": "b01f_01io->b01f", "string": '"..."', "intlists": "{{0,1},{1,0}}", "direction": "LT", "fusion": "kLoop",
               "float": "0.001"}.get(kind)
    return f"e.g. {name}={example}" if example else ""


# ", name=" and a value that ends where the next attribute or the line does.
NEXT_NAME = re.compile(r", ([A-Za-z_][\w\-]*)=", re.ASCII)
SIMPLE = re.compile(r'(?:\{[^{}"\n]*+\}|"[^"\\\n]*+"|%?[A-Za-z_][\w.\-]*+|-?\d++)(?=, [a-z]|$)', re.ASCII)
NAMES = re.compile(r"\{%?[A-Za-z_][\w.\-]*(?:, %?[A-Za-z_][\w.\-]*)*\}", re.ASCII)


def quick_entry(assembly: Assembly, opcode: str, spec: Opcode, text: str) -> Entry | None:
    """The entry of an attribute text; None for all that is not surely right, so that the cursor may tell what is wrong."""
    found = Attributes()
    values, graphs = found.values, assembly.module.graphs
    at, end = 0, len(text)
    while at < end:
        m = NEXT_NAME.match(text, at)
        if m is None:
            return None
        name = m[1]
        kind = spec.kind(name)
        if kind is None or name in found.at or name == "parameter_replication":
            return None
        found.at[name] = at
        at = m.end()
        simple = SIMPLE.match(text, at)
        word = simple[0] if simple else ""
        if not simple and kind in ("computation", "computations", "predecessors"):
            return None
        if kind == "computation":
            graph = graphs.get(word[1:] if word[0] == "%" else word)
            if graph is None:
                return None
            found.bodies[name] = (graph,)
        elif kind in ("computations", "predecessors"):
            if NAMES.fullmatch(word) is None:
                return None
            names = word[1:-1].replace("%", "").split(", ")
            if kind == "predecessors":
                values["control_predecessors"] = tuple(names)
            elif all(n in graphs for n in names):
                found.bodies[name] = tuple(graphs[n] for n in names)
            else:
                return None
        else:
            value = quick_value(kind, word) if simple else None
            if value is None:
                after = _by_cursor(assembly, text, at, name, kind, found)
                if after < 0:
                    return None
                at = after
                continue
            if name not in COMMON:
                values[name] = value
        at += len(word)
    if any(name not in found.at for name in spec.required):
        return None
    looks = opcode in LOOKS or "control_predecessors" in values or (opcode == "broadcast" and "dimensions" not in values)
    count = PARAMETER if opcode == "parameter" else CONSTANT if opcode == "constant" else ANY if spec.operands is None else spec.operands
    return Entry(assembly.op(spec.name), count, values or NO_ATTRS, found.graphs(), looks)


def _by_cursor(assembly: Assembly, text: str, at: int, name: str, kind: str, found: Attributes) -> int:
    """Read one value of a quick entry by the cursor; the offset behind it, -1 where the whole must be told with its place."""
    said = len(assembly.faults.findings)
    try:
        cursor = Cursor(text, at)
        if kind in RAW_KINDS:
            check_raw(kind, cursor, assembly.faults)
        else:
            value = read_value(kind, cursor, assembly.types)
            if name not in COMMON:
                found.values[name] = value
    except Refused:
        return -1
    if len(assembly.faults.findings) != said:
        del assembly.faults.findings[said:]
        return -1
    return cursor.at
