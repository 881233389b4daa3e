"""Parses the attribute lists of instructions: with the cursor, which reports every fault, or fast for text as compilers print it."""
from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from irscope.formats.hlo.assembly import ANY, CONSTANT, PARAMETER, Assembly, Entry
from irscope.formats.hlo.checks import LOOKS, surely_right
from irscope.formats.hlo.faults import (
    LIMIT,
    MISPLACED_ATTRIBUTE,
    MISSING_ATTRIBUTE,
    REPEATED_ATTRIBUTE,
    TRUNCATED,
    UNKNOWN_ATTRIBUTE,
    Refused,
    Span,
)
from irscope.formats.hlo.forward import awaited
from irscope.formats.hlo.lexer import Cursor, braces
from irscope.formats.hlo.opcodes import COMMON, KNOWN_ATTRIBUTES, OPCODES, RAW_KINDS, Opcode
from irscope.formats.hlo.raw import bool_list, check_raw, step_over_value
from irscope.formats.hlo.values import quick_value, read_value
from irscope.graph import NO_ATTRS, Graph
from irscope.source import Note, did_you_mean

BODY_ORDER = ("to_apply", "calls", "condition", "body", "true_computation", "false_computation", "branch_computations",
              "called_computations", "select", "scatter")


@dataclass(frozen=True, slots=True)
class Head:
    """The part of an instruction before its operands: its name, its opcode as written and the grammar of the opcode, with offsets.

    A ``nested`` instruction is written as an operand of another, and has no attributes.
    """

    name: str
    at: int
    spec: Opcode
    word: str
    word_at: int
    nested: bool = False


class AttributeList:
    """A parsed attribute list: values, called computations, and the offset of each name."""

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


def read_attributes(assembly: Assembly, cursor: Cursor, head: Head) -> AttributeList:
    """Step over every ``, name=value``."""
    found = AttributeList()
    if head.nested:  # a comma after it separates operands, so it cannot have required attributes
        cursor = Cursor("", 0)
    while cursor.eat(","):
        if cursor.kind != "attribute":
            cursor.refuse("expected an attribute, name=value with nothing between the name and =")
        _attribute(assembly, cursor, head, found)
    for name in head.spec.required:
        if name not in found.at:
            if cursor.kind == "end" and cursor.text:
                cursor.refuse(f"expected the attribute {name} of {head.word}")
            assembly.tell(MISSING_ATTRIBUTE, f"{head.word} needs the attribute {name}", Span(head.word_at, len(head.word), head.name),
                          _example(name, head.spec))
    _state_order(found.values)
    return found


def _state_order(values: dict[str, object]) -> None:
    """XLA writes ``order=TOTAL`` since 2026, and ``type=TOTALORDER`` before: one attribute for both."""
    if values.pop("order", "") == "TOTAL":
        values["type"] = "TOTALORDER"


def _attribute(assembly: Assembly, cursor: Cursor, head: Head, found: AttributeList) -> None:
    at = cursor.at
    name = cursor.take()
    kind = head.spec.kind(name)
    value_at = cursor.at
    if name in found.at:
        first = (Note("it is given first here", found.at[name]),)
        assembly.tell(REPEATED_ATTRIBUTE, f"the attribute {name} is given twice", Span(at, len(name), head.name), "", first)
        kind = "any"
    elif kind is None:
        _tell_stranger(assembly, head, name, at)
        kind = "any"
    try:
        _read(assembly, cursor, name, kind, head.name, found)
    except Refused as refused:
        if refused.fault in (TRUNCATED, LIMIT):
            raise
        assembly.faults.take(refused, head.name, assembly.scope.graph.name)
        cursor.goto(value_at)
        step_over_value(cursor)
    found.at.setdefault(name, at)


def _read(assembly: Assembly, cursor: Cursor, name: str, kind: str, owner: str, found: AttributeList) -> None:
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
        return assembly.read_nested(assembly, cursor, name)
    at, length = cursor.at, cursor.after - cursor.at
    called = cursor.name("the name of a computation")
    graph = assembly.module.graphs.get(called)
    return graph if graph is not None else awaited(assembly, called, at, length)


def _computations(assembly: Assembly, cursor: Cursor, owner: str) -> tuple[Graph, ...]:
    return tuple(_computation(assembly, cursor, f"{owner}.branch_{i}") for i, _ in enumerate(cursor.items("{}", "the computations")))


def _predecessors(assembly: Assembly, cursor: Cursor) -> tuple[str, ...]:
    cursor.expect("{", "before the control predecessors")
    names: list[str] = []
    for _ in cursor.elements():
        at = cursor.at
        names.append(cursor.name("the name of an instruction"))
        assembly.operand(names[-1], at)
    cursor.expect("}", "after the control predecessors")
    return tuple(names)


def _tell_stranger(assembly: Assembly, head: Head, name: str, at: int) -> None:
    """Report an attribute that the opcode does not have: misplaced when another opcode has it, else unknown."""
    opcode, own = head.word, sorted(head.spec.attributes)
    takes = f"{opcode} takes {', '.join(own)}" if own else f"{opcode} takes no specific attributes"
    if name in KNOWN_ATTRIBUTES:
        others = [o.name for o in OPCODES.values() if name in o.attributes]
        has = f"; {name} belongs to {', '.join(others[:3])}{' and others' if len(others) > 3 else ''}" if others else ""
        assembly.tell(MISPLACED_ATTRIBUTE, f'unexpected attribute "{name}" on {opcode}', Span(at, len(name), head.name), takes + has)
    else:
        message = f"{opcode} has an attribute {name} that irscope does not know; it is kept as text"
        assembly.tell(UNKNOWN_ATTRIBUTE, message, Span(at, len(name), head.name), did_you_mean(name, [*own, *COMMON]) or takes)


def _example(name: str, spec: Opcode) -> str:
    kind = spec.kind(name) or ""
    example = {"ints": "{0}", "int": "0", "computation": "%computation", "bool": "true", "slices": "{[0:2]}", "padding": "0_1x0_1",
               "dim_labels": "b01f_01io->b01f", "string": '"..."', "intlists": "{{0,1},{1,0}}", "direction": "LT", "fusion": "kLoop",
               "float": "0.001"}.get(kind)
    return f"e.g. {name}={example}" if example else ""


# ", name=" and a value that ends at the next attribute or the end of the line.
NEXT_NAME = re.compile(r", ([A-Za-z_][\w\-]*)=", re.ASCII)
VALUE = re.compile(
    r"(?:" + braces(4) + r'|"[^"\\\n]*+"|\[[\d,]*+\]<=\[[\d,]*+\](?:T\([\d,]*+\))?+|[^\s,{}"()\[\]]++)(?=, [a-zA-Z]|$)', re.ASCII)
NAMES = re.compile(r"\{%?[A-Za-z_][\w.\-]*(?:, %?[A-Za-z_][\w.\-]*)*\}", re.ASCII)
NAME = re.compile(r"%?([A-Za-z_][\w.\-]*)", re.ASCII)
CHECKED = object()
"""The value of attributes that stay text and are known to be well-formed."""


def quick_entry(assembly: Assembly, opcode: str, spec: Opcode, text: str) -> Entry | None:
    """The entry of an attribute text; None unless it is certainly valid, so that the cursor can report what is wrong."""
    found = AttributeList()
    at, end = 0, len(text)
    while at < end:
        m = NEXT_NAME.match(text, at)
        v = VALUE.match(text, m.end()) if m is not None else None
        if m is None or v is None:
            return None
        name, word = m[1], v[0]
        kind = spec.kind(name)
        if kind is None or name in found.at or name == "parameter_replication":
            return None
        found.at[name] = at
        at = v.end()
        if kind == "computation" or kind == "computations":
            called = _quick_computations(assembly, kind, word)
            if called is None:
                return None
            found.bodies[name] = called
        elif kind == "predecessors":
            if NAMES.fullmatch(word) is None:
                return None
            found.values["control_predecessors"] = tuple(word[1:-1].replace("%", "").split(", "))
        else:
            value = assembly.values.get((kind, word))
            if value is None:
                value = _quick_value(assembly, kind, word)
                if value is None:
                    return None
                assembly.values[kind, word] = value
            if name not in COMMON:
                found.values[name] = value
    if any(name not in found.at for name in spec.required):
        return None
    _state_order(found.values)
    groups = found.values.get("replica_groups")
    looks = (opcode in LOOKS and not surely_right(opcode, found.values)) or "control_predecessors" in found.values \
        or (groups is not None and not groups.fits)
    count = PARAMETER if opcode == "parameter" else CONSTANT if opcode == "constant" else ANY if spec.operands is None else spec.operands
    return Entry(assembly.op(spec.name), count, found.values or NO_ATTRS, found.graphs(), looks)


def _quick_computations(assembly: Assembly, kind: str, word: str) -> tuple[Graph, ...] | None:
    """The computations that are named; None when one is unknown."""
    graphs = assembly.module.graphs
    if kind == "computation":
        m = NAME.fullmatch(word)
        graph = graphs.get(m[1]) if m else None
        return (graph,) if graph is not None else None
    if NAMES.fullmatch(word) is None:
        return None
    names = word[1:-1].replace("%", "").split(", ")
    return tuple(graphs[n] for n in names) if all(n in graphs for n in names) else None


def _quick_value(assembly: Assembly, kind: str, word: str) -> Any:
    """One value, without its place; None where the place is needed for a report."""
    value = quick_value(kind, word)
    if value is not None:
        return value
    said = len(assembly.faults.findings)
    try:
        cursor = Cursor(word)
        if kind in RAW_KINDS:
            check_raw(kind, cursor, assembly.faults)
            value = CHECKED
        else:
            value = read_value(kind, cursor, assembly.types)
    except Refused:
        return None
    if len(assembly.faults.findings) != said:
        del assembly.faults.findings[said:]
        return None
    return value if cursor.kind == "end" else None
