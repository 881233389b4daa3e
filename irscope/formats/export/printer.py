"""Modules as FX text: a class for each graph, those of subgraphs within, and the signature of an exported program.

    class GraphModule(torch.nn.Module):
        def forward(self, x: "f32[3]"):
            # File: model.py:4 in forward
            add: "f32[3]" = torch.ops.aten.add.Tensor(x, 1)
            return (add,)
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from keyword import iskeyword

from irscope.formats.export.making import unused
from irscope.formats.export.signature import Exported, Signature
from irscope.formats.export.spelling import annotation, call_text, operand_text
from irscope.formats.torchscript.attributes import Subgraph
from irscope.graph import Graph, Module, Node, SourceLine
from irscope.ops import hlo
from irscope.ops.module_attributes import Interface
from irscope.source.budget import tick

Stack = Callable[[Node], Sequence[SourceLine]]
DEEPEST = 100


def print_module(module: Module) -> str:
    """The text of a module: of an exported program, as ``print(ep)`` writes it."""
    return write(module, module.call_stack)[0]


def write(module: Module, stack: Stack) -> tuple[str, dict[Node, int]]:
    """The text of a module, and the place of each node in it. ``stack`` gives the lines of the user's program for the comments."""
    writer = _Writer(module, stack)
    signature = Exported.of(module).signature
    if signature is not None:
        writer.line(0, "ExportedProgram:")
    writer.graph(module.main(), 0 if signature is None else 1, "GraphModule", 0)
    if signature is not None:
        writer.signature(signature)
        writer.line(0, f"Range constraints: {{{_ranges(module)}}}")
    return "".join(writer.parts), writer.places


def _ranges(module: Module) -> str:
    return ", ".join(f"{symbol}: VR[{low}, {high}]" for symbol, (low, high) in Interface.of(module).ranges.items())


class _Writer:
    def __init__(self, module: Module, stack: Stack) -> None:
        self.module, self.stack = module, stack
        self.parts: list[str] = []
        self.places: dict[Node, int] = {}
        self.length = 0

    def line(self, depth: int, text: str) -> None:
        """One line."""
        line = f"{'    ' * depth}{text}\n" if text else "\n"
        self.parts.append(line)
        self.length += len(line)

    def graph(self, graph: Graph, depth: int, name: str, nested: int) -> None:
        """A graph and those that it calls. The readers bound the nesting."""
        if nested > DEEPEST:
            raise ValueError(f"graphs are nested more than {DEEPEST} deep")
        names = _names(graph)
        self.line(depth, f"class {name}(torch.nn.Module):")
        params = [f"{names[p]}{annotation(p.type)}" for p in graph.params]
        for param in graph.params:
            self.places[param] = self.length + 4 * (depth + 1)
        self.line(depth + 1, f"def forward({', '.join(['self', *params])}):")
        inner = self._statements(graph, depth + 2, names)
        for attribute, body in inner.items():
            self.line(0, "")
            self.graph(body, depth + 1, attribute, nested + 1)

    def _statements(self, graph: Graph, depth: int, names: dict[Node, str]) -> dict[str, Graph]:
        """The statements; returns the graphs that they name."""
        inner: dict[str, Graph] = {}
        before: SourceLine | None = None
        first = True
        for node in graph.nodes:
            tick()
            if node.synthetic:
                continue
            stack = self.stack(node)
            here = stack[0] if stack else None
            if first or here != before:
                if not first:
                    self.line(0, "")
                self.line(depth, _comment(here))
                first, before = False, here
            self.places[node] = self.length + 4 * depth
            for synthetic in node.operands:
                if synthetic.synthetic and synthetic.op is not hlo.parameter:
                    self.places.setdefault(synthetic, self.places[node])
            self.line(depth, f"{names[node]}{annotation(node.type)} = {self._value(node, names, inner)}")
        if graph.root is not None:
            self.places.setdefault(graph.root, self.length + 4 * depth)
            self.line(depth, f"return {_returned(graph.root, names)}")
        return inner

    def _value(self, node: Node, names: dict[Node, str], inner: dict[str, Graph]) -> str:
        callee = Subgraph.of(node).callee if node.op.name == "fx::get_attr" else ""
        body = self.module.graphs.get(callee)
        if body is None:
            return call_text(node, names)
        base = callee.replace(".", "_").replace("<", "").replace(">", "")
        attribute = unused(base, lambda name: inner.get(name, body) is not body)
        inner[attribute] = body
        return f"self.{attribute}"

    def signature(self, signature: Signature) -> None:
        """A line for each input and output."""
        self.line(0, "")
        self.line(0, "Graph signature:")
        for title, ports in (("# inputs", signature.inputs), ("# outputs", signature.outputs)):
            self.line(1, title)
            for port in ports:
                target = f" target='{port.target}'" if port.target else ""
                persistent = f" persistent={port.persistent}" if port.kind == "BUFFER" else ""
                self.line(1, f"{port.name}: {port.kind}{target}{persistent}")
            self.line(0, "")


def _returned(root: Node, names: dict[Node, str]) -> str:
    """One value, or a tuple of them."""
    if root.op is not hlo.tuple or not root.synthetic:
        return operand_text(root, names)
    parts = [operand_text(operand, names) for operand in root.operands]
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _comment(line: SourceLine | None) -> str:
    if line is None:
        return "# No stacktrace found for following nodes"
    return f"# File: {line.file}:{line.line}" + (f" in {line.function}" if line.function else "")


def _names(graph: Graph) -> dict[Node, str]:
    """A distinct Python identifier for each node that is printed."""
    names: dict[Node, str] = {}
    taken: set[str] = {"self"}
    for node in graph.nodes:
        if node.synthetic and node.op is not hlo.parameter:
            continue
        base = "".join(c if f"_{c}".isidentifier() else "_" for c in node.name) or "value"
        name = unused(base if base.isidentifier() and not iskeyword(base) else f"_{base}", taken.__contains__)
        taken.add(name)
        names[node] = name
    return names
