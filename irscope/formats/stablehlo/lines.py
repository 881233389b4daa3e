"""The fast path: operations on one line, by the text between the names of their values, which repeats.

``%3 = stablehlo.add %1, %2 : tensor<2xf32>`` is read once, by the pattern of its form; every further line that differs from it in names
alone gets its attributes and types. In a function that becomes a graph, the line is a node at once where its operation and types are
common ones. Every other line is left to the cursor.
"""
from __future__ import annotations

import re
from collections.abc import Callable
from operator import attrgetter
from typing import Any

from irscope.formats.stablehlo.building.direct import combining
from irscope.formats.stablehlo.lexer import ALIAS_USE, NAME, SPACE, STRING, VALUE, closing
from irscope.formats.stablehlo.operations import Defined, Operation, Plan, Region, Template, Value, applied
from irscope.formats.stablehlo.scope import Scope
from irscope.formats.stablehlo.templates import LONGEST, Rules, Templates, Texts
from irscope.formats.stablehlo.values import Values
from irscope.graph import Graph, Node
from irscope.source.budget import tick

ALIAS_PLACE = re.compile(rf"\(#({NAME})\)", re.ASCII)


def _nested_place(depth: int) -> str:
    """A pattern for parentheses around strings, words and numbers, nested to a depth."""
    return rf'\((?:[\w:, ]++|{STRING}' + (f"|{_nested_place(depth - 1)}" if depth else "") + r")*+\)"


PLAIN_PLACE = re.compile(_nested_place(6), re.ASCII)
"""A location of names, numbers, words and parentheses, which are balanced."""
ENDINGS = (")", " ", "\t")
"""The last characters of lines with a location or with blanks at the end."""
CONTINUES = re.compile(rf'{SPACE.pattern}(?:,|->|<|(?:loc|to)\b|(?!{STRING})"|[\x00-\x1f`\x7f])', re.ASCII)
"""What goes on with the operation on the line before, or is no token, which the cursor sees when it is at the end of that line."""
HAVE_RULES = (" = stablehlo.", ' = "stablehlo.', " = mhlo.")
"""What operations that may be a node at once begin with, behind the name of the result."""
TYPE = attrgetter("type")
_VALUE = rf"%((?:{NAME})(?:#\d++)?+)"
_BEHIND = r"([^%\n]*+)"
_BEFORE_PLACE = r"((?:[^%\n ]++| (?!loc\())*+)"


def _pattern(behind: str, place: str) -> re.Pattern[str]:
    """A line with one result and up to three operands: the names, and the texts behind them."""
    operands = rf"(?:{_VALUE}{behind}(?:{_VALUE}{behind}(?:{_VALUE}{behind})?+)?+)?+"
    return re.compile(rf"[ \t]*+%({NAME})(?= = ){behind}{operands}{place}\n", re.ASCII)


LINE, LOCATED = _pattern(_BEHIND, "()??"), _pattern(_BEFORE_PLACE, r"(?: loc(\([^\n]*\)))?+")
"""For texts without and with locations, which are the last group."""


class Lines:
    """Reads lines of one text. ``locations`` collects the aliases of locations that are used, with an offset."""

    def __init__(self, text: str, values: Values, locations: dict[str, int], rules: Rules) -> None:
        self.text, self.locations = text, locations
        self.templates = Templates(text, values, rules)
        self.places: set[str] = set()
        """Texts of locations that are well-formed, with their parentheses."""
        self.pattern = LOCATED if " loc(" in text else LINE

    def read(self, scope: Scope, at: int, found: list[Operation | Node]) -> int:
        """Read operations from an offset on and append them; returns the offset behind the last one, ``at`` where there is none."""
        if scope.awaited:
            return at
        first = len(found)
        while True:
            if scope.makes_nodes:
                at = self._nodes(scope, at, found)
            behind = self._line(scope, at, found)
            if behind == at:
                break
            at = behind
            if not len(found) & 255:
                tick(256)
        tick(len(found) - first & 255)
        if len(found) == first:
            return at
        if CONTINUES.match(self.text, at) is None:
            return at - 1
        last = found.pop()
        if isinstance(last, Operation):
            scope.forget(last.results)
            return last.begin
        scope.forget((last,))
        while found and isinstance(found[-1], Node) and found[-1].loc == last.loc:
            found.pop()
        return last.loc

    def _nodes(self, scope: Scope, at: int, found: list[Operation | Node]) -> int:
        """Read lines of templates that are nodes, from an offset on; returns the offset of the first other line.

        Leaves each line to :meth:`_line` that has more than three operands, or whose names do not have the template's types.
        """
        values, places, find = scope.values, self.places, self.templates.plans.get
        append, get, count = found.append, values.__getitem__, len(found)
        match: Callable[[], Any] = self.pattern.scanner(self.text, at).match  # type: ignore[attr-defined]
        for m in iter(match, None):
            name, head, x, behind_x, y, behind_y, z, behind_z, place = m.groups()
            texts, begin = (head, behind_x, behind_y, behind_z), m.start(1) - 1
            plan = find(texts) or (self._plan(texts, [name, x, y, z], begin) if head.startswith(HAVE_RULES) else None)
            if plan is None or name in values or (place is not None and place not in places and not self._is_place(place, m.start(9))):
                break
            op, attrs, type, wanted, more = plan
            operands: Any = ()
            try:
                if y is not None:
                    operands = (get(x), get(y)) if z is None else (get(x), get(y), get(z))
                    if operands[0].type is not wanted[0] or operands[1].type is not wanted[1] or \
                            (z is not None and operands[2].type is not wanted[2]):
                        break
                elif x is not None:
                    operands = get(x),
                    if operands[0].type is not wanted[0]:
                        break
            except KeyError:
                break
            if more is None:
                node = values[name] = Node(op, name, type, operands, attrs, (), begin)
            else:
                end = m.end() - 1 if place is None else m.start(9) - len(" loc")
                node = values[name] = _extended(plan, name, operands, (begin, end), found)
            append(node)
            at = m.end()
            count += 1
            if not count & 255:
                tick(256)
        return at

    def _plan(self, texts: Texts, names: list[str | None], begin: int) -> Plan | None:
        """The node of a line whose texts are new."""
        return self.templates.plan(texts, [name for name in names if name is not None], begin)

    def _line(self, scope: Scope, at: int, found: list[Operation | Node]) -> int:
        """Read the line at an offset; returns the offset of the next line, ``at`` where the cursor has to read this one."""
        stop = self.text.find("\n", at)
        if stop < 0:
            return at
        line = self.text[at:stop].lstrip(" \t")
        begin, location, place = stop - len(line), -1, ""
        if len(line) > LONGEST:
            return at
        if line[-1:] in ENDINGS and (line := line.rstrip())[-1:] == ")" and (cut := line.rfind(" loc(")) > 0:
            location, place, line = begin + cut + 1, line[cut + 4:], line[:cut].rstrip()
        pieces = VALUE.split(line)
        key, names = tuple(pieces[::2]), pieces[1::2]
        template = self.templates.by_pieces.get(key) or self.templates.new(key, names, begin)
        if template is None:
            return at
        name = names.pop(0) if template.is_named else ""
        values = scope.values
        operands = tuple([values[each] for each in names if each in values])
        if len(operands) != len(names) or name in values or list(map(TYPE, operands)) != template.types or "#" in name:
            return at
        if location >= 0 and place not in self.places and not self._is_place(place, location + 3):
            return at
        end = begin + len(line)
        if template.plan is not None and scope.makes_nodes:
            node = values[name] = _extended(template.plan, name, operands, (begin, end), found)
            found.append(node)
        else:
            found.append(_operation(scope, template, name, operands, (begin, end, location)))
        return stop + 1

    def _is_place(self, text: str, at: int) -> bool:
        """Whether ``(...)`` of a location is balanced; its offset is for the aliases in it."""
        alias = ALIAS_PLACE.fullmatch(text)
        if alias is not None:
            self.locations.setdefault(alias[1], at + 1)
        elif PLAIN_PLACE.fullmatch(text) is None and closing(text, 0, len(text)) != len(text):
            return False
        else:
            for m in ALIAS_USE.finditer(text) if "#" in text else ():
                if m[1] is not None:
                    self.locations.setdefault(m[1], at + m.start())
        self.places.add(text)
        return True


def _extended(plan: Plan, name: str, operands: tuple[Any, ...], place: tuple[int, int], found: list[Operation | Node]) -> Node:
    """The node of a line between two offsets, with its body, behind the nodes before it, which are appended."""
    begin, end = place
    chain, body = plan.more or ((), None)
    if chain:
        first = operands[:1]
        for link in chain:
            before = Node(link.op, f"{name}.{link.op.name}", link.type, first, link.attrs, (), begin, synthetic=True)
            found.append(before)
            first = before,
        operands = (*first, *operands[1:])
    bodies: tuple[Graph, ...] = ()
    if body is not None:
        scalar = operands[-1].type
        bodies = combining(body[0], scalar, begin, end - body[1]),
    return Node(plan.op, name, plan.type, operands, plan.attrs, bodies, begin)


def _operation(scope: Scope, template: Template, name: str, operands: tuple[Defined, ...], place: tuple[int, int, int]) -> Operation:
    """The operation of a line, which defines its results; ``place`` are the offsets of its begin, its end and its location."""
    begin, end, location = place
    regions: tuple[Region, ...] = ()
    results: tuple[Value, ...]
    if template.is_single:
        result = scope.values[name] = Value(name, template.results[0])
        results = (result,)
    elif name:
        results = tuple(scope.bind(name, template.results))
    else:
        results = tuple([Value(f"_{begin}_{i}", type) for i, type in enumerate(template.results)])
    if template.applied is not None:
        inner, distance = template.applied
        regions = (applied(inner, operands[-1].type, end - distance),)
    scope.places[name] = begin
    return Operation(template.name, operands, results, template.attributes, regions, begin, begin + len(name) + template.lead, end,
                     location, template)
