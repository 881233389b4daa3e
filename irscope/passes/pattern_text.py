"""Patterns as text: ``nn.relu?(nn.bias_add(nn.conv2d(*, weight), constant))[axis=1]``.

    pattern := step ("|" step)*                       the first that matches
    step    := OPERATOR "?"? "(" pattern, ... ")" [ "[" attributes "]" ] [ "." N ]
             | "*" | "constant" | NAME | "(" pattern ")"      attributes: KEY=VALUE, separated by commas

``*`` is any value, ``constant`` any constant, a name any value, the same at every use of the name. ``?`` makes a step optional: if it is
absent, its first operand takes its place. ``.0`` is the first of several results. Attributes are compared with defaults filled in.
"""
from __future__ import annotations

import re
from collections.abc import Callable

from irscope.formats.relay.operators import declared, names
from irscope.graph import Node
from irscope.passes.pattern import DataflowPattern, anything, constant, op
from irscope.passes.registry import split_outside
from irscope.passes.simplify_inference import bound
from irscope.source import UserError, did_you_mean
from irscope.source.data_text import python_literal

TOKEN = re.compile(r"\s*(?:([A-Za-z_][\w.]*)(?=\s*\??\s*\()|([A-Za-z_]\w*)|(\.\d+)|(\[(?:[^\[\]]|\[[^\[\]]*\])*\])|([*?(),|]))")
DEEPEST = 100
"""How deep steps may be nested in a text."""


def pattern_of(text: str) -> DataflowPattern:
    """The pattern that a text describes. Raises UserError with the position of a syntax error."""
    reader = _Reader(text)
    found = reader.pattern(0)
    if reader.at < len(reader.tokens):
        raise reader.fault("here the pattern should end")
    return found


class _Reader:
    """Reads tokens from the left; ``values`` are the names that stand for values."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.values: dict[str, DataflowPattern] = {}
        self.tokens: list[tuple[str, str, int]] = []
        place, end = 0, len(text.rstrip())
        while place < end:
            found = TOKEN.match(text, place)
            if found is None:
                raise _fault(text, place, "this is no part of a pattern")
            kind = ("operator", "name", "part", "attributes", "mark")[(found.lastindex or 1) - 1]
            self.tokens.append((kind, found[found.lastindex or 1], found.start(found.lastindex or 1)))
            place = found.end()

    def fault(self, what: str) -> UserError:
        return _fault(self.text, self.tokens[self.at][2] if self.at < len(self.tokens) else len(self.text), what)

    def take(self, mark: str) -> bool:
        if self.at < len(self.tokens) and self.tokens[self.at][:2] == ("mark", mark):
            self.at += 1
            return True
        return False

    # Patterns are at most DEEPEST deep, so recursion is safe.
    def pattern(self, depth: int) -> DataflowPattern:
        if depth > DEEPEST:
            raise self.fault(f"steps are nested more than {DEEPEST} deep")
        found = self.step(depth)
        while self.take("|"):
            found = found | self.step(depth)
        return found

    def step(self, depth: int) -> DataflowPattern:
        kind, word = self.tokens[self.at][:2] if self.at < len(self.tokens) else ("", "")
        if self.take("*"):
            return anything()
        if self.take("("):
            found = self.pattern(depth + 1)
            self.close()
            return found
        if kind == "name":
            self.at += 1
            return constant() if word in ("constant", "const") else self.values.setdefault(word, anything())
        if kind != "operator":
            raise self.fault("an operator, a name, `constant` or `*` is expected here")
        if declared(word) is None:
            raise UserError(f"pattern: there is no operator {word!r}", did_you_mean(word, names()) or "such as nn.conv2d")
        self.at += 1
        return self.operator(word, depth)

    def operator(self, name: str, depth: int) -> DataflowPattern:
        optional = self.take("?")
        self.take("(")
        operands: list[DataflowPattern] = []
        while not self.take(")"):
            operands.append(self.pattern(depth + 1))
            if not self.take(","):
                self.close()
                break
        found = op(name)(*operands)
        if self.at < len(self.tokens) and self.tokens[self.at][0] == "attributes":
            found = self.attributes(name, found)
        if self.at < len(self.tokens) and self.tokens[self.at][0] == "part":
            found = op("get-tuple-element").with_attrs(index=int(self.tokens[self.at][1][1:]))(found)
            self.at += 1
        if optional and not operands:
            raise self.fault(f"{name}? needs an operand that stands for it")
        return found | operands[0] if optional else found

    def close(self) -> None:
        if not self.take(")"):
            raise self.fault("`,` or `)` is expected here")

    def attributes(self, name: str, pattern: DataflowPattern) -> DataflowPattern:
        operator = declared(name)
        assert operator is not None, "the caller has looked"
        for part in split_outside(self.tokens[self.at][1][1:-1]):
            key, equals, text = (word.strip() for word in part.partition("="))
            if not equals or key not in operator.names:
                raise UserError(f"pattern: {name} has no attribute {key!r}", did_you_mean(key, operator.names))
            pattern = pattern.where(_has(key, _value(text)))
        self.at += 1
        return pattern


def _fault(text: str, place: int, what: str) -> UserError:
    """An error with part of the text before and after it."""
    return UserError(f"pattern: {what}: {text[max(0, place - 30):place]} <here> {text[place:place + 30]}",
                     "a pattern is such as nn.relu(nn.conv2d(*, *))")


def _has(key: str, value: object) -> Callable[[Node], bool]:
    def holds(node: Node) -> bool:
        found = bound(node).get(key)
        return bool((list(found) if isinstance(found, tuple) else found) == value)
    return holds


def _value(text: str) -> object:
    """A number, a list, a string with or without quotes."""
    try:
        return python_literal(text)
    except ValueError:
        return text
