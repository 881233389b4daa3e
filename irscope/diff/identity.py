"""Numbers for values that are equal: two nodes get one number exactly when they compute the same from the same, whatever their names.

The order of lines, names, places and metadata do not count; operators, attributes, types, operands, bodies and the numbers of
parameters do.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from irscope.graph import Effect, FunctionType, Graph, Module, Node, TensorType, TupleType, Type, callees_first, live
from irscope.graph.structure import Structure

UNTOLD = frozenset(("hash", "callee"))
"""Attributes that name or fingerprint, and compute nothing."""


class Identity:
    """Shared by the two sides of a comparison, so that equal things get equal numbers on both."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._structure = Structure()
        self.of_graph: dict[Graph, int] = {}
        self.of_node: dict[Node, int] = {}

    def number(self, key: Hashable) -> int:
        """One number for each different key."""
        return self._numbers.setdefault(key, len(self._numbers))

    def add(self, module: Module) -> None:
        """Number everything that a module holds, callees first."""
        typed = module.format == "hlo"
        for graph in callees_first(module):
            self._graph(graph, typed)

    def _graph(self, graph: Graph, typed: bool) -> None:
        place = {param.index: number for number, param in enumerate(graph.params)}
        effects: list[int] = []
        for node in graph.nodes:
            if node.index in place:
                key: Hashable = ("parameter", place[node.index], _plain(node.type))
            else:
                operands = tuple(self.of_node[o] for o in node.operands)
                bodies = tuple(self.of_graph.get(b, -1) for b in node.bodies)
                type = _plain(node.type) if typed or node.op.name in ("constant", "iota") else ""
                key = (node.op.dialect, node.op.name, self._attrs(node), type, operands, bodies)
            self.of_node[node] = self.number(key)
            if node.op.effect in (Effect.WRITES, Effect.CONTROL):
                effects.append(self.of_node[node])
        alive = live(graph)
        values = Counter(self.of_node[n] for n in graph.nodes if alive[n.index])
        root = self.of_node[graph.root] if graph.root is not None else -1
        attrs = tuple(sorted((k, str(v)) for k, v in graph.notes.get("attrs", {}).items() if k not in UNTOLD))
        params = tuple(_plain(p.type) for p in graph.params)
        self.of_graph[graph] = self.number(("graph", params, root, tuple(effects), frozenset(values.items()), attrs))

    def _attrs(self, node: Node) -> Hashable:
        attrs = {k: v for k, v in node.attrs.items() if k not in UNTOLD} if UNTOLD & node.attrs.keys() else node.attrs
        if node.op.name == "constant" and "literal" in attrs:
            literal = attrs["literal"]
            return ("literal", "elided", str(attrs.get("meta", ""))) if literal.elided else ("literal", _value(literal))
        return self._structure.attrs(attrs)


def _value(literal: object) -> Hashable:
    """The value of a constant, by its bytes."""
    value = literal.value()  # type: ignore[attr-defined]
    parts = value if isinstance(value, tuple) else (value,)
    return tuple((part.dtype.name, part.shape, part.tobytes()) for part in parts if hasattr(part, "tobytes"))


def _plain(type: Type) -> str:
    """A type without its layout."""
    if isinstance(type, TensorType):
        return f"{type.dtype.name}[{','.join(map(str, type.shape))}]"
    if isinstance(type, TupleType):
        return f"({','.join(map(_plain, type.elements))})"
    if isinstance(type, FunctionType):
        return f"fn({','.join(map(_plain, type.params))})->{_plain(type.result)}"
    return str(type)
