"""What lines of the same text have in common but for the names of values: read once, by the pattern of the operation's form.

A text has two parts. Up to its last colon are the operation and its attributes, behind it are types; each part is read once, too.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from irscope.formats.faults import Refused
from irscope.formats.stablehlo.attributes import Attribute
from irscope.formats.stablehlo.building.direct import Direct, Made, constant
from irscope.formats.stablehlo.dialects import SHORT_NAMES
from irscope.formats.stablehlo.draft import Draft, Step
from irscope.formats.stablehlo.form_types import RULES, TYPES
from irscope.formats.stablehlo.form_values import PLAIN, can_apply
from irscope.formats.stablehlo.lexer import VALUE, Cursor
from irscope.formats.stablehlo.literals import SHORT, literal_of
from irscope.formats.stablehlo.operations import Operation, Plan, Template
from irscope.formats.stablehlo.patterns import line_pattern
from irscope.formats.stablehlo.types import MOST_SHARED, LineTypes, are_static
from irscope.formats.stablehlo.values import Values
from irscope.graph import Type

HEAD = re.compile(r'(%(?::(\d{1,5}))? = )?(?:"([a-z]\w*+\.[\w.$-]++)" *+\(|([a-z][\w.$]*+)) *+', re.ASCII)
CONSTANT = "% = stablehlo.constant dense<"
DENSE = re.compile(r'[^<>"]++>')
"""The value of a constant as compilers print it, but for hexadecimal bytes and complex elements."""
NEEDS_MODULE = re.compile("[#!]|dense_resource")
"""What may refer to another part of the text: an alias, a resource."""
LONGEST = 1500
"""In characters: longer lines do not repeat."""


Rules = Callable[[str, Mapping[str, Attribute], str], Direct | None]
"""The nodes that operations become, by name, attributes, and the name of the operation that they apply."""


Texts = tuple[str, str | None, str | None, str | None]
"""The texts behind the name of a result and of up to three operands."""


def no_rules(name: str, attributes: Mapping[str, Attribute], applied: str) -> Direct | None:
    """Every operation stays one."""
    return None


Place = tuple[re.Match[str], int, list[str], int]
"""The match and the group of a part of a line, and the names and the offset of the line."""


class Written(NamedTuple):
    """The text of a line up to the colon before its types. ``n_results`` is the number of its results, ``operands`` that of its operands.

    ``types`` is the kind of the types behind it; ``lead`` as in a template; ``applied`` has the distance from the beginning of the text.
    ``is_plain``: the attributes follow from the text alone, whatever else is in its module.
    """

    name: str
    is_named: bool
    n_results: int
    operands: int
    attributes: Mapping[str, Attribute]
    types: str
    lead: int
    applied: tuple[str, int] | None
    direct: Direct | None
    is_plain: bool


NOTHING = LineTypes(None, (), False)
"""Behind an operation without types."""


def _plan(made: Made, written: Written, operands: tuple[Type, ...], result: Type, length: int) -> Plan:
    """The node of a line of a text of this length, without names."""
    body = (made.combiner, length - written.applied[1]) if made.combiner is not None and written.applied is not None else None
    return Plan(made.op, made.attrs, result, operands, (made.chain, body) if made.chain or body is not None else None)


class Templates:
    """The templates of one text. ``rules`` says which operations become a node at once."""

    def __init__(self, text: str, values: Values, rules: Rules) -> None:
        self.text, self.values, self.rules = text, values, rules
        self.by_pieces: dict[tuple[str, ...], Template] = {}
        self.plans: dict[Texts, Plan] = {}
        self.shared: dict[tuple[str | None, ...], Plan] = values.types.shared.plans
        """Plans that follow from their texts alone, for all modules: most programs have the same operations over the same types."""
        self.heads: dict[str, Written] = {}
        self.parts: dict[tuple[Step, str, str], Mapping[str, Attribute]] = {}
        """The attributes that steps have read, by the name of the operation and the text."""

    def plan(self, texts: Texts, names: list[str], begin: int) -> Plan | None:
        """What a line with one result and new texts becomes; None where it becomes no node, or where its form is not known."""
        plan = self.shared.get(texts)
        if plan is not None:
            self.plans[texts] = plan
            return plan
        text = "%" + "%".join([each for each in texts if each is not None])
        before, _, types = text.rpartition(" : ")
        plan = self._constant(before, types, begin, names[0]) if before.startswith(CONSTANT) else None
        is_plain = plan is not None and len(before) - len(CONSTANT) <= SHORT + len(">")
        if plan is None:
            written = self.heads.get(before) or self._written(text, before, names, begin)
            if written is None or written.direct is None or written.types == "none":
                return None
            line = self.values.types.line(types)
            if line is None or not line.is_static or not written.is_named or written.n_results != 1:
                return None
            found = self._types_of(written, line)
            if found is None or len(found[1]) != 1:
                return None
            operands, results = found
            made = written.direct.over(operands, results[0])  # type: ignore[arg-type]
            if made is None:
                return None
            plan, is_plain = _plan(made, written, operands, results[0], len(text)), written.is_plain
        self.plans[texts] = plan
        if is_plain and self.values.types.is_shared and len(text) <= LONGEST and len(self.shared) < MOST_SHARED:
            self.shared[texts] = plan
        return plan

    def new(self, key: tuple[str, ...], names: list[str], begin: int) -> Template | None:
        """The template of a line of a known form whose text is new; None where the cursor has to read it."""
        text = "%".join(key)
        before, _, types = text.rpartition(" : ")
        written = self.heads.get(before) or self._written(text, before, names, begin)
        if written is None:
            return None
        template = self._typeless(written) if written.types == "none" else self._of_types(written, types if before else "", len(text))
        if template is not None:
            self.by_pieces[key] = template
        return template

    def _constant(self, before: str, types: str, begin: int, name: str) -> Plan | None:
        """The node of ``%0 = stablehlo.constant dense<1.0> : tensor<f32>``, whose value is of a type without bounds."""
        type = self.values.types.plain(types)
        if type is None or not are_static((type,)) or DENSE.fullmatch(before, len(CONSTANT)) is None:
            return None
        at = begin + len(name) + len(CONSTANT)
        try:
            literal = literal_of(self.text, at, at + len(before) - len(CONSTANT) - 1, type)
        except Refused:
            return None
        return Plan(*constant(literal), type, (), None)

    def _of_types(self, written: Written, text: str, length: int) -> Template | None:
        """The template of a known text before the colon, and types behind it, or none."""
        types = self.values.types.line(text) if text else NOTHING
        if types is None:
            return None
        found = self._types_of(written, types)
        return self._made(written, *found, types.is_static, length) if found is not None else None

    def _types_of(self, written: Written, line: LineTypes) -> tuple[tuple[Type, ...], tuple[Type, ...]] | None:
        """The types of operands and results that a line states; None for a form that takes no list of types, or another number of them."""
        operands, listed, _ = line
        if operands is not None:
            return (operands, listed) if len(operands) == written.operands and written.types not in ("operands", "results") else None
        if written.types == "same" and len(listed) == 1:
            return listed * written.operands, listed
        rule = RULES.get(written.types)
        draft = Draft(written.name, 0, [("", 0)] * written.operands)
        if rule is None:
            return None
        try:
            rule(draft, listed, 0)
        except Refused:
            return None
        return draft.types, draft.results

    def _made(self, written: Written, operands: tuple[Type, ...], results: tuple[Type, ...], is_static: bool,
              length: int) -> Template | None:
        if written.is_named and written.n_results != len(results):
            return None
        applied = (written.applied[0], length - written.applied[1]) if written.applied is not None else None
        template = Template(written.name, written.is_named, list(operands), results, written.attributes, written.lead, applied)
        if written.direct is not None and is_static and template.is_single:
            made = written.direct.over(operands, results[0])  # type: ignore[arg-type]
            template.plan = _plan(made, written, operands, results[0], length) if made is not None else None
        return template

    def _written(self, text: str, before: str, names: list[str], begin: int) -> Written | None:
        """The parts of a text that is new up to its types, by the pattern of its form."""
        m = HEAD.match(text)
        if m is None or text.count("%") != len(names):
            return None
        named, count, quoted, short = m.groups()
        name = quoted or SHORT_NAMES.get(short, short)
        pattern = line_pattern(name, quoted is not None)
        found = pattern.regex.fullmatch(text, m.end()) if pattern is not None else None
        if pattern is None or found is None:
            return None
        attributes: dict[str, Attribute] = {}
        applied: tuple[str, int] | None = None
        is_plain = True
        for group, (step, token) in enumerate(zip(pattern.steps, pattern.tokens, strict=True), 1):
            part = (found[group] or "").rstrip()
            if token == "inner:applied":
                if not can_apply(name, part):
                    return None
                applied = part, found.start(group)
            elif part:
                one = self.parts.get((step, name, part)) or self._part(step, token, name, part, (found, group, names, begin))
                if one is None:
                    return None
                attributes.update(one)
                is_plain = is_plain and (token.partition(":")[2] in PLAIN or (len(part) <= SHORT and NEEDS_MODULE.search(part) is None))
        written = Written(name, named is not None, int(count or 1), len(names) - (named is not None), attributes, pattern.types,
                          len(named or ""), applied, self.rules(name, attributes, applied[0] if applied is not None else ""), is_plain)
        if pattern.types != "none":
            at = found.start(found.re.groups)
            if at != len(before) + len(" : ") and (at >= 0 or before):
                return None
            if before:
                self.heads[before] = written
        return written

    def _part(self, step: Step, token: str, name: str, part: str, place: Place) -> Mapping[str, Attribute] | None:
        """The attributes in a part of a line; None where the part has more than them, or a name, in a string."""
        if "%" in part:
            return None
        field, _, kind = token.partition(":")
        plain = PLAIN.get(kind)
        found = plain(name.partition(".")[0], field, part) if plain is not None else None
        if found is None:
            m, group, names, begin = place
            at = m.start(group)
            at += begin + sum(map(len, names[:m.string.count("%", 0, at)]))
            try:
                cursor, draft = Cursor(self.text, at), Draft(name, at)
                step(self.values, cursor, draft)
            except Refused:
                return None
            if cursor.last != at + len(part):
                return None
            found = draft.attributes
        self.parts[step, name, part] = found
        return found

    def _typeless(self, written: Written) -> Template | None:
        """The template of an operation whose type is that of its value."""
        draft = Draft(written.name, 0, [], (), (), dict(written.attributes))
        TYPES["none"](self.values, Cursor(""), draft)
        return self._made(written, (), draft.results, are_static(draft.results), 0) if draft.results else None

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
        template = self.by_pieces.setdefault(tuple(pieces[::2]), Template(
            operation.name, is_named, list(draft.types), draft.results, operation.attributes, lead, inner))
        if [operand.type for operand in operation.operands] == template.types:
            operation.template = template
