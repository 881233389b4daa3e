"""Where an HLO instruction comes from in the user's program: metadata and stack frames, read in the text when somebody asks."""
from __future__ import annotations

import re
from collections.abc import Mapping

from irscope.formats.hlo.faults import Refused
from irscope.formats.hlo.lexer import Cursor, unescape
from irscope.formats.hlo.opcodes import RAW_NAMES
from irscope.formats.hlo.raw import step_over_value
from irscope.graph import SourceLine

METADATA = re.compile(r"metadata=\{")
OP_NAME = re.compile(r'op_name=("(?:[^"\\]|\\.)*+")', re.DOTALL)
FIELD = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*+"|-?\d+)', re.DOTALL)
TABLE = re.compile(r"^[ \t]*(FileNames|FunctionNames|FileLocations|StackFrames)\b", re.MULTILINE)
ROW = re.compile(r'\d+[ \t]+(?:("(?:[^"\\]|\\.)*+")|\{([^}]*)\})', re.DOTALL)
# A chain of frames longer than this goes in a circle.
MAX_FRAMES = 1000


class HloProvenance:
    """Answers for one module. The tables of stack frames are read at the first question for a call stack."""

    def __init__(self, text: str, tables: tuple[int, int] | None) -> None:
        self._text = text
        self._tables = tables
        self._frames: _Frames | None = None

    def scope(self, loc: int) -> str:
        """The ``op_name`` of the instruction at an offset."""
        metadata = self._metadata(loc)
        m = OP_NAME.search(metadata)
        return (unescape(m[1]) or "") if m else ""

    def call_stack(self, loc: int) -> tuple[SourceLine, ...]:
        """The lines of the user's program, innermost first."""
        fields = {m[1]: m[2] for m in FIELD.finditer(self._metadata(loc))}
        frame = int(fields.get("stack_frame_id", "0")[:18])
        if frame and self._tables:
            if self._frames is None:
                self._frames = _Frames(self._text[self._tables[0]:self._tables[1]])
            return self._frames.stack(frame)
        file = fields.get("source_file")
        if file is None:
            return ()
        return (SourceLine(unescape(file) or "", int(fields.get("source_line", "0")[:18]), int(fields.get("source_column", "0")[:18])),)

    def raw(self, loc: int) -> Mapping[str, str]:
        """The attributes of the instruction that were left in the text, by name."""
        if loc < 0:
            return {}
        try:
            return _raw_attributes(self._text, loc)
        except Refused:
            return {}

    def tables(self) -> str:
        """The text of the stack-frame tables."""
        return self._text[self._tables[0]:self._tables[1]].rstrip() if self._tables else ""

    def _metadata(self, loc: int) -> str:
        """The text of the metadata of the instruction at an offset."""
        if loc < 0:
            return ""
        # Most instructions are a line, and most metadata are the only ones in it: then no cursor is needed.
        end = self._text.find("\n", loc)
        line = self._text[loc:end if end >= 0 else len(self._text)]
        if line.count("metadata={") == 1:
            m = METADATA.search(line)
            if m and '"' not in line[:m.start()] and line[:m.start()].count("{") == line[:m.start()].count("}"):
                return line[m.start():]
        elif "metadata={" not in line and line.rstrip().endswith((")", "}", '"')) and not line.rstrip().endswith("={"):
            rest = BEHIND.match(self._text, end) if end >= 0 else None
            if rest is None:
                return ""
        return self.raw(loc).get("metadata", "")


# Another attribute on the next line.
BEHIND = re.compile(r"\s*,")


def _raw_attributes(text: str, loc: int) -> dict[str, str]:
    cursor = Cursor(text, loc)
    depth = 0
    # Up to the parenthesis that closes the operands: the first that opens behind '=' and an opcode.
    while cursor.kind != "end":
        if cursor.kind == "word" and depth == 0 and cursor.peek() == ("mark", "(") and cursor.value != "b":
            cursor.next()
            break
        depth += (cursor.sees("(") or cursor.sees("{")) - (cursor.sees(")") or cursor.sees("}"))
        cursor.next()
    depth = 0
    while cursor.kind != "end":
        if cursor.sees("("):
            depth += 1
        elif cursor.sees(")"):
            depth -= 1
            if depth == 0:
                cursor.next()
                break
        cursor.next()
    found: dict[str, str] = {}
    while cursor.eat(","):
        if cursor.kind != "attribute":
            break
        name = cursor.value
        cursor.next()
        value = step_over_value(cursor)
        if name in RAW_NAMES or name not in _parsed_names():
            found.setdefault(name, value)
    return found


def _parsed_names() -> frozenset[str]:
    from irscope.formats.hlo.opcodes import KNOWN_ATTRIBUTES
    return KNOWN_ATTRIBUTES


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
