"""Reads one graph of a model, its bodies included: a node for each node and each constant, a parameter for each input.

    If (then_branch: z = Add(x, x), ...)        the body reads %x of the graph around it, which becomes a parameter of the body and an
                                                operand of If

A node with several results is a tuple; its results are nodes that carry the names in the file.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from irscope.formats.onnx import structure
from irscope.formats.onnx.attributes import GRAPHS, Sparse, value_of
from irscope.formats.onnx.findings import MALFORMED, TWICE, UNDEFINED, report
from irscope.formats.onnx.functions import Key, called, name_of
from irscope.formats.onnx.operators import load
from irscope.formats.onnx.package import Proto
from irscope.formats.onnx.provenance import Origin, origin_of
from irscope.formats.onnx.tensors import ModelFolder, literal_of
from irscope.formats.onnx.types import ABSENT, type_of
from irscope.graph import UNKNOWN, Graph, Module, NamedType, Node, Op, Reading, TupleType, Type, unknown_op
from irscope.ops import hlo, lookup
from irscope.ops.attrs import Literal
from irscope.source.budget import tick

BODIES = ("then_branch", "else_branch", "body")
MAX_DEPTH = 60
"""Bodies nested deeper than this are refused: the reader and the protobuf parser work on one level after another."""


class Context:
    """What the graphs of one model share."""

    def __init__(self, module: Module, reading: Reading, folder: ModelFolder) -> None:
        self.module, self.reading, self.folder = module, reading, folder
        self.functions: dict[Key, Graph] = {}
        self.origins: dict[Node, Origin] = {}
        self._ops: dict[str, Op] = {}

    def keep(self, graph: Graph) -> None:
        """Add a graph to the module, under a free name."""
        graph.name = self.module.fresh_name(graph.name)
        self.module.graphs[graph.name] = graph

    def operator(self, proto: Proto, key: Key) -> Op:
        """The operator of a node: of the standard, a function of the model, or unknown and opaque."""
        name = name_of(*key)
        if key in self.functions:
            return self._ops.setdefault(name, Op(name, "onnx", "A function of the model.", work="control", traits=structure.FUNCTION))
        load()
        return lookup(name, "onnx") or self._ops.setdefault(name, unknown_op(name, "onnx"))


class GraphReader:
    """Reads one graph. ``outer`` reads the graph around it, whose values a body may use."""

    def __init__(self, context: Context, graph: Graph, opsets: Mapping[str, int], outer: GraphReader | None = None) -> None:
        self.context, self.graph, self.opsets, self.outer = context, graph, opsets, outer
        self.depth: int = outer.depth + 1 if outer is not None else 0
        self.values: dict[str, Node] = {}
        self.captured: list[str] = []
        self.types: dict[str, Type] = {}
        self.later: frozenset[str] = frozenset()
        self.names: set[str] = set()
        self._numbered: dict[str, int] = {}
        graph.notes["opsets"] = dict(opsets)

    # ------------------------------------------------------------------ whole graphs

    def read(self, proto: Proto, literals: Mapping[str, Literal] | None = None) -> None:
        """A GraphProto. ``literals`` are the values of its initializers, where they are read already."""
        self.types = {str(v.name): type_of(v.type) for values in (proto.value_info, proto.output, proto.input) for v in values
                      if v.HasField("type")}
        constants = {str(tensor.name) for tensor in proto.initializer} | {str(s.values.name) for s in proto.sparse_initializer}
        for value in proto.input:
            if str(value.name) not in constants:
                self._param(str(value.name))
        for tensor in proto.initializer:
            self._initializer(tensor, literals)
        for sparse in proto.sparse_initializer:
            self._sparse(sparse)
        self._nodes(proto.node)
        self._results([str(value.name) for value in proto.output])

    def read_function(self, proto: Proto, results: Sequence[str] | None = None) -> None:
        """A FunctionProto. ``results`` names those of its outputs that are wanted; all where it is None, no value where a name is empty."""
        for name in proto.input:
            self._param(str(name))
        self.graph.notes["defaults"] = {str(a.name): self._attribute(a) for a in proto.attribute_proto}
        self._nodes(proto.node)
        self._results([str(name) for name in proto.output] if results is None else results)

    def _results(self, names: Sequence[str]) -> None:
        roots = [self._operand(name, "the graph returns") for name in names]
        if not roots:
            self._report(MALFORMED, f"the graph {self.graph.name} has no outputs")
            return
        self.graph.root = roots[0] if len(roots) == 1 else self._add(
            hlo.tuple, self._fresh("results"), TupleType(tuple(r.type for r in roots)), roots, synthetic=True)

    # ------------------------------------------------------------------ values

    def find(self, name: str) -> Node | None:
        """The value of a name; one of an outer graph becomes a parameter."""
        if name in self.values:
            return self.values[name]
        found = self.outer.find(name) if self.outer is not None else None
        if found is None:
            return None
        self.captured.append(name)
        return self._param(name, found.type)

    def _param(self, name: str, type: Type | None = None) -> Node:
        node = self._define(name, hlo.parameter, type or self.types.get(name, UNKNOWN))
        node.attrs = {"number": len(self.graph.params)}
        node.synthetic = True
        self.graph.params.append(node)
        return node

    def _initializer(self, tensor: Proto, literals: Mapping[str, Literal] | None) -> None:
        name = str(tensor.name)
        if literals is not None:
            literal: Literal | str | None = literals.get(name)
        else:
            literal = literal_of(tensor, self.context.folder)
            if isinstance(literal, str):
                self._report(MALFORMED, literal)
        if isinstance(literal, Literal):
            self._constant(name, literal)

    def _constant(self, name: str, literal: Literal) -> None:
        text = literal.type is UNKNOWN
        node = self._define(name, structure.TEXT if text else hlo.constant, NamedType("string") if text else literal.type)
        node.attrs, node.synthetic = {"literal": literal}, True

    def _sparse(self, proto: Proto) -> None:
        parts = [literal_of(part, self.context.folder) for part in (proto.values, proto.indices)]
        for part in parts:
            if isinstance(part, str):
                self._report(MALFORMED, part)
        values, indices = parts
        if isinstance(values, Literal) and isinstance(indices, Literal):
            name = str(proto.values.name)
            node = self._define(name, self.context.operator(proto, ("", "Constant", "")), self.types.get(name, UNKNOWN))
            node.attrs = {"sparse_value": Sparse(values, indices, tuple(int(d) for d in proto.dims))}
            node.synthetic = True

    def _define(self, name: str, op: Op, type: Type) -> Node:
        """A new value. Reports a name that is taken, and one that is empty: operands that are left out have empty names."""
        if not name:
            self._report(MALFORMED, f"an input or a constant of {self.graph.name} has no name")
            return self._add(op, self._fresh("unnamed"), type)
        if name in self.values:
            self._report(TWICE, f"the value {name} is defined twice", node=name)
            name = self._fresh(name)
        node = self._add(op, name, type)
        self.values[name] = node
        return node

    def _add(self, op: Op, name: str, type: Type, operands: Sequence[Node] = (), synthetic: bool = False) -> Node:
        self.names.add(name)
        return self.graph.add(Node(op, name, type, tuple(operands), synthetic=synthetic))

    def _fresh(self, wanted: str) -> str:
        """A name that no value of the graph has."""
        name, n = wanted, 0
        while name in self.names or name in self.later:
            n = self._numbered[wanted] = self._numbered.get(wanted, 0) + 1
            name = f"{wanted}.{n}"
        return name

    def _operand(self, name: str, reader: str) -> Node:
        """The node of an operand; one that stands for nothing where the name is empty or undefined."""
        found = self.find(name) if name else self.values.get("")
        if found is not None:
            return found
        if name and name in self.later:
            self._report(UNDEFINED, f"{reader} {name} before it is defined: the nodes are not sorted, or form a cycle", node=name)
        elif name:
            self._report(UNDEFINED, f"{reader} {name}, which is not defined", node=name)
        if "" not in self.values:
            self.values[""] = self._add(structure.ABSENT, self._fresh("absent"), ABSENT, synthetic=True)
        return self.values[""]

    # ------------------------------------------------------------------ nodes

    def _nodes(self, protos: Sequence[Proto]) -> None:
        self.later = frozenset(str(name) for proto in protos for name in proto.output)
        for proto in protos:
            tick()
            self._node(proto)

    def _node(self, proto: Proto) -> None:
        key = called(proto)
        op = self.context.operator(proto, key)
        reader = f"{op.name} {proto.name}".strip() + " reads"
        operands = [self._operand(str(name), reader) for name in proto.input]
        version: dict[str, Any] = {"opset": self.opsets.get(key[0], 1)} if op.known else {}
        attrs = dict(version)
        bodies: dict[str, Graph] = {}
        first = next((str(name) for name in proto.output if name), str(proto.name) or op.name)
        for attribute in proto.attribute:
            if any(attribute.HasField(f) if f == "g" else len(attribute.graphs) for f in GRAPHS):
                bodies.update(self._bodies(attribute, first))
            else:
                attrs[str(attribute.name)] = self._attribute(attribute)
        attrs |= version
        ordered = sorted(bodies, key=lambda name: BODIES.index(name) if name in BODIES else len(BODIES))
        for name in ordered:
            operands += [self._operand(captured, reader) for captured in bodies[name].notes["captured"]]
        graphs = [bodies[name] for name in ordered]
        if key in self.context.functions:
            graphs.append(self.context.functions[key])
        self._finish(proto, op, operands, {k: v for k, v in attrs.items() if v is not None}, graphs)

    def _finish(self, proto: Proto, op: Op, operands: list[Node], attrs: dict[str, Any], graphs: list[Graph]) -> None:
        """Append the node of a NodeProto, and its results where it has several."""
        results = [str(name) for name in proto.output]
        while results and not results[-1]:
            results.pop()
        if len(results) == 1:
            made = self._define(results[0], op, self.types.get(results[0], UNKNOWN))
            made.operands = tuple(operands)
        else:
            types = tuple(self.types.get(name, UNKNOWN) if name else ABSENT for name in results)
            made = self._add(op, self._fresh(str(proto.name) or op.name), TupleType(types), operands)
        made.attrs, made.bodies = attrs, tuple(graphs)
        self.context.origins[made] = origin_of(proto)
        if len(results) > 1:
            for i, name in enumerate(results):
                if name:
                    part = self._define(name, hlo.get_tuple_element, types[i])
                    part.operands, part.attrs, part.synthetic = (made,), {"index": i}, True

    def _bodies(self, attribute: Proto, name: str) -> dict[str, Graph]:
        """The bodies in an attribute."""
        if self.depth >= MAX_DEPTH:
            self._report(MALFORMED, f"bodies are nested more than {MAX_DEPTH} deep")
            return {}
        made = {}
        protos = [attribute.g] if attribute.HasField("g") else list(attribute.graphs)
        for i, proto in enumerate(protos):
            label = str(attribute.name) if attribute.HasField("g") else f"{attribute.name}.{i}"
            graph = Graph(f"{name}.{label}")
            reader = GraphReader(self.context, graph, self.opsets, self)
            reader.read(proto)
            graph.notes |= {"captures": len(reader.captured), "captured": tuple(reader.captured)}
            self.context.keep(graph)
            made[label] = graph
        return made

    def _attribute(self, proto: Proto) -> Any:
        try:
            return value_of(proto, self.context.folder)
        except ValueError as fault:
            self._report(MALFORMED, str(fault))
            return None

    def _report(self, fault: Any, message: str, node: str = "") -> None:
        report(self.context.reading, fault, message, node)
