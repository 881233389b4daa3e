"""Cast duplication: gives each user of a widened value its own conversion."""
from __future__ import annotations

from collections.abc import Sequence

from irscope.graph import Graph, Kind, Module, Node, TensorType
from irscope.graph.rewrite import copy_node
from irscope.ops import hlo, sets
from irscope.passes.base import Pass
from irscope.passes.visitor import GraphMutator

CASTS = sets.hlo("convert") | sets.relay("cast")
"""Conversions of element types: elementwise operators."""
TRIANGLE = sets.relay("trilu")
"""Elementwise by its kind, but its result depends on the position of the element."""


class CanonicalizeCast(Pass):
    """Copy a conversion to a wider type for each of its users, so that it can fuse into each of them.

        %0 = cast(%x, dtype="float32");            %0 = cast(%x, dtype="float32");    %2 = cast(%x, dtype="float32");
        %1 = exp(%0);                       ->     %1 = exp(%0);                      %3 = tanh(%2);
        %2 = tanh(%0);

    Kernels then store the narrow value in memory. ``share-equal`` undoes it. In Relay only elementwise and broadcasting users get a copy,
    because TVM fuses a conversion into no others.
    """

    name = "canonicalize-cast"
    opt_level = 3

    def run(self, module: Module) -> Module:
        return _Copying().run(module)


class _Copying(GraphMutator):
    def begin(self, graph: Graph) -> None:
        self.first: dict[Node, Node] = {}

    def visit(self, node: Node, operands: Sequence[Node]) -> Node | None:
        if node.bodies or node.op is hlo.tuple or not any(self._shared(o) for o in node.operands):
            return None
        if not node.op.is_primitive and node.op.kind not in (Kind.ELEMENTWISE, Kind.BROADCAST):
            return None
        mine = {}
        for operand in node.operands:
            if self._shared(operand) and self.first.setdefault(operand, node) is not node:
                mine[operand] = copy_node(self.builder, operand, [self.new(o) for o in operand.operands])
        return copy_node(self.builder, node, [mine.get(o, n) for o, n in zip(node.operands, operands, strict=True)]) if mine else None

    def _shared(self, node: Node) -> bool:
        return is_widening(node) and len(self.users[node.index]) > 1


def is_elementwise(node: Node) -> bool:
    """Whether an operator is elementwise and independent of the position of the element."""
    return node.op.kind is Kind.ELEMENTWISE and node.op not in TRIANGLE


def is_widening(node: Node) -> bool:
    """Whether a node converts to a wider element type."""
    return node.op in CASTS and bits(node) > bits(node.operands[0]) > 0


def bits(node: Node) -> int:
    """Bits of an element; 0 if the value is not a tensor."""
    return node.type.dtype.bits if isinstance(node.type, TensorType) else 0
