"""Where an HLO instruction comes from in the user's program: metadata and stack frames, read from the text on demand."""
from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from irscope.formats.hlo.faults import Refused
from irscope.formats.hlo.lexer import Cursor, braces, unescape
from irscope.formats.hlo.lines import LINE
from irscope.formats.hlo.opcodes import KNOWN_ATTRIBUTES, RAW_NAMES
from irscope.formats.hlo.raw import step_over_value
from irscope.graph import SourceLine

_STRING = r'"(?:[^"\\]|\\.)*+"'
# An attribute whose value ends without a grammar.
_PLAIN = r"(?:[^,{}\"'\n(\[]|\[[\d,]*+\]|\([\d,]*+\))++"  # 8, b01f_01io->b01f, [2,4]<=[8]T(1,0)
PAIR = re.compile(rf", ([A-Za-z_][\w\-]*+)=({braces(5)}|{_STRING}|{_PLAIN})(?=, [a-zA-Z_]|$)", re.ASCII)
FIELD = re.compile(rf"(\w+)=({_STRING}|-?\d+)", re.DOTALL | re.ASCII)
INTEGER = re.compile(r"-?\d+", re.ASCII)
TABLE = re.compile(r"^[ \t]*(FileNames|FunctionNames|FileLocations|StackFrames)\b", re.MULTILINE)
ROW = re.compile(rf"\d+[ \t]+(?:({_STRING})|\{{([^}}]*)\}})", re.DOTALL)
# A chain of frames longer than this is cyclic.
MAX_FRAMES = 1000


class HloProvenance:
    """The provenance of one module. The tables of stack frames are read with the first call stack."""

    def __init__(self, text: str, tables: tuple[int, int] | None) -> None:
        self.text = text
        self._tables = tables
        self._frames: _Frames | None = None
        self._has_metadata = "metadata=" in text
        self._last: tuple[int, dict[str, str]] = (-1, {})  # scope and call stack of a node are read together

    def scope(self, loc: int) -> str:
        """The ``op_name`` of the instruction at an offset."""
        return self._metadata(loc).get("op_name", "")

    def call_stack(self, loc: int) -> tuple[SourceLine, ...]:
        """The lines of the user's program, innermost first."""
        fields = self._metadata(loc)
        frame = _integer(fields, "stack_frame_id")
        if frame and self._tables:
            if self._frames is None:
                self._frames = _Frames(self.tables())
            return self._frames.stack(frame)
        file = fields.get("source_file")
        if not file:
            return ()
        return (SourceLine(file, _integer(fields, "source_line"), _integer(fields, "source_column")),)

    def raw(self, loc: int) -> Mapping[str, str]:
        """The attributes of the instruction that were left in the text, by name."""
        return {name: value for name, value in self.written(loc)[1].items() if name in RAW_NAMES or name not in KNOWN_ATTRIBUTES}

    def written(self, loc: int) -> tuple[str, dict[str, str]]:
        """The opcode at an offset as it is written, and the texts of all its attributes."""
        if not 0 <= loc < len(self.text):
            return "", {}
        m = LINE.match(self.text, loc)
        if m is not None:
            found = self._pairs(m)
            if found is not None:
                return m[4], found
        try:
            return _written(Cursor(self.text, loc))
        except Refused:
            return "", {}

    def tables(self) -> str:
        """The text of the stack-frame tables."""
        return self.text[self._tables[0]:self._tables[1]].rstrip() if self._tables else ""

    def _metadata(self, loc: int) -> dict[str, str]:
        """The fields of the metadata of the instruction at an offset."""
        if not self._has_metadata or not 0 <= loc < len(self.text):
            return {}
        if self._last[0] == loc:
            return self._last[1]
        m = LINE.match(self.text, loc)
        found = self._pairs(m, "metadata") if m is not None else None
        text = (found if found is not None else self.written(loc)[1]).get("metadata", "")
        fields = {m[1]: (unescape(m[2]) or "") if m[2][0] == '"' else m[2] for m in FIELD.finditer(text)}
        self._last = (loc, fields)
        return fields

    def _pairs(self, line: re.Match[str], until: str = "") -> dict[str, str] | None:
        """The attributes of a line up to a given name (the rest may be long), or all; None where they need the cursor."""
        found: dict[str, str] = {}
        at, end = line.span(6)
        while at < end:
            pair = PAIR.match(self.text, at, end)
            if pair is None:
                return None
            found.setdefault(pair[1], pair[2])
            if pair[1] == until:
                break
            at = pair.end()
        return found


def _integer(fields: Mapping[str, str], name: str) -> int:
    """An integer of the metadata; 0 where it is missing, or where a text that XLA refuses has a string in its place."""
    text = fields.get(name, "")
    return int(text[:18]) if INTEGER.fullmatch(text) else 0


def _written(cursor: Cursor) -> tuple[str, dict[str, str]]:
    """Opcode and attributes by the cursor; empty for text that is not an instruction."""
    cursor.eat_word("ROOT")
    if cursor.kind in ("name", "word") and cursor.peek() == ("mark", "="):
        cursor.next()
        cursor.next()
    # The type, then the opcode: the word before the parenthesis of the operands.
    while not (cursor.kind == "word" and cursor.value != "b" and cursor.peek() == ("mark", "(")):
        if cursor.sees("("):
            for _ in _inside(cursor):
                pass
        elif cursor.sees("{"):
            cursor.balanced("of a layout")
        elif cursor.kind not in ("type", "int", "mark", "word") or cursor.sees("=") or cursor.sees(")") or cursor.sees("#"):
            return "", {}
        else:
            cursor.next()
    opcode = cursor.take()
    for _ in _inside(cursor):
        pass
    found: dict[str, str] = {}
    while cursor.eat(","):
        if cursor.kind != "attribute":
            break
        name = cursor.take()
        found.setdefault(name, step_over_value(cursor))
    return opcode, found


def _inside(cursor: Cursor) -> Iterator[None]:
    """Step over ``( ... )``, token by token."""
    depth = 0
    while cursor.kind != "end":
        depth += cursor.sees("(") - cursor.sees(")")
        cursor.next()
        if depth == 0:
            return
        yield


class _Frames:
    """The four tables of stack frames. Numbers in them count from 1; a parent of 1 means none, of n the frame n - 1."""

    def __init__(self, text: str) -> None:
        tables: dict[str, list[re.Match[str]]] = {}
        marks = list(TABLE.finditer(text))
        for mark, following in zip(marks, [*(m.start() for m in marks[1:]), len(text)], strict=True):
            tables[mark[1]] = list(ROW.finditer(text, mark.end(), following))
        self._files = [unescape(m[1]) or "" if m[1] else "" for m in tables.get("FileNames", [])]
        self._functions = [unescape(m[1]) or "" if m[1] else "" for m in tables.get("FunctionNames", [])]
        self._locations = [_numbers(m[2]) for m in tables.get("FileLocations", [])]
        self._frames = [_numbers(m[2]) for m in tables.get("StackFrames", [])]

    def stack(self, frame: int) -> tuple[SourceLine, ...]:
        """The lines from a frame outwards."""
        lines: list[SourceLine] = []
        while 1 <= frame <= len(self._frames) and len(lines) < MAX_FRAMES:
            row = self._frames[frame - 1]
            place = row.get("file_location_id", 0)
            if 1 <= place <= len(self._locations):
                at = self._locations[place - 1]
                lines.append(SourceLine(_nth(self._files, at.get("file_name_id", 0)), at.get("line", 0), at.get("column", 0),
                                        _nth(self._functions, at.get("function_name_id", 0))))
            frame = row.get("parent_frame_id", 0) - 1
        return tuple(lines)


def _numbers(text: str | None) -> dict[str, int]:
    return {m[1]: int(m[2][:18]) for m in re.finditer(r"(\w+)=(\d+)", text or "", re.ASCII)}


def _nth(names: list[str], number: int) -> str:
    return names[number - 1] if 1 <= number <= len(names) else ""
