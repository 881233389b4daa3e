"""From the JSON of an archive to graphs, with the nodes that FX writes: ``getitem`` for the parts of a result, ``get_attr`` for subgraphs.

    {"target": "torch.ops.aten.add.Tensor", "name": "add",
     "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "x"}}, "kind": 1}, {"name": "other", "arg": {"as_int": 1}, "kind": 1}],
     "outputs": [{"as_tensor": {"name": "add"}}]}
"""
from __future__ import annotations

from dataclasses import replace

from irscope.formats.export.arguments import Arguments, tensor_meta
from irscope.formats.export.making import UNTYPED, Argument, GraphMaker, Invocation, unused
from irscope.formats.export.records import BadRecord, Record
from irscope.formats.export.symbols import Unreadable, spelled
from irscope.formats.export.targets import GET_ITEM, SPELLED, Targets, canonical, is_higher_order
from irscope.formats.export.types import SymbolType
from irscope.formats.torchscript.operators import overloads
from irscope.graph import UNKNOWN, Graph, Module, NamedType, Node, TupleType, Type

DEEPEST = 50
"""The maximal nesting of subgraphs."""
KEYWORD = 2
"""The kind of an argument that is passed by keyword (torch/_export/serde/schema.py)."""
TOKEN = NamedType("token")


class ArchivedGraphReader:
    """Reads one graph of an archive, and its subgraphs, into a module."""

    def __init__(self, module: Module, targets: Targets, record: Record, depth: int = 0) -> None:
        if depth > DEEPEST:
            raise BadRecord(f"{record.path[:80]}...: graphs are nested more than {DEEPEST} deep")
        self.module, self.targets, self.record, self.depth = module, targets, record, depth
        self.maker = GraphMaker(Graph(""), targets)
        self.arguments = Arguments(self.maker.names)
        self.types: dict[str, Type] = {}
        self.metadata: dict[Node, Record] = {}
        """The metadata that the archive has for nodes of this graph and of its subgraphs."""
        self.bodies: dict[str, tuple[object, Graph]] = {}

    def read(self, name: str, inputs: list[str]) -> Graph:
        """Add the graph to the module and return it. ``inputs`` has a name for each input that the record does not name: a constant."""
        record, maker = self.record, self.maker
        self._types()
        for i, value in enumerate(record.records("inputs")):
            given = self.arguments.name(value)
            named = given or (inputs[i] if i < len(inputs) and inputs[i] else f"arg{i}")
            if named in maker.names:
                raise BadRecord(f"{value.path}: {named} is an input twice")
            maker.placeholder(named, self._type(value, given) if given else UNTYPED)
        for node in record.records("nodes"):
            self._node(node)
        results: list[Argument] = [self.arguments.read(value) for value in record.records("outputs")]
        maker.result(results[0] if record.flag("is_single_tensor_return") and len(results) == 1 else results)
        maker.settle()
        graph = maker.graph
        graph.name = self.module.fresh_name(name)
        self.module.graphs[graph.name] = graph
        return graph

    # ------------------------------------------------------------------ types

    def _types(self) -> None:
        record = self.record
        values = record.record("tensor_values")
        given = {self.arguments.name(value) for value in record.records("inputs")}
        for name in values.values:
            type = tensor_meta(values.record(name))
            # Strides of results follow from those of the inputs. FX text omits them, and must give the same module.
            self.types[name] = type if name in given else replace(type, strides=None)
        for key, kind in (("sym_int_values", "int"), ("sym_bool_values", "bool"), ("sym_float_values", "float")):
            if not record.has(key):
                continue
            values = record.record(key)
            for name in values.values:
                self.types[name] = _symbol(values.record(name), kind)

    def _type(self, value: Record, name: str) -> Type:
        """The type of a value that is made here."""
        kind = value.only()
        if name in self.types:
            return self.types[name]
        if kind == "as_tensor":
            raise BadRecord(f"{value.path}: tensor_values has no type of {name}")
        return TOKEN if kind == "as_token" else NamedType(kind.removeprefix("as_"))

    # ------------------------------------------------------------------ nodes

    def _node(self, record: Record) -> None:
        target = canonical(record.text("target"))
        if not SPELLED.match(target):
            raise record.fault("target", f"{target[:40]!r} names no function")
        outputs = list(record.records("outputs"))
        name = self._name(record, outputs, target)
        before = len(self.maker.graph.nodes)
        positional: list[Argument] = []
        keywords: dict[str, Argument] = {}
        bodies: list[Graph] = []
        for i, given in enumerate(record.records("inputs")):
            argument = given.record("arg")
            value = self._subgraph(argument.record("as_graph"), bodies) if argument.only() == "as_graph" else self.arguments.read(argument)
            if self._is_keyword(given, target, i, keywords):
                word = given.text("name")
                if not word.isidentifier():
                    raise given.fault("name", f"{word[:40]!r} is not the name of a keyword argument")
                keywords[word] = value
            else:
                positional.append(value)
        if name in self.maker.names:
            raise BadRecord(f"{record.path}: {name} is made twice")
        single = self._is_single(record, outputs, name)
        type: Type = self._type(outputs[0], name) if single and outputs else UNKNOWN
        node = self.maker.call(name, Invocation(target, positional, keywords, bodies), type)
        if not single:
            self._parts(node, outputs)
        if record.has("metadata"):
            for made in self.maker.graph.nodes[before:]:
                if not made.synthetic:
                    self.metadata[made] = record.record("metadata")

    def _name(self, record: Record, outputs: list[Record], target: str) -> str:
        """The name of a node in FX. Archives before schema 8.8 have it only as the name of a single result; else the target gives it."""
        if record.has("name"):
            return record.text("name")
        if len(outputs) == 1 and (name := self.arguments.name(outputs[0])):
            return name
        base = target.rpartition(".")[2] if is_higher_order(target) else target.split(".")[-2] if target.count(".") else target
        return unused(base, self.maker.names.__contains__)

    def _is_keyword(self, given: Record, target: str, place: int, keywords: dict[str, Argument]) -> bool:
        if given.has("kind"):
            return given.number("kind") == KEYWORD
        found = overloads(self.targets.op(target).name)
        if found is None or not given.text("name"):
            return False
        named = given.text("name")
        return bool(keywords) or not any(place < len(c.schema.arguments) and c.schema.arguments[place].name == named for c in found.choices)

    def _is_single(self, record: Record, outputs: list[Record], name: str) -> bool:
        """Whether the value of a node is its one result, not a list or tuple of results."""
        if not outputs:
            return True
        if len(outputs) > 1 or outputs[0].only() == "as_tensors":
            return False
        if record.has("is_hop_single_tensor_return"):
            return record.flag("is_hop_single_tensor_return")
        given = self.arguments.name(outputs[0])
        return not given or given == name

    def _parts(self, node: Node, outputs: list[Record]) -> None:
        """Add a ``getitem`` for each element of the result that is used, and set the type of the node."""
        types: list[Type] = []
        listed = outputs[0].only() == "as_tensors" and len(outputs) == 1
        for i, output in enumerate(self._listed(outputs[0]) if listed else outputs):
            if output.only() == "as_tensors":
                types.append(self._inner(node, i, output))
                continue
            name = self.arguments.name(output)
            type = self._type(output, name) if name else NamedType("None")
            types.append(type)
            if name and name != f"{node.name}_unused_{i}":
                self._get(name, node, i, type)
        node.type = TupleType(tuple(types))

    def _inner(self, node: Node, place: int, output: Record) -> Type:
        """The type of a list among the results. Adds a ``getitem`` for the list and for each of its elements, unless all are unused."""
        listed = [(self.arguments.name(part), part) for part in self._listed(output)]
        whole: Type = TupleType(tuple(self._type(part, name) for name, part in listed))
        if any(name != f"{node.name}_unused_{place}_{i}" for i, (name, _) in enumerate(listed)):
            held = self._get(f"{node.name}_getitem_{place}", node, place, whole)
            for i, (name, part) in enumerate(listed):
                self._get(name, held, i, self._type(part, name))
        return whole

    def _listed(self, output: Record) -> list[Record]:
        """The parts of a list of tensors, as arguments of their own."""
        return [Record({"as_tensor": part.values}, part.path) for part in output.records("as_tensors")]

    def _get(self, name: str, node: Node, place: int, type: Type) -> Node:
        if name in self.maker.names:
            raise BadRecord(f"{self.record.path}: {name} is made twice")
        return self.maker.call(name, Invocation(GET_ITEM, [node, place]), type)

    def _subgraph(self, record: Record, bodies: list[Graph]) -> Node:
        """The ``get_attr`` of a graph that is an argument of a call. The same graph is read once."""
        name, graph = record.text("name"), record.record("graph")
        known = self.bodies.get(name)
        if known is not None and known[0] == graph.values:
            body = known[1]
        else:
            inner = ArchivedGraphReader(self.module, self.targets, graph, self.depth + 1)
            body = inner.read(name, [])
            self.metadata |= inner.metadata
            self.bodies[name] = graph.values, body
        bodies.append(body)
        return self.maker.attribute(unused(name, self.maker.names.__contains__), name, UNKNOWN, body)


def _symbol(record: Record, kind: str) -> Type:
    """The type of a symbolic number: ``{"as_expr": {"expr_str": ...}}``, or ``{"as_int": 3}``."""
    if record.only() != "as_expr":
        return SymbolType(kind, str(record.values[record.only()]))
    text = record.record("as_expr").text("expr_str")
    try:
        return SymbolType(kind, spelled(text))
    except Unreadable as error:
        raise BadRecord(f"{record.path}: {error}") from None
