"""Runs a TorchScript graph over abstract values.

    %1 : int = aten::size(%x, %0)        a number: computed now, not in the graph
    %2 : Tensor = aten::view(%x, %shape) a handle that reads through x
    %3 : Tensor = aten::relu_(%2)        updates x and every view of it
    %4 : Tensor = prim::If(%c)           one branch when %c is known, else a conditional with two bodies

Tensors become parameters, constants and primitives of a new graph; attribute look-ups become parameters named by their state-dict path.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from irscope.expand.torchscript import (
    aliases,
    autocast,
    batches,
    branches,
    constants,
    control,
    flexible_attention,
    higher_order,
    inputs,
    numbers,
    python_values,
    structure,
    weights,
)
from irscope.expand.torchscript.program import Given, TorchProgram
from irscope.formats.torchscript.abstract import Scalar, Tensor, Written, tensor, tensors
from irscope.formats.torchscript.attributes import Call
from irscope.formats.torchscript.element_types import check_element_type
from irscope.formats.torchscript.names import functional, qualified
from irscope.formats.torchscript.operators import overloads
from irscope.formats.torchscript.schema import in_order
from irscope.formats.torchscript.types import TorchTensorType
from irscope.graph import Graph, Module, NamedType, Node, TensorType, TupleType, Type, dtype_of
from irscope.graph.dtypes import F64
from irscope.ops import TypeFault, hlo
from irscope.ops.attributes import GetTupleElement
from irscope.ops.checked import Items, in_step
from irscope.ops.module_attributes import Prepared
from irscope.source import UserError
from irscope.source.budget import require_nodes, tick


def run_program(module: Module, given: Given, seen: Callable[[Node, object], None] | None = None) -> Module:
    """The primitive graph of what the entry computes. Raises UserError, with the node, where it cannot be run.

    The parameters are the tensor inputs in order, then the weights in order of first use, by state-dict path. ``seen`` is called with each
    node and its value.
    """
    return TorchInterpreter(module, given, seen).run()


def run_counted(module: Module, given: Given) -> tuple[Module, Counter[Node]]:
    """As :func:`run_program`, and how often each node of the text ran: more than once in unrolled loops and functions."""
    program = TorchInterpreter(module, given)
    return program.run(), program.runs


class TorchInterpreter(TorchProgram):
    """Runs a program node by node. ``seen`` is called with each node and its value."""

    def __init__(self, module: Module, given: Given, seen: Callable[[Node, object], None] | None = None) -> None:
        super().__init__(module, given)
        self.seen = seen
        self.depth = 0

    # ------------------------------------------------------------------ whole run

    def run(self) -> Module:
        main = self.module.main()
        if main.root is None:
            raise UserError(f"{main.name} has no result", "the text may be cut off, or an error precedes its return")
        arguments = inputs.input_values(self, main.params)
        try:
            results = self.call(main, arguments)
        except branches.Raise as raised:
            raise UserError(f"the program raises an exception for these inputs: {raised}") from None
        self._say_missing()
        if structure.has_optional(results):
            raise UserError("the program returns an Optional, and data decides whether it is None", "return a tensor and a bool beside it")
        root = main.root
        returned: Sequence[int] | None = main.notes.get("results")
        if returned is not None:
            results = [results[i] for i in returned if i < len(results)]
        with self._faults_at(root):
            leaves = [self._leaf(v) for v in structure.flatten(results) if not isinstance(v, str)]
        single = len(leaves) == 1 and not isinstance(results[0] if len(results) == 1 else results, list | tuple | dict)
        self.t.builder.at = (root,)
        self.graph.root = leaves[0] if single else self.t.tuple(leaves)
        state = [*Prepared.of(self.module).weights, *(p.name for p in main.params if _is_parameter(p))]
        self.made.attrs |= {"weights": frozenset([*self.weights, *state])}
        self.made.graphs[self.graph.name] = self.graph
        self.made.entry = self.graph.name
        return self.made

    def _leaf(self, value: object) -> Node:
        if isinstance(value, weights.UnsolvedWeight) and not value.solved:
            raise UserError(f"the program returns the weight {value.path!r}, whose shape the text does not say", "give it by --weights")
        if isinstance(value, Tensor):
            return self.t.here(value.get())
        if isinstance(value, Scalar):
            return self.t.here(value.node)
        if isinstance(value, bool | int | float | complex):
            return self.t.as_tensor(value, F64 if isinstance(value, float) else None)
        raise UserError(f"the program returns {type(value).__name__}, which is not a tensor", "return tensors, numbers, or tuples of them")

    def _say_missing(self) -> None:
        if not self.missing:
            return
        rows = []
        for name, nodes in self.missing.items():
            types = ", ".join(str(o.type) for o in nodes[0].operands)
            places = ", ".join(f"%{n.name}" for n in nodes[:3]) + (f" and {len(nodes) - 3} more" if len(nodes) > 3 else "")
            rows.append(f"{name}({types[:120]}) at {places}")
        raise UserError("operators that irscope does not run yet:\n  " + "\n  ".join(rows),
                        "irscope list ops --format json names those that it runs; show and lint work without them")

    def weight(self, path: str, node: Node) -> Tensor:
        """The weight of a state-dict path, for operators that read objects themselves."""
        return weights.weight(self, path, node)

    # ------------------------------------------------------------------ graphs and nodes

    def call(self, graph: Graph, arguments: Sequence[object]) -> list[Any]:
        """Run a graph; the results are those of its ``return``."""
        if len(arguments) != len(graph.params):
            raise UserError(f"{graph.name} takes {len(graph.params)} values, and is given {len(arguments)}")
        self.depth += 1
        if self.depth > 200:
            raise UserError(f"{graph.name} calls itself without end")
        env: dict[Node, object] = dict(zip(graph.params, arguments, strict=True))
        try:
            for node in graph.nodes:
                if node not in env:
                    self._run_node(node, env)
                if self.seen is not None and node in env:
                    with self._faults_at(node):
                        self.seen(node, env[node])
            return results_of(graph, env)
        finally:
            self.depth -= 1

    def _run_node(self, node: Node, env: dict[Node, object]) -> None:
        if node.op is hlo.get_tuple_element:
            several, index = env[node.operands[0]], GetTupleElement.of(node).index
            if not isinstance(several, list | tuple) or not -len(several) <= index < len(several):
                raise self.fault(node.operands[0], f"it has no value for %{node.name}")
            env[node] = several[index]
            return
        if node.op is hlo.tuple and node.synthetic:
            return
        self.t.builder.at = (node,)
        self.runs[node] += 1
        self.step(node)
        for operand in node.operands:
            if operand not in env:
                raise self.fault(node, f"%{operand.name} has no value that is understood")
        values = [env[o] for o in node.operands]
        with self._faults_at(node, values):
            env[node] = self._value(node, values)

    def step(self, node: Node, count: int = 1) -> None:
        """Count the run of a node: loops and calls may run some a billion times, and make no node of the result."""
        tick(count)
        self.steps += count
        what = f"unrolling its loops and calls, at %{node.name},"
        require_nodes(len(self.t.builder.graph.nodes), what, self.given.limit)
        require_nodes(self.steps, what, MOST_STEPS, "steps")

    @contextmanager
    def _faults_at(self, node: Node, values: Sequence[object] = ()) -> Iterator[None]:
        """Turn faults of an operator with these values into UserErrors with its place. Other exceptions are defects of irscope."""
        try:
            yield
        except TypeFault as fault:
            raise self.fault(node, str(fault), self._given_here(values)) from fault
        except RecursionError:  # lists and tuples that the program puts into one another, as often as it likes
            raise self.fault(node, "its values are nested too deeply") from None

    def _value(self, node: Node, values: list[Any]) -> Any:
        """The result of a node: one value, or a list of several."""
        name = node.op.name
        values = self._in_order(node, name, values)
        special: Callable[..., Any] | None = control.NODES.get(name) or structure.NODES.get(name) or HANDLERS.get(name)
        if special is not None:
            return special(self, node, values)
        if batches.has_rows(values):
            return batches.apply(self, node, name, values)
        if name in python_values.CONTAINERS and values and not isinstance(values[0], Tensor | Scalar) and _plain_operands(name, values):
            known = self._computed(node, name, values)
            if known is not python_values.UNKNOWN:
                return known
        leaves = structure.flatten(values)
        self.step(node, len(leaves) // PARTS_IN_A_STEP)
        if not any(isinstance(leaf, Tensor | Scalar) for leaf in leaves):
            known = self._computed(node, name, values)
            if known is not python_values.UNKNOWN:
                return known
        return self.operator(node, name, values)

    def _computed(self, node: Node, name: str, values: list[Any]) -> object:
        """The result of an operator on plain values, whose new parts count as steps: they stay until the run ends."""
        known = python_values.compute(name, values)
        if isinstance(known, list | tuple | dict | str) and known is not values[0]:
            self.step(node, len(known) // PARTS_IN_A_STEP)
        if node.type == FLOAT and isinstance(known, int) and not isinstance(known, bool):
            return float(known)  # torch has overloads that return a float where Python returns an int, such as of pow and max
        return known

    def _in_order(self, node: Node, name: str, values: list[object]) -> list[object]:
        """The operands in the order of the operator's schema, where the text passes some by keyword."""
        keywords = Call.of(node).passed
        if not keywords:
            return values
        found = overloads(name) or overloads(functional(node.op).name)
        return in_order(found.choices, Call.of(node).overload, values, keywords) if found is not None else values

    def operator(self, node: Node, name: str, values: list[Any]) -> Any:
        """Apply an operator of torch to values: by folding, by its expansion, or in place by its functional form."""
        self.step(node, STEPS_OF_AN_OPERATOR)
        if self.autocast is not None:
            values = autocast.cast(self, name, values)
        folded = python_values.fold_known(name, values)
        if isinstance(folded, Tensor) and folded.known is not None and folded not in values:
            return constants.known(self, folded.known, TensorType(dtype_of(folded.known.dtype), folded.known.shape))
        if folded is not None:
            return folded
        found = overloads(name)
        match = found.match(values, Call.of(node).overload) if found else None
        if match is None and found is not None and any(isinstance(v, Tensor) for v in values):
            match = found.match(numbers.as_tensors(self, found.choices[0].schema, values))
        if match is None and name.endswith("_") and not name.endswith("__"):
            return self._in_place(node, name, values)
        if match is None and numbers.are_numbers(values):
            return numbers.arithmetic(self, node, name, values)
        if match is None:
            if found is None:
                return self._missing(node)
            known = "; ".join(c.schema.text for c in found.choices)
            raise self.fault(node, f"no overload of {name} takes ({', '.join(map(structure.describe, values))})", f"known are {known}")
        choice, arguments = match
        if self.has_unsolved:
            weights.settle(self, node, name, arguments)
        if arguments and isinstance(arguments[0], Tensor):
            check_element_type(name, self.t.dtype(arguments[0].get()))
        if choice.style == "raw":
            return choice.function(self, *arguments)
        if name not in MOVING:
            arguments = [self._size(a) if declared.type in ("int", "SymInt") else a
                         for declared, a in zip(choice.schema.arguments, arguments, strict=True)]
        if choice.style in ("view", "alias"):
            return aliases.shared(self, node, choice.function, choice.style, arguments)
        results = choice.function(self.t, *map(structure.node_of, arguments))
        made = structure.wrap(self, results.results if isinstance(results, Written) else results)
        aliases.lay_out(self, node, name, arguments, made)
        if isinstance(results, Written):
            for place, value in results.values.items():
                aliases.write(self, arguments[place], value)
        return made

    def named(self, node: Node, target: str, values: list[Any]) -> Any:
        name, overload = qualified(target)
        found, keywords = overloads(name), Call.of(node).passed
        if keywords and found is not None:
            values = in_order(found.choices, overload, values, keywords)
        special: Callable[..., object] | None = structure.NODES.get(name)
        return special(self, node, values) if special is not None else self.operator(node, name, values)

    def _size(self, value: object) -> Any:
        """An int argument that the code depends on: one that depends on data is computed from the given inputs."""
        if isinstance(value, list):
            return Items(self._size(v) for v in value)
        return self.t.size_from_data(value.node) if isinstance(value, Scalar) else value

    def _in_place(self, node: Node, name: str, values: list[Any]) -> Any:
        """``relu_``: the result of ``relu``, in the type and shape of the tensor that is written."""
        target = values[0] if values else None
        plain = name[:-1]
        if isinstance(target, list) and overloads(plain) is not None:
            return self._each_in_place(node, plain, target, values)
        if not isinstance(target, Tensor) or (overloads(plain) is None and python_values.fold_known(plain, values) is None):
            return self._missing(node)
        if plain in KEEP_SHAPE:
            return target
        found = overloads(plain)
        match = found.match(values, Call.of(node).overload) if found is not None else None
        if match is not None and (match[0].style == "view" or plain == "aten::as_strided"):
            aliases.restride(self, target, tensor(aliases.shared(self, node, match[0].function, match[0].style, match[1])))
            return target
        result = tensor(self.operator(node, plain, values))
        if result is target:
            return target
        before = target.get()
        if target.region.base is None and not target.storage.shared and self.t.shape(result.get()) != self.t.shape(before):
            # Some products accept any operand and resize it to the shape of the result.
            aliases.announce(self, target.storage)
            target.storage.set(aliases.fitted(self.t, result.get(), self.t.dtype(before)))
            target.region.layout, target.known = result.layout, None
            return target
        aliases.write_result(self, target, result.get())
        return target

    def _each_in_place(self, node: Node, plain: str, targets: list[Any], values: list[Any]) -> list[Any]:
        """``_foreach_add_``: writes each tensor of a list."""
        results = self.operator(node, plain, values)
        if not isinstance(results, list):
            raise TypeFault(f"{plain} does not return a list, so that it has no form that writes one")
        for target, result in in_step("the written tensors and the results", tensors(targets), tensors(results)):
            aliases.write_result(self, target, result.get())
        return targets

    def _missing(self, node: Node) -> Any:
        """Record an unknown operator and continue with the declared type, so that one message reports all of them."""
        self.missing.setdefault(node.op.name, []).append(node)
        types: Sequence[Type] = node.type.elements if isinstance(node.type, TupleType) else [node.type]
        stands: list[object] = []
        for declared in types:
            if not isinstance(declared, TensorType) or not declared.is_static:
                self._say_missing()
            assert isinstance(declared, TensorType)
            stands.append(Tensor(self.t.full(declared.dims(), 0, declared.dtype)))
        return stands if isinstance(node.type, TupleType) else stands[0]

    def _given_here(self, values: Sequence[object]) -> str:
        """The operands that the user passed: weights with their path, inputs whose element type differs from the text."""
        paths = {id(tensor): path for path, tensor in self.weights.items()}
        differences = []
        for value in values:
            if not isinstance(value, Tensor) or not value.built or value.storage.stale:
                continue
            given = value.get()
            type = given.type
            if id(value) in paths:
                differences.append(f"the weight {paths[id(value)]} is {type}")
            declared = given.origin[0].type if given.op is hlo.parameter and given.origin else None
            if isinstance(declared, TensorType) and isinstance(type, TensorType) and declared.dtype is not type.dtype:
                differences.append(f"the input {given.name} is given as {type}, but the text says {declared.dtype}")
        return "; ".join(differences)


def _is_parameter(param: Node) -> bool:
    """Whether an input is a parameter of the model: some traces list parameters as inputs."""
    return isinstance(param.type, TorchTensorType) and param.type.requires_grad


def _plain_operands(name: str, values: Sequence[object]) -> bool:
    """Whether this is an operator of lists: no operand but the items is a tensor, and no item is compared with what depends on data."""
    if name in ("aten::add", "aten::add_", "aten::mul"):
        return len(values) > 1 and isinstance(values[0], list) and isinstance(values[1], list | int)
    if name == "aten::__contains__":
        return isinstance(values[0], list | dict) and not structure.has_tensor([*values[0], *values[1:]])
    return not isinstance(values[0], int | float)


def results_of(graph: Graph, env: Mapping[Node, object]) -> list[object]:
    """The values that a graph returns."""
    root = graph.result()
    if root.synthetic and root.op is hlo.tuple:
        return [env[o] for o in root.operands]
    return [env[root]]


HANDLERS = higher_order.NODES | flexible_attention.NODES | batches.NODES
"""The functions that run what FX graphs have beside operators."""
FLOAT = NamedType("float")
MOST_STEPS = 500_000
"""The most nodes of the text that run, each as often as it does; a second runs some 100,000 of them."""
STEPS_OF_AN_OPERATOR = 10
"""Matching the overloads of an operator and making its nodes takes as long as running this many other nodes."""
PARTS_IN_A_STEP = 8
"""The parts of a list, or the characters of a text, that cost as much as the run of a node."""
KEEP_SHAPE = frozenset(("aten::detach", "aten::requires_grad", "aten::alias"))
"""Views whose in-place form changes nothing that a value shows."""
MOVING = frozenset(("aten::select",))
"""Operators that take a place which only the run knows."""
