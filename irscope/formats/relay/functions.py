"""Reads Relay's functions, branches and matches: blocks that become separate graphs, which capture outer values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from irscope.formats.relay import structure
from irscope.formats.relay.statements import StatementReader
from irscope.graph import NO_ATTRS, UNKNOWN, FunctionType, Graph, Node, unknown_op

Pattern: TypeAlias = "tuple[str, tuple[Pattern, ...]] | None"
"""What fits a pattern: a constructor, or "" for a tuple, with the patterns of its parts; None for anything."""


class Functions(StatementReader):
    """The part of the reader that builds graphs."""

    def _function_value(self, at: int) -> Node:
        graph = Graph(self.context.fresh(f"fn.{self.counter}"), loc=at)
        self.function(graph, True)
        captured = graph.notes.pop("captured")
        type = FunctionType(tuple(p.type for p in graph.params[: graph.notes["own"]]), graph.notes.get("result", UNKNOWN))
        made = self.caller(structure.FUNCTION, tuple(captured), dict(graph.notes.get("attrs", {})), (graph,), at)
        made.type = type
        return self.claimed(made)

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
            for _ in self.listed(")", True):
                self._parameter_or_attribute(attrs)
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
        self.context.graphs.append(graph)

    def _parameter_or_attribute(self, attrs: dict[str, object]) -> None:
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
            raise self.fault(f"expected `}}` to close the body opened at {self.context.place(self.offsets[brace])}")
        if result is None and self.context.faulty(brace):
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
            graph, captured = self._closed(f"{branch}.{self.counter}", self._braced)
            bodies.append(graph)
            operands += captured
        return self.claimed(self.caller(structure.IF, tuple(operands), NO_ATTRS, bodies, at))

    def _closed(self, name: str, read: Callable[[], Node], matched: Sequence[tuple[str, str]] | None = None) -> tuple[Graph, list[Node]]:
        """Run ``read`` in a separate graph; returns it and the outer values that it captures. ``matched`` are the names of a pattern."""
        graph = Graph(self.context.fresh(name), loc=self.offset)
        self.names.push(graph, True)
        try:
            if matched is not None:
                subject = self.node(self.param, (), {"number": 0}, synthetic=True)
                subject.name = "matched"
                graph.params.append(subject)
                for word, path in matched:
                    self.bound(structure.FIELD, word, (subject,), {"path": path})
            graph.notes["own"] = len(graph.params)
            graph.root = read()
        finally:
            captured = self.names.pop().captured
        graph.notes["captures"] = len(captured)
        self.context.graphs.append(graph)
        return graph, captured

    def _braced(self) -> Node:
        """The result of statements up to and including a brace."""
        result = self.statements(("}",))
        if result is None:
            raise self.fault("this block has no result")
        self.expect("}")
        return result

    def _arm(self) -> Node:
        """The result of an arm without braces: bindings and an expression, up to a comma."""
        while self._bound(self.at):
            self.statement((",", "}"))
        return self.expression()

    def _match(self) -> Node:
        at = self.offset
        complete = self.word == "match"
        self.at += 1
        subject = self.expression()
        self.expect("{")
        bodies: list[Graph] = []
        texts: list[str] = []
        operands = [subject]
        for _ in self.listed("}", True):
            begin = self.offset
            bound: list[tuple[str, str]] = []
            pattern = self._pattern("", bound)
            texts.append(self.text[begin : self.offsets[self.at - 1] + len(self.texts[self.at - 1])])
            self.expect("=>", f"expected `=>` after the pattern, but here is {self.shown()}")
            graph, captured = self._closed(f"arm.{self.counter}", self._braced if self.take("{") else self._arm, bound)
            graph.notes["pattern"] = pattern
            bodies.append(graph)
            operands += captured
        attrs = {"patterns": tuple(texts), "complete": complete}
        return self.claimed(self.caller(structure.MATCH, tuple(operands), attrs, bodies, at))

    def _pattern(self, path: str, bound: list[tuple[str, str]]) -> Pattern:
        """``Cons(%x, _)``: the pattern; adds the names that it binds to ``bound``, each with the path to its value."""
        if self.kind == "local":
            bound.append((self.word, path))
            self.at += 1
            if self.take(":"):
                self.type()
            return None
        name = ""
        if self.kind == "ident":
            name = self.word
            self.at += 1
            if name == "_":
                return None
            if self.word != "(":
                return name, ()
            path = f"{path}{name}"
        self.expect("(", f"a pattern is expected, but here is {self.shown()}")
        inner: list[Pattern] = []
        for _ in self.listed(")"):
            inner.append(self._pattern(f"{path}.{len(inner)}", bound))
        return name, tuple(inner)
