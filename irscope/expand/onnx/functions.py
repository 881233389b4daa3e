"""The functions by which the standard defines operators, read into graphs."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irscope.formats.onnx.algebra import Onnx
from irscope.formats.onnx.dialect import ONNX
from irscope.formats.onnx.functions import domain_of
from irscope.formats.onnx.graphs import Context, GraphReader
from irscope.formats.onnx.package import body_of, node_bytes, type_bytes
from irscope.formats.onnx.tensors import ModelFolder
from irscope.formats.onnx.types import NUMBER_OF
from irscope.graph import Graph, Module, Node, Reading, TupleType
from irscope.source import SourceText

EMPTY = b""
_read: dict[tuple[Any, ...], Graph | None] = {}


def body_graph(t: Onnx, node: Node, values: Sequence[Any], attributes: dict[str, Any], version: int) -> Graph | None:
    """The function of an operator for operands of these types; None where the standard has none."""
    operands = ["" if value is None else f"operand{i}" for i, value in enumerate(values)]
    count = len(node.type.elements) if isinstance(node.type, TupleType) else 1
    results = [f"result{i}" for i in range(count)]
    types = tuple(type_bytes(NUMBER_OF[t.dtype(v)], t.shape(v)) if isinstance(v, Node) else EMPTY for v in values)
    key = (node.op.name, version, node_bytes(node.op.name, operands, results, attributes), types)
    if key not in _read:
        proto = body_of(*key)
        _read[key] = None if proto is None else _graph(proto, node.op.name, count)
    return _read[key]


def _graph(proto: Any, name: str, count: int) -> Graph | None:
    """The graph of a function. Optional results that a node does not ask for are not computed in it."""
    source = SourceText(name, "")
    reading = Reading(source, "onnx")
    graph = Graph(name)
    computed = {str(output) for inner in proto.node for output in inner.output} | {str(name) for name in proto.input}
    results = [str(output) if output in computed else "" for output in proto.output][:count]
    context = Context(Module(name, ONNX, source=source), reading, ModelFolder(""))
    GraphReader(context, graph, {domain_of(entry): int(entry.version) for entry in proto.opset_import}).read_function(proto, results)
    return graph if reading.ok else None
