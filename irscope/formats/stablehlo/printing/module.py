"""Prints modules: functions, and the computations of operations as their regions."""
from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from irscope.formats.stablehlo.building.elementwise import SAME
from irscope.formats.stablehlo.printing.attributes import SPELLERS, Texts, custom_call, transfer
from irscope.formats.stablehlo.printing.names import Leaf, Names, Parts, leaves, operation_name
from irscope.formats.stablehlo.provenance import StablehloProvenance
from irscope.formats.stablehlo.spelling import constant, flag, integer, location, quoted, symbol
from irscope.formats.stablehlo.types import spelled, spelled_results
from irscope.graph import Graph, Module, Node, TensorType, TupleType, Type
from irscope.graph.dtypes import PRED, S64
from irscope.ops import hlo
from irscope.ops.attributes import Call, Constant, GetTupleElement
from irscope.ops.faults import TypeFault
from irscope.source import UserError
from irscope.source.budget import tick

MAX_NESTING = 60
"""Regions nested deeper are refused: each level costs several calls of Python."""
SHORT = hlo.named(" ".join(SAME).replace("_", "-"))
"""Elementwise operators of one type, printed in the pretty form; the others are printed in the generic form."""
SEND_RECEIVE = hlo.named("send recv")
COMPOSITE = re.compile(r'composite\.(name|version)="((?:[^"\\]|\\.)*)"')
COMPOSITE_ATTRIBUTES = re.compile(r"composite\.attributes=(\{.*\}),composite\.name=", re.DOTALL)
SHARDING = re.compile(r'xla\.sdy\.sharding="(#sdy\.sharding<.*>)"\}?$', re.DOTALL)


def print_module(module: Module) -> str:
    """The module as StableHLO text. Raises UserError for an operator or an attribute that StableHLO does not have."""
    return "\n".join(_Module(module).lines()) + "\n"


class _Module:
    def __init__(self, module: Module) -> None:
        self.module = module
        entry = module.graphs.get(module.entry)
        called = [body for graph in module.graphs.values() for node in graph.nodes if node.op in (hlo.call, hlo.custom_call)
                  for body in node.bodies]
        regions = {id(body) for graph in module.graphs.values() for node in graph.nodes for body in node.bodies}
        functions = [graph for graph in module.graphs.values() if id(graph) not in regions]
        first = [entry] if entry is not None else []
        self.functions = list({id(graph): graph for graph in [*first, *functions, *called]}.values())

    def lines(self) -> Iterator[str]:
        module = self.module
        notes = [f"mhlo.{name} = {integer(int(module.attrs[key]), 'i32')}" for key, name in
                 (("num_partitions", "num_partitions"), ("replica_count", "num_replicas")) if isinstance(module.attrs.get(key), int)]
        notes += [f"{name} = {quoted(value) if isinstance(value, str) else flag(value)}" for name, value in module.attrs.items()
                  if "." in name and isinstance(value, str | bool)]
        name = f"{symbol(module.name)} " if module.name else ""
        yield f"module {name}" + (f"attributes {{{', '.join(notes)}}} " if notes else "") + "{"
        for mesh in meshes_of(module):
            yield f"  {mesh}"
        for graph in self.functions:
            yield from _Function(self.module, graph).lines()
        yield "}"


class _Function:
    """One function; ``names`` are unique in it."""

    def __init__(self, module: Module, graph: Graph) -> None:
        self.module, self.graph, self.names = module, graph, Names()
        self.out: list[str] = []

    def lines(self) -> list[str]:
        """The lines of the function."""
        graph = self.graph
        arguments = [Leaf(self.names.fresh(param.name), param.type) for param in graph.params]
        shown = ", ".join(leaf.name + ": " + self._type(param) + self._notes(param)
                          for leaf, param in zip(arguments, graph.params, strict=True))
        root = self.block(graph, arguments, 2)
        body, self.out = self.out, []
        visibility = "public" if graph.name == self.module.entry else "private"
        results = f" -> {spelled_results(tuple(leaf.type for leaf in root))}" if root else ""
        names = ", ".join(leaf.name for leaf in root)
        types = ", ".join(spelled(leaf.type) for leaf in root)
        last = f"    return {names} : {types}" if root else "    return"
        return [f"  func.func {visibility} {symbol(graph.name)}({shown}){results} {{", *body, last, "  }"]

    def _notes(self, param: Node) -> str:
        sharding = self.module.raw(param).get("sharding", "")
        if sharding.startswith("#"):
            return f" {{sdy.sharding = {sharding}}}" if meshes_of(self.module) else ""
        return f" {{mhlo.sharding = {quoted(sharding)}}}" if sharding else ""

    def _type(self, node: Node) -> str:
        try:
            return spelled(node.type)
        except TypeFault as fault:
            raise self._refuse(node, fault.message) from None

    def _refuse(self, node: Node, why: str) -> UserError:
        return UserError(f"%{node.name} ({node.op.name}) cannot be written as StableHLO: {why}", "--to hlo writes all primitives")

    def block(self, graph: Graph, arguments: Sequence[Parts], depth: int) -> list[Leaf]:
        """Print the operations of a graph whose parameters are these values; returns the values of its result."""
        if depth > MAX_NESTING:
            raise UserError(f"regions of {self.graph.name} are nested more than {MAX_NESTING} deep", "--to hlo writes them side by side")
        env: dict[Node, Parts] = dict(zip(graph.params, arguments, strict=True))
        for node in graph.nodes:
            tick()
            if node not in env:
                try:
                    env[node] = self._node(node, env, depth)
                except TypeFault as fault:
                    raise self._refuse(node, fault.message) from None
        if graph.root is None:
            raise UserError(f"the function {graph.name} has no result: its text is cut off")
        return leaves(env[graph.root])

    def _node(self, node: Node, env: Mapping[Node, Parts], depth: int) -> Parts:
        """Print one node; returns its values."""
        op = node.op
        operands = [env[operand] for operand in node.operands]
        if op is hlo.tuple and (node.synthetic or node.origin):
            return tuple(operands)
        if op is hlo.get_tuple_element and not isinstance(operands[0], Leaf):
            return operands[0][GetTupleElement.of(node).index]
        if op in SEND_RECEIVE:
            return tuple(operands)  # printed with the node that waits for it
        if op is hlo.constant:
            name = self.names.fresh(node.name)
            self._line(depth, f"{name} = stablehlo.constant {constant(Constant.of(node).literal, node.type)}{self._location(node)}")
            return Leaf(name, node.type)
        flat = [leaf for parts in operands for leaf in leaves(parts)]
        if op in SHORT and not node.attrs:
            name = self.names.fresh(node.name)
            given = ", ".join(leaf.name for leaf in flat)
            self._line(depth, f"{name} = {operation_name(node)} {given} : {self._type(node)}{self._location(node)}")
            return Leaf(name, node.type)
        if op is hlo.rng:
            flat.append(self._shape(node, depth))
        if op is hlo.conditional:
            flat = leaves(operands[0])
        return self._generic(node, flat, self._regions(node, operands, depth), depth)

    def _location(self, node: Node) -> str:
        """``loc("jit(f)/add"("f"("file.py":3:4)))``; empty where the user's program is not known."""
        place = location(self.module.scope(node), self.module.call_stack(node))
        return f" loc({place})" if place else ""

    def _line(self, depth: int, text: str) -> None:
        self.out.append("  " * depth + text)

    def _shape(self, node: Node, depth: int) -> Leaf:
        """The shape of a random array, which is an operand in StableHLO."""
        dims = node.type.dims() if isinstance(node.type, TensorType) else ()
        name = self.names.fresh(f"{node.name}_shape")
        type = TensorType(S64, (len(dims),))
        self._line(depth, f"{name} = stablehlo.constant dense<{list(dims) if dims else ''}> : {spelled(type)}")
        return Leaf(name, type)

    def _generic(self, node: Node, operands: Sequence[Leaf], regions: list[str], depth: int) -> Parts:
        """Print a node in the generic form."""
        name, attributes = self._operation(node)
        types = self._results(node)
        result = self.names.fresh(node.name) if types else ""
        count = f":{len(types)}" if len(types) > 1 else ""
        head = f"{result}{count} = " if types else ""
        properties = ", ".join(f"{key} = {value}" if value != "unit" else key for key, value in attributes.items())
        shown = f" <{{{properties}}}>" if properties else ""
        given = ", ".join(spelled(leaf.type) for leaf in operands)
        tail = f" : ({given}) -> {spelled_results(types)}{self._location(node)}"
        text = f'{head}"{name}"({", ".join(leaf.name for leaf in operands)}){shown}'
        if regions:
            self._line(depth, text + " ({")
            self.out += regions
            self._line(depth, "})" + tail)
        else:
            self._line(depth, text + tail)
        made = [Leaf(result if len(types) == 1 else f"{result}#{i}", type) for i, type in enumerate(types)]
        return _structured(iter(made), node.type) if len(types) != 1 or not _is_one(node) else made[0]

    def _results(self, node: Node) -> tuple[Type, ...]:
        """The types of the results."""
        return (node.type,) if _is_one(node) else tuple(node.type.leaves())

    def _operation(self, node: Node) -> tuple[str, Texts]:
        """The name and the attributes of an operation."""
        op = node.op
        if op is hlo.call:
            return self._call(node)
        if op is hlo.custom_call:
            return self._custom_call(node)
        if op is hlo.while_:
            return "stablehlo.while", {}
        if op is hlo.conditional:
            chooser = node.operands[0].type
            return "stablehlo.if" if isinstance(chooser, TensorType) and chooser.dtype is PRED else "stablehlo.case", {}
        if op in (hlo.send_done, hlo.recv_done):
            return "stablehlo.send" if op is hlo.send_done else "stablehlo.recv", transfer(node)
        name = operation_name(node) if op.known else None
        if name is None:
            raise self._refuse(node, "StableHLO has no such operation")
        if op is hlo.get_tuple_element:
            return name, {"index": integer(GetTupleElement.of(node).index, "i32")}
        speller = SPELLERS.get(op)
        if speller is None and node.attrs:
            raise self._refuse(node, f"StableHLO has no attribute {next(iter(node.attrs))} there")
        return name, speller(node) if speller is not None else {}

    def _call(self, node: Node) -> tuple[str, Texts]:
        callee = symbol(node.bodies[0].name)
        raw = self.module.raw(node).get("frontend_attributes", "")
        found = dict(COMPOSITE.findall(raw))
        if not Call.of(node).is_composite or "name" not in found:
            return "func.call", {"callee": callee}
        attributes = COMPOSITE_ATTRIBUTES.search(raw)
        texts = {"name": f'"{found["name"]}"', "decomposition": callee, "version": integer(int(found.get("version", "0")[:9] or 0), "i32")}
        return "stablehlo.composite", {**texts, **({"composite_attributes": attributes[1]} if attributes is not None else {})}

    def _custom_call(self, node: Node) -> tuple[str, Texts]:
        raw = self.module.raw(node)
        sharding = SHARDING.search(raw.get("frontend_attributes", ""))
        if node.attrs.get("custom_call_target") == "xla.sdy.Sharding" and sharding is not None and meshes_of(self.module):
            return "sdy.sharding_constraint", {"sharding": sharding[1]}
        return "stablehlo.custom_call", custom_call(node, raw.get("backend_config", ""))

    def _regions(self, node: Node, operands: Sequence[Parts], depth: int) -> list[str]:
        """The lines of the regions of a node."""
        if node.op in (hlo.call, hlo.custom_call) or not node.bodies:
            return []
        outer, self.out = self.out, []
        for number, body in enumerate(node.bodies):
            if number:
                self._line(depth, "}, {")
            if node.op is hlo.conditional:
                arguments: list[Parts] = [operands[number + 1]]
            else:
                arguments = [_structured(iter([Leaf(self.names.fresh(param.name), type) for type in param.type.leaves()]), param.type)
                             for param in body.params]
                shown = ", ".join(f"{leaf.name}: {spelled(leaf.type)}" for parts in arguments for leaf in leaves(parts))
                self._line(depth, f"^bb0({shown}):" if shown else "^bb0:")
            root = self.block(body, arguments, depth + 1)
            types = f" : {', '.join(spelled(leaf.type) for leaf in root)}" if root else ""
            self._line(depth + 1, f"stablehlo.return {', '.join(leaf.name for leaf in root)}{types}".rstrip())
        made, self.out = self.out, outer
        return made


def meshes_of(module: Module) -> list[str]:
    """The meshes of the text that a module was read from."""
    return module.provenance.meshes if isinstance(module.provenance, StablehloProvenance) else []


def _is_one(node: Node) -> bool:
    """Whether a node of a tuple's type is one value of that type in StableHLO, not several results."""
    return not isinstance(node.type, TupleType) or node.op in (hlo.tuple, hlo.get_tuple_element)


def _structured(given: Iterator[Leaf], type: Type) -> Parts:
    """Values in the structure of a type."""
    if isinstance(type, TupleType):
        return tuple([_structured(given, element) for element in type.elements])
    return next(given)
