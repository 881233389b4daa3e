"""The fast path: instructions as compilers print them, one per line, by one pattern. Leaves every other line to the cursor."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from irscope.formats.hlo.assembly import ANY, PARAMETER, Assembly, Entry
from irscope.formats.hlo.attributes import quick_entry
from irscope.formats.hlo.checks import check
from irscope.formats.hlo.faults import Refused
from irscope.formats.hlo.lexer import braces
from irscope.formats.hlo.literals import make_literal
from irscope.formats.hlo.opcodes import OPCODES
from irscope.formats.hlo.plain import is_plain
from irscope.formats.hlo.types import compatible
from irscope.graph import Graph, Node, TensorType, Type
from irscope.source.budget import tick

NAME = r"[A-Za-z_][\w.\-]*+"
_ARRAY = r"[a-z]\w*+\[[^\]\n]*+\](?:\{[^{}\n]*+\})?+"
_TUPLE = r"\((?:[^()\n]++|\((?:[^()\n]++|\((?:[^()\n]++|\((?:[^()\n]++|\([^()\n]*+\))*+\))*+\))*+\))*+\)"
TYPE = rf"(?:{_ARRAY}|{_TUPLE})"
LINE = re.compile(
    rf"[ \t]*+(ROOT )?+%?+({NAME}) = ({TYPE}) ([a-z][a-z0-9\-]*+)"
    r"\(((?:[^()\n]++|\((?:[^()\n]++|\((?:[^()\n]++|\([^()\n]*+\))*+\))*+\))*+)\)((?:, [^\n]*[^\s])?)[ \t]*+\n[ \t]*+", re.ASCII)
OPERAND = re.compile(rf"(?:({TYPE}) )?%?({NAME})(?:, (?:/\*index=\d+\*/)?|$)", re.ASCII)

_STRING = r'"(?:[^"\\\n]++|\\["\'\\nrt])*+"'
_STRINGS = ("op_type", "op_name", "source_file")
_NUMBERS = ("source_line", "source_end_line", "source_column", "source_end_column", "stack_frame_id")
_METADATA = "".join(rf"(?:{n}={_STRING} ?+)?+" for n in _STRINGS) + "".join(rf"(?:{n}=\d{{1,9}} ?+)?+" for n in _NUMBERS) \
    + "".join(rf"(?:{n}={_STRING} ?+)?+" for n in ("deduplicated_name", "scheduling_name"))


# The end of an attribute text, which printers always write last: checked, and left in the dump as text.
TAIL = re.compile(rf"(?:, metadata=\{{{_METADATA}\}})?+(?:, backend_config=(?:{braces(5)}|{_STRING}))?+", re.ASCII)
NUMBER = re.compile(r"\d{1,9}", re.ASCII)
LONGEST_TAIL = 2000
"""In characters: longer metadata and backend configs are not cached. They seldom repeat, and a dump may contain gigabytes of them."""


class UnusualLine(Exception):
    """A line that the fast path leaves to the cursor."""


def read_lines(assembly: Assembly, at: int) -> int:
    """Read instructions into the open computation, from ``at`` on; returns the offset of the first that is not read here.

    Stops before a line that it does not understand or that may be invalid, so that the cursor can report it.
    """
    text, scope = assembly.text, assembly.scope
    graph, names, tables = scope.graph, scope.names, assembly.tables
    nodes = graph.nodes
    append, find, index = nodes.append, names.__getitem__, len(nodes)
    types, numbers = assembly.types.by_text, assembly.numbers
    m: re.Match[str] | None = None
    try:
        for m in _lines(text, at):
            is_root, name, type_text, opcode, inside, rest = m.groups()
            type = types.get(type_text)
            if type is None:
                type = _type(assembly, type_text)
            if rest and (", metadata={" in rest or ", backend_config=" in rest):
                rest = _without_tail(assembly, rest)
            table = tables.get(opcode)
            entry = table.get(rest) if table is not None else None
            if entry is None:
                entry = _entry(assembly, opcode, rest)
            op, count, attrs, bodies, looks = entry
            operands: tuple[Node, ...] = ()
            if count >= ANY:
                if inside:
                    try:
                        operands = tuple(map(find, inside[1:].split(", %") if inside[0] == "%" else inside.split(", ")))
                    except KeyError:
                        operands = _operands(assembly, inside)
                if 0 <= count != len(operands):
                    raise UnusualLine
            else:
                own = numbers.get(inside) if count == PARAMETER and not attrs else None
                attrs = own if own is not None else _leaf(assembly, count, m.start(5), inside, type, attrs)
            if name[0] == "_":
                assembly.check_name(name, m.start(2))
            node = Node(op, name, type, operands, attrs, bodies, m.start(2), index)
            if is_root:
                _make_root(graph, node)
            if looks:
                check(assembly, node)
                node.index = index = len(nodes)  # a stand-in may have been added in between
            index += 1
            if not index & 1023:
                tick(1024)
            names[name] = node
            append(node)
    except UnusualLine:
        assert m is not None
        return m.start()
    return m.end() if m is not None else at


def _lines(text: str, at: int) -> Iterator[re.Match[str]]:
    """Consecutive matching lines from an offset on."""
    match: Callable[[], Any] = LINE.scanner(text, at).match  # type: ignore[attr-defined]
    return iter(match, None)


def _type(assembly: Assembly, text: str) -> Type:
    try:
        return assembly.types.lookup(text)
    except Refused:
        raise UnusualLine from None


def _without_tail(assembly: Assembly, rest: str) -> str:
    """The attributes without the metadata and the backend config, which stay in the dump after a check that they are well-formed."""
    cut = rest.find(", metadata={")
    if cut < 0:
        cut = rest.find(", backend_config=")
    tail = rest[cut:]
    if tail not in assembly.tails:
        if TAIL.fullmatch(tail) is None:
            raise UnusualLine
        if len(tail) <= LONGEST_TAIL:
            assembly.tails.add(tail)
    return rest[:cut]


def _make_root(graph: Graph, node: Node) -> None:
    if graph.root is not None:
        raise UnusualLine
    graph.root = node


def _entry(assembly: Assembly, opcode: str, text: str) -> Entry:
    """The entry of a new attribute text."""
    table = assembly.tables.get(opcode)
    if table is None:
        if opcode not in OPCODES or opcode.startswith("async-") or opcode == "conditional":
            raise UnusualLine  # each of them needs the cursor
        table = assembly.tables[opcode] = {}
    # Most new attribute texts differ from an earlier one only in the computation that they name, or in their channel.
    likeness, called, channel = (text, "", "") if '"' in text else _likeness(text)
    graph = assembly.module.graphs.get(called) if called else None
    known = table.get(likeness) if likeness is not text else None
    if known is not None and (graph is not None or not called):
        attrs = {**known.attrs, "channel_id": int(channel)} if channel else known.attrs
        entry = Entry(known.op, known.operands, attrs, known.bodies if graph is None else (graph,), known.looks)
    else:
        found = quick_entry(assembly, opcode, OPCODES[opcode], text)
        if found is None:
            raise UnusualLine
        entry = found
        if likeness is not text and len(entry.bodies) == bool(called):
            table[likeness] = entry
    if not channel:  # a channel belongs to one instruction: its text will not occur again
        table[text] = entry
    return entry


def _likeness(text: str) -> tuple[str, str, str]:
    """An attribute text without the name of the computation that it calls and without the number of its channel, followed by these two.

    >>> _likeness(", channel_id=7, dimensions={0}, to_apply=%add")
    (', channel_id=, dimensions={0}, to_apply=%', 'add', '7')
    """
    called = channel = ""
    at = text.find(", to_apply=")
    begin = at + 11 if at >= 0 else text.find(", calls=") + 8
    if begin > 7:
        end = text.find(",", begin)
        called = text[begin:] if end < 0 else text[begin:end]
        text = text[:begin] + ("%" if end < 0 else "%" + text[end:])
        if called[:1] == "%":
            called = called[1:]
    begin = text.find(", channel_id=") + 13
    if begin > 12:
        end = text.find(",", begin)
        channel = text[begin:] if end < 0 else text[begin:end]
        if NUMBER.fullmatch(channel) is None:
            return text, called, ""
        text = text[:begin] + ("" if end < 0 else text[end:])
    return text, called, channel


def _operands(assembly: Assembly, inside: str) -> tuple[Node, ...]:
    """Operands among ``/*index=5*/``, or that write their types, as older compilers do."""
    names, types = assembly.scope.names, assembly.types
    operands: list[Node] = []
    at, end = 0, len(inside)
    while at < end:
        m = OPERAND.match(inside, at)
        node = names.get(m[2]) if m is not None else None
        if m is None or node is None:
            raise UnusualLine
        if m[1] is not None:
            declared = types.by_text.get(m[1]) or _type(assembly, m[1])
            if not (declared is node.type or compatible(declared, node.type)):
                raise UnusualLine
        operands.append(node)
        at = m.end()
    if inside.endswith(", "):
        raise UnusualLine
    return tuple(operands)


def _leaf(assembly: Assembly, count: int, begin: int, inside: str, type: Type, attrs: Mapping[str, object]) -> Mapping[str, object]:
    """The attributes of a parameter (one object for each number) or of a constant (one for each type and short text of a value)."""
    if count == PARAMETER:
        if NUMBER.fullmatch(inside) is None:
            raise UnusualLine
        made = {"number": int(inside), **attrs}
        if not attrs:
            assembly.numbers[inside] = made
        return made
    key = (id(type), inside) if len(inside) < 100 and not attrs else None
    known = assembly.literals.get(key) if key else None
    if known is not None:
        return known
    if not isinstance(type, TensorType) or type.dtype.is_complex or not is_plain(inside, type):
        raise UnusualLine
    made = {"literal": make_literal(type, assembly.text, begin, begin + len(inside)), **attrs}
    if key:
        assembly.literals[key] = made
    return made
