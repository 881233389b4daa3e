"""Runs an ONNX model abstractly: its values are nodes of the graph under construction.

    y = Softmax(x)                      the expansion of the operator
    y = lab.Twice(x)                    the inlined function
    y = Attention(q, k, v)              the function by which the standard defines the operator
    y = If(c) {then_branch, ...}        one body where %c is known, else a conditional with two bodies
    y = Loop(m, c, x) {body}            trip by trip where the number is known and small, else a loop

Tensors become parameters, constants and primitives of a new graph. Sequences are lists whose lengths are known. A size that depends on data
is computed from the given inputs.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from irscope.expand.onnx import control, loops
from irscope.expand.onnx.functions import body_graph
from irscope.expand.onnx.program import MAX_DEPTH, Measure, OnnxProgram, Values
from irscope.formats.onnx import structure
from irscope.formats.onnx.attributes import Ref
from irscope.formats.onnx.declarations import Operator
from irscope.formats.onnx.inference import built
from irscope.formats.onnx.operators import declared, names
from irscope.graph import Graph, Module, Node, Op, TensorType, TupleType, Type, unknown_op
from irscope.ops import hlo
from irscope.ops.attributes import GetTupleElement
from irscope.ops.faults import TypeFault
from irscope.source import UserError, did_you_mean
from irscope.source.budget import require_nodes

MAX_RUN = 1 << 18
"""A model runs no more nodes, with those of functions and bodies counted at each call. They take about 4 s."""
Seen = Callable[[Node, Any], None]


def run_program(module: Module, inputs: Mapping[str, Type] | None = None, constants: Mapping[str, Any] | None = None,
                partial: bool = False, measure: Measure | None = None, seen: Seen | None = None) -> Module:
    """The primitive graph of what the model computes. Raises UserError, with the node, where it cannot be run.

    ``inputs`` are types of inputs that the model leaves open. ``partial`` keeps operators without an expansion as they are. ``measure``
    runs a graph whose result is one integer over the actual inputs. ``seen`` is called with each node of the main graph and its value.
    """
    return Interpreter(module, inputs or {}, partial, measure, seen).run()


class Interpreter(OnnxProgram):
    """Runs a model node by node."""

    def __init__(self, module: Module, inputs: Mapping[str, Type], partial: bool, measure: Measure | None, seen: Seen | None) -> None:
        super().__init__(module, measure)
        self.inputs, self.partial, self.seen = inputs, partial, seen
        self.depth = 0
        self.ran = 0
        """The number of nodes that ran, in all calls: a function may make no node, and call others twice each."""

    def run(self) -> Module:
        main = self.module.main()
        if main.root is None:
            raise UserError(f"the graph {main.name} has no result")
        values = self.call(main, [self._input(p) for p in main.params])
        self.t.builder.at = (main.root,)
        leaves: list[Node] = []
        for value in values:
            for leaf in value if isinstance(value, list) else [value]:
                if isinstance(leaf, Node):
                    leaves.append(leaf)
                elif leaf is not None:
                    raise UserError("an output of the model is a sequence of sequences or a string, which is no array")
        if not leaves:
            raise UserError("the model returns no tensors")
        self.graph.root = leaves[0] if len(leaves) == 1 else self.t.tuple(leaves)
        self.made.graphs[self.graph.name] = self.graph
        return self.made

    def _input(self, param: Node) -> Any:
        type = self.inputs.get(param.name, param.type)
        if not isinstance(type, TensorType):
            raise UserError(f"the input {param.name} is {type}, not a tensor", "irscope runs models of tensors: pass them as inputs")
        if not type.is_static:
            raise UserError(f"the input {param.name} has open dimensions: {type}", f"give it by --inputs, or --shape {param.name}=...")
        made = self.t.builder.param(hlo.parameter, type, param.name)
        made.origin = (param,)
        return self.t.own(made)

    # ------------------------------------------------------------------ graphs and nodes

    def call(self, graph: Graph, arguments: Sequence[Any]) -> Values:
        if graph.root is None:
            raise UserError(f"the graph {graph.name} has no result")
        if len(arguments) > len(graph.params):
            raise UserError(f"{graph.name} takes {len(graph.params)} operands, got {len(arguments)}")
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UserError(f"functions and bodies are nested more than {MAX_DEPTH} deep, at {graph.name}")
        env: dict[Node, Any] = dict.fromkeys(graph.params)
        env.update(zip(graph.params, arguments, strict=False))
        try:
            for node in graph.nodes:
                if node not in env:
                    self._run_node(node, env)
                if self.seen is not None and self.depth == 1:
                    self.seen(node, env[node])
        finally:
            self.depth -= 1
        if graph.root.synthetic and graph.root.op is hlo.tuple:
            return [env[o] for o in graph.root.operands]
        return [env[graph.root]]

    def _run_node(self, node: Node, env: dict[Node, Any]) -> None:
        if node.op is hlo.get_tuple_element:
            whole, index = env[node.operands[0]], GetTupleElement.of(node).index
            env[node] = whole[index] if index < len(whole) else None
            return
        if node.op is hlo.tuple:
            env[node] = None
            return
        self.ran += 1
        require_nodes(self.t.built, f"unrolling and inlining, at %{node.name},")
        require_nodes(self.ran, f"running functions and loops, at %{node.name},", MAX_RUN, "steps")
        outer = node if self.depth == 1 else self.t.builder.at[0]
        with self.t.placed((outer,)):
            results = self._soundly(node, [env[o] for o in node.operands])
        env[node] = results if isinstance(node.type, TupleType) else results[0] if results else None

    def _soundly(self, node: Node, values: Values) -> Values:
        """The results of a node. Raises UserError, with the node, where its operands or attributes do not fit."""
        try:
            return self._value(node, values)
        except TypeFault as fault:
            raise self.fault(node, fault.message, fault.help) from None

    def _value(self, node: Node, values: Values) -> Values:
        special = STRUCTURE.get(node.op)
        if special is not None:
            return special(self, node, values)
        if node.op.traits == structure.FUNCTION and node.bodies:
            return self._function(node, values)
        return self.operator(node, values)

    def _constant(self, node: Node, values: Values) -> Values:
        made = self.t.builder.add(hlo.constant, (), dict(node.attrs), node.type, name=node.name)
        return [self.t.own(made)]

    def attributes(self, node: Node) -> dict[str, Any]:
        """The attributes of a node. References to attributes of the enclosing function are resolved."""
        found = {key: self.scope.get(value.name) if isinstance(value, Ref) else value for key, value in node.attrs.items()}
        return {key: value for key, value in found.items() if value is not None and key != "opset"}

    def _function(self, node: Node, values: Values) -> Values:
        """A function of the model, inlined."""
        body = node.bodies[-1]  # after graphs that are attributes
        with self.within({**body.notes.get("defaults", {}), **self.attributes(node)}):
            return self.call(body, values)

    # ------------------------------------------------------------------ operators

    def operator(self, node: Node, values: Values) -> Values:
        """The expansion of an operator."""
        found = declared(node.op.name)
        if found is None or (found.build is None and not found.is_function):
            return self._missing(node, found, values)
        if any(isinstance(v, str) for v in values):
            raise self.fault(node, "it takes strings, which irscope does not compute", "cut the model after this operator")
        version = int(node.attrs.get("opset", 1))
        results = len(node.type.elements) if isinstance(node.type, TupleType) else 1
        if found.is_function:
            return self._by_function(node, found, values, version)
        return built(found, self.t, self.attributes(node), values, (version, results))

    def _by_function(self, node: Node, found: Operator, values: Values, version: int) -> Values:
        """Run the function by which the standard defines an operator."""
        written = {a.name: value for a in found.attributes if (value := self.attributes(node).get(a.name)) is not None}
        bound = found.bound(written, version, 1)
        found.arranged(values)
        given = {a.name: value for a in found.attributes if (value := getattr(bound, a.name)) is not None}
        body = body_graph(self.t, node, values, written, version)
        if body is None:
            raise TypeFault(f"the standard has no definition of {node.op.name} for these operands")
        with self.within(given):
            return self.call(body, values)

    def _missing(self, node: Node, found: Operator | None, values: Values) -> Values:
        """An operator that irscope does not compute: kept with ``partial``, else an error."""
        if not self.partial:
            near = found.reason if found is not None else did_you_mean(node.op.name, names()) or "show and lint work without it"
            raise self.fault(node, "irscope does not compute this operator", near)
        operands = [self.t.here(v) for v in values if isinstance(v, Node)]
        made = self.t.own(self.t.builder.add(unknown_op(node.op.name, "onnx"), operands, node.attrs, node.type))
        if not isinstance(node.type, TupleType):
            return [made]
        return [self.t.part(made, i) for i in range(len(node.type.elements))]


STRUCTURE: dict[Op, Callable[[Interpreter, Node, Values], Values]] = {
    hlo.constant: Interpreter._constant, structure.TEXT: lambda program, node, values: ["strings"],
    structure.ABSENT: lambda program, node, values: [None],
    structure.IF: control.branch, structure.LOOP: loops.loop, structure.SCAN: loops.scan, structure.SEQUENCE_MAP: loops.sequence_map,
}
