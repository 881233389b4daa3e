"""From Relay text to a module: real dumps of every version, and the shorter style of lessons.

    def @main(%x: Tensor[(1, 128), float32], %w: Tensor[(64, 128), float32]) -> Tensor[(1, 64), float32] {
      %0 = nn.dense(%x, %w, units=64);
      return %0;
    }

Each function is a graph. Bindings are names and no nodes; a call, a projection, a tuple is a node.
"""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Mapping
from typing import Any

from irscope.formats.relay import operators, structure
from irscope.formats.relay.expressions import Expressions
from irscope.formats.relay.filling import fill_types
from irscope.formats.relay.lexer import HEADER, METADATA, SyntaxFault, tokenize
from irscope.formats.relay.lowered import facts_of
from irscope.formats.relay.metadata import constants_of
from irscope.formats.relay.provenance import RelayProvenance
from irscope.formats.relay.types import type_text
from irscope.graph import UNKNOWN, Graph, Module, Reading, Type
from irscope.ops import all_ops
from irscope.ops.attrs import Literal
from irscope.source import Finding, Note, Severity, SourceText, did_you_mean

MAX_ERRORS = 20
NEIGHBOURS = {"matmul": "nn.matmul", "mul": "multiply", "sub": "subtract", "div": "divide", "dot": "nn.dense", "conv": "nn.conv2d",
              "convolution": "nn.conv2d", "linear": "nn.dense", "neg": "negative", "pow": "power", "reduce_sum": "sum"}
"""What other languages call Relay's operators."""
VERSIONS = ("0.0.1", "0.0.2", "0.0.3", "0.0.4", "0.0.5")
MARKER = re.compile(
    r"^.*?(?:PrintIR\((?P<header>[^)\n]*)\):|Print IR (?P<when>before|after): (?P<plain>[\w.:]+)"
    r"|(?P<run>Before|After) Running Pass: .*?(?:pass name: (?P<listed>[\w.:]+)|name=\"(?P<named>[^\"]+)\")).*$",
    re.MULTILINE,
)
TYPE = re.compile(r"\btype\s+\w")
FUNCTION = re.compile(
    r"(?:^|[\s;}])def\s+@|^[ \t]*fn\s*(?:\[[^\]]*\])?\s*\(\s*%|^[ \t]*(?:free_var\s+)?%[\w.]+\s*(?::[^=\n]*)?[=;]", re.MULTILINE
)


def sniff(text: str) -> float:
    """How sure it is that a text is Relay, from 0 to 1."""
    head = text[:20_000]
    header = HEADER.match(head)
    if header is not None:
        return 0.95
    if re.search(r"(?:^|\s)def\s+@[\w.]+\s*(?:\[[^\]]*\])?\s*\(", head):
        return 0.95
    if re.match(r"\s*+(?:/\*.*?\*/\s*+|//[^\n]*+\s*+)*+(?:fn\s*\(\s*%|free_var\s+%|type\s+\w+\s*[\[{])", head, re.DOTALL):
        return 0.9
    if re.search(r"^[ \t]*%\d+\s*=\s*[a-z][\w.]*\((?!.*\[)[^=]*%", head, re.MULTILINE) and "::" not in head:
        return 0.6
    return 0.0


def read(source: SourceText) -> Reading:
    """What a text holds: one module."""
    reading = Reading(source, "relay")
    operators.load()
    enabled, limit = gc.isenabled(), sys.getrecursionlimit()
    gc.disable()
    # Expressions are read by descent; the cursor's own limit on nesting is far below this one.
    sys.setrecursionlimit(max(limit, 6000))
    try:
        for name, begin, end in snapshots(source.text):
            Definitions(source, reading, name, begin, end).run()
    finally:
        sys.setrecursionlimit(limit)
        if enabled:
            gc.enable()
    return reading


def snapshots(text: str) -> list[tuple[str, int, int]]:
    """The modules of a text as (name, begin, end): one, or those that TVM's instruments print before and after passes."""
    marks = list(MARKER.finditer(text)) if "Print" in text or "Running Pass" in text else []
    parts = []
    for i, mark in enumerate(marks):
        end = marks[i + 1].start() if i + 1 < len(marks) else len(text)
        if FUNCTION.search(text, mark.end(), end) or HEADER.match(text, mark.end(), end):
            when = (mark["when"] or mark["run"] or "").lower()
            said = mark["header"] or mark["plain"] or mark["listed"] or mark["named"] or ""
            parts.append((f"{when} {said}".strip(), mark.end(), end))
    return parts or [("", 0, len(text))]


class Definitions:
    """The functions and data types of a text, or of a part of it, and what its expressions ask about them."""

    def __init__(self, source: SourceText, reading: Reading, name: str, begin: int, end: int) -> None:
        self.source, self.reading = source, reading
        self.text = source.text
        self.begin, self.end = begin, end
        self.module = Module(name or source.name.rpartition("/")[2] or "relay", "relay", source=source)
        self.graphs: list[Graph] = []
        self.constructors: dict[str, int] = {}
        self.uses: list[tuple[str, int]] = []
        self.calls: list[Any] = []
        self.bodies: list[tuple[Any, list[str]]] = []
        self.note_types: dict[str, Type] = {}
        self.loose = False
        """Whether bindings are read that no function holds."""
        self._seen: dict[str, int] = {}
        self._fresh: set[str] = set()
        self._unknown: set[str] = set()
        self._attributes: dict[str, frozenset[str]] = {}
        self._constants: dict[str, Literal] = {}
        self._names: frozenset[str] | None = None

    # ------------------------------------------------------------------ what expressions ask

    def line(self, offset: int) -> int:
        return self.source.place(offset).line

    def place(self, offset: int) -> str:
        return str(self.source.place(offset))

    def fresh(self, name: str) -> str:
        """A graph name that is still free."""
        wanted, n = name, 0
        while wanted in self._fresh:
            n += 1
            wanted = f"{name}.{n}"
        self._fresh.add(wanted)
        return wanted

    def may_go_on(self) -> bool:
        """Whether another fault may be told."""
        return sum(f.severity is Severity.ERROR for f in self.reading.findings) < MAX_ERRORS - 1

    def faulty(self, token: int) -> bool:
        """Whether a fault was told behind a token."""
        begin = self.parser.offsets[token]
        return any(f.severity is Severity.ERROR and f.offset >= begin for f in self.reading.findings)

    def operator_names(self) -> frozenset[str]:
        if self._names is None:
            self._names = frozenset((*operators.names(), *(op.name for op in all_ops("relay"))))
        return self._names

    def operator(self, name: str, offset: int) -> None:
        """An operator is called: a warning, once, when no such operator is known."""
        known = self.operator_names()
        if name in known or name in self._unknown:
            return
        self._unknown.add(name)
        near = next((k for k in sorted(known) if k.endswith("." + name)), "") or NEIGHBOURS.get(name.rpartition("::")[2], "")
        near = f"did you mean {near}?" if near else did_you_mean(name, known)
        self.warn(offset, "RLY020", "unknown-operator", f"unknown operator `{name}`", near, len(name))

    def attributes(self, name: str, attrs: Mapping[str, Any], places: Mapping[str, int]) -> None:
        """Attributes are given to an operator: a warning for each that it does not have."""
        known = self._attributes.get(name)
        if known is None:
            found = operators.declared(name)
            known = self._attributes[name] = frozenset(found.names) if found is not None else frozenset(attrs)
        for key in attrs:
            if key not in known and key in places:
                near = did_you_mean(key, known)
                has = f"it has {', '.join(sorted(known)) or 'none'}"
                near = near.replace("did you mean ", "did you mean `").replace("?", "`?") if near else has
                self.warn(places[key], "RLY021", "unknown-attribute", f"`{name}` has no attribute `{key}`", near, len(key))

    def constant(self, key: str, type: Type) -> Literal:
        """The value of a reference into the metadata table; elided where the text has no table."""
        found = self._constants.get(key)
        if found is not None:
            return found
        return Literal(type, key, True)

    # ------------------------------------------------------------------ the text

    def run(self) -> None:
        text = self.text
        begin = self._header()
        if begin is None:
            return
        table = METADATA.search(text, begin, self.end)
        end = table.start() if table else self.end
        if table is not None:
            self._constants = constants_of(text[table.end() : self.end])
        try:
            tokens = tokenize(text, begin, end)
        except SyntaxFault as fault:
            self.error(fault)
            return
        parser = Expressions(tokens, text)
        parser.begin(self)
        self.parser = parser
        self.module.provenance = RelayProvenance(text)
        self._collect_types(parser)
        if parser.kind == "end":
            self.error(
                SyntaxFault(begin, "there is no function in this text", "a function begins with def @main(%x: Tensor[(4), float32]) {")
            )
            return
        self._definitions(parser)
        self._finish()

    def _header(self) -> int | None:
        """Where the text proper begins; None when it is no Relay."""
        header = HEADER.match(self.text, self.begin, self.end)
        if header is None:
            first = re.compile(r"\s*(\S.{0,40})").match(self.text, self.begin)
            if first is not None and first[1][0] == "<":
                self.error(SyntaxFault(first.start(1), "this does not look like Relay text", "save the page's text, not its HTML"))
                return None
            return self._surroundings()
        version = header[1] or header[2]
        if version not in VERSIONS:
            at = max(header[0].rfind("#["), header[0].rfind("v0."))
            self.error(SyntaxFault(at, f"text version {version} is not known; irscope reads 0.0.1-0.0.5", length=header.end() - at))
            return None
        self.module.attrs["version"] = version
        return header.end()

    def _surroundings(self) -> int:
        """Text of a script or a log before the first definition is passed over."""
        found = FUNCTION.search(self.text, self.begin, self.end)
        if found is None:
            return self.begin
        head = self.text[self.begin : found.start()]
        plain = re.sub(r"/\*.*?\*/|//[^\n]*|#[^\n]*", "", head, flags=re.DOTALL).strip()
        if not plain or "/*" in plain or re.match(r"(?:type|extern|def|fn|let|free_var|%|\(|\{|@)", plain):
            return self.begin
        return found.start() + (len(found[0]) - len(found[0].lstrip(" \t\n;}")))

    def _collect_types(self, parser: Expressions) -> None:
        """Constructors may be used before their type is declared."""
        if TYPE.search(self.text) is None:
            return
        for at, (kind, word) in enumerate(zip(parser.kinds, parser.texts, strict=True)):
            if kind == "ident" and word == "type" and at + 1 < len(parser.kinds) and parser.kinds[at + 1] == "ident":
                self._constructors_of(parser, at + 2)

    def _constructors_of(self, parser: Expressions, at: int) -> None:
        while parser.texts[at] not in ("{", "") and parser.kinds[at] != "end":
            if parser.texts[at] in ("def", "}"):
                return
            at += 1
        depth = 0
        while parser.kinds[at] != "end":
            word = parser.texts[at]
            if word in "{([" and word:
                depth += 1
            elif word in "})]" and word:
                depth -= 1
                if depth == 0:
                    return
            elif depth == 1 and parser.kinds[at] == "ident":
                self.constructors.setdefault(word, parser.offsets[at])
            at += 1

    def _definitions(self, parser: Expressions) -> None:
        loose = Graph("main", loc=parser.offset)
        while parser.kind != "end" and self.may_go_on():
            try:
                if not self._definition(parser):
                    self._loose(parser, loose)
                    break
            except SyntaxFault as fault:
                self.error(fault)
                self._recover(parser)

    def _definition(self, parser: Expressions) -> bool:
        """One definition; False when something else begins here."""
        word = parser.word
        if word == "def":
            self._function(parser)
        elif word == "type":
            self._data_type(parser)
        elif word == "extern":
            parser.at += 2
            self._name(parser)
            parser.generics()
            parser.take(";")
        elif (
            (parser.kind == "global" and parser.texts[parser.at + 1] == "=")
            or word == "@"
            or (parser.kind == "global" and word == "@T.prim_func")
        ):
            self._lowered(parser)
        elif word == "fn" and self._ends_text(parser):
            at = parser.offset
            parser.at += 1
            graph = Graph(self.fresh("main"), loc=at)
            parser.function(graph, False)
            parser.take(";")
            self._enter(graph)
        elif word == ";":
            parser.at += 1
        else:
            return False
        return True

    @staticmethod
    def _ends_text(parser: Expressions) -> bool:
        return not parser.names.frames

    def _function(self, parser: Expressions) -> None:
        parser.at += 1
        if parser.kind != "global":
            raise parser.fault(f"a name such as `@main` is expected, but here is {parser.shown()}")
        name, at = parser.word, parser.offset
        self._once(name, at)
        parser.at += 1
        if parser.take("="):
            parser.meta()
            return
        graph = Graph(self.fresh(name[1:].strip('"')), loc=at)
        parser.names.blocks[:] = [{}]
        parser.names.frames.clear()
        parser.names.numbered.clear()
        parser.function(graph, False)
        parser.take(";")
        self._enter(graph)

    def _once(self, name: str, at: int) -> None:
        if name in self._seen:
            raise SyntaxFault(at, f"`{name}` is already defined at {self.place(self._seen[name])}", length=len(name))
        self._seen[name] = at

    def _enter(self, graph: Graph) -> None:
        graph.notes.pop("captured", None)
        graph.notes["defined"] = True

    @staticmethod
    def _name(parser: Expressions) -> str:
        if parser.kind != "ident":
            raise parser.fault(f"a name is expected, but here is {parser.shown()}")
        parser.at += 1
        return parser.texts[parser.at - 1]

    def _data_type(self, parser: Expressions) -> None:
        """``type List[A] { Cons(A, List[A]), Nil }``."""
        parser.at += 1
        name = self._name(parser)
        if parser.word == "<":
            raise parser.fault("type parameters are written in square brackets: `type List[A] { ... }`")
        generics = parser.generics()
        parser.typevars.append(set(generics))
        constructors: dict[str, list[str]] = {}
        if parser.take("="):
            raise parser.fault("a data type is written `type List[A] { Cons(A, List[A]), Nil }`")
        if parser.take("{"):
            while not parser.take("}"):
                at, own = parser.offset, self._name(parser)
                if own in constructors or self.constructors.get(own, at) != at:
                    raise SyntaxFault(
                        at, f"constructor `{own}` is already defined at {self.place(self.constructors[own])}", length=len(own)
                    )
                constructors[own] = [type_text(t) for t in parser._types(")")] if parser.take("(") else []
                if not parser.take(","):
                    parser.expect("}", f"expected `,` or `}}`, but here is {parser.shown()}")
                    break
        parser.typevars.pop()
        parser.take(";")
        self.module.attrs.setdefault("types", {})[name + (f"[{', '.join(generics)}]" if generics else "")] = constructors

    def _lowered(self, parser: Expressions) -> None:
        """A function in TIR, kept as one opaque node."""
        begin = parser.offset
        if parser.texts[parser.at + 1] == "=":
            name = parser.word[1:]
            parser.at += 2
        else:
            name = "prim_func"
        while parser.kind != "end":
            if parser.word == "def" and parser.kind == "ident" and parser.kinds[parser.at + 1] == "global":
                break
            if parser.word == "{":
                # `attr = {...}`, `buffers = {...}`, `buffer_map = {...}` stand in front of the body.
                table = parser.texts[parser.at - 1] == "="
                parser.skip_balanced()
                if not table:
                    break
                continue
            parser.at += 1
        graph = Graph(self.fresh(name), loc=begin)
        parser.names.push(graph, False)
        text = self.text[begin : parser.offset].rstrip()
        graph.root = parser.node(structure.LOWERED, (), {"text": text, **facts_of(text)}, offset=begin, name=name)
        parser.names.pop()
        self.graphs.append(graph)

    def _loose(self, parser: Expressions, graph: Graph) -> None:
        """Bindings without a function around them; names that mean nothing are the inputs."""
        graph.name = self.fresh("main")
        self.loose = True
        parser.names.numbered.clear()
        parser.names.push(graph, False)
        try:
            result = parser.statements(())
            if parser.kind != "end":
                raise parser.fault(f"expected a definition, but here is {parser.shown()}")
            graph.root = result or next((n for n in reversed(graph.nodes) if not n.synthetic), graph.nodes[-1] if graph.nodes else None)
            if graph.root is None:
                raise parser.fault("there is no result in this text")
        finally:
            parser.names.pop()
        graph.notes["own"] = len(graph.params)
        self.graphs.append(graph)

    def _recover(self, parser: Expressions) -> None:
        """Go on at the next definition."""
        parser.depth = 0
        parser.names.frames.clear()
        parser.names.blocks[:] = [{}]
        parser.typevars.clear()
        while parser.kind != "end" and not (parser.word == "def" and parser.kinds[parser.at + 1] == "global"):
            parser.at += 1

    def _finish(self) -> None:
        """Calls find the functions that they call; the module gets its graphs, callees first."""
        by_name = {graph.name: graph for graph in self.graphs}
        for node in self.calls:
            callee = by_name.get(node.attrs["callee"])
            if callee is not None:
                node.bodies = (callee,)
        for node, names in self.bodies:
            node.bodies = tuple(by_name[name] for name in names if name in by_name)
        for graph in self.graphs:
            graph.notes.pop("captured", None)
            for number, param in enumerate(graph.params):
                param.attrs = {"number": number}
        self.module.graphs = by_name
        defined = [g.name for g in self.graphs if g.notes.get("defined")] or [g.name for g in self.graphs]
        self.module.entry = "main" if "main" in by_name else (defined[-1] if defined else "")
        if by_name:
            fill_types(self.module)
            self.reading.modules.append(self.module)

    # ------------------------------------------------------------------ findings

    def error(self, fault: SyntaxFault) -> None:
        self.reading.ok = False
        self.reading.findings.append(
            Finding("RLY001", "syntax", Severity.ERROR, fault.message, self.source, fault.offset, fault.length, help=fault.help)
        )

    def warn(self, offset: int, code: str, name: str, message: str, help: str = "", length: int = 1, notes: tuple[Note, ...] = ()) -> None:
        self.reading.findings.append(Finding(code, name, Severity.WARNING, message, self.source, offset, length, notes, help))


__all__ = ["UNKNOWN", "Definitions", "read", "sniff"]
