"""Which nodes, and which graphs, are the same but for their names."""
from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from irscope.analysis.classes import VALUES
from irscope.graph import Graph, Kind, Node, Op, Type
from irscope.graph.types import TensorType, TupleType
from irscope.ops import hlo
from irscope.ops.attrs import Literal

_NUMBERS = frozenset({"number", "control_predecessors", "channel_id"})
"""Attributes that tell a node from its twin, and say nothing about what it does."""


class Structure:
    """Numbers that are equal where the structure is.

    ``nodes[graph][i]`` is the class of a node: operator, type, attributes, the types of its operands, and the classes of its bodies.
    ``graphs[graph]`` is the class of a graph: the classes of its nodes and who feeds whom. Names, layouts and places do not count.
    ``order`` lists callees before callers.
    """

    def __init__(self, order: list[Graph]) -> None:
        self.nodes: dict[Graph, list[int]] = {}
        self.graphs: dict[Graph, int] = {}
        self._classes: dict[object, int] = {}
        self._types: dict[int, int] = {}
        self._attrs: dict[int, int] = {}
        for graph in order:
            self._classify(graph)

    def _classify(self, graph: Graph) -> None:
        classes: list[int] = []
        types: list[int] = []
        edges: list[tuple[int, ...]] = []
        class_of, type_of, attrs_of = self._class_of, self._type_of, self._attrs_of
        for node in graph.nodes:
            mine = type_of(node.type)
            types.append(mine)
            indices = tuple([o.index for o in node.operands])
            bodies = tuple([self.graphs.get(b, -1) for b in node.bodies]) if node.bodies else ()
            classes.append(class_of((node.op.name, mine, attrs_of(node), tuple([types[j] for j in indices]), bodies)))
            edges.append(indices)
        self.nodes[graph] = classes
        self.graphs[graph] = class_of((tuple(classes), tuple(edges), graph.root.index if graph.root is not None else -1))

    def _class_of(self, key: object) -> int:
        return self._classes.setdefault(key, len(self._classes))

    def _type_of(self, type: Type) -> int:
        known = self._types.get(id(type))
        if known is None:
            self._types[id(type)] = known = self._class_of(_without_layout(type))
        return known

    def _attrs_of(self, node: Node) -> int:
        attrs = node.attrs
        if not attrs:
            return -1
        known = self._attrs.get(id(attrs))
        if known is None:
            self._attrs[id(attrs)] = known = self._class_of(_attrs_key(attrs))
        return known


def is_leaflike(node: Node) -> bool:
    """Leaves, and the broadcast of a scalar constant: compilers hoist and share them, so that they stand in one copy of a layer only."""
    if _is_leaf(node.op):
        return True
    return node.op is hlo.broadcast and bool(node.operands) and node.operands[0].op is hlo.constant


@lru_cache(maxsize=4096)
def _is_leaf(op: Op) -> bool:
    return op.kind is Kind.LEAF or op is hlo.iota or op in VALUES


def _without_layout(type: Type) -> str:
    if isinstance(type, TensorType):
        return f"{type.dtype.name}[{','.join(map(str, type.shape))}]"
    if isinstance(type, TupleType):
        return "(" + ",".join(_without_layout(leaf) for leaf in type.leaves()) + ")"
    return str(type)


def _attrs_key(attrs: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((key, _value_key(value)) for key, value in attrs.items() if key not in _NUMBERS))


def _value_key(value: Any) -> str:
    return value.text if isinstance(value, Literal) and value.text is not None else str(value)
