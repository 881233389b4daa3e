"""Where an operation comes from in the user's program: MLIR's locations, read from the text on demand."""
from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from irscope.formats.faults import Refused
from irscope.formats.stablehlo.faults import LIMIT
from irscope.formats.stablehlo.lexer import NAME, Cursor, unescape
from irscope.formats.stablehlo.operations import Operation, nested
from irscope.graph import SourceLine

RESULT = re.compile(rf"%(?:{NAME}) = ", re.ASCII)
MAX_DEPTH = 200
"""Locations nested deeper are cut: no call stack is as deep, and an alias may name itself. A location has as many names and lines at most:
call sites whose callee and caller are one alias would double them at each step."""


@dataclass(frozen=True, slots=True)
class Location:
    """``names`` are those around the place, outermost first; ``stack`` the lines of the program, innermost first."""

    names: tuple[str, ...] = ()
    stack: tuple[SourceLine, ...] = ()


NOWHERE = Location()


class StablehloProvenance:
    """The provenance of one module. ``aliases`` are the offsets of the values of aliases, ``raw`` the attributes kept as text."""

    def __init__(self, text: str, aliases: Mapping[str, int], operations: Iterable[Operation],
                 raw: Mapping[int, Mapping[str, str]]) -> None:
        self.text, self.aliases, self._raw = text, aliases, raw
        self._begins, self._places = array("q"), array("q")
        self._known: dict[str, Location] = {}
        operations = list(operations)
        self.meshes = [text[each.begin:each.end] for each in operations if each.name == "sdy.mesh"]
        """The meshes that shardings refer to, as they are written."""
        self._has_locations = "loc(" in text
        if self._has_locations:
            places = sorted([(each.begin, each.location) for block in nested(operations) for each in block])
            self._begins.extend(begin for begin, _ in places)
            self._places.extend(location for _, location in places)

    def scope(self, loc: int) -> str:
        """The name of the location: the path that jax gives to an operation, or the name of an argument."""
        names = self._location(loc).names
        return next((name for name in names if not name.endswith(":")), "")  # MLIR's type:name pairs begin with the type

    def call_stack(self, loc: int) -> tuple[SourceLine, ...]:
        """The lines of the user's program, innermost first."""
        return self._location(loc).stack

    def raw(self, loc: int) -> Mapping[str, str]:
        """The attributes of the operation that are kept as text."""
        return self._raw.get(loc, {})

    def _location(self, loc: int) -> Location:
        if not 0 <= loc < len(self.text) or not self._has_locations:
            return NOWHERE
        i = bisect_left(self._begins, loc)
        try:
            if i < len(self._begins) and self._begins[i] == loc:
                at = self._places[i]
            else:
                at = _location_of_line(self.text, loc)
            cursor = Cursor(self.text, at + 3 if at >= 0 else loc)
            if at < 0 and not _go_to_location(cursor):
                return NOWHERE
            cursor.expect("(", "in a location")
            found = self._read(cursor, 0)
        except Refused:
            return NOWHERE
        if len(found.names) == 1 and len(found.stack) == 1 and found.stack[0].function == found.names[0]:
            return Location(found.names, (replace(found.stack[0], function=""),))  # it names the operation, not a function
        return found

    def _read(self, cursor: Cursor, depth: int) -> Location:
        """Step over a location."""
        if depth > MAX_DEPTH:
            raise Refused(LIMIT, "the location is nested too deeply", cursor.at)
        if cursor.kind == "attribute":
            return self._alias(cursor.take(), depth)
        if cursor.kind == "string":
            return self._string(cursor, depth)
        word = cursor.word("a location")
        if word == "callsite":
            cursor.expect("(", "after callsite")
            callee = self._read(cursor, depth + 1)
            cursor.expect_word("at")
            caller = self._read(cursor, depth + 1)
            cursor.expect(")", "after a call site")
            return Location((), (callee.stack + caller.stack)[:MAX_DEPTH])
        if word == "fused":
            if cursor.sees("<"):
                cursor.balanced()
            parts = [self._read(cursor, depth + 1) for _ in cursor.items("[]", "the fused locations")]
            return Location(next((part.names for part in parts if part.names), ()), next((part.stack for part in parts if part.stack), ()))
        return NOWHERE

    def _alias(self, name: str, depth: int) -> Location:
        found = self._known.get(name)
        if found is None:
            at = self.aliases.get("#" + name)
            found = NOWHERE
            if at is not None:
                self._known[name] = NOWHERE  # where the alias names itself
                inner = Cursor(self.text, at)
                if inner.eat_word("loc"):
                    inner.expect("(", "in a location")
                    found = self._read(inner, depth + 2)
            self._known[name] = found
        return found

    def _string(self, cursor: Cursor, depth: int) -> Location:
        """``"file":3:4``, ``"file":3:4 to 5:6``, ``"name"`` or ``"name"(location)``."""
        text = unescape(cursor.take())
        if cursor.eat(":"):
            line = cursor.integer("a line")
            cursor.expect(":", "before the column")
            column = cursor.integer("a column")
            if cursor.eat_word("to"):
                if cursor.kind == "int":
                    cursor.next()
                cursor.expect(":", "before the column")
                cursor.integer("a column")
            return Location((), (SourceLine(text, line, column),))
        if not cursor.eat("("):
            return Location((text,))
        inner = self._read(cursor, depth + 1)
        cursor.expect(")", "after a location")
        stack = inner.stack
        if not inner.names and len(stack) == 1 and not stack[0].function:
            stack = (replace(stack[0], function=text),)
        return Location((text, *inner.names[:MAX_DEPTH - 1]), stack)


def _location_of_line(text: str, loc: int) -> int:
    """The offset of the location at the end of a line that became a node; -1 where it has none.

    It is the first ``loc(`` of the line: such a line has no other attribute with text of its own, but the location may have one.
    """
    end = text.find("\n", loc)
    line = text[loc:end if end >= 0 else len(text)].rstrip()
    return loc + line.find(" loc(") + 1 if line[-1:] == ")" and RESULT.match(line) and " loc(" in line else -1


def _go_to_location(cursor: Cursor) -> bool:
    """Go from an argument ``%x: type {...} loc(...)`` to the parenthesis of its location; False where it has none."""
    if cursor.kind != "value":
        return False
    cursor.next()
    if not cursor.eat(":") or cursor.kind not in ("word", "type"):
        return False
    cursor.next()
    if cursor.sees("<"):
        cursor.balanced()
    if cursor.sees("{"):
        cursor.balanced()
    return cursor.eat_word("loc")
