"""Runs a Relay program abstractly: its values are nodes of the graph under construction.

    %2 = fn (%p0, Primitive=1) { ... };    a function: a value of the program, not of the graph
    %3 = %2(%x);                           the inlined body
    if (%c) { ... } else { ... }           one branch when %c is known, else a conditional with two bodies
    match (%l) { Cons(%h, _) => %h, ... }  the arm of the constructor that made %l, which is known

Tensors become parameters, constants and primitives of a new graph. Tuples and data are taken apart. A tail-recursive function
is unrolled while its condition is known, and becomes a loop otherwise; any other recursion is inlined.

Calls may nest to any depth: a call is run by a generator, which yields the calls inside it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from types import GeneratorType
from typing import Any

from irscope.expand.given import given_constant
from irscope.expand.relay import choices, loops
from irscope.expand.relay.binding import unsolved
from irscope.expand.relay.program import MAX_DEPTH, RelayProgram, Run
from irscope.expand.relay.values import Closure, Constructor, Reference, SelfReference, describe, flatten
from irscope.expand.steps import drive
from irscope.formats.relay import structure
from irscope.formats.relay.attributes import Callee, Named, TableConstant
from irscope.formats.relay.inference import built
from irscope.formats.relay.operators import declared, names
from irscope.formats.relay.primitives import is_primitive, spelled
from irscope.graph import UNKNOWN, Graph, Module, Node, Op, TensorType, TupleType, Type, unknown_op
from irscope.graph.walk import leaves_of
from irscope.lazy import Array
from irscope.ops import TypeFault, hlo
from irscope.ops.attributes import GetTupleElement
from irscope.source import UserError, did_you_mean
from irscope.source.budget import require_nodes


def run_program(module: Module, inputs: Mapping[str, Type] | None = None, constants: Mapping[str, Array] | None = None,
                partial: bool = False, measure: Callable[[Graph], int] | None = None) -> Module:
    """The primitive graph of what the entry computes. Raises UserError, with the place, where it cannot be run.

    ``inputs`` are types of parameters that the text leaves open, ``constants`` values of the table that the text omits. ``partial``
    keeps operators without an expansion as they are, for counting and display. ``measure`` is not used: sizes that depend on data are
    refused.
    """
    return RelayInterpreter(module, inputs or {}, constants or {}, partial).run()


class RelayInterpreter(RelayProgram):
    """Runs a program node by node; ``partial`` keeps operators without an expansion."""

    def __init__(self, module: Module, inputs: Mapping[str, Type], constants: Mapping[str, Array], partial: bool) -> None:
        super().__init__(module)
        self.inputs = inputs
        self.constants = constants
        self.partial = partial
        self.loops: dict[Graph, loops.TailLoop | None] = {}

    # ------------------------------------------------------------------ whole run

    def run(self) -> Module:
        main = self.module.main()
        if main.root is None:
            raise UserError(f"function @{main.name} has no result")
        if main.root.op is structure.LOWERED:
            raise UserError(f"@{main.name} is a lowered function, which is kept as text", "give the Relay module that it was made from")
        arguments = [self._input(p) for p in main.params]
        self.t.builder.at = (main.root,)
        value = drive(self.call(main, arguments))
        leaves = flatten(value)
        if not all(isinstance(leaf, Node) for leaf in leaves):
            raise UserError(f"@{main.name} returns a function or a reference, which is not an array")
        self.t.builder.at = (main.root,)
        self.graph.root = leaves[0] if isinstance(value, Node) else self.t.tuple([self.t.here(leaf) for leaf in leaves])
        self.made.graphs[self.graph.name] = self.graph
        return self.made

    def _input(self, param: Node) -> Any:
        type = self.inputs.get(param.name, param.type)
        if isinstance(type, TupleType):
            return [self._leaf(t, param, f"{param.name}.{i}") for i, t in enumerate(type.elements)]
        return self._leaf(type, param, param.name)

    def _leaf(self, type: Type, param: Node, name: str) -> object:
        if isinstance(type, TupleType):
            return [self._leaf(t, param, f"{name}.{i}") for i, t in enumerate(type.elements)]
        if not isinstance(type, TensorType):
            if type is UNKNOWN:
                raise unsolved(self.module, param, name)
            raise UserError(f"input %{name} has the type {type} in the text, which no array has{self.where(param)}",
                            choices.KNOWN if self.constructors else "irscope runs programs over arrays")
        if not type.is_static:
            raise UserError(f"input %{name} has an open dimension: {type}", f"give it by --inputs, or --shape {name}=...")
        made = self.t.builder.param(hlo.parameter, type, name)
        made.loc, made.origin = param.loc, (param,)
        return self.t.own(made)

    # ------------------------------------------------------------------ functions

    def call(self, graph: Graph, arguments: list[object]) -> Run:
        """Run a graph. Its captures follow its own parameters."""
        if len(graph.params) != len(arguments):
            raise UserError(f"@{graph.name} takes {len(graph.params)} arguments, and gets {len(arguments)}")
        self.running.append(graph)
        if len(self.running) > MAX_DEPTH:
            raise UserError(f"{self.repeated()} calls itself more than {MAX_DEPTH} deep, and may never end")
        values: dict[Node, object] = dict(zip(graph.params, arguments, strict=True))
        yield from self.fill(graph, values)
        self.running.pop()
        return values[graph.result()]

    def fill(self, graph: Graph, values: dict[Node, Any], wanted: Container[Node] | None = None) -> Run:
        """Compute the values of a graph's nodes that are not known yet, or of those in ``wanted``."""
        for node in graph.nodes:
            if node not in values and (wanted is None or node in wanted):
                made = self.value(node, [values[o] for o in node.operands])
                values[node] = (yield made) if isinstance(made, GeneratorType) else made

    def value(self, node: Node, values: list[Any]) -> Any:
        """The value of a node of the program, or the call that computes it."""
        require_nodes(self.t.built, f"inlining its functions{self.where(node)}")
        with self.t.placed((node,)):
            return self._value(node, values)

    def _value(self, node: Node, values: list[Any]) -> Any:
        if node.op is hlo.constant:
            return self._constant(node)
        if node.op is hlo.tuple:
            return list(values)
        if node.op is hlo.get_tuple_element:
            whole, index = values[0], GetTupleElement.of(node).index
            if not isinstance(whole, list | tuple) or index >= len(whole):
                raise UserError(f"the value has no element {index}: it is not a tuple of {index + 1} or more{self.where(node)}")
            return whole[index]
        if node.op.known and is_primitive(spelled(node.op)):
            return self._kept(node, values)
        return STRUCTURE.get(node.op, RelayInterpreter.operator)(self, node, values)

    def _function(self, node: Node, values: list[object]) -> Closure:
        made = Closure(node.bodies[0], values)
        made.captured = [made if isinstance(v, SelfReference) else v for v in values]
        return made

    def _ref_write(self, node: Node, values: list[object]) -> list[object]:
        self.write(self._cell(node, values), values[1])
        return []

    def _cell(self, node: Node, values: list[object]) -> Reference:
        if isinstance(values[0], Reference):
            return values[0]
        raise UserError(f"{node.op.name} takes a reference, but gets {describe(values[0])}{self.where(node)}")

    def _called(self, node: Node, values: list[Any]) -> object:
        name = Callee.of(node).callee
        if name is not None:
            if not node.bodies:
                raise UserError(f"@{name} is not in the text{self.where(node)}")
            return self.apply(node, Closure(node.bodies[0], []), values)
        callee, arguments = values[0], values[1:]
        if isinstance(callee, Constructor):
            return choices.made_by(self, node, callee, arguments)
        if not isinstance(callee, Closure):
            raise UserError(f"%{node.name} calls {describe(callee)}, which is not a function{self.where(node)}")
        return self.apply(node, callee, arguments)

    def apply(self, node: Node, function: Closure, arguments: list[object]) -> Run:
        """Apply a function to arguments; a tail-recursive one is a loop."""
        graph = function.graph
        loop = self._loop(function)
        if loop is not None:
            return loops.run_loop(self, node, function, loop, arguments)
        if graph.root is not None and graph.root.op is structure.LOWERED:
            raise UserError(f"@{graph.name} is a lowered function, which is kept as text{self.where(node)}")
        return self.call(graph, [*arguments, *function.captured])

    def _loop(self, function: Closure) -> loops.TailLoop | None:
        """The loop of a tail-recursive function; those of the module are analysed once."""
        if function.captured:
            return loops.tail_loop(function)
        if function.graph not in self.loops:
            self.loops[function.graph] = loops.tail_loop(function)
        return self.loops[function.graph]

    def _global(self, node: Node, values: list[object]) -> object:
        name = str(Named.of(node).name)
        if name.startswith("%"):
            return SelfReference(name)
        graph = self.module.graphs.get(name)
        if graph is not None:
            return Closure(graph, [])
        raise UserError(f"{name} is a value that irscope does not compile{self.where(node)}")

    # ------------------------------------------------------------------ operators

    def operator(self, node: Node, values: list[Any]) -> Any:
        """The expansion of an operator."""
        parts = leaves_of(values, lambda value: value if isinstance(value, list) else None)
        strange = next((v for v in parts if not isinstance(v, Node)), None)
        if strange is not None:
            raise UserError(f"{node.op.name} takes arrays, but gets {describe(strange)}{self.where(node)}")
        found = declared(node.op.name)
        strange_names = [key for key in node.attrs if found is not None and key not in found.names and not key.startswith("positional")]
        if found is not None and strange_names:
            near = did_you_mean(strange_names[0], found.names) or f"it has {', '.join(found.names) or 'none'}"
            raise UserError(f"{node.op.name} has no attribute {strange_names[0]}{self.where(node)}", near)
        if found is None or found.build is None:
            if self.partial:
                return self._kept(node, values)
            near = did_you_mean(node.op.name, _names())
            raise UserError(f"{node.op.name} has no meaning that irscope could compile{self.where(node)}", near)
        try:
            made = built(found, self.t, node.attrs, values)
            return list(made) if isinstance(made, tuple) else made
        except TypeFault as fault:
            raise UserError(f"{fault.message}{self.where(node)}", fault.help) from None

    def _kept(self, node: Node, values: list[object]) -> object:
        """A primitive of the text, copied, or an operator without an expansion."""
        operands = [self.whole(v) for v in values]
        if is_primitive(spelled(node.op)) and node.op is not hlo.parameter:
            made = self.t.builder.add(node.op, operands, node.attrs, node.type, node.bodies)
        else:
            made = self.t.builder.add(unknown_op(node.op.name, "relay"), operands, node.attrs, node.type)
        self.t.own(made)
        return self.parts(made)

    def whole(self, value: Any) -> Node:
        """A value as one node: lists are tuples."""
        return self.t.here(value) if isinstance(value, Node) else self.t.tuple([self.whole(v) for v in value])

    def parts(self, node: Node) -> Any:
        """A node that is a tuple, taken apart."""
        if not isinstance(node.type, TupleType):
            return node
        return [self.parts(self.t.part(node, i)) for i in range(len(node.type.elements))]

    def _constant(self, node: Node) -> object:
        literal, meta = TableConstant.of(node).literal, TableConstant.of(node).meta
        key = node.name if meta is None else str(meta)
        if literal is None:
            raise UserError(f"the constant %{node.name} is not understood{self.where(node)}")
        type = literal.type if isinstance(literal.type, TensorType) else node.type
        if not isinstance(type, TensorType):
            raise UserError(f"the text does not say the type of the constant {key}{self.where(node)}")
        if literal.elided and key in self.constants:
            return self.t.array(given_constant(self.constants, key, type), type.dtype)
        made = self.t.builder.add(hlo.constant, (), {"literal": literal}, type, name=key if literal.elided else None)
        return self.t.own(made)

STRUCTURE: dict[Op, Callable[[RelayInterpreter, Node, list[Any]], Any]] = {
    structure.FUNCTION: RelayInterpreter._function, structure.GLOBAL: RelayInterpreter._global, structure.CALL: RelayInterpreter._called,
    structure.IF: choices.branch, structure.MATCH: choices.match, structure.CONSTRUCTOR: choices.constructed,
    structure.FIELD: choices.bound, structure.REF: lambda program, node, values: Reference(values[0], len(program.journals)),
    structure.REF_READ: lambda program, node, values: program._cell(node, values).value, structure.REF_WRITE: RelayInterpreter._ref_write,
}


def _names() -> list[str]:
    return [n for n in names() if (found := declared(n)) is not None and found.build is not None]

