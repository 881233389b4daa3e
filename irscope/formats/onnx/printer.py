"""ONNX models as text, in the form that ``onnx.printer`` writes; weights are left out."""
from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from irscope.formats.onnx.attributes import Model, Ref
from irscope.formats.onnx.types import ABSENT, word_of
from irscope.graph import Graph, Module, Node, TensorType, TupleType, Type
from irscope.ops import hlo
from irscope.ops.attrs import Literal

INDENT = "  "


Line = tuple[str, Node | None]
"""A line of the text, and the node that it shows."""


def print_module(module: Module) -> str:
    """The module as text."""
    return "".join(f"{text}\n" for text, _ in lines_of(module))


def lines_of(module: Module) -> Iterator[Line]:
    """The lines of the text, each with its node."""
    model = Model.of(module)
    opsets = ", ".join(f'"{domain}" : {version}' for domain, version in model.opsets.items())
    yield f"<ir_version: {model.ir_version}, opset_import: [{opsets}]>", None
    bodies = {body for graph in module.graphs.values() for node in graph.nodes for body in node.bodies if "captures" in body.notes}
    for graph in module.graphs.values():
        if graph not in bodies:
            yield from _graph(graph, "")


def _graph(graph: Graph, indent: str) -> Iterator[Line]:
    own = graph.params[:len(graph.params) - int(graph.notes.get("captures", 0))]
    yield f"{indent}{graph.name} ({', '.join(_typed(p) for p in own)}) => ({', '.join(_typed(r) for r in results_of(graph))})", None
    weights = [n for n in graph.nodes if n.op is hlo.constant]
    if weights:
        yield f"{indent}{INDENT}<{', '.join(_typed(w) for w in weights)}>", None
    yield indent + "{", None
    parts = parts_of(graph)
    for node in graph.shown():
        yield from _node(node, parts.get(node, {}), indent + INDENT)
    yield indent + "}", None


def parts_of(graph: Graph) -> dict[Node, dict[int, str]]:
    """The names of the results of each node with several."""
    found: dict[Node, dict[int, str]] = {}
    for node in graph.nodes:
        if node.op is hlo.get_tuple_element:
            found.setdefault(node.operands[0], {})[int(node.attrs["index"])] = node.name
    return found


def _node(node: Node, parts: Mapping[int, str], indent: str) -> Iterator[Line]:
    captured = sum(int(body.notes.get("captures", 0)) for body in node.bodies)
    own = node.operands[:len(node.operands) - captured]
    names = [node.name]
    if isinstance(node.type, TupleType):
        names = [parts.get(i, "") for i in range(len(node.type.elements))]
    attributes = [f"{key} = {_value(value)}" for key, value in node.attrs.items() if key != "opset"]
    nested = [body for body in node.bodies if "captures" in body.notes]
    text = f" <{', '.join(attributes)}>" if attributes else ""
    operands = ", ".join("" if o.type is ABSENT else o.name for o in own)
    yield f"{indent}{', '.join(names)} = {node.op.name}{text} ({operands})" + (" with" if nested else ""), node
    for body in nested:
        yield from _graph(body, indent + INDENT)


def results_of(graph: Graph) -> tuple[Node, ...]:
    """The nodes that a graph returns."""
    root = graph.root
    if root is None:
        return ()
    return root.operands if root.op is hlo.tuple and root.synthetic else (root,)


def _typed(node: Node) -> str:
    return f"{type_text(node.type)} {node.name}"


def type_text(type: Type) -> str:
    """``float[2,N]``."""
    if isinstance(type, TensorType):
        return word_of(type.dtype) + (f"[{','.join(map(str, type.shape))}]" if type.shape else "")
    return str(type)


def _value(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, Ref):
        return f"@{value.name}"
    if isinstance(value, Literal):
        return f"{type_text(value.type)} {{...}}"
    return str(value)
