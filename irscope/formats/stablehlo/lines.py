"""The fast path: operations on one line, by the text between the names of their values, which repeats.

``%3 = stablehlo.add %1, %2 : tensor<2xf32>`` is read with the cursor once; every further line that differs from it in names alone gets
its attributes and types. Every other line is left to the cursor.
"""
from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from irscope.formats.stablehlo.attributes import Attribute
from irscope.formats.stablehlo.lexer import NAME, closing
from irscope.formats.stablehlo.operations import Operation, Region, Value, applied
from irscope.formats.stablehlo.scope import Scope
from irscope.graph import Type
from irscope.source.budget import tick

LINE = re.compile(r"[ \t]*+([^\s/][^\n]*+)\n")
VALUE = re.compile(r"%([0-9A-Za-z_$.#-]++)")
LOCATION = re.compile(rf"loc\(#({NAME})\)", re.ASCII)
LONGEST = 1500
"""In characters: longer lines do not repeat."""


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """What lines with the same text between their names have in common.

    ``lead`` is the number of characters before the name of the operation that are not the name of its result; ``applied`` the operation
    that a reduction applies, with its distance from the end of the line.
    """

    name: str
    is_named: bool
    types: list[Type]
    results: tuple[Type, ...]
    attributes: Mapping[str, Attribute]
    lead: int
    applied: tuple[str, int] | None


class Lines:
    """The templates of one text. ``locations`` collects the aliases of locations that are used, with an offset."""

    def __init__(self, text: str, locations: dict[str, int]) -> None:
        self.text, self.locations = text, locations
        self.templates: dict[tuple[str, ...], Template] = {}
        self.places: set[str] = set()
        """Texts of locations that are well-formed."""

    def read(self, scope: Scope, at: int, found: list[Operation]) -> int:
        """Read operations from an offset on and append them; returns the offset of the first line that is not read here."""
        text, templates, values = self.text, self.templates, scope.values
        match, split, append, get = LINE.match, VALUE.split, found.append, values.__getitem__
        first = len(found)
        while (m := match(text, at)) is not None:
            line, begin = m[1], m.start(1)
            if len(line) > LONGEST or scope.awaited:
                break
            end, location = m.end() - 1, -1
            if line[-1] == ")" or line[-1] in " \t":
                line, location = self._without_location(line, begin)
                end = begin + len(line)
            pieces = split(line)
            template = templates.get(tuple(pieces[::2]))
            if template is None:
                break
            names = pieces[1::2]
            name = names.pop(0) if template.is_named else ""
            try:
                operands = tuple(map(get, names))
            except KeyError:
                break
            if name in values or [value.type for value in operands] != template.types:
                break
            if len(template.results) == 1 and name:
                result = values[name] = Value(name, template.results[0])
                scope.defined[-1].append(name)
                results: tuple[Value, ...] = (result,)
            elif name:
                results = tuple(scope.bind(name, template.results))
            else:
                results = tuple([Value(f"_{begin}_{i}", type) for i, type in enumerate(template.results)])
            regions: tuple[Region, ...] = ()
            if template.applied is not None:
                inner, distance = template.applied
                regions = (applied(inner, operands[-1].type, end - distance),)
            append(Operation(template.name, operands, results, template.attributes, regions, begin, begin + len(name) + template.lead, end,
                             location))
            at = m.end()
            if not len(found) & 255:
                tick(256)
        tick(len(found) - first & 255)
        return at

    def _without_location(self, line: str, begin: int) -> tuple[str, int]:
        """The line without a trailing location, and the offset of that, -1 where there is none."""
        line = line.rstrip()
        cut = line.rfind(" loc(")
        if cut <= 0:
            return line, -1
        text = line[cut + 1:]
        alias = LOCATION.fullmatch(text)
        if alias is not None:
            self.locations.setdefault(alias[1], begin + cut + 5)
        elif text not in self.places:
            if "#" in text or closing(text, 3, len(text)) != len(text):
                return line, -1
            self.places.add(text)
        return line[:cut].rstrip(), begin + cut + 1

    def learn(self, operation: Operation, inner: tuple[str, int] | None) -> None:
        """Remember an operation that the cursor has read; ``inner`` is what a reduction applies, and its offset."""
        begin, end = operation.begin, operation.end
        if end - begin > LONGEST:
            return
        line = self.text[begin:end]
        pieces = VALUE.split(line)
        is_named = line[0] == "%"
        names = [operation.results[0].name.partition("#")[0]] if is_named and operation.results else []
        names += [operand.name for operand in operation.operands]
        if "\n" in line or pieces[1::2] != names:
            return
        lead = operation.at - begin - (len(names[0]) if is_named else 0)
        self.templates[tuple(pieces[::2])] = Template(
            operation.name, is_named, [operand.type for operand in operation.operands], tuple([value.type for value in operation.results]),
            operation.attributes, lead, (inner[0], end - inner[1]) if inner is not None else None)
