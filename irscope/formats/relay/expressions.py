"""Reads Relay's expressions: each call, constant and projection becomes a node of the graph under construction."""

from __future__ import annotations

import re

from irscope.formats.relay import structure
from irscope.formats.relay.cursor import MAX_DEPTH, unquoted
from irscope.formats.relay.functions import Functions
from irscope.formats.relay.primitives import DIALECTS, body_names, check_operands, is_primitive, primitive_named, read_attributes, spelled
from irscope.formats.relay.types import NAMES, dtype_named
from irscope.formats.syntax import SyntaxFault
from irscope.graph import NO_ATTRS, UNKNOWN, FunctionType, Node, TupleType, Type
from irscope.graph.dtypes import PRED
from irscope.ops import all_ops
from irscope.ops.attrs import Literal
from irscope.source import did_you_mean
from irscope.source.budget import MANY_PARTS, PARTS

SPLIT = re.compile(r"^(.*?)((?:\.\d+)+)$")

REFERENCES = {"ref": structure.REF, "ref_read": structure.REF_READ, "ref_write": structure.REF_WRITE}
ENDS_ARGUMENT = frozenset((",", ")"))


class ExpressionReader(Functions):
    """The reader of expressions, and so of everything inside a function."""

    def expression(self, floor: int = 0) -> Node:
        """Operators by precedence, all left-associative."""
        self.deeper()
        try:
            left = self._unary()
            while True:
                word = self.word
                power = structure.PRECEDENCE.get(word, -1) if self.kind == "punct" else -1
                if power < floor or power < 0:
                    return left
                at = self.offset
                self.at += 1
                right = self.expression(power + 1)
                left = self.claimed(self.node(self.op(structure.INFIX[word]), (left, right), offset=at))
        finally:
            self.depth -= 1

    def _unary(self) -> Node:
        if self.word == "-" and self.kind == "punct":
            at = self.offset
            self.at += 1
            if self.kind == "number" or self.word.startswith(("inf", "nan")):
                return self._postfix(self.claimed(self._number(self.word, True, at)))
            return self.node(self.op("negative"), (self._unary(),), offset=at)
        return self._postfix(self._atom())

    def _postfix(self, node: Node) -> Node:
        while True:
            if self.word == "(" and self.kind == "punct":
                node = self._call_value(node)
            elif self.word == "." and self.kind == "punct":
                self.at += 1
                if self.kind != "number" or not self.word.isdigit():
                    self.at -= 1
                    raise self.fault("expected a tuple index after `.`")
                node = self.project(node, _index(self.word), self.offset)
                self.at += 1
                node = self.claimed(node)
            elif (
                self.kind == "number"
                and self.word.startswith(".")
                and self.offsets[self.at] == self.offsets[self.at - 1] + len(self.texts[self.at - 1])
            ):
                if not self.word[1:].replace(".", "0").isdigit() or self.word.endswith("."):
                    raise self.fault("expected a tuple index after `.`")
                for part in self.word[1:].split("."):
                    node = self.project(node, _index(part), self.offset)
                self.at += 1
            else:
                return node

    def project(self, node: Node, index: int, offset: int) -> Node:
        """One field of a tuple."""
        type: Type = UNKNOWN
        if isinstance(node.type, TupleType):
            if index >= len(node.type.elements):
                raise SyntaxFault(offset, f"the tuple has {len(node.type.elements)} fields, there is no .{index}")
            type = node.type.elements[index]
        return self.node(self.get_op, (node,), {"index": index}, type, offset=offset)

    def _atom(self) -> Node:
        word, kind = self.word, self.kind
        if kind == "local":
            return self._local()
        if kind == "number":
            return self.claimed(self._number(word, False, self.offset))
        if kind == "global":
            at = self.offset
            self.at += 1
            return self._global(word, at)
        if kind == "string":
            raise self.fault('a string is not a value; it may be an attribute (dtype="int8")')
        if word == "(":
            return self.claimed(self._parenthesis())
        if word == "{":
            self.at += 1
            return self._block("}")
        if word == "[" and kind == "punct":
            return self._list()
        if kind == "ident":
            return self._ident(word)
        raise self.fault(f"expected an expression, but here is {self.shown()}")

    def _local(self) -> Node:
        word, at = self.word, self.offset
        node = self.names.find(word)
        if node is not None:
            self.at += 1
            self._note_param(node)
            return node
        split = SPLIT.match(word)
        base, rest = (split[1], split[2]) if split else (word, "")
        found = None
        while split is not None:
            found = self.names.find(base)
            if found is not None:
                break
            split = SPLIT.match(base)
            if split is not None:
                base, rest = split[1], split[2] + rest
        if found is None and self.context.loose and word not in self.first_binding and word not in self.names.ever:
            found, rest = self._input(word, at), ""
        if found is None:
            raise self._undefined(word, at)
        self.at += 1
        for part in rest.split(".")[1:]:
            found = self.project(found, _index(part), at)
        return self.claimed(found)

    def _input(self, word: str, at: int) -> Node:
        """A free name in bindings outside a function: an input."""
        outer = self.names.frames[0]
        name = unquoted(word[1:])
        made = Node(self.param, name, UNKNOWN, (), {"number": len(outer.graph.params)}, (), at, synthetic=True)
        outer.graph.add(made)
        outer.graph.params.append(made)
        self.names.owner[made] = outer
        self.names.blocks[0][word] = made
        return self.names.here(made)

    def _note_param(self, node: Node) -> None:
        if node.type is UNKNOWN:
            self.claimed(node)

    def _undefined(self, word: str, at: int) -> SyntaxFault:
        """The fault of an undefined name."""
        prefix = word
        while "." in prefix:
            prefix = prefix.rpartition(".")[0]
            if self.names.find(prefix) is not None:
                return SyntaxFault(at + len(prefix), "expected a tuple index after `.`", length=len(word) - len(prefix))
        later = self.first_binding.get(word)
        if later is not None and later > at:
            return SyntaxFault(at, f"`{word}` is used before it is defined (line {self.context.line(later)})", length=len(word))
        if word in self.names.ever:
            return SyntaxFault(at, f"`{word}` is not defined in this scope (defined in the other branch)", length=len(word))
        near = did_you_mean(word, self.names.known())
        hint = "; " + near.replace("did you mean ", "did you mean `").replace("?", "`?") if near else ""
        return SyntaxFault(at, f"`{word}` is not defined{hint}", length=len(word))

    def _global(self, word: str, at: int) -> Node:
        """``@f`` or ``@f(x)``; whether it is defined is checked at the end, because functions may call each other."""
        if self.word == "(":
            operands, attrs = self._arguments()
            node = self.node(structure.CALL, tuple(operands), {**attrs, "callee": word[1:]}, offset=at)
            self.context.calls.append(node)
            return self.claimed(node)
        return self.claimed(self.node(structure.GLOBAL, (), {"name": word[1:]}, offset=at))

    def _ident(self, word: str) -> Node:
        at = self.offset
        if word in ("True", "False"):
            self.at += 1
            return self.claimed(self._scalar(word == "True", PRED, at))
        if re.fullmatch(r"(inf|nan)f?\d*", word):
            return self.claimed(self._number(word, False, at))
        if word == "fn":
            self.at += 1
            return self._function_value(at)
        if word == "if":
            return self._if()
        if word in ("match", "match?"):
            return self._match()
        if word == "meta" and self.texts[self.at + 1] == "[":
            key = self.meta()
            made = self.node(self.constant_op, (), {"literal": Literal(UNKNOWN, key, True), "meta": str(key)}, offset=at)
            self.claimed(made)
            made.attrs = {**made.attrs, "literal": self.context.constant(str(key), made.type)}
            if made.type is UNKNOWN:
                made.type = made.attrs["literal"].type
            return made
        return self._operator_call(word, at)

    def _operator_call(self, word: str, at: int) -> Node:
        self.at += 1
        if self.take("<"):  # type arguments of 2019: op<float32>(..)
            while not self.take(">"):
                if self.kind == "end":
                    raise self.fault("expected `>`")
                self.at += 1
        if word in self.context.constructors:
            operands, _ = self._arguments() if self.word == "(" else ([], {})
            return self.claimed(self.node(structure.CONSTRUCTOR, tuple(operands), {"name": word}, offset=at))
        if self.word != "(":
            if word in ("let", "else", "def", "type") or word in NAMES:
                raise SyntaxFault(at, f"expected an expression, but here is `{word}`", length=len(word))
            return self.node(structure.GLOBAL, (), {"name": word}, offset=at)
        if is_primitive(word):
            return self._primitive(word, at)
        if word not in self.ops:
            word = self.context.operator(word, at)
        if dtype_named(word) is not None and self.kinds[self.at + 1] in ("number", "punct") and self._scalar_call(word):
            return self._converted(word, at)
        operands, attrs = self._arguments()
        if attrs:
            self.context.attributes(word, attrs, self.attribute_at)
        return self.claimed(self.node(REFERENCES.get(word) or self.op(word), tuple(operands), attrs, offset=at))

    def _primitive(self, word: str, at: int) -> Node:
        """``hlo.dot(%a, %b, ...)``: a primitive, followed by its type."""
        op = primitive_named(word)
        if op is None:
            near = did_you_mean(word, [spelled(known) for dialect in DIALECTS for known in all_ops(dialect)])
            raise SyntaxFault(at, f"there is no primitive `{word}`", near, len(word))
        operands, attrs = self._arguments()
        note = self.notes.get(self.at - 1)
        type = self.type_of_note(note) if note is not None else UNKNOWN
        try:
            parsed = read_attributes(op, attrs, type)
            check_operands(op, operands)
            if note is None and op.name != "constant":
                raise ValueError("its type must follow it: /* ty=Tensor[(2), float32] */")
        except ValueError as fault:
            raise SyntaxFault(at, f"`{word}`: {fault}", length=len(word)) from None
        made = self.node(op, tuple(operands), parsed, type, offset=at)
        if "bodies" in attrs:
            self.context.bodies.append((made, body_names(attrs)))
        return made

    def _arguments(self) -> tuple[list[Node], dict[str, object]]:
        """``(a, b, key=value)``."""
        self.expect("(")
        operands: list[Node] = []
        attrs: dict[str, object] = {}
        for _ in self.listed(")", True):
            if self.kind == "ident" and self.texts[self.at + 1] == "=" and self.texts[self.at + 1] != "==":
                self.attribute(attrs)
            elif self.kind == "string":
                attrs[f"positional{len(attrs)}"] = unquoted(self.word)
                self.at += 1
            elif self.kind == "local" and self.texts[self.at + 1] in ENDS_ARGUMENT:
                operands.append(self._local())  # most arguments
            else:
                operands.append(self.expression())
        return operands, attrs

    def attribute(self, attrs: dict[str, object]) -> None:
        """``axis=1``."""
        key = self.word
        if key in attrs:
            raise self.fault(f"attribute `{key}` is given twice")
        self.attribute_at[key] = self.offset
        self.at += 2
        attrs[key] = self.value()

    def _call_value(self, callee: Node) -> Node:
        at = self.offset
        operands, attrs = self._arguments()
        type: Type = callee.type.result if isinstance(callee.type, FunctionType) else UNKNOWN
        return self.claimed(self.node(structure.CALL, (callee, *operands), attrs, type, offset=at))

    def _parenthesis(self) -> Node:
        at = self.offset
        self.expect("(")
        if self.take(")"):
            return self.node(self.tuple_op, (), NO_ATTRS, TupleType(()), offset=at)
        if self._bound(self.at):
            return self._block(")")
        first = self.expression()
        if self.take(")"):
            return first
        if self.word == ";":
            self.at += 1
            return self._block(")")
        items = [first]
        while not self.take(")"):
            self.expect(",", f"expected `,` or `)`, but here is {self.shown()}")
            if self.take(")"):
                break
            items.append(self.expression())
        type = TupleType(tuple(i.type for i in items)) if all(i.type is not UNKNOWN for i in items) else UNKNOWN
        if isinstance(type, TupleType):
            if type.parts > PARTS:
                raise SyntaxFault(at, MANY_PARTS)
            if type.depth > MAX_DEPTH:
                raise SyntaxFault(at, f"tuples are nested more than {MAX_DEPTH} deep")
        return self.node(self.tuple_op, tuple(items), NO_ATTRS, type, offset=at)

    def _block(self, close: str) -> Node:
        """Statements up to and including ``close``."""
        opened = self.at - 1
        result = self.statements((close,))
        if result is None:
            raise self.fault("this block has no result")
        if not self.take(close):
            place = self.context.place(self.offsets[opened])
            raise self.fault(f"expected `{close}` to close the block opened at {place}")
        return result


def _index(digits: str) -> int:
    """The number of a field. No tuple has as many fields as 18 digits count, and Python converts no text of thousands of them."""
    return int(digits[:18])
