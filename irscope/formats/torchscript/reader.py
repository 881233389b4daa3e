"""From the text of TorchScript graphs to modules.

    graph(%x : Float(2, 3)):
      %1 : int = prim::Constant[value=1]()
      %y : Float(2, 3) = aten::add(%x, %x, %1)
      return (%y)

A statement becomes a node; one with several results becomes a node of a tuple type and synthetic ``get-tuple-element`` nodes with the
results' names. Several returned values become a synthetic ``tuple``. Blocks become bodies; the outer values that a block uses
become further operands of its node (``notes["captures"]`` counts them) and parameters of the body.
"""
from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from irscope.formats.syntax import SyntaxFault
from irscope.formats.torchscript import operators
from irscope.formats.torchscript.cursor import HEAD, TAIL, TypeCursor, split_attributes
from irscope.formats.torchscript.dialect import TORCHSCRIPT
from irscope.formats.torchscript.pasted import FX, HEADER, clean
from irscope.formats.torchscript.provenance import TorchProvenance
from irscope.formats.torchscript.scopes import BlockNames
from irscope.formats.torchscript.types import TENSOR_WORD, parse_type
from irscope.formats.torchscript.values import parse_value
from irscope.graph import NO_ATTRS, Graph, Module, NamedType, Node, Op, Reading, TupleType, Type, unknown_op
from irscope.graph.collector import collector_paused
from irscope.ops import get, lookup
from irscope.source import Finding, Severity, SourceText, did_you_mean

MAX_BLOCKS = 200
"""The maximal nesting of blocks and subgraphs, and the most blocks of one statement; no program has more."""
MOST_GUESSES = 20
"""The undefined values for which a similar name is searched: each search compares all names in scope."""

METHOD = re.compile(r"^[ \t]*# method ([\w.<>]+)[ \t]*$", re.MULTILINE)
KEY = re.compile(r"[\w.:]+")
GROUP = re.compile(r"(.+)_(\d+)$")
NOTHING = NamedType("None")


def read(source: SourceText) -> Reading:
    """Read a text. Graphs under ``# method`` lines are one module; otherwise each graph is a module."""
    reading = Reading(source, "torchscript")
    with collector_paused():
        _Reader(source, reading).run()
    return reading


class _Reader:
    def __init__(self, source: SourceText, reading: Reading) -> None:
        self.source = source
        self.reading = reading
        self.cleaned = clean(source.text)
        self.cursor = TypeCursor(self.cleaned.text)
        self.ops: dict[str, Op] = {}
        self.attrs: dict[str, Mapping[str, Any]] = {"": NO_ATTRS}
        self.param, self.get, self.tuple = get("parameter"), get("get-tuple-element"), get("tuple")
        self.provenance = TorchProvenance(source.text, self.cleaned)
        self.depth = 0
        self.guesses = 0
        self.module = Module("", TORCHSCRIPT)
        self.path = ""

    def run(self) -> None:
        cursor, text = self.cursor, self.cleaned.text
        fx = FX.search(text)
        if fx is not None:
            self.fault(fx.start(), "TSC002", "fx-graph", "this is a torch.fx graph, not a TorchScript graph",
                       "irscope reads it without --from, or with --from export")
            return
        found = HEADER.search(text)
        if found is None:
            self.fault(0, "TSC001", "no-graph", "no TorchScript graph begins in this text", "a graph begins with graph(%x : ...")
            return
        module: Module | None = None
        while found is not None:
            method = self._method_before(found.start())
            cursor.at = found.start()
            if module is None or method is None:
                number = len(self.reading.modules)
                file = self.source.name.rpartition("/")[2] or "graph"
                name = file if number == 0 else f"{file}#{number + 1}"
                module = Module(name, TORCHSCRIPT, source=self.source, provenance=self.provenance)
                self.reading.modules.append(module)
            graph = Graph(module.fresh_name(method or "graph"), loc=self.place(found.start()))
            module.entry = module.entry or graph.name
            self.module, self.path, self.depth = module, graph.name, 0
            try:
                self._graph(graph, None)
            except SyntaxFault as fault:
                self._tell(fault)
            module.graphs[graph.name] = graph
            found = HEADER.search(text, max(cursor.at, found.end()))

    # ------------------------------------------------------------------ graphs

    def _graph(self, graph: Graph, outer: BlockNames | None) -> None:
        """``graph(...):`` statements, ``return (...)``, and the ``with`` clauses of the groups in it."""
        cursor = self.cursor
        scope = BlockNames(graph, outer, self.param)
        cursor.expect("graph", "here")
        cursor.expect("(", "after graph")
        self._params(scope)
        if not (cursor.take(":") or cursor.take("{")):
            raise SyntaxFault(cursor.at, f"':' is expected after the inputs of the graph, but here is {cursor.shown()}")
        groups: list[tuple[str, Node]] = []
        try:
            self._statements(scope, groups)
            cursor.expect("return", "at the end of the graph")
            self._results(scope)
        finally:
            scope.settle()
        cursor.take(";")
        cursor.take("}")
        for name, node in groups:
            self._subgraph(name, node)

    def _subgraph(self, name: str, node: Node) -> None:
        """``with prim::TensorExprGroup_0 = graph(...)``: closed, with a separate scope."""
        cursor = self.cursor
        before = cursor.at
        if not cursor.take("with " + name) or not cursor.take("="):
            cursor.at = before
            return
        cursor.skip()
        body = Graph(self.module.fresh_name(f"{self.path}/{name}"), loc=self.place(cursor.at))
        self._deeper()
        self._graph(body, None)
        self.depth -= 1
        self.module.graphs[body.name] = body
        node.bodies = (body,)
        node.op = self._op(name.rpartition("_")[0])

    def _params(self, scope: BlockNames) -> None:
        cursor = self.cursor
        while not cursor.take(")"):
            at = cursor.at
            name = cursor.name()
            scope.param(name, self._declared(), self.place(at))
            cursor.take(",")

    def _declared(self) -> Type:
        """The type after a name; a name without one is a Tensor."""
        cursor = self.cursor
        while cursor.sees(" "):
            cursor.at += 1
        if not cursor.sees(":"):
            return TENSOR_WORD
        cursor.at += 1
        at = cursor.at
        words = cursor.type()
        if words[:1] in ("=", "%", ":", '"', "#"):
            raise SyntaxFault(at, f"a type is expected, but here is {words[:20]!r}")
        return parse_type(words)

    def _results(self, scope: BlockNames) -> None:
        """``(%a, %b)`` after return or an arrow: the root of the block."""
        self.cursor.expect("(", "before what is returned")
        loc = self.place(self.cursor.at)
        values = self._operands(scope)
        if len(values) == 1:
            scope.graph.root = values[0]
            return
        type = TupleType(tuple(v.type for v in values))
        scope.graph.root = scope.graph.add(Node(self.tuple, "return", type, tuple(values), NO_ATTRS, (), loc, synthetic=True))

    # ------------------------------------------------------------------ statements

    def _statements(self, scope: BlockNames, groups: list[tuple[str, Node]]) -> None:
        """The statements of a block, up to its end."""
        cursor, text = self.cursor, self.cursor.text
        last: Node | None = None
        while True:
            cursor.skip()
            at = cursor.at
            if at >= len(text):
                raise SyntaxFault(at, "the text ends inside the graph", "print the whole graph: it ends with return (...)")
            c = text[at]
            if c == "%" or c == "=":
                last = self._statement(scope, groups)
            elif cursor.sees("return") or cursor.sees("->"):
                return
            elif cursor.sees("block") and last is not None:
                self._block(scope, last, groups)
            elif c == "^" or HEAD.match(text, at):
                last = self._statement(scope, groups)
            else:
                raise SyntaxFault(at, f"a statement is expected, but here is {cursor.shown()}")

    def _statement(self, scope: BlockNames, groups: list[tuple[str, Node]]) -> Node:
        cursor, text = self.cursor, self.cursor.text
        loc = self.place(cursor.at)
        results: list[tuple[str, Type]] = []
        while text.startswith("%", cursor.at):
            results.append((cursor.name(), self._declared()))
            if not cursor.take(","):
                break
            cursor.skip()
        if not cursor.take("=") and results:
            raise SyntaxFault(cursor.at, f"'=' is expected after %{results[-1][0]}, but here is {cursor.shown()}")
        while cursor.sees(" "):
            cursor.at += 1
        head = HEAD.match(text, cursor.at)
        if head is None:
            raise SyntaxFault(cursor.at, f"an operator is expected, but here is {cursor.shown()}")
        cursor.at = head.end()
        attrs = self._attributes()
        if not cursor.sees("("):
            raise SyntaxFault(cursor.at, f"'(' is expected after {head[0]}, but here is {cursor.shown()}")
        if head[0].startswith("^"):
            inside = cursor.bracketed()
            if cursor.sees("("):
                attrs = {**attrs, "python": inside}
            else:
                cursor.at -= len(inside) + 2
        cursor.at += 1
        operands = self._operands(scope)
        tail = TAIL.match(text, cursor.at)
        cursor.at = tail.end() if tail else cursor.at
        if text.startswith(", uses", cursor.at):  # 2017
            cursor.at = len(text) if (end := text.find("\n", cursor.at)) < 0 else end
        node = self._add(scope, results, self._op(head[0]), tuple(operands), attrs, loc)
        group = GROUP.match(head[0])
        if group is not None and group[2] == str(len(groups)):
            groups.append((head[0], node))
        return node

    def _add(self, scope: BlockNames, results: list[tuple[str, Type]], op: Op, operands: tuple[Node, ...], attrs: Mapping[str, object],
             loc: int) -> Node:
        graph = scope.graph
        if len(results) == 1:
            name, type = results[0]
            node = scope.names[name] = graph.add(Node(op, name, type, operands, attrs, (), loc))
            return node
        if not results:
            return graph.add(Node(op, f"_{len(graph.nodes)}", NOTHING, operands, attrs, (), loc))
        names, types = zip(*results, strict=True)
        node = graph.add(Node(op, f"({', '.join(names)})", TupleType(types), operands, attrs, (), loc))
        for i, (name, type) in enumerate(results):
            scope.names[name] = graph.add(Node(self.get, name, type, (node,), {"index": i}, (), loc, synthetic=True))
        return node

    def _block(self, scope: BlockNames, node: Node, groups: list[tuple[str, Node]]) -> None:
        """``block0(%i : int): ... -> (%x)``: one more body of the node before it."""
        cursor = self.cursor
        opening = re.compile(r"block\d*\s*\(").match(cursor.text, cursor.at)
        if opening is None:
            raise SyntaxFault(cursor.at, f"'block0(...)' is expected, but here is {cursor.shown()}")
        if len(node.bodies) == MAX_BLOCKS:
            raise SyntaxFault(cursor.at, f"a statement has more than {MAX_BLOCKS} blocks")
        body = Graph(self.module.fresh_name(f"{self.path}/{node.name}.block{len(node.bodies)}"), loc=self.place(cursor.at))
        inner = BlockNames(body, scope, self.param)
        # The node's results are not visible inside it.
        results = node.name[1:-1].split(", ") if node.name.startswith("(") else [node.name]
        hidden = {name: scope.names.pop(name) for name in results if name in scope.names}
        cursor.at = opening.end()
        self._deeper()
        self._params(inner)
        own = len(body.params)
        if not (cursor.take(":") or cursor.take("{")):
            raise SyntaxFault(cursor.at, f"':' is expected after the inputs of the block, but here is {cursor.shown()}")
        self._statements(inner, groups)
        cursor.expect("->", "at the end of the block")
        self._results(inner)
        inner.settle()
        cursor.take("}")
        scope.names.update(hidden)
        self.depth -= 1
        body.notes["own"], body.notes["captures"] = own, len(inner.captured)
        self.module.graphs[body.name] = body
        node.bodies = (*node.bodies, body)
        node.operands = (*node.operands, *inner.captured)

    def _operands(self, scope: BlockNames) -> list[Node]:
        """Names up to the closing bracket; the opening one has been read."""
        cursor, text = self.cursor, self.cursor.text
        values: list[Node] = []
        while True:
            if text.startswith(")", cursor.at):
                cursor.at += 1
                return values
            cursor.skip()
            if text.startswith(")", cursor.at):
                continue
            at = cursor.at
            name = cursor.name()
            value = scope.find(name)
            if value is None:
                self.guesses += 1
                near = did_you_mean(name, scope.all_names()) if self.guesses <= MOST_GUESSES else ""
                self.fault(at, "TSC010", "undefined-value", f"%{name} is not defined here", near, len(name) + 1)
                value = scope.param(name, TENSOR_WORD, self.place(at))
            values.append(value)
            if cursor.sees(" :"):  # 2017 and some tests repeat the type
                self._declared()
            cursor.take(",")

    def _attributes(self) -> Mapping[str, object]:
        """``[key=value, ...]`` after an operator; each distinct text is parsed once."""
        if not self.cursor.sees("["):
            return NO_ATTRS
        begin = self.cursor.at
        text = self.cursor.bracketed()
        attrs = self.attrs.get(text)
        if attrs is None:
            for key in split_attributes(text):
                if not KEY.fullmatch(key):
                    raise SyntaxFault(begin, f"the name of an attribute is expected, but here is {key[:20]!r}")
            attrs = self.attrs[text] = {key: parse_value(value) for key, value in split_attributes(text).items()}
        return attrs

    def _op(self, name: str) -> Op:
        op = self.ops.get(name)
        if op is None:
            operators.load()  # with the first operator, so that every read returns the same
            op = lookup(name, "torchscript")
            if op is None:
                plain = lookup(name.removesuffix("_"), "torchscript")  # an operator in place works as the one that is not
                op = unknown_op(name, "torchscript", plain.work if plain is not None else "unknown")
            self.ops[name] = op
        return op

    # ------------------------------------------------------------------ places and faults

    def _deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_BLOCKS:
            raise SyntaxFault(self.cursor.at, f"blocks are nested more than {MAX_BLOCKS} deep")

    def place(self, offset: int) -> int:
        """The offset in the text as given."""
        return self.cleaned.source_offset(offset)

    def _method_before(self, at: int) -> str | None:
        """The name in the ``# method`` line right above a graph."""
        text = self.cleaned.text
        line = text[text.rfind("\n", 0, max(0, at - 1)) + 1:max(0, at - 1)]
        found = METHOD.match(line)
        return found[1] if found else None

    def _tell(self, fault: SyntaxFault) -> None:
        widths = [len(line) for line in self.cleaned.text.split("\n")]
        widest = max(widths)
        if 40 <= widest <= 240 and widths.count(widest) >= 3 and sum(w >= widest - 12 for w in widths) >= 4:
            self.fault(fault.offset, "TSC004", "wrapped-text", f"{fault.message}; the lines were wrapped at {widest} columns",
                       "write the graph to a file instead of copying it from a terminal")
        elif fault.offset >= len(self.cleaned.text.rstrip()) or "never closed" in fault.message:
            self.fault(fault.offset, "TSC003", "truncated-text", fault.message, fault.help or "the text is cut off: print the whole graph")
        else:
            self.fault(fault.offset, "TSC005", "syntax", fault.message, fault.help, fault.length)

    def fault(self, offset: int, code: str, name: str, message: str, help: str = "", length: int = 1) -> None:
        """Report an error; the text is no longer ok."""
        self.reading.ok = False
        self.reading.findings.append(Finding(code, name, Severity.ERROR, message, self.source, self.place(offset), length, help=help))
