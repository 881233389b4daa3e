"""The fastest path: matches a whole scalar reducer, which reductions and collectives call, with one pattern.

A program of many devices has one per all-reduce, so they may be a third of its lines:

    %region_6.31 (a.1: f32[], b.2: f32[]) -> f32[] {
      %a.1 = f32[] parameter(0)
      %b.2 = f32[] parameter(1)
      ROOT %sum.3 = f32[] add(%a.1, %b.2)
    }
"""
from __future__ import annotations

import re

from irscope.formats.hlo.assembly import Assembly
from irscope.formats.hlo.lexer import RESERVED_TYPES
from irscope.formats.hlo.lines import NAME, TAIL
from irscope.graph import Graph, Node

_TAIL = r"(, metadata=[^\n]*[^\s\n])?+"
REDUCER = re.compile(rf"(%?+)({NAME}) (?:\(%?+{NAME}: ([a-z]\w*+\[\]), %?+{NAME}: \3\) -> \3 )?+\{{\n"
                     rf"  %?+([A-Za-z][\w.\-]*+) = ([a-z]\w*+\[\]) parameter\(0\){_TAIL}\n"
                     rf"  %?+([A-Za-z][\w.\-]*+) = \5 parameter\(1\){_TAIL}\n"
                     rf"  ROOT %?+([A-Za-z][\w.\-]*+) = \5 ([a-z][a-z\-]*+)\(%?+\4, %?+\7\){_TAIL}\n" r"\}\n(?=\n|%|$)", re.ASCII)


def read_reducer(assembly: Assembly, at: int) -> int:
    """Read a reducer at an offset; returns the offset after it, or ``at`` where there is none that surely fits the pattern."""
    m = REDUCER.match(assembly.text, at)
    if m is None:
        return at
    _, name, signed, first, type_text, first_tail, second, second_tail, last, opcode, last_tail = m.groups()
    type, table, numbers = assembly.types.by_text.get(type_text), assembly.tables.get(opcode), assembly.numbers
    entry = table.get("") if table is not None else None
    graphs = assembly.module.graphs
    if type is None or entry is None or entry.operands != 2 or entry.looks or name in graphs or "1" not in numbers or "0" not in numbers \
            or (signed is not None and signed != type_text) or (not m[1] and name == "ENTRY"):
        return at
    if first == second or last in (first, second) or not RESERVED_TYPES.isdisjoint((first, second, last)):
        return at
    tails = assembly.tails
    for tail in (first_tail, second_tail, last_tail):
        if tail is not None and tail not in tails:
            if TAIL.fullmatch(tail) is None:
                return at
            tails.add(tail)
    parameter = assembly.op("parameter")
    a = Node(parameter, first, type, (), numbers["0"], (), m.start(4), 0)
    b = Node(parameter, second, type, (), numbers["1"], (), m.start(7), 1)
    root = Node(entry.op, last, type, (a, b), entry.attrs, (), m.start(9), 2)
    graphs[name] = Graph(name, [a, b, root], [a, b], root, m.start(2))
    return m.end()
