"""Prints a module as Relay text: one binding per line, numbered from 0 in each function, in the style of the input.

Style ``course`` ends a function with ``return %2;`` and has no header; style ``relay`` is what TVM reads.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

from irscope.formats.relay.cursor import Raw
from irscope.formats.relay.metadata import ConstantTable, encodable
from irscope.formats.relay.primitives import DIALECTS, PLAIN_SCALARS, spelled, written
from irscope.formats.relay.types import type_text
from irscope.graph import UNKNOWN, Graph, Module, NamedType, Node, TensorType, callees_first
from irscope.lazy import np

GLOBAL = re.compile(r"[A-Za-z_$][\w.$]*$")
SIMPLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*$")
SHARED = frozenset(("constant", "get-tuple-element"))
"""Operators that are printed inline, or on a separate line when they are used more than once."""


def print_module(module: Module, style: str | None = None, types: bool = False) -> str:
    """The module as text; ``style`` is course, relay (with TVM's header), or None for the input's.

    ``types`` adds ``/* ty=... */`` after calls.

    A module of another format is printed in primitives (see :mod:`irscope.formats.relay.primitives`).
    """
    if module.format != "relay" or module.attrs.get("primitive"):
        return "\n".join(_primitive_parts(module)) + "\n"
    headed = style == "relay" or (style is None and module.attrs.get("version"))
    style = style or str(module.attrs.get("style", "relay" if module.attrs.get("version") else "course"))
    parts = ['#[version = "0.0.5"]'] if headed and style == "relay" else []
    parts += [_data_type(name, constructors) for name, constructors in module.attrs.get("types", {}).items()]
    bodies = {body for graph in module.graphs.values() for node in graph.nodes if node.op.name != "call" and node.op.dialect == "relay"
              for body in node.bodies}
    names = {graph: name for name, graph in module.graphs.items()}
    table = ConstantTable(module)
    for graph in module.graphs.values():
        if graph not in bodies:
            parts.append("\n".join(_Function(style, types, names, table if style == "relay" else None).definition(graph)))
    return "\n".join(parts) + "\n" + table.text()


def _primitive_parts(module: Module) -> Iterator[str]:
    """Every graph that the entry reaches, the entry last and called main."""
    yield '#[version = "0.0.5"]'
    yield "#[irscope = 1]"
    names: dict[Graph, str] = {module.main(): "main"}
    taken = {"main"}
    order = callees_first(module, module.main())
    for graph in order:
        if graph not in names:
            name, n = graph.name, 0
            while name in taken:
                n += 1
                name = f"{graph.name}.{n}"
            taken.add(name)
            names[graph] = name
    for graph in order:
        yield "\n".join(_Function("relay", True, names).definition(graph))


def _data_type(name: str, constructors: Mapping[str, list[str]]) -> str:
    rows = [f"  {c}({', '.join(fields)})," if fields else f"  {c}," for c, fields in constructors.items()]
    return "\n".join([f"type {name} {{", *rows, "}"])


class _Function:
    """Prints one function of the module, and the functions and blocks inside it; numbers run through all of them."""

    def __init__(self, style: str, types: bool, names: Mapping[Graph, str], table: ConstantTable | None = None) -> None:
        self.table = table
        self.style = style
        self.types = types
        self.names = names
        self.count = 0
        self.text: dict[Node, str] = {}

    def definition(self, graph: Graph) -> Iterator[str]:
        if graph.root is not None and graph.root.op.name == "primfn":
            yield str(graph.root.attrs["text"])
            return
        yield f"def {global_name(self.names[graph])}{self.signature(graph)} {{"
        yield from self.body(graph, "  ", self.style)
        yield "}"

    def signature(self, graph: Graph) -> str:
        """``(%x: T, Primitive=1) -> R``; captures are not parameters of the text."""
        own = graph.params[: graph.notes.get("own", len(graph.params))]
        for param in own:
            self.text[param] = local_name(param.name)
        items = [self.text[p] + (f": {type_text(p.type)}" if p.type is not UNKNOWN else "") for p in own]
        items += [f"{key}={value_text(value)}" for key, value in graph.notes.get("attrs", {}).items()]
        result = graph.notes.get("result", UNKNOWN)
        generics = graph.notes.get("generics", ())
        head = f"[{', '.join(generics)}]" if generics else ""
        return f"{head}({', '.join(items)})" + (f" -> {type_text(result)}" if result is not UNKNOWN else "")

    def body(self, graph: Graph, indent: str, style: str = "relay") -> Iterator[str]:
        """The bindings of a graph and its result."""
        root = graph.result()
        uses = Counter(operand for node in graph.nodes for operand in node.operands)
        for node in graph.nodes:
            once = uses[node] == 1 or (node is root and not uses[node])
            if node in self.text or ((once or node.op.name not in SHARED) and self.inline(node)):
                continue
            itself = self.own_name(node)
            lines = list(self.expression(node, indent))
            if itself:
                self.text[node] = itself
                yield f"{indent}let {itself} = {lines[0]}"
                yield from lines[1:-1]
                yield lines[-1] + ";"
                continue
            if node is root and style == "relay" and node is graph.nodes[-1]:
                yield indent + lines[0]
                yield from lines[1:]
                return
            name = f"%{self.count}"
            self.count += 1
            self.text[node] = name
            yield f"{indent}{name} = {lines[0]}" + ("" if lines[1:] else ";")
            for i, line in enumerate(lines[1:]):
                yield line + (";" if i == len(lines) - 2 else "")
        yield f"{indent}return {self.text[root]};" if style == "course" else f"{indent}{self.text[root]}"

    def own_name(self, node: Node) -> str:
        """The name by which a function value calls itself; empty when it does not."""
        if node.op.name != "fn":
            return ""
        return next((self.text[o] for o in node.operands if o.op.name == "global" and str(o.attrs["name"]).startswith("%")), "")

    def inline(self, node: Node) -> bool:
        """Set the inline text of constants, projections and names."""
        name = node.op.name if node.op.known else ""
        if name == "constant" and "literal" in node.attrs:
            if not self.plain_constant(node):
                return False
            self.text[node] = self.constant(node)
        elif name == "get-tuple-element" and re.fullmatch(r"%[\w.]+", self.text.get(node.operands[0], "")):
            self.text[node] = f"{self.text[node.operands[0]]}.{node.attrs['index']}"
        elif name == "global":
            word = str(node.attrs["name"])
            self.text[node] = (
                word if word.startswith("%") or ("." in word and not word.startswith("@")) else f"@{word}" if not node.synthetic else word
            )
        elif name == "field":
            self.text[node] = local_name(node.name)
        else:
            return False
        return True

    def plain_constant(self, node: Node) -> bool:
        """Whether a constant is a number, a reference into the table, or a list of numbers with an evident type."""
        literal, type = node.attrs["literal"], node.type
        if "meta" in node.attrs:
            return True
        if literal.elided or not isinstance(type, TensorType):
            return False
        return self.is_spelled(node) or (self.table is not None and encodable(type))

    @staticmethod
    def is_spelled(node: Node) -> bool:
        """Whether a constant is written out: a scalar, or an array that the input text wrote out."""
        literal, type = node.attrs["literal"], node.type
        if not isinstance(type, TensorType):
            return False
        return type.dtype.name in PLAIN_SCALARS if type.rank == 0 else type.dtype.name in ("s32", "f32") and literal.text is not None

    def constant(self, node: Node) -> str:
        """A scalar as a literal, anything else as a reference into the table."""
        literal = node.attrs["literal"]
        claimed = f" /* ty={type_text(node.type)} */" if node.type is not UNKNOWN and not isinstance(node.type, NamedType) else ""
        if "meta" in node.attrs:
            return f"{node.attrs['meta']}{claimed}"
        if self.table is not None and not self.is_spelled(node):
            return self.table.reference(literal) + claimed
        if isinstance(node.type, TensorType) and node.type.rank == 0:
            return scalar_text(literal.value().item(), node.type)
        return nested_text(literal.value().tolist())

    def expression(self, node: Node, indent: str) -> Iterator[str]:
        """The right-hand side of a binding; several lines for one with blocks."""
        name = node.op.name if node.op.known else ""
        operands = [self.text[o] for o in node.operands]
        if name == "constant" and self.plain_constant(node):
            yield self.constant(node)
        elif name == "tuple":
            yield f"({', '.join(operands)}{',' if len(operands) == 1 else ''})"
        elif name == "get-tuple-element":
            yield f"{operands[0]}.{node.attrs['index']}"
        elif name == "fn":
            yield from self.function_value(node, indent)
        elif name == "if":
            yield from self.branches(node, indent)
        elif name == "match":
            yield from self.match(node, indent)
        elif name == "call" and node.op.dialect == "relay" and "callee" in node.attrs:
            attrs = {k: v for k, v in node.attrs.items() if k != "callee"}
            yield f"@{node.attrs['callee']}({self.arguments(operands, attrs)}){self.note(node)}"
        elif name == "call" and node.op.dialect == "relay":
            yield f"{operands[0]}({self.arguments(operands[1:], node.attrs)}){self.note(node)}"
        elif node.op.dialect in DIALECTS:
            attrs = written(node)
            if node.bodies:
                attrs["bodies"] = [Raw(global_name(self.names[body])) for body in node.bodies]
            yield f"{spelled(node.op)}({self.arguments(operands, attrs)}) /* ty={type_text(node.type)} */"
        elif name == "constructor":
            yield f"{node.attrs['name']}({', '.join(operands)})" if operands else str(node.attrs["name"])
        else:
            yield f"{node.op.name.removesuffix('?')}({self.arguments(operands, node.attrs)}){self.note(node)}"

    def note(self, node: Node) -> str:
        return f" /* ty={type_text(node.type)} */" if self.types and node.type is not UNKNOWN else ""

    @staticmethod
    def arguments(operands: list[str], attrs: Mapping[str, object]) -> str:
        items = list(operands)
        for key, value in attrs.items():
            items.append(value_text(value) if key.startswith("positional") else f"{key}={value_text(value)}")
        return ", ".join(items)

    def captures(self, graph: Graph, values: list[Node]) -> None:
        """Give the captures of a body their outer names."""
        own = graph.notes.get("own", len(graph.params))
        for param, value in zip(graph.params[own:], values, strict=True):
            self.text[param] = self.text[value]

    def function_value(self, node: Node, indent: str) -> Iterator[str]:
        graph = node.bodies[0]
        self.captures(graph, list(node.operands))
        yield f"fn {self.signature(graph)} {{"
        yield from self.body(graph, indent + "  ")
        yield indent + "}"

    def branches(self, node: Node, indent: str) -> Iterator[str]:
        at = 1
        for i, (word, graph) in enumerate(zip((f"if ({self.text[node.operands[0]]})", "else"), node.bodies, strict=True)):
            n = graph.notes.get("captures", 0)
            self.captures(graph, list(node.operands[at : at + n]))
            at += n
            yield f"{'' if i == 0 else indent + '} '}{word} {{"
            yield from self.body(graph, indent + "  ")
        yield indent + "}"

    def match(self, node: Node, indent: str) -> Iterator[str]:
        yield f"{'match' if node.attrs.get('complete', True) else 'match?'} ({self.text[node.operands[0]]}) {{"
        at = 1
        for pattern, graph in zip(node.attrs["patterns"], node.bodies, strict=True):
            n = graph.notes.get("captures", 0)
            for param in graph.params[:1]:
                self.text[param] = self.text[node.operands[0]]
            self.captures(graph, list(node.operands[at : at + n]))
            at += n
            yield f"{indent}  {pattern} => {{"
            yield from self.body(graph, indent + "    ")
            yield f"{indent}  }},"
        yield indent + "}"


def global_name(name: str) -> str:
    """``@f``; a name that is not a plain word is quoted."""
    return f"@{name}" if GLOBAL.match(name) else f'@"{name}"'


def local_name(name: str) -> str:
    """``%x``; a name that is not a plain word is quoted."""
    return f"%{name}" if SIMPLE.match(name) else f'%"{name}"'


def scalar_text(value: Any, type: TensorType) -> str:
    """A scalar with the suffix of its type."""
    dtype = type.dtype
    if dtype.name == "pred":
        return "True" if value else "False"
    if dtype.is_float:
        text = (repr(float(_short(value, dtype.bits))) if isfinite(value) else str(value)).removesuffix(".0")
        return text + ("f" if dtype.name == "f32" else f"f{dtype.bits}")
    return str(value) if dtype.name == "s32" else f"{value}{'u' if dtype.kind == 'uint' else 'i'}{dtype.bits}"


def _short(value: float, bits: int) -> str:
    """The fewest digits that parse as the same float."""
    return str(np.float32(value)) if bits == 32 else str(np.float16(value)) if bits == 16 else repr(value)


def nested_text(value: object) -> str:
    """A tensor literal."""
    return "[" + ", ".join(map(nested_text, value)) + "]" if isinstance(value, list) else str(value)


def value_text(value: object) -> str:
    """An attribute's value."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, float):
        return (repr(value) if value == value and abs(value) != float("inf") else str(value)) + "f"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, list):
        return "[" + ", ".join(map(value_text, value)) + "]"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(value_text, value)) + ("," if len(value) == 1 else "") + ")"
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{k}"={value_text(v)}' for k, v in value.items()) + "}"
    return str(value)
