"""Reads Relay's statements: bindings of every form, results, and recovery after a faulty one."""

from __future__ import annotations

from irscope.formats.relay import structure
from irscope.formats.relay.cursor import unquoted
from irscope.formats.relay.literals import Literals
from irscope.formats.relay.scopes import NameBlock
from irscope.formats.syntax import SyntaxFault
from irscope.graph import NO_ATTRS, UNKNOWN, Node, Type, unknown_op


class StatementReader(Literals):
    """The part of the reader that reads statements."""

    def statements(self, closers: tuple[str, ...]) -> Node | None:
        """Bindings, then the result; None when a block ends without one. The closing token is not consumed."""
        self.names.blocks.append(NameBlock())
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
        """One statement; reports a fault in it, and continues after it with a value of unknown type."""
        names = self.names
        begin, frames, blocks, typevars, depth = self.at, len(names.frames), len(names.blocks), len(self.typevars), self.depth
        try:
            return self.statement(closers)
        except SyntaxFault as fault:
            if self.kind == "end" or not self.context.may_go_on():
                raise
            del names.frames[frames:], names.blocks[blocks:], self.typevars[typevars:]
            self.depth = depth
            self.context.error(fault)
            last = self._skip_statement(begin)
            return self._stand_in(begin) if last or self._bound(begin) else None

    def _bound(self, begin: int) -> bool:
        """Whether a statement binds a name."""
        kind, word = self.kinds[begin], self.texts[begin]
        return (kind == "ident" and word == "let") or (kind == "local" and self.texts[begin + 1] == "=")

    def _skip_statement(self, begin: int) -> bool:
        """Skip past the next semicolon, or to a line that begins a statement; returns whether the block ends there."""
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
        """A stand-in for a value that could not be read, bound to the name of its statement."""
        made = self.node(unknown_op("?", "relay"), (), NO_ATTRS, UNKNOWN, offset=self.offsets[begin], synthetic=True)
        name = begin + (self.texts[begin] == "let")
        if self._bound(begin) and self.kinds[name] == "local":
            word = self.texts[name]
            self._bind(word, made)
            return None
        return made

    def statement(self, closers: tuple[str, ...]) -> Node | None:
        """Read one statement; returns a node when it is the result."""
        word, kind = self.word, self.kind
        if word == "let":
            self._let()
            return None
        if kind == "ident" and word == "return":
            self.at += 1
            self.context.module.attrs["style"] = "course"
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
            # An expression before a semicolon is not bound, unless the block ends there.
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
            line = self.context.line(self.offsets[at])
            raise self.fault(f"expected `;` after the let binding on line {line}")
        self.names.bind(name, value)
        self._named(value, name)
        self.names.frame.graph.notes.setdefault("lets", []).append(value)

    def _recursive(self, name: str) -> Node:
        """A function bound by let may call itself: inside, its name is a separate value."""
        self.names.blocks.append(NameBlock())
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
        at = self.offset
        self.at += 2
        begin = self.offset
        value = self.expression()
        if not (self.take(";") or self.take(";;")):
            if "\n" not in self.text[begin : self.offset] and self.word not in closers and self.kind != "end":
                raise self.fault(f"expected `;` after the binding of `{name}`, but here is {self.shown()}")
        first = self.names.bound_before(name, at)
        self._bind(name, value)
        self._named(value, name)
        if first is not None:
            self.context.error(SyntaxFault(at, f"`{name}` is bound twice, first on line {self.context.line(first)}", length=len(name)))

    def _bind(self, name: str, value: Node) -> None:
        if name[1:].isdigit():
            self.names.numbered[name] = value
        else:
            self.names.bind(name, value)

    def _named(self, node: Node, name: str) -> None:
        """Give the node its name in the text."""
        if node.op is not self.param and not node.synthetic and "." in node.name:
            node.name = unquoted(name[1:])

    def parameter(self, name: str, type: Type, offset: int) -> Node:
        """Add a parameter to the graph under construction."""
        graph = self.names.frame.graph
        if self.names.frame.declares(unquoted(name[1:])):
            raise SyntaxFault(offset, f"parameter `{name}` is declared twice", length=len(name))
        node = self.bound(self.param, name, (), {"number": len(graph.params)})
        node.type, node.loc = type, offset
        graph.params.append(node)
        return node
