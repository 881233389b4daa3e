"""Builds nodes while Relay is read: the current graph, operators by name, the types that comments claim."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from irscope.formats.relay import structure
from irscope.formats.relay.context import ReadingContext
from irscope.formats.relay.cursor import TokenCursor, unquoted
from irscope.formats.relay.lexer import tokenize
from irscope.formats.relay.scopes import ScopedNames
from irscope.formats.syntax import SyntaxFault
from irscope.graph import NO_ATTRS, UNKNOWN, Graph, Kind, NamedType, Node, Op, Type, unknown_op
from irscope.ops import get, lookup

BINDING = re.compile(r"(%\d+)\s*=(?!=)")


class Nodes(TokenCursor):
    """A cursor that appends nodes to the graph under construction."""

    context: ReadingContext
    names: ScopedNames

    if TYPE_CHECKING:  # state and methods that the subclasses share

        def expression(self, floor: int = 0) -> Node: ...

        def function(self, graph: Graph, closed_over: bool) -> None: ...

        def attribute(self, attrs: dict[str, object]) -> None: ...

    def begin(self, context: ReadingContext) -> None:
        """Prepare for the tokens of a text."""
        self.context = context
        self.param, self.tuple_op, self.get_op = get("parameter"), get("tuple"), get("get-tuple-element")
        self.constant_op = get("constant")
        self.names = ScopedNames(self.param)
        self.ops: dict[str, Op] = {}
        self.first_binding: dict[str, int] = {}
        for found in BINDING.finditer(self.text, context.begin, context.end):
            self.first_binding.setdefault(found[1], found.start())
        self.counter = 0
        self.attribute_at: dict[str, int] = {}

    # ------------------------------------------------------------------ nodes

    def node(self, op: Op, operands: tuple[Node, ...] = (), attrs: Mapping[str, Any] = NO_ATTRS, type: Type = UNKNOWN, offset: int = -1,
             synthetic: bool = False) -> Node:
        """Append a node to the graph under construction."""
        self.counter += 1
        place = self.offsets[max(0, self.at - 1)] if offset < 0 else offset
        return self.names.add(Node(op, f"{op.name}.{self.counter}", type, operands, attrs, (), place, synthetic=synthetic))

    def caller(self, op: Op, operands: tuple[Node, ...], attrs: Mapping[str, object], bodies: Sequence[Graph], offset: int) -> Node:
        """Append a node that has bodies."""
        node = self.node(op, operands, attrs, offset=offset)
        node.bodies = tuple(bodies)
        return node

    def bound(self, op: Op, word: str, operands: tuple[Node, ...], attrs: Mapping[str, object]) -> Node:
        """Append a synthetic node to which a name of the text is bound."""
        node = self.node(op, operands, attrs, synthetic=True)
        node.name = unquoted(word[1:])
        self.names.bind(word, node)
        return node

    def op(self, name: str) -> Op:
        """The operator of a name; unknown ones are opaque and shared."""
        found = self.ops.get(name)
        if found is None:
            structural = name in structure.STRUCTURAL
            known = lookup(name, "relay") if not structural else None
            # `constant(%x)` is no constant, and `constructor(%x)` makes no value of a data type: these names are opaque operators.
            primitive = lookup(name, "hlo")
            taken = structural or (primitive is not None and primitive.kind in (Kind.LEAF, Kind.TUPLE))
            found = self.ops[name] = known or unknown_op(f"{name}?" if taken else name, "relay")
        return found

    def claimed(self, node: Node) -> Node:
        """The type that a comment directly after an expression claims."""
        note = self.notes.get(self.at - 1)
        if note is not None and node.type is UNKNOWN:
            node.type = self.type_of_note(note)
        return node

    def type_of_note(self, note: str) -> Type:
        """``ty=Tensor[(1, 4), float32] span=...``."""
        cached = self.context.note_types.get(note)
        if cached is not None:
            return cached
        made: Type = UNKNOWN
        if note.startswith("ty="):
            text = note[3:].split(" span=", 1)[0].strip()
            try:
                made = TokenCursor(tokenize(text, 0, len(text)), text).type()
            except SyntaxFault:
                made = NamedType(text)
        self.context.note_types[note] = made
        return made
