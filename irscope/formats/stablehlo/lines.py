"""The fast path: operations on one line, by the text between the names of their values, which repeats.

``%3 = stablehlo.add %1, %2 : tensor<2xf32>`` is read once, by the pattern of its form; every further line that differs from it in names
alone gets its attributes and types. Every other line is left to the cursor.
"""
from __future__ import annotations

import re
from collections.abc import Mapping
from operator import attrgetter

from irscope.formats.faults import Refused
from irscope.formats.stablehlo.attributes import Attribute
from irscope.formats.stablehlo.dialects import SHORT_NAMES
from irscope.formats.stablehlo.draft import Draft, Step
from irscope.formats.stablehlo.form_types import RULES, TYPES, give_types
from irscope.formats.stablehlo.lexer import ALIAS_USE, NAME, SPACE, STRING, VALUE, Cursor, closing
from irscope.formats.stablehlo.operations import Operation, Region, Template, Value, applied
from irscope.formats.stablehlo.patterns import Pattern, line_pattern
from irscope.formats.stablehlo.scope import Scope
from irscope.formats.stablehlo.values import Values
from irscope.source.budget import tick

HEAD = re.compile(r'(%(?::(\d{1,5}))? = )?(?:"([a-z]\w*+\.[\w.$-]++)" *+\(|([a-z][\w.$]*+)) *+', re.ASCII)
ALIAS_PLACE = re.compile(rf"\(#({NAME})\)", re.ASCII)
LONGEST = 1500
"""In characters: longer lines do not repeat."""
ENDINGS = (")", " ", "\t")
"""The last characters of lines with a location or with blanks at the end."""
CONTINUES = re.compile(rf'{SPACE.pattern}(?:,|->|<|(?:loc|to)\b|(?!{STRING})"|[\x00-\x1f`\x7f])', re.ASCII)
"""What goes on with the operation on the line before, or is no token, which the cursor sees when it is at the end of that line."""
TYPE = attrgetter("type")


class Lines:
    """The templates of one text. ``locations`` collects the aliases of locations that are used, with an offset."""

    def __init__(self, text: str, values: Values, locations: dict[str, int]) -> None:
        self.text, self.values, self.locations = text, values, locations
        self.templates: dict[tuple[str, ...], Template] = {}
        self.places: set[str] = set()
        """Texts of locations that are well-formed, with their parentheses."""
        self.parts: dict[tuple[Step, str, str], Mapping[str, Attribute]] = {}
        """The attributes that steps have read, by the name of the operation and the text."""

    def read(self, scope: Scope, at: int, found: list[Operation]) -> int:
        """Read operations from an offset on and append them; returns the offset behind the last one, ``at`` where there is none."""
        if scope.awaited:
            return at
        text, values, places, templates = self.text, scope.values, scope.places, self.templates
        split, append, get = VALUE.split, found.append, values.__getitem__
        first = len(found)
        while (stop := text.find("\n", at)) >= 0:
            line = text[at:stop].lstrip(" \t")
            begin, location = stop - len(line), -1
            if stop - begin > LONGEST:
                break
            if line[-1:] in ENDINGS and (line := line.rstrip())[-1:] == ")" and (cut := line.rfind(" loc(")) > 0:
                location, place, line = begin + cut + 1, line[cut + 4:], line[:cut].rstrip()
            pieces = split(line)
            template = templates.get(tuple(pieces[::2])) or self._new(pieces, begin)
            if template is None:
                break
            end, names = begin + len(line), pieces[1::2]
            name = names.pop(0) if template.is_named else ""
            try:
                operands = tuple(map(get, names))
            except KeyError:
                break
            if name in values or list(map(TYPE, operands)) != template.types or "#" in name:
                break
            if location >= 0 and place not in self.places and not self._is_place(place, location + 3):
                break
            regions: tuple[Region, ...] = ()
            if template.is_single:
                result = values[name] = Value(name, template.results[0])
                results: tuple[Value, ...] = (result,)
            elif name:
                results = tuple(scope.bind(name, template.results))
            else:
                results = tuple([Value(f"_{begin}_{i}", type) for i, type in enumerate(template.results)])
            if template.applied is not None:
                inner, distance = template.applied
                regions = (applied(inner, operands[-1].type, end - distance),)
            places[name] = begin
            append(Operation(template.name, operands, results, template.attributes, regions, begin, begin + len(name) + template.lead, end,
                             location, template))
            at = stop + 1
            if not len(found) & 255:
                tick(256)
        tick(len(found) - first & 255)
        if len(found) == first:
            return at
        if CONTINUES.match(text, at) is None:
            return at - 1
        last = found.pop()
        scope.forget(last.results)
        return last.begin

    def _is_place(self, text: str, at: int) -> bool:
        """Whether ``(...)`` of a location is balanced; its offset is for the aliases in it."""
        alias = ALIAS_PLACE.fullmatch(text)
        if alias is not None:
            self.locations.setdefault(alias[1], at + 1)
        elif closing(text, 0, len(text)) == len(text):
            for m in ALIAS_USE.finditer(text):
                if m[1] is not None:
                    self.locations.setdefault(m[1], at + m.start())
        else:
            return False
        self.places.add(text)
        return True

    def _new(self, pieces: list[str], begin: int) -> Template | None:
        """The template of a line of a known form whose text is new; None where the cursor has to read it."""
        names = pieces[1::2]
        text = "%".join(pieces[::2])
        head = HEAD.match(text)
        if head is None or text.count("%") != len(names):
            return None
        name = head[3] or SHORT_NAMES.get(head[4], head[4])
        pattern = line_pattern(name, head[3] is not None)
        found = pattern.regex.fullmatch(text, head.end()) if pattern is not None else None
        if pattern is None or found is None:
            return None
        draft = Draft(name, begin, [("", begin)] * (len(names) - bool(head[1])))
        try:
            if not self._attributes(pattern, found, names, begin, draft) or not self._types(pattern, found, draft):
                return None
        except Refused:
            return None
        if head[1] and int(head[2] or 1) != len(draft.results):
            return None
        end = begin + len(text) + sum(map(len, names))
        inner = (draft.applied[0], end - draft.applied[1]) if draft.applied is not None else None
        template = self.templates[tuple(pieces[::2])] = Template(
            name, bool(head[1]), list(draft.types), draft.results, draft.attributes, len(head[1] or ""), inner)
        return template

    def _attributes(self, pattern: Pattern, found: re.Match[str], names: list[str], begin: int, draft: Draft) -> bool:
        """Read the attributes in a line into a draft; returns whether they are read to their ends."""
        for group, step in enumerate(pattern.steps, 1):
            part = (found[group] or "").rstrip()
            if not part:
                continue
            if "%" in part:  # in a string
                return False
            attributes = self.parts.get((step, draft.name, part))
            if attributes is None:
                at = found.start(group)
                at += begin + sum(map(len, names[:found.string.count("%", 0, at)]))
                cursor, inner = Cursor(self.text, at), Draft(draft.name, at)
                step(self.values, cursor, inner)
                if cursor.last != at + len(part):
                    return False
                attributes = inner.attributes
                if inner.applied is not None:
                    draft.applied = inner.applied
                else:
                    self.parts[step, draft.name, part] = attributes
            draft.attributes.update(attributes)
        return True

    def _types(self, pattern: Pattern, found: re.Match[str], draft: Draft) -> bool:
        """Give a draft the types in a line; returns whether they are types without a fault."""
        if pattern.types == "none":
            TYPES["none"](self.values, Cursor(""), draft)
            return bool(draft.results)
        text = found[found.re.groups]
        types = self.values.types.line(text) if text else (None, ())
        if types is None:
            return False
        operands, results = types
        if operands is not None:
            give_types(draft, 0, operands, results)
            return pattern.types not in ("operands", "results")
        rule = RULES.get(pattern.types)
        if rule is not None:
            rule(draft, results, 0)
        return rule is not None

    def learn(self, operation: Operation, draft: Draft) -> None:
        """Remember an operation that the cursor has read, and the draft that it was made of."""
        begin, end = operation.begin, operation.end
        line = self.text[begin:min(end, begin + LONGEST + 1)]
        if len(line) > LONGEST or "\n" in line:
            return
        pieces, is_named = VALUE.split(line), line[0] == "%"
        names = [operation.results[0].name.partition("#")[0]] if is_named and operation.results else []
        names += [name for name, _ in draft.operands]
        if pieces[1::2] != names:
            return
        lead = operation.at - begin - (len(names[0]) if is_named else 0)
        inner = (draft.applied[0], end - draft.applied[1]) if draft.applied is not None else None
        template = self.templates.setdefault(tuple(pieces[::2]), Template(
            operation.name, is_named, list(draft.types), draft.results, operation.attributes, lead, inner))
        if [operand.type for operand in operation.operands] == template.types:
            operation.template = template
