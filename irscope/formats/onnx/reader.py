"""Reads a binary ONNX model: its graph, bodies and functions, with the types that ONNX's shape inference finds."""
from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from irscope.formats.onnx.dialect import ONNX
from irscope.formats.onnx.findings import MALFORMED, NO_TYPES, report
from irscope.formats.onnx.functions import calls_in_order, domain_of, key_of, name_of
from irscope.formats.onnx.graphs import Context, GraphReader
from irscope.formats.onnx.inference import fill_types
from irscope.formats.onnx.package import Proto, parsed, with_types
from irscope.formats.onnx.printer import lines_of
from irscope.formats.onnx.provenance import OnnxProvenance, Origin
from irscope.formats.onnx.tensors import ModelFolder, literal_of
from irscope.graph import Graph, Module, Node, Reading
from irscope.ops.attrs import Literal
from irscope.source import SourceText, UserError

MOST_VERSION = (1 << 31) - 1
"""The highest version of operators: the package ``onnx`` takes them as C integers."""


def read_bytes(data: bytes, name: str) -> Reading:
    """Read a model. ``name`` is its path: external data are looked up in the folder of it.

    Raises UserError where the bytes are no model, or the package ``onnx`` is missing.
    """
    model = parsed(data, name)
    if not model.HasField("graph"):
        raise UserError(f"{name}: the model has no graph", "a file of weights alone, or of another kind: export the model again")
    reading = Reading(SourceText(name, ""), "onnx")
    folder = ModelFolder(os.path.dirname(os.path.abspath(name)) if os.path.isfile(name) else "")
    literals = dict(_initializers(model.graph, folder, reading))
    typed, why = with_types(model)
    reading.modules.append(_module(typed, reading, folder, literals))
    reading.has_other_files = folder.is_used
    if why and reading.ok:
        report(reading, NO_TYPES, f"ONNX's shape inference refuses the model: {why}", help="types are those that the model states")
    return reading


def _initializers(graph: Proto, folder: ModelFolder, reading: Reading) -> Iterator[tuple[str, Literal]]:
    """The constants of the main graph. Those that are large leave the model here: shape inference copies it twice."""
    for tensor in graph.initializer:
        made = literal_of(tensor, folder)
        if isinstance(made, str):
            report(reading, MALFORMED, made)
        else:
            yield str(tensor.name), made


def _module(model: Proto, reading: Reading, folder: ModelFolder, literals: dict[str, Literal]) -> Module:
    opsets = _opsets(model, reading)
    graph = Graph(str(model.graph.name) or "main")
    module = Module(graph.name, ONNX, source=reading.source)
    module.attrs = {"opsets": opsets, "ir_version": int(model.ir_version), "producer": str(model.producer_name)}
    context = Context(module, reading, folder)
    functions = {key_of(function): function for function in model.functions}
    context.functions = {key: Graph(name_of(*key)) for key in functions}
    for key in calls_in_order(functions, reading):
        function = functions[key]
        GraphReader(context, context.functions[key], {**opsets, **_opsets(function, reading)}).read_function(function)
        context.keep(context.functions[key])
    GraphReader(context, graph, opsets).read(model.graph, literals)
    context.keep(graph)
    module.entry = graph.name
    if reading.ok:
        fill_types(module)
    _place(module, context.origins)
    return module


def _opsets(proto: Proto, reading: Reading) -> dict[str, int]:
    """The versions of the operators by domain, of a model or a function."""
    found = {domain_of(entry): int(entry.version) for entry in proto.opset_import}
    for domain, version in found.items():
        if not 0 <= version <= MOST_VERSION:
            report(reading, MALFORMED, f"the version of the operators of {domain or 'ai.onnx'} is {version}, which is no 32-bit number")
    return {domain: min(max(version, 0), MOST_VERSION) for domain, version in found.items()}


def _place(module: Module, origins: Mapping[Node, Origin]) -> None:
    """Give the nodes places in the printed form of the model, which stands for its text in messages."""
    text, at, found = [], 0, {}
    for line, node in lines_of(module):
        if node is not None:
            node.loc = at + len(line) - len(line.lstrip())
            found[node.loc] = origins[node]
        text.append(line)
        at += len(line) + 1
    module.source.text = "\n".join(text) + "\n"
    module.provenance = OnnxProvenance(found)
