"""Makes the nodes of FX graphs. What a call is given beside values becomes synthetic nodes, as TorchScript writes them out:

    view = torch.ops.aten.view.default(x, [2, n])
        %view.1.0 = prim::Constant[value=2]()
        %view.1 = prim::ListConstruct(%view.1.0, %n)
        %view = aten::view(%x, %view.1)

So all analyses of TorchScript read these graphs. The names of keyword arguments are in the :class:`Call
<irscope.formats.torchscript.attributes.Call>` of the node.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Union

from irscope.formats.export.operators import GET_ATTR
from irscope.formats.export.targets import GET_ITEM, Targets
from irscope.formats.export.values import NamedConstant
from irscope.formats.torchscript.structure import CONSTANT, DICT_CONSTRUCT, LIST_CONSTRUCT
from irscope.formats.torchscript.types import TENSOR_WORD
from irscope.formats.torchscript.values import List
from irscope.graph import NO_ATTRS, UNKNOWN, Graph, NamedType, Node, TensorType, TupleType, Type
from irscope.ops import hlo

Plain = bool | int | float | complex | str | NamedConstant | None
Argument = Union[Node, Plain, "list[Argument]", "dict[str, Argument]"]
"""An argument of a call: a value, a constant, a list (or tuple), or a dictionary."""

KINDS: dict[type, NamedType] = {bool: NamedType("bool"), int: NamedType("int"), float: NamedType("float"), complex: NamedType("complex"),
                                str: NamedType("str"), type(None): NamedType("NoneType")}
LISTS = {kind: NamedType(f"{type}[]") for kind, type in KINDS.items()}
MIXED, DICT = NamedType("list"), NamedType("dict")
GRAPH = NamedType("Graph")
UNTYPED = NamedType("Any?")
"""The type of an input for which the text states none."""


def unused(base: str, is_taken: Callable[[str], bool]) -> str:
    """``base``, or the first of ``base_1``, ``base_2``, ... that is not taken."""
    name, number = base, 0
    while is_taken(name):
        number += 1
        name = f"{base}_{number}"
    return name


@dataclass(frozen=True, slots=True)
class Invocation:
    """What a call invokes: a target, its arguments, and the subgraphs among them."""

    target: str
    arguments: Sequence[Argument]
    keywords: Mapping[str, Argument] = field(default_factory=dict)
    bodies: Sequence[Graph] = ()


class GraphMaker:
    """One graph of a program under construction, and the names of its values."""

    def __init__(self, graph: Graph, targets: Targets, shared: dict[str, Mapping[str, Any]] | None = None) -> None:
        self.graph = graph
        self.targets = targets
        self.names: dict[str, Node] = {}
        self._shared = {} if shared is None else shared
        """Attributes by their text: many nodes share them."""
        self._parts: dict[Node, dict[int, Type]] = {}

    # ------------------------------------------------------------------ what the text writes

    def placeholder(self, name: str, type: Type, loc: int = -1) -> Node:
        """An input of the graph. The header has it, so it is not counted as a node."""
        graph = self.graph
        node = graph.add(Node(hlo.parameter, name, type, (), {"number": len(graph.params)}, (), loc, synthetic=True))
        graph.params.append(node)
        self.names[name] = node
        return node

    def attribute(self, name: str, target: str, type: Type, body: Graph | None, loc: int = -1) -> Node:
        """``get_attr``: a subgraph, or a tensor of the module."""
        attrs = self._attrs({"name": target} if body is None else {"callee": body.name})
        node = self.graph.add(Node(GET_ATTR, name, GRAPH if body is not None else type, (), attrs, (), loc))
        self.names[name] = node
        return node

    def call(self, name: str, invoked: Invocation, type: Type, loc: int = -1) -> Node:
        """The call of a target."""
        target, arguments, keywords = invoked.target, invoked.arguments, invoked.keywords
        if target == GET_ITEM and len(arguments) == 2:
            whole, place = arguments
            if isinstance(whole, Node) and isinstance(place, int) and not isinstance(whole.type, TensorType):
                return self._part(name, whole, place, type, loc)
        operands = [self._operand(argument, f"{name}.{i}", loc) for i, argument in enumerate(arguments)]
        named = sorted(keywords)
        operands += [self._operand(keywords[word], f"{name}.{word}", loc) for word in named]
        attrs: dict[str, Any] = {"target": target}
        if named:
            attrs["keywords"] = tuple(named)
        node = Node(self.targets.op(target), name, type, tuple(operands), self._attrs(attrs), tuple(invoked.bodies), loc)
        self.names[name] = self.graph.add(node)
        return node

    def _part(self, name: str, whole: Node, place: int, type: Type, loc: int) -> Node:
        """``getitem``: one of the results of a call."""
        if whole.type is UNKNOWN and type is not UNKNOWN:
            self._parts.setdefault(whole, {})[place] = type
        node = Node(hlo.get_tuple_element, name, type, (whole,), self._attrs({"index": place}), (), loc)
        self.names[name] = self.graph.add(node)
        return node

    def result(self, value: Argument, loc: int = -1) -> None:
        """What the graph returns: one value, or a list of them."""
        graph = self.graph
        if not isinstance(value, list):
            graph.root = self._operand(value, "output.0", loc)
            return
        parts = tuple(self._operand(part, f"output.{i}", loc) for i, part in enumerate(value))
        type = TupleType(tuple(part.type for part in parts))
        graph.root = graph.add(Node(hlo.tuple, "output", type, parts, NO_ATTRS, (), loc, synthetic=True))

    def settle(self) -> None:
        """Complete the types: calls with several results have those of their parts, where none is left out; the inputs of a text without
        types are tensors, as far as it reads them."""
        for node, parts in self._parts.items():
            if min(parts) == 0 and max(parts) == len(parts) - 1:
                node.type = TupleType(tuple(parts[i] for i in range(len(parts))))
        params = self.graph.params
        if params and all(param.type is UNTYPED for param in params):
            read = {operand for node in self.graph.nodes for operand in node.operands} | {self.graph.root}
            for param in params:
                param.type = TENSOR_WORD if param in read else UNTYPED

    # ------------------------------------------------------------------ what it writes within a call

    def _operand(self, argument: Argument, name: str, loc: int) -> Node:
        """The node of an argument. Lists are few levels deep: the readers bound the nesting."""
        if isinstance(argument, Node):
            return argument
        if isinstance(argument, list):
            return self._list(argument, name, loc)
        if isinstance(argument, dict):
            items = [part for key, value in argument.items()
                     for part in (self._operand(key, f"{name}.{key}.key", loc), self._operand(value, f"{name}.{key}", loc))]
            return self._synthetic(DICT_CONSTRUCT, name, DICT, items, NO_ATTRS, loc)
        return self._constant(argument, name, loc)

    def _list(self, items: list[Argument], name: str, loc: int) -> Node:
        kinds = {type(item) for item in items}
        if len(kinds) <= 1 and kinds <= LISTS.keys():
            kind = LISTS[kinds.pop()] if kinds else MIXED
            return self._synthetic(CONSTANT, name, kind, (), self._attrs({"value": List(items)}), loc)
        parts = [self._operand(item, f"{name}.{i}", loc) for i, item in enumerate(items)]
        return self._synthetic(LIST_CONSTRUCT, name, MIXED, parts, NO_ATTRS, loc)

    def _constant(self, value: Plain, name: str, loc: int) -> Node:
        if isinstance(value, NamedConstant):
            return self._synthetic(CONSTANT, name, NamedType(value.type), (), self._attrs({"value": value.value}), loc)
        attrs = NO_ATTRS if value is None else self._attrs({"value": value})
        return self._synthetic(CONSTANT, name, KINDS[type(value)], (), attrs, loc)

    def _synthetic(self, op: Any, name: str, type: Type, operands: Sequence[Node], attrs: Mapping[str, Any], loc: int) -> Node:
        return self.graph.add(Node(op, name, type, tuple(operands), attrs, (), loc, synthetic=True))

    def _attrs(self, attrs: dict[str, Any]) -> Mapping[str, Any]:
        return self._shared.setdefault(repr(attrs), attrs)

