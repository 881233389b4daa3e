"""Reads the definitions of a text in order: functions, data types, lowered functions, and bindings outside functions."""

from __future__ import annotations

import re

from irscope.formats.relay import structure
from irscope.formats.relay.context import ReadingContext
from irscope.formats.relay.data_types import constructors_of, data_type, name_of
from irscope.formats.relay.expressions import ExpressionReader
from irscope.formats.relay.filling import fill_types
from irscope.formats.relay.lexer import HEADER, METADATA, tokenize
from irscope.formats.relay.lowered import facts_of
from irscope.formats.relay.metadata import constants_of
from irscope.formats.relay.primitives import recursive
from irscope.formats.relay.provenance import RelayProvenance
from irscope.formats.relay.scopes import NameBlock
from irscope.formats.relay.snapshots import FUNCTION, ModulePart
from irscope.formats.syntax import SyntaxFault
from irscope.graph import Graph, Reading
from irscope.source import SourceText

VERSIONS = ("0.0.1", "0.0.2", "0.0.3", "0.0.4", "0.0.5")
TYPE = re.compile(r"\btype\s+\w")


class Definitions(ReadingContext):
    """The functions and data types of a text, or of a part of it."""

    def __init__(self, source: SourceText, reading: Reading, part: ModulePart) -> None:
        super().__init__(source, reading, part.words, part.begin, part.end)
        if part.name:
            self.module.attrs["snapshot"] = (part.when, part.name)
        self._seen: dict[str, int] = {}

    def run(self) -> None:
        text = self.text
        begin = self._header()
        if begin is None:
            return
        table = METADATA.search(text, begin, self.end)
        end = table.start() if table else self.end
        if table is not None:
            self.constants = constants_of(text[table.end() : self.end])
        try:
            tokens = tokenize(text, begin, end)
        except SyntaxFault as fault:
            self.error(fault)
            return
        parser = ExpressionReader(tokens, text)
        parser.begin(self)
        self.parser = parser
        self.module.provenance = RelayProvenance(text, begin, end)
        if TYPE.search(text) is not None:
            # Constructors may be used before their type is declared.
            self.constructors = constructors_of(parser)
        if parser.kind == "end":
            self.error(
                SyntaxFault(begin, "there is no function in this text", "a function begins with def @main(%x: Tensor[(4), float32]) {")
            )
            return
        self._definitions(parser)
        self._finish()

    def _header(self) -> int | None:
        """The offset where the text proper begins; None when it is not Relay."""
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
        """Skip text of a script or a log before the first definition."""
        found = FUNCTION.search(self.text, self.begin, self.end)
        if found is None:
            return self.begin
        head = self.text[self.begin : found.start()]
        plain = re.sub(r"/\*.*?\*/|(/\*).*|//[^\n]*|#[^\n]*", r"\1", head, flags=re.DOTALL).strip()
        if not plain or "/*" in plain or re.match(r"(?:type|extern|def|fn|let|free_var|%|\(|\{|@)", plain):
            return self.begin
        return found.start() + (len(found[0]) - len(found[0].lstrip(" \t\n;}")))

    def _definitions(self, parser: ExpressionReader) -> None:
        loose = Graph("main", loc=parser.offset)
        while parser.kind != "end" and self.may_go_on():
            try:
                if not self._definition(parser):
                    self._loose(parser, loose)
                    break
            except SyntaxFault as fault:
                self.error(fault)
                self._recover(parser)

    def _definition(self, parser: ExpressionReader) -> bool:
        """One definition; False when something else begins here."""
        word = parser.word
        if word == "def":
            self._function(parser)
        elif word == "type":
            data_type(self, parser)
        elif word == "extern":
            parser.at += 2
            name_of(parser)
            parser.generics()
            parser.take(";")
        elif word == "@" or (parser.kind == "global" and (parser.texts[parser.at + 1] == "=" or word == "@T.prim_func")):
            self._lowered(parser)
        elif word == "fn" and not parser.names.frames:
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

    def _function(self, parser: ExpressionReader) -> None:
        parser.at += 1
        if parser.kind != "global":
            raise parser.fault(f"a name such as `@main` is expected, but here is {parser.shown()}")
        name, at = parser.word, parser.offset
        self._once(name, at)
        parser.at += 1
        if parser.take("="):
            parser.meta()
            self.module.attrs.setdefault("externs", []).append(name[1:].strip('"'))
            return
        graph = Graph(self.fresh(name[1:].strip('"')), loc=at)
        parser.names.blocks[:] = [NameBlock()]
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

    def _lowered(self, parser: ExpressionReader) -> None:
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
                # `attr = {...}`, `buffers = {...}`, `buffer_map = {...}` precede the body.
                table = parser.texts[parser.at - 1] == "="
                parser.skip_balanced()
                if not table:
                    break
                continue
            parser.at += 1
        graph = Graph(self.fresh(name), loc=begin)
        parser.names.push(graph, False)
        text = self.text[begin : parser.offset].rstrip()
        graph.root = parser.node(structure.LOWERED, (), {"text": text, **facts_of(text)}, offset=begin)
        graph.root.name = name
        parser.names.pop()
        self.graphs.append(graph)

    def _loose(self, parser: ExpressionReader, graph: Graph) -> None:
        """Read bindings outside a function; undefined names are the inputs."""
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

    def _recover(self, parser: ExpressionReader) -> None:
        """Resume at the next definition."""
        parser.depth = 0
        parser.names.frames.clear()
        parser.names.blocks[:] = [NameBlock()]
        parser.typevars.clear()
        while parser.kind != "end" and not (parser.word == "def" and parser.kinds[parser.at + 1] == "global"):
            parser.at += 1

    def _finish(self) -> None:
        """Link calls to their functions, and add the graphs to the module, callees first."""
        by_name = {graph.name: graph for graph in self.graphs}
        for node in self.calls:
            callee = by_name.get(node.attrs["callee"])
            if callee is not None:
                node.bodies = (callee,)
        for node, names in self.bodies:
            node.bodies = tuple(by_name[name] for name in names if name in by_name)
        for node in recursive(self.graphs) if self.bodies else ():
            node.bodies = ()
            self.error(SyntaxFault(node.loc, f"`{node.name}` calls its own function again, which no primitive does", length=1))
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
