"""From printed FX graphs to modules: ``print(ep)``, ``print_readable()``, ``print(graph)``, the files and logs of torch.compile.

    class GraphModule(torch.nn.Module):
        def forward(self, x: "f32[3]"):
            # File: model.py:4 in forward, code: return x + 1
            add: "f32[3]" = torch.ops.aten.add.Tensor(x, 1);  x = None
            return (add,)

        class true_graph_0(torch.nn.Module):                a subgraph, which the statements above name

Each class that is in no other, and each listing, is a module. Lines outside of them are those of a log or of a script.
"""
from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field, replace

from irscope.formats.export.dialect import EXPORT
from irscope.formats.export.lines import Line, joined, lines_of
from irscope.formats.export.listing import HEADER, Listing
from irscope.formats.export.making import GRAPH, GraphMaker
from irscope.formats.export.provenance import TextProvenance
from irscope.formats.export.runnable import loaded_types
from irscope.formats.export.signature import Exported, Signature, parse_ranges, parse_signature, sign
from irscope.formats.export.statements import Statements
from irscope.formats.export.targets import Targets
from irscope.formats.syntax import SyntaxFault
from irscope.graph import UNKNOWN, Graph, Module, Node, Reading
from irscope.graph.collector import collector_paused
from irscope.source import Finding, Severity, SourceText, did_you_mean

CLASS = re.compile(r"(?:\S.{0,400}? )?class (?P<name><\w+>|[\w.]+)\((?:torch\.)?nn\.Module\):$")
ALONE = "def forward(self"
"""How a graph without a class begins: ``print(graph_module)`` writes it after the modules."""
FORWARD = re.compile(r"def \w+\(")
ASSIGNED = re.compile(r"%(?P<listed>\w+) : |(?P<name>\w+)(?:: \"[^\"\n]*\"?)? =(?!=)")
"""How a statement begins."""
SIGNATURE, RANGES = "Graph signature:", "Range constraints:"
PROGRAM = "ExportedProgram:"
DEEPEST = 100
"""The maximal nesting of subgraphs."""
MOST_FAULTS = 50
"""A text with more errors is of another kind."""


def read(source: SourceText) -> Reading:
    """Read the graphs of a text. Never raises on malformed text."""
    reading = Reading(source, "export")
    with collector_paused(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python's parser warns of escapes in a stranger's texts
        _Reader(source, reading).run()
    return reading


@dataclass(slots=True)
class Open:
    """A graph whose lines are being read; ``children`` are the subgraphs in its class."""

    name: str
    indent: int
    maker: GraphMaker
    reader: Statements | Listing
    loc: int
    body: int = -1
    """How far its statements are indented, -1 before the first; -2 before its header."""
    header: int = -1
    skipped: int = -1
    children: dict[str, Graph] = field(default_factory=dict)


class _Reader:
    def __init__(self, source: SourceText, reading: Reading) -> None:
        self.source, self.reading = source, reading
        self.lines = lines_of(source.text)
        self.targets = Targets()
        self.provenance = TextProvenance(source.text)
        self.stack: list[Open] = []
        self.module: Module | None = None
        self.is_program = False

    def run(self) -> None:
        at = 0
        while at < len(self.lines) and len(self.reading.findings) < MOST_FAULTS:
            line = self.lines[at]
            if line.is_comment:
                at += 1
                continue
            try:
                at = self._line(line, at)
            except SyntaxFault as fault:
                self._tell(fault)
                self._assume(line)
                at += 1
        while self.stack:
            self._close(at_end=len(self.stack) == 1 or self.stack[-1].reader.returned is False)
        self._finish()

    def _line(self, line: Line, at: int) -> int:
        """Read a line that is no comment; returns the number of the next one."""
        found = CLASS.match(line.text) if line.text.endswith("Module):") else None
        while self.stack and line.indent <= self.stack[-1].indent:
            self._close()
        if found is not None:
            self._begin(found["name"], line)
            return at + 1
        if HEADER.match(line.text) and not self.stack:
            self._begin_listing(line)
            return at + 1
        if not self.stack and line.text.startswith(ALONE):
            self._begin("GraphModule", replace(line, indent=line.indent - 1))
        if not self.stack:
            return self._outside(line, at)
        top = self.stack[-1]
        if isinstance(top.reader, Listing):
            text, after = line.text, at + 1
        else:
            text, after = joined(self.lines, at)
        if top.header < 0:
            return self._before_header(top, line, text, at, after)
        self._statement(top, line, text)
        return after

    # ------------------------------------------------------------------ graphs

    def _begin(self, name: str, line: Line) -> None:
        if len(self.stack) >= DEEPEST:
            raise SyntaxFault(line.offset, f"subgraphs are nested more than {DEEPEST} deep")
        if not self.stack:
            self._new_module()
        maker = GraphMaker(Graph(name, loc=line.offset), self.targets)
        self.stack.append(Open(name, line.indent, maker, Statements(maker), line.offset))

    def _begin_listing(self, line: Line) -> None:
        self._new_module()
        maker = GraphMaker(Graph("graph", loc=line.offset), self.targets)
        self.stack.append(Open("graph", line.indent, maker, Listing(maker), line.offset, header=line.indent + 1))

    def _new_module(self) -> None:
        number = len(self.reading.modules)
        file = self.source.name.rpartition("/")[2] or "graph"
        self.module = Module(file if number == 0 else f"{file}#{number + 1}", EXPORT, source=self.source, provenance=self.provenance)
        self.reading.modules.append(self.module)

    def _before_header(self, top: Open, line: Line, text: str, at: int, after: int) -> int:
        """The lines of a class before its forward: other functions are those of a script."""
        assert isinstance(top.reader, Statements)
        if top.skipped >= 0 and line.indent > top.skipped:
            return after
        top.skipped = -1
        if text.startswith("def forward("):
            top.header = line.indent
            top.reader.header(text, line.offset)
            return after
        if FORWARD.match(text):
            top.skipped = line.indent
            return after
        raise SyntaxFault(line.offset, f"'def forward(self, ...):' is expected in the class {top.name}, but here is {text[:40]!r}")

    def _statement(self, top: Open, line: Line, text: str) -> None:
        if top.skipped >= 0 and line.indent > top.skipped:
            return
        top.skipped = -1
        if line.indent == top.header and FORWARD.match(text):
            top.skipped = line.indent  # a function after forward
            return
        if top.body < 0:
            top.body = line.indent
        if line.indent != top.body:
            self._fault(line.offset, "EXP005", "syntax", f"syntax: the statement is indented by {line.indent} columns, those above by "
                        f"{top.body}: unexpected indent")
        top.reader.read(text, line.offset)

    def _close(self, at_end: bool = False) -> None:
        """Complete the innermost graph: give its calls their subgraphs, and itself to the graph around it."""
        top = self.stack.pop()
        graph = top.maker.graph
        assert self.module is not None
        if top.header < 0:
            self._fault(top.loc, "EXP003", "truncated-text", f"the class {top.name} has no forward: the text is cut off")
        elif not top.reader.returned:
            where = "the text ends" if at_end else "the graph ends"
            place = max(top.loc, max((node.loc for node in graph.nodes), default=top.loc))
            self._fault(place, "EXP003", "truncated-text", f"{where} before the return of {top.name}", "print the whole graph")
        top.maker.settle()
        if isinstance(top.reader, Statements):
            self._resolve(top, top.reader)
        graph.name = self.module.fresh_name("forward" if top.name.startswith("<") else top.name)
        for node in graph.nodes:
            if node.op.name == "fx::get_attr" and "callee" in node.attrs:
                node.type = GRAPH
        self.module.graphs[graph.name] = graph
        if self.stack:
            self.stack[-1].children[top.name] = graph
        else:
            self.module.entry = graph.name

    def _resolve(self, top: Open, statements: Statements) -> None:
        """Connect ``self.true_graph_0`` with the class of this name."""
        for node, wanted in statements.attributes.items():
            body = top.children.get(wanted.name)
            if body is not None:
                node.attrs, node.type = {"callee": body.name}, GRAPH
                for call in wanted.calls:
                    call.bodies = (*call.bodies, body)
            elif wanted.calls and node.type.__class__.__name__ != "TorchTensorType":
                self._fault(wanted.at, "EXP010", "undefined-value", f"self.{wanted.name} is given to %{wanted.calls[0].name} as a graph, "
                            f"but no class {wanted.name} follows", did_you_mean(wanted.name, top.children), len(wanted.name))

    # ------------------------------------------------------------------ what stands around graphs

    def _outside(self, line: Line, at: int) -> int:
        text = line.text
        if text.startswith(PROGRAM):
            self.is_program = True
        elif self.module is None:
            pass
        elif text.startswith(SIGNATURE):
            end = at + 1
            while end < len(self.lines) and not self.lines[end].text.startswith((RANGES, PROGRAM)):
                end += 1
            self._sign(self.module, parse_signature(each.text for each in self.lines[at:end]), line.offset)
            return end
        elif text.startswith(RANGES):
            self.module.attrs["ranges"] = parse_ranges(text)
            self.is_program = False
        elif text.startswith("def load_args("):
            types, end = loaded_types(self.lines, at + 1)
            for param in self.module.main().params if self.module.entry else ():
                param.type = types.get(param.name, param.type)
            return end
        return at + 1

    def _sign(self, module: Module, signature: Signature, at: int) -> None:
        """Check the signature against the graph, and keep it."""
        sign(module, signature)
        params = [param.name for param in module.main().params] if module.entry else []
        inputs = [port.name for port in signature.inputs]
        if inputs and inputs != params:
            odd = next((name for name in inputs if name not in params), "") or next((name for name in params if name not in inputs), "")
            self._fault(at, "EXP011", "signature", f"the signature has {len(inputs)} inputs, the graph {len(params)}: "
                        + (f"{odd!r} is not in both" if odd else "their order differs"))

    def _finish(self) -> None:
        if not self.reading.modules:
            self._fault(0, "EXP001", "no-graph", "no FX graph begins in this text",
                        "print(torch.export.export(model, args)) prints one")
        elif self.is_program and self.module is not None and Exported.of(self.module).signature is None:
            self._fault(len(self.source.text), "EXP003", "truncated-text", "the text ends before the signature of the program")
        modules = self.reading.modules
        self.reading.modules = [module for module in modules if module.entry] or modules[:1]

    # ------------------------------------------------------------------ faults

    def _assume(self, line: Line) -> None:
        """Define the name that a faulty line assigns, so that the lines after it are read as they are."""
        found = ASSIGNED.match(line.text)
        name = (found["listed"] or found["name"]) if found is not None else ""
        if name and self.stack and name not in (names := self.stack[-1].maker.names):
            graph = self.stack[-1].maker.graph
            names[name] = graph.add(Node(self.targets.op("unreadable"), name, UNKNOWN, loc=line.offset, synthetic=True))

    def _tell(self, fault: SyntaxFault) -> None:
        if "is not defined here" in fault.message:
            self._fault(fault.offset, "EXP010", "undefined-value", fault.message, fault.help, fault.length)
        else:
            self._fault(fault.offset, "EXP005", "syntax", fault.message, fault.help, fault.length)

    def _fault(self, offset: int, code: str, name: str, message: str, help: str = "", length: int = 1) -> None:
        self.reading.ok = False
        self.reading.findings.append(Finding(code, name, Severity.ERROR, message, self.source, offset, length, help=help))
