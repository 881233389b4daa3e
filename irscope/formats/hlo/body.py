"""Reads computations, from the opening brace to the closing one: line by line where possible, else with the cursor."""
from __future__ import annotations

import re

from irscope.formats.hlo.assembly import Assembly
from irscope.formats.hlo.careful import COMPACTED, PRINT_AGAIN, read_instruction
from irscope.formats.hlo.faults import LOSSY_PRINT, SYNTAX, TRUNCATED, Refused, Span
from irscope.formats.hlo.lexer import RESERVED_TYPES, Cursor
from irscope.formats.hlo.lines import NAME, TYPE, read_lines
from irscope.formats.hlo.reducers import read_reducer
from irscope.graph import Graph
from irscope.source import Note

# ``%name (p: f32[2]) -> f32[2] {`` on one line, as compilers print it.
_SIZE = r"\d{1,18}+"
# The common ones first: the pattern tries them in order.
_DTYPES = ["f32", "s32", "bf16", "pred", "f16", "u32", *sorted(RESERVED_TYPES, key=len, reverse=True)]
_PARAMETER_TYPE = rf"(?:{'|'.join(_DTYPES)})\[(?:{_SIZE}(?:,{_SIZE})*+)?+\]"
_TUPLE_TYPE = rf"\((?:{_PARAMETER_TYPE}(?:, (?:/\*index=\d+\*/)?+)?+)*+\)"
_PARAMETERS = rf"(?:%?{NAME}: (?:{_PARAMETER_TYPE}|{_TUPLE_TYPE})(?:, (?:/\*index=\d+\*/)?+)?+)*+"
OPENING = re.compile(rf"[ \t]*+(ENTRY )?+%?+({NAME}) (?:\({_PARAMETERS}\) -> ({TYPE}) )?+\{{[ \t\r]*+\n[ \t]*+", re.ASCII)
CLOSING = re.compile(r"[ \t\r\n]*+\}[ \t\r]*+\n(?=[ \t\r]*(?:\n|%|[A-Za-z]|$))")
# Where reading resumes after a line that could not be read.
_HEADER = r"(?:ENTRY|HloModule)(?![\w.\-])|%?[A-Za-z_][\w.\-]*[ \t]+(?:\([^\n]*\)[ \t]*->[^\n]*)?\{[ \t]*$"
RESUME = re.compile(rf"^[ \t]*(?:(?:ROOT[ \t]+)?%?[A-Za-z_][\w.\-]*[ \t]+=[ \t]|\}}|{_HEADER})", re.MULTILINE | re.ASCII)
# Text that occurs only outside computations: one that is still open there was never closed.
LEAVES = re.compile(_HEADER, re.MULTILINE | re.ASCII)


def read_printed(assembly: Assembly, at: int) -> int:
    """Read consecutive computations with printed headers; returns the offset after them."""
    match, text = OPENING.match, assembly.text
    while True:
        while text.startswith("\n", at):
            at += 1
        behind = read_reducer(assembly, at)
        if behind > at:
            at = behind
            continue
        m = match(text, at)
        if m is None:
            return at
        at = _printed(assembly, m)


def read_computation(assembly: Assembly, at: int) -> int:
    """Read a computation with its header; returns the offset after it."""
    text = assembly.text
    m = OPENING.match(text, at)
    if m is not None:
        return _printed(assembly, m)
    cursor = Cursor(text, at)
    is_entry = cursor.eat_word("ENTRY")
    if cursor.sees("{") or cursor.sees("(") or (cursor.kind == "odd" and cursor.value == "%"):
        cursor.refuse("this computation has no name: the text was printed without names or ids (fingerprint or canonical options)",
                      LOSSY_PRINT, PRINT_AGAIN, sees=False)
    name_at = cursor.at + text.startswith("%", cursor.at)
    name = cursor.name("the name of a computation")
    assembly.open(name, name_at)
    try:
        _signature(assembly, cursor)
    except Refused:
        assembly.scopes.pop()
        raise
    if is_entry:
        assembly.entry = assembly.entry or name
    end = _body(assembly, cursor.at + 1, cursor.depth)
    _finish(assembly, is_entry, name_at)
    return end


def _printed(assembly: Assembly, m: re.Match[str]) -> int:
    """Read a computation whose header has matched; returns the offset after it."""
    name_at = m.start(2)
    scope = assembly.open(m[2], name_at)
    if m[3] is not None:
        try:
            scope.result, scope.result_at = assembly.types.lookup(m[3]), m.start(3)
        except Refused as refused:
            refused.offset += m.start(3)
            assembly.faults.take(refused, "", m[2])
    if m[1] is not None:
        assembly.entry = assembly.entry or m[2]
    end = _body(assembly, m.end(), 0)
    _finish(assembly, m[1] is not None, name_at)
    return end


def _finish(assembly: Assembly, is_entry: bool, name_at: int) -> None:
    graph = assembly.close()
    if graph.nodes:
        assembly.register(graph, is_entry, name_at)


def read_nested(assembly: Assembly, cursor: Cursor, name: str) -> Graph:
    """Read ``{ instructions }`` at the cursor, a computation written inline."""
    cursor.nest(8)
    begin, graphs = cursor.at, assembly.module.graphs
    name = assembly.module.fresh_name(name)
    graphs[name] = assembly.open(name, begin).graph  # reserve the name while its text is read
    assembly.scope.graph.notes["inline"] = True
    makes, assembly.makes_parameters = assembly.makes_parameters, False
    end = _body(assembly, begin + 1, cursor.depth, named=False)
    assembly.makes_parameters = makes
    graph = assembly.close()
    del graphs[name]  # and register it after those that it calls
    graphs[name] = graph
    cursor.goto(end)
    cursor.depth -= 8
    return graph


def _signature(assembly: Assembly, cursor: Cursor) -> None:
    """``(name: type, ...) -> type``, if present, up to the brace that opens the body."""
    scope = assembly.scope
    if cursor.eat("("):
        while not cursor.sees(")"):
            cursor.name("the name of a parameter, with a colon directly after it")
            assembly.types.read(cursor)
            if not cursor.eat(","):
                break
        cursor.expect(")", "after the parameters")
        cursor.expect("->", "before the type of the result")
        scope.result_at = cursor.at
        scope.result = assembly.types.read(cursor)
    if not cursor.sees("{"):
        cursor.refuse(f"expected '{{' to open the computation {scope.graph.name}")


def _body(assembly: Assembly, at: int, depth: int, named: bool = True) -> int:
    """Read instructions up to the closing brace; returns the offset after it and after what may follow it."""
    text = assembly.text
    scope = assembly.scope
    while True:
        at = read_lines(assembly, at)
        if named and not depth:
            closing = CLOSING.match(text, at)
            if closing is not None and scope.graph.nodes:
                return closing.end()
        try:
            cursor = Cursor(text, at)
            cursor.depth = depth
            if cursor.sees("}"):
                if not scope.graph.nodes:
                    assembly.tell(SYNTAX, f"computation {scope.graph.name} has no instructions", Span(cursor.at))
                return _behind(assembly, cursor, named)
            if cursor.kind == "end" or LEAVES.match(text, cursor.at):
                scope.is_cut = True
                assembly.ends_early = assembly.ends_early or cursor.kind == "end" or cursor.value == "HloModule"
                last = max(0, min(cursor.at, len(text.rstrip())) - 1)
                assembly.tell(TRUNCATED, f"computation {scope.graph.name} is not closed", Span(last), "was the dump cut off?",
                              (Note("it opens here", scope.graph.loc),))
                return cursor.at
            read_instruction(assembly, cursor)
            at = cursor.at
        except Refused as refused:
            # Every long operand list of a text with compact operands has the same fault; report it once.
            if refused.message != COMPACTED or all(f.message != COMPACTED for f in assembly.faults.findings):
                assembly.faults.take(refused, "", scope.graph.name)
            if refused.fault is TRUNCATED:
                scope.is_cut = assembly.ends_early = True
                return len(text)
            at = _resume(text, at)


def _resume(text: str, begun: int) -> int:
    """The offset of the next line that looks like an instruction or the end of a computation; the end of the text when there is none."""
    line_end = text.find("\n", begun)
    m = RESUME.search(text, line_end + 1) if line_end >= 0 else None
    return m.start() if m is not None else len(text)


def _behind(assembly: Assembly, cursor: Cursor, named: bool) -> int:
    """Step over the closing brace and ``, execution_thread="..."``; returns the offset after them."""
    end = cursor.after
    if not named:
        return end
    cursor.next()
    graph = assembly.scope.graph
    while cursor.sees(","):
        cursor.next()
        if not cursor.eat_field("execution_thread"):
            cursor.refuse("expected execution_thread=\"...\", the one attribute of a computation")
        at = cursor.at
        graph.notes["execution_thread"] = cursor.string("a string", SYNTAX)
        end = at + len(cursor.text[at:cursor.at].rstrip())
    return end
