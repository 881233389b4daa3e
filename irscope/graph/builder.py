"""Builds a graph node by node, and infers the types that the caller omits."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from irscope.graph.node import NO_ATTRS, Graph, Node, Op
from irscope.graph.types import UNKNOWN, Type


class Builder:
    """Appends nodes to a graph. New nodes take their loc and origin from the nodes ``at``, which they stand for."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.at: tuple[Node, ...] = ()
        self._names: dict[str, int] = {node.name: 0 for node in graph.nodes}

    def name(self, wanted: str) -> str:
        """A name that the graph does not have yet."""
        if wanted not in self._names:
            self._names[wanted] = 0
            return wanted
        while True:
            self._names[wanted] += 1
            name = f"{wanted}.{self._names[wanted]}"
            if name not in self._names:
                self._names[name] = 0
                return name

    def add(self, op: Op, operands: Sequence[Node] = (), attrs: Mapping[str, Any] = NO_ATTRS, type: Type | None = None,
            bodies: Iterable[Graph] = (), name: str | None = None) -> Node:
        """Append one node. Without ``type`` it is inferred; an operator without inference needs one (ValueError)."""
        loc = self.at[0].loc if self.at else -1
        node = Node(op, self.name(name or op.name), type or UNKNOWN, tuple(operands), attrs, tuple(bodies), loc, -1, self.at)
        if type is None:
            if op.infer is None:
                raise ValueError(f"{op.name}: the type must be given")
            node.type = op.infer(node)
        return self.graph.add(node)

    def copy(self, node: Node, operands: Sequence[Node], type: Type | None = None, attrs: Mapping[str, object] | None = None,
             bodies: Iterable[Graph] | None = None) -> Node:
        """Append a copy of a node over other operands; it keeps what is not given, its name where that is free, and its place."""
        made = self.add(node.op, operands, node.attrs if attrs is None else attrs, type or node.type,
                        node.bodies if bodies is None else bodies, node.name)
        made.loc, made.synthetic = node.loc, node.synthetic
        return made

    def param(self, op: Op, type: Type, name: str, attrs: Mapping[str, Any] = NO_ATTRS) -> Node:
        """Append a parameter of the graph."""
        node = self.add(op, (), {**attrs, "number": len(self.graph.params)}, type, name=name)
        self.graph.params.append(node)
        return node
