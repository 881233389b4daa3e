"""Expressions and statements of Relay: each call, constant and projection becomes a node of the graph that is being read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from irscope.formats.relay import structure
from irscope.formats.relay.cursor import NUMBER, Cursor, Raw, unquoted
from irscope.formats.relay.lexer import SyntaxFault, tokenize
from irscope.formats.relay.primitives import DIALECTS, body_names, is_primitive, primitive_named, read_attributes, spelled
from irscope.formats.relay.scopes import Names
from irscope.formats.relay.types import NAMES, dtype_named
from irscope.graph import NO_ATTRS, UNKNOWN, FunctionType, Graph, NamedType, Node, Op, TensorType, TupleType, Type, unknown_op
from irscope.graph.dtypes import DTYPES, F32, PRED, S32, S64
from irscope.ops import all_ops, get, lookup
from irscope.ops.attrs import Literal
from irscope.source import did_you_mean

if TYPE_CHECKING:
    from irscope.formats.relay.reader import Definitions

LARGEST = {16: 65504.0, 32: 3.4028235e38}
"""The largest finite float of 16 and 32 bits, in as many digits as it takes to name it."""

PROJECTION = re.compile(r"(?:\.\d+)+$")
SPLIT = re.compile(r"^(.*?)((?:\.\d+)+)$")
BINDING = re.compile(r"(%\d+)\s*=(?!=)")


class Expressions(Cursor):
    """The part of the reader that makes nodes."""

    definitions: Definitions
    names: Names

    def begin(self, definitions: Definitions) -> None:
        """Ready for the tokens of a text."""
        self.definitions = definitions
        self.param, self.tuple_op, self.get_op = get("parameter"), get("tuple"), get("get-tuple-element")
        self.constant_op = get("constant")
        self.names = Names(self.param)
        self.ops: dict[str, Op] = {}
        self.first_binding: dict[str, int] = {}
        for found in BINDING.finditer(self.text, definitions.begin, definitions.end):
            self.first_binding.setdefault(found[1], found.start())
        self.counter = 0
        self.attribute_at: dict[str, int] = {}

    # ------------------------------------------------------------------ nodes

    def node(
        self,
        op: Op,
        operands: tuple[Node, ...] = (),
        attrs: Mapping[str, Any] = NO_ATTRS,
        type: Type = UNKNOWN,
        bodies: tuple[Graph, ...] = (),
        offset: int = -1,
        name: str = "",
        synthetic: bool = False,
    ) -> Node:
        """Append a node to the graph that is being read."""
        self.counter += 1
        place = self.offsets[max(0, self.at - 1)] if offset < 0 else offset
        made = Node(op, name or f"{op.name}.{self.counter}", type, operands, attrs, bodies, place, synthetic=synthetic)
        return self.names.add(made)

    def op(self, name: str) -> Op:
        """The operator of a name; unknown ones are opaque and shared."""
        found = self.ops.get(name)
        if found is None:
            known = lookup(name, "relay") if name not in structure.STRUCTURAL else None
            found = self.ops[name] = known or unknown_op(name, "relay")
        return found

    def claimed(self, node: Node) -> Node:
        """The type that a comment right behind an expression claims."""
        note = self.notes.get(self.at - 1)
        if note is not None and node.type is UNKNOWN:
            node.type = self.type_of_note(note)
        return node

    def type_of_note(self, note: str) -> Type:
        """``ty=Tensor[(1, 4), float32] span=...``."""
        cached = self.definitions.note_types.get(note)
        if cached is not None:
            return cached
        made: Type = UNKNOWN
        if note.startswith("ty="):
            text = note[3:].split(" span=", 1)[0].strip()
            try:
                made = Cursor(tokenize(text, 0, len(text)), text).type()
            except SyntaxFault:
                made = NamedType(text)
        self.definitions.note_types[note] = made
        return made

    # ------------------------------------------------------------------ statements

    def statements(self, closers: tuple[str, ...]) -> Node | None:
        """Bindings, then the result; None when a block ends without one. The closing token is left where it is."""
        self.names.blocks.append({})
        result: Node | None = None
        try:
            while self.word not in closers or self.kind == "string":
                if self.kind == "end":
                    return result
                if result is not None:
                    raise self.fault(f"expected `{closers[0] if closers else 'the end'}`, but here is {self.shown()}")
                result = self._statement_or_fault(closers)
            return result
        finally:
            self.names.blocks.pop()

    def _statement_or_fault(self, closers: tuple[str, ...]) -> Node | None:
        """One statement; what is wrong with it is told, and reading goes on behind it with a value of no known type."""
        names = self.names
        begin, frames, blocks, typevars, depth = self.at, len(names.frames), len(names.blocks), len(self.typevars), self.depth
        try:
            return self.statement(closers)
        except SyntaxFault as fault:
            if self.kind == "end" or not self.definitions.may_go_on():
                raise
            del names.frames[frames:], names.blocks[blocks:], self.typevars[typevars:]
            self.depth = depth
            self.definitions.error(fault)
            last = self._skip_statement(begin)
            return self._stand_in(begin) if last or self._bound(begin) else None

    def _bound(self, begin: int) -> bool:
        """Whether a statement binds a name."""
        return self.texts[begin] == "let" or (self.kinds[begin] == "local" and self.texts[begin + 1] == "=")

    def _skip_statement(self, begin: int) -> bool:
        """Go behind the next semicolon, or to a line that begins a statement; whether the block ends there."""
        braces = 0
        self.at = max(self.at, begin + 1)
        while self.kind != "end":
            word = self.word
            if braces == 0 and word in (";", ";;"):
                self.at += 1
                return self.word == "}"
            if braces == 0 and word == "}":
                return True
            if braces == 0 and self._begins_line() and (self._bound(self.at) or word in ("return", "let")):
                return False
            braces += (word == "{") - (word == "}")
            self.at += 1
        return True

    def _begins_line(self) -> bool:
        return "\n" in self.text[self.offsets[self.at - 1] : self.offset]

    def _stand_in(self, begin: int) -> Node | None:
        """A value for what could not be read; the name that it was to have means it from here on."""
        made = self.node(unknown_op("?", "relay"), (), NO_ATTRS, UNKNOWN, offset=self.offsets[begin], synthetic=True)
        name = begin + (self.texts[begin] == "let")
        if self._bound(begin) and self.kinds[name] == "local":
            word = self.texts[name]
            if word[1:].isdigit():
                self.names.numbered[word] = made
            else:
                self.names.bind(word, made)
            return None
        return made

    def statement(self, closers: tuple[str, ...]) -> Node | None:
        """One statement; a node when it is the result."""
        word, kind = self.word, self.kind
        if word == "let":
            self._let()
            return None
        if kind == "ident" and word == "return":
            self.at += 1
            self.definitions.module.attrs["style"] = "course"
            value = self.expression()
            self.take(";")
            if self.word not in closers and self.kind != "end":
                raise self.fault("nothing may follow `return`")
            return value
        if kind == "ident" and word == "free_var":
            self._free_var()
            return None
        if kind == "local" and self.texts[self.at + 1] == "=":
            self._binding(word, closers)
            return None
        value = self.expression()
        if self.take(";") or self.take(";;"):
            # What stands before a semicolon is bound to nothing, unless the block ends there.
            return value if self.word in closers else None
        return value

    def _let(self) -> None:
        at = self.at
        self.at += 1
        if self.kind == "ident" and self.word == "_":
            self.at += 1
            name = "_"
        elif self.kind != "local":
            raise self.fault("`let` binds a local name such as `%x`")
        else:
            name = self.word
            self.at += 1
        declared = self.type() if self.take(":") else UNKNOWN
        self.expect("=")
        value = self._recursive(name) if self.word == "fn" else self.expression()
        if declared is not UNKNOWN and value.type is UNKNOWN:
            value.type = declared
        if not (self.take(";") or self.take(";;")):
            line = self.definitions.line(self.offsets[at])
            raise self.fault(f"expected `;` after the let binding on line {line}")
        self.names.bind(name, value)
        self._named(value, name)
        self.names.frame.graph.notes.setdefault("lets", []).append(value)

    def _recursive(self, name: str) -> Node:
        """A function bound by let may call itself: inside, its name is a value of its own."""
        self.names.blocks.append({})
        itself = self.node(structure.GLOBAL, (), {"name": name}, synthetic=True)
        self.names.bind(name, itself)
        try:
            made = self.expression()
        finally:
            self.names.blocks.pop()
        nodes = self.names.frame.graph.nodes
        if not any(itself in node.operands for node in nodes[itself.index :]):
            del nodes[itself.index]
            for index in range(itself.index, len(nodes)):
                nodes[index].index = index
        return made

    def _free_var(self) -> None:
        self.at += 1
        name = self.word
        if self.kind != "local":
            raise self.fault(f"a name such as `%x` is expected, but here is {self.shown()}")
        self.at += 1
        declared = self.type() if self.take(":") else UNKNOWN
        self.expect(";")
        self.parameter(name, declared, self.offsets[self.at - 1])

    def _binding(self, name: str, closers: tuple[str, ...]) -> None:
        self.at += 2
        line = self.definitions.line(self.offset)
        value = self.expression()
        if not (self.take(";") or self.take(";;")):
            here = self.definitions.line(self.offset)
            if here == line and self.word not in closers and self.kind != "end":
                raise self.fault(f"expected `;` after the binding of `{name}`, but here is {self.shown()}")
        if name[1:].isdigit():
            self.names.numbered[name] = value
        else:
            self.names.bind(name, value)
        self._named(value, name)

    def _named(self, node: Node, name: str) -> None:
        """The node is called as the text calls it."""
        if node.op is not self.param and not node.synthetic and "." in node.name:
            node.name = unquoted(name[1:])

    def parameter(self, name: str, type: Type, offset: int) -> Node:
        """One more parameter of the graph that is being read."""
        graph = self.names.frame.graph
        if any(p.name == unquoted(name[1:]) for p in graph.params):
            raise SyntaxFault(offset, f"parameter `{name}` is declared twice", length=len(name))
        node = self.node(self.param, (), {"number": len(graph.params)}, type, offset=offset, name=unquoted(name[1:]), synthetic=True)
        graph.params.append(node)
        self.names.bind(name, node)
        return node

    # ------------------------------------------------------------------ expressions

    def expression(self, floor: int = 0) -> Node:
        """Operators by precedence, all from the left."""
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
                node = self.project(node, int(self.word), self.offset)
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
                    node = self.project(node, int(part), self.offset)
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
            raise self.fault('a string is no value; it may stand for an attribute (dtype="int8")')
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
        if found is None and self.definitions.loose and word not in self.first_binding and word not in self.names.ever:
            found, rest = self._input(word, at), ""
        if found is None:
            raise self._undefined(word, at)
        self.at += 1
        for part in rest.split(".")[1:]:
            found = self.project(found, int(part), at)
        return self.claimed(found)

    def _input(self, word: str, at: int) -> Node:
        """A name that nothing binds, in bindings without a function around them: an input."""
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
        """What to say of a name that means nothing here."""
        prefix = word
        while "." in prefix:
            prefix = prefix.rpartition(".")[0]
            if self.names.find(prefix) is not None:
                return SyntaxFault(at + len(prefix), "expected a tuple index after `.`", length=len(word) - len(prefix))
        later = self.first_binding.get(word)
        if later is not None and later > at:
            return SyntaxFault(at, f"`{word}` is used before it is defined (line {self.definitions.line(later)})", length=len(word))
        if word in self.names.ever:
            return SyntaxFault(at, f"`{word}` is not defined in this scope (defined in the other branch)", length=len(word))
        near = did_you_mean(word, self.names.known())
        hint = "; " + near.replace("did you mean ", "did you mean `").replace("?", "`?") if near else ""
        return SyntaxFault(at, f"`{word}` is not defined{hint}", length=len(word))

    def _number(self, word: str, negative: bool, at: int) -> Node:
        """A scalar constant: int32 without a suffix (int64 where it does not fit), float32 for ``f``."""
        self.at += 1
        found = NUMBER.match(word)
        if found is None:
            special = re.fullmatch(r"(inf|nan)f?(\d*)", word)
            if special is None:
                raise SyntaxFault(at, f"`{word}` is no number", length=len(word))
            value: float = float(special[1])
            dtype = DTYPES[f"f{special[2]}"] if special[2] else F32
        elif found[2] == "f" or any(c in found[1] for c in ".eE"):
            width = found[3] or "32"
            if f"f{width}" not in DTYPES or (found[2] and found[2] != "f"):
                raise SyntaxFault(at, f"`{word}`: there is no float of {width} bits", length=len(word))
            value, dtype = float(found[1]), DTYPES[f"f{width}"]
            if value > LARGEST.get(dtype.bits, value):
                raise SyntaxFault(at, f"{found[1]} does not fit float{dtype.bits}", length=len(word))
        else:
            return self._integer(word, found[1], found[2], found[3], negative, at)
        return self._scalar(-value if negative else value, dtype, at)

    def _integer(self, word: str, digits: str, letter: str, width: str, negative: bool, at: int) -> Node:
        value = -int(digits) if negative else int(digits)
        kind = "u" if letter == "u" else "s"
        if not width:
            dtype = S32 if -(1 << 31) <= value < (1 << 31) else S64
        elif f"{kind}{width}" in DTYPES:
            dtype = DTYPES[f"{kind}{width}"]
        else:
            raise SyntaxFault(at, f"`{word}`: there is no integer of {width} bits", length=len(word))
        low, high = (0, (1 << dtype.bits) - 1) if kind == "u" else (-(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1)
        if not low <= value <= high:
            raise SyntaxFault(at, f"{value} does not fit {'u' if kind == 'u' else ''}int{dtype.bits}", length=len(word))
        return self._scalar(value, dtype, at)

    def _scalar(self, value: float | int | bool, dtype: Any, at: int) -> Node:
        type = TensorType(dtype, ())
        literal = Literal(type, str(value), False, lambda lit: _array(value, dtype))
        return self.node(self.constant_op, (), {"literal": literal}, type, offset=at, synthetic=True)

    def _list(self) -> Node:
        """A tensor literal of the first version: ``[1, 2]``."""
        at = self.offset
        value = self.value()
        flat = str(value)
        if not _regular(value):
            raise SyntaxFault(at, "a tensor literal holds numbers, in lists of equal lengths")
        dtype = S32 if "." not in flat and "e" not in flat and "inf" not in flat and "nan" not in flat else F32
        shape: list[int] = []
        probe = value
        while isinstance(probe, list):
            shape.append(len(probe))
            probe = probe[0] if probe else None
        type = TensorType(dtype, tuple(shape))
        return self.node(self.constant_op, (), {"literal": Literal(type, flat, False, lambda lit: _array(value, dtype))}, type, offset=at)

    def _global(self, word: str, at: int) -> Node:
        """``@f`` or ``@f(x)``; whether it is defined is asked at the end, because functions may call each other."""
        self.definitions.uses.append((word, at))
        if self.word == "(":
            operands, attrs = self._arguments()
            node = self.node(structure.CALL, tuple(operands), {**attrs, "callee": word[1:]}, offset=at)
            self.definitions.calls.append(node)
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
            made.attrs = {**made.attrs, "literal": self.definitions.constant(str(key), made.type)}
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
        if word in self.definitions.constructors:
            operands, _ = self._arguments() if self.word == "(" else ([], {})
            return self.claimed(self.node(structure.CONSTRUCTOR, tuple(operands), {"name": word}, offset=at))
        if self.word != "(":
            if word in ("let", "else", "def", "type") or word in NAMES:
                raise SyntaxFault(at, f"expected an expression, but here is `{word}`", length=len(word))
            return self.node(structure.GLOBAL, (), {"name": word}, offset=at)
        if is_primitive(word):
            return self._primitive(word, at)
        self.definitions.operator(word, at)
        if dtype_named(word) is not None and self.kinds[self.at + 1] in ("number", "punct") and self._scalar_call(word):
            return self._converted(word, at)
        operands, attrs = self._arguments()
        if attrs:
            self.definitions.attributes(word, attrs, self.attribute_at)
        special = {"ref": structure.REF, "ref_read": structure.REF_READ, "ref_write": structure.REF_WRITE}.get(word)
        made = self.node(special or self.op(word), tuple(operands), attrs, offset=at)
        return self.claimed(made)

    def _primitive(self, word: str, at: int) -> Node:
        """``hlo.dot(%a, %b, ...)``: a primitive, with the type that is written behind it."""
        op = primitive_named(word)
        if op is None:
            near = did_you_mean(word, [spelled(known) for dialect in DIALECTS for known in all_ops(dialect)])
            raise SyntaxFault(at, f"there is no primitive `{word}`", near, len(word))
        operands, attrs = self._arguments()
        note = self.notes.get(self.at - 1)
        type = self.type_of_note(note) if note is not None else UNKNOWN
        try:
            parsed = read_attributes(op, attrs, type)
        except (ValueError, KeyError, TypeError) as fault:
            raise SyntaxFault(at, f"`{word}`: {fault}", length=len(word)) from None
        made = self.node(op, tuple(operands), parsed, type, offset=at)
        if "bodies" in attrs:
            self.definitions.bodies.append((made, body_names(attrs)))
        return made

    def _scalar_call(self, word: str) -> bool:
        """``int64(3)``: a constant with a type, of 2019."""
        at = self.at + 1
        if self.texts[at] == "-":
            at += 1
        return self.kinds[at] == "number" and self.texts[at + 1] == ")"

    def _converted(self, word: str, at: int) -> Node:
        self.expect("(")
        negative = self.take("-")
        found = NUMBER.match(self.word)
        dtype = dtype_named(word)
        assert dtype is not None
        if found is None:
            raise self.fault(f"`{self.word}` is no number")
        value: float | int = float(found[1]) if dtype.is_float or any(c in found[1] for c in ".eE") else int(found[1])
        self.at += 1
        self.expect(")")
        return self.claimed(self._scalar(-value if negative else value, dtype, at))

    def _arguments(self) -> tuple[list[Node], dict[str, Any]]:
        """``(a, b, key=value)``."""
        self.expect("(")
        operands: list[Node] = []
        attrs: dict[str, Any] = {}
        while not self.take(")"):
            if self.kind == "ident" and self.texts[self.at + 1] == "=" and self.texts[self.at + 1] != "==":
                self.attribute(attrs)
            elif self.kind == "string":
                attrs[f"positional{len(attrs)}"] = unquoted(self.word)
                self.at += 1
            else:
                operands.append(self._argument())
            if not self.take(","):
                self.expect(")", f"expected `,` or `)`, but here is {self.shown()}")
                break
        return operands, attrs

    def _argument(self) -> Node:
        """An operand; bindings may stand before it in parentheses."""
        return self.expression()

    def attribute(self, attrs: dict[str, Any]) -> None:
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
        if self._begins_statement():
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
        return self.node(self.tuple_op, tuple(items), NO_ATTRS, type, offset=at)

    def _begins_statement(self) -> bool:
        return self.word == "let" or (self.kind == "local" and self.texts[self.at + 1] == "=")

    def _block(self, close: str) -> Node:
        """Statements up to ``close``, which is taken."""
        opened = self.at - 1
        result = self.statements((close,))
        if result is None:
            raise self.fault("this block has no result")
        if not self.take(close):
            place = self.definitions.place(self.offsets[opened])
            raise self.fault(f"expected `{close}` to close the block opened at {place}")
        return result

    # ------------------------------------------------------------------ functions and branches

    def _function_value(self, at: int) -> Node:
        graph = Graph(self.definitions.fresh(f"fn.{self.counter}"), loc=at)
        self.function(graph, True)
        frame = self.names.frames  # the frame was popped: what it captured stands in the graph's notes
        assert frame is not None
        captured = graph.notes.pop("captured")
        type = FunctionType(tuple(p.type for p in graph.params[: graph.notes["own"]]), graph.notes.get("result", UNKNOWN))
        return self.claimed(self.node(structure.FUNCTION, tuple(captured), dict(graph.notes.get("attrs", {})), type, (graph,), at))

    def function(self, graph: Graph, closed_over: bool) -> None:
        """``[A](%x: T, Primitive=1) -> R { ... }`` into a graph."""
        self.names.push(graph, closed_over)
        self.typevars.append(set())
        try:
            generics = self.generics()
            self.typevars[-1].update(generics)
            if generics:
                graph.notes["generics"] = generics
            self.expect("(")
            attrs: dict[str, Any] = {}
            while not self.take(")"):
                self._parameter_or_attribute(attrs)
                if not self.take(","):
                    self.expect(")", f"expected `,` or `)`, but here is {self.shown()}")
                    break
            graph.notes["own"] = len(graph.params)
            if attrs:
                graph.notes["attrs"] = attrs
            if self.take("->"):
                graph.notes["result"] = self.type()
            brace = self.at
            self.expect("{")
            graph.root = self._body(graph, brace)
        finally:
            self.typevars.pop()
            graph.notes["captured"] = self.names.pop().captured
        self.definitions.graphs.append(graph)

    def _parameter_or_attribute(self, attrs: dict[str, Any]) -> None:
        if self.kind == "local":
            name, at = self.word, self.offset
            self.at += 1
            if self.word == "{":
                self.opaque()
            declared = self.type() if self.take(":") else UNKNOWN
            note = self.notes.get(self.at - 1)
            if declared is UNKNOWN and note is not None:
                declared = self.type_of_note(note)
            self.parameter(name, declared, at)
        elif self.kind == "ident" and self.texts[self.at + 1] == "=":
            self.attribute(attrs)
        elif self.word == "meta":
            attrs["meta"] = self.meta()
        else:
            raise self.fault(f"a parameter such as `%x: Tensor[(4), float32]` is expected, but here is {self.shown()}")

    def _body(self, graph: Graph, brace: int) -> Node:
        result = self.statements(("}",))
        if self.kind == "end":
            raise self.fault(f"expected `}}` to close the body opened at {self.definitions.place(self.offsets[brace])}")
        if result is None and self.definitions.faulty(brace):
            return self.node(unknown_op("?", "relay"), synthetic=True)
        if result is None:
            last = next((n for n in reversed(graph.nodes) if not n.synthetic), None)
            hint = f"; add `return %{last.name};` or end with `%{last.name}`" if last is not None else ""
            raise self.fault(f"function `@{graph.name}` has no result{hint}")
        self.expect("}")
        return result

    def _if(self) -> Node:
        at = self.offset
        self.at += 1
        self.expect("(")
        condition = self.expression()
        self.expect(")")
        bodies: list[Graph] = []
        operands: list[Node] = [condition]
        for branch in ("then", "else"):
            if branch == "else":
                self.expect("else", "expected `else`" if self.word != "else" else "")
            self.expect("{")
            graph, captured = self._closed(f"{branch}.{self.counter}", "}")
            bodies.append(graph)
            operands += captured
        return self.claimed(self.node(structure.IF, tuple(operands), NO_ATTRS, UNKNOWN, tuple(bodies), at))

    def _closed(self, name: str, close: str, patterns: list[tuple[str, str]] | None = None) -> tuple[Graph, list[Node]]:
        """A block as a graph of its own: the graph, and the values that it takes from outside."""
        graph = Graph(self.definitions.fresh(name), loc=self.offset)
        self.names.push(graph, True)
        try:
            if patterns is not None:
                subject = self.node(self.param, (), {"number": 0}, UNKNOWN, name="matched", synthetic=True)
                graph.params.append(subject)
                for bound, path in patterns:
                    self.names.bind(bound, self.node(structure.FIELD, (subject,), {"path": path}, name=unquoted(bound[1:]), synthetic=True))
            graph.notes["own"] = len(graph.params)
            result = self.statements((close, ",")) if patterns is not None and close == "" else self.statements((close,))
            if result is None:
                raise self.fault("this block has no result")
            graph.root = result
            if close:
                self.expect(close)
        finally:
            captured = self.names.pop().captured
        graph.notes["captures"] = len(captured)
        self.definitions.graphs.append(graph)
        return graph, captured

    def _match(self) -> Node:
        at = self.offset
        complete = self.word == "match"
        self.at += 1
        subject = self.expression()
        self.expect("{")
        bodies: list[Graph] = []
        texts: list[str] = []
        operands = [subject]
        while not self.take("}"):
            begin = self.offset
            bound: list[tuple[str, str]] = []
            self._pattern("", bound)
            texts.append(self.text[begin : self.offsets[self.at - 1] + len(self.texts[self.at - 1])])
            self.expect("=>", f"expected `=>` behind the pattern, but here is {self.shown()}")
            if self.take("{"):
                graph, captured = self._closed(f"arm.{self.counter}", "}", bound)
            else:
                graph, captured = self._arm(bound)
            bodies.append(graph)
            operands += captured
            if not self.take(","):
                self.expect("}", f"expected `,` or `}}`, but here is {self.shown()}")
                break
        attrs = {"patterns": tuple(texts), "complete": complete}
        return self.claimed(self.node(structure.MATCH, tuple(operands), attrs, UNKNOWN, tuple(bodies), at))

    def _arm(self, bound: list[tuple[str, str]]) -> tuple[Graph, list[Node]]:
        """An arm without braces: bindings and an expression, up to a comma."""
        graph = Graph(self.definitions.fresh(f"arm.{self.counter}"), loc=self.offset)
        self.names.push(graph, True)
        try:
            subject = self.node(self.param, (), {"number": 0}, UNKNOWN, name="matched", synthetic=True)
            graph.params.append(subject)
            for name, path in bound:
                self.names.bind(name, self.node(structure.FIELD, (subject,), {"path": path}, name=unquoted(name[1:]), synthetic=True))
            graph.notes["own"] = 1
            while self._begins_statement():
                self.statement((",", "}"))
            graph.root = self.expression()
        finally:
            captured = self.names.pop().captured
        graph.notes["captures"] = len(captured)
        self.definitions.graphs.append(graph)
        return graph, captured

    def _pattern(self, path: str, bound: list[tuple[str, str]]) -> None:
        """``Cons(%x, _)``: the names that it binds, each with the way to its value."""
        if self.kind == "local":
            bound.append((self.word, path))
            self.at += 1
            if self.take(":"):
                self.type()
            return
        if self.kind == "ident":
            name = self.word
            self.at += 1
            if name == "_" or self.word != "(":
                return
            path = f"{path}{name}"
        self.expect("(", f"a pattern is expected, but here is {self.shown()}")
        number = 0
        while not self.take(")"):
            self._pattern(f"{path}.{number}", bound)
            number += 1
            if not self.take(","):
                self.expect(")")
                break


def _regular(value: Any) -> bool:
    """Whether lists hold numbers alone, and are equally long on each level."""
    level = [value]
    while level and isinstance(level[0], list):
        if not all(isinstance(v, list) and len(v) == len(level[0]) for v in level):
            return False
        level = [item for v in level for item in v]
    return all(isinstance(v, int | float) for v in level)


def _array(value: Any, dtype: Any) -> Any:
    import numpy as np

    return np.asarray(value, dtype.numpy())


__all__ = ["PROJECTION", "Expressions", "Raw"]
