"""Transpose cancellation: removes pairs of transposes that undo each other."""
from __future__ import annotations

from collections.abc import Sequence

from irscope.analysis.verify.layouts import chosen
from irscope.formats.relay.attributes import LayoutTransform, Transpose
from irscope.graph import Graph, Module, Node, TensorType
from irscope.graph.rewrite import copy_node
from irscope.ops import attributes, hlo
from irscope.passes.algebra.simplifier import of
from irscope.passes.base import Pass
from irscope.passes.canonicalize_cast import is_elementwise
from irscope.passes.visitor import GraphMutator


class CancelTransposes(Pass):
    """Remove a transpose and the one that undoes it, also across unary elementwise operators between them.

        %0 = transpose(%x, axes=[0, 2, 3, 1]);
        %1 = tanh(%0);                                 ->        %0 = tanh(%x);
        %2 = transpose(%1, axes=[0, 3, 1, 2]);

    Merges two transposes in a row that do not undo each other. Removes ``layout_transform`` there and back likewise.
    """

    name = "cancel-transposes"
    opt_level = 3

    def run(self, module: Module) -> Module:
        return _Cancelling().run(module)


class _Cancelling(GraphMutator):
    def begin(self, graph: Graph) -> None:
        self.changed: set[Node] = set()

    def visit_transpose(self, node: Node, operands: Sequence[Node]) -> Node | None:
        found = self._chain(node)
        first, second = (permutation(found[0]) if found else None), permutation(node)
        if not found or first is None or second is None:
            return None
        source, between = found
        joined = [first[d] for d in second]
        if joined == list(range(len(joined))):
            return self._without(node, source, between)
        if between:
            return None
        self.changed.add(node)
        attrs = {"dimensions": tuple(joined)} if node.op is hlo.transpose else {"axes": joined}
        return self.builder.add(node.op, [self.new(source.operands[0])], attrs, node.type, name=node.name)

    def visit_layout_transform(self, node: Node, operands: Sequence[Node]) -> Node | None:
        found = self._chain(node)
        if not found:
            return None
        source, between = found
        there, back = LayoutTransform.of(source), LayoutTransform.of(node)
        if there.src_layout != back.dst_layout or there.dst_layout != back.src_layout:
            return None
        return self._without(node, source, between)

    def _chain(self, node: Node) -> tuple[Node, list[Node]] | None:
        """The earlier node of the same operator, found through single-user elementwise steps; and the steps, last first."""
        between: list[Node] = []
        at = node.operands[0]
        while at.op is not node.op:
            if not _is_step(at) or at in self.changed or self.needed_elsewhere(at, between[-1] if between else node):
                return None
            between.append(at)
            at = at.operands[0]
        return None if at in self.changed else (at, between)

    def _without(self, node: Node, source: Node, between: list[Node]) -> Node:
        """The steps between, applied to the operand of the first of the two."""
        self.changed |= {node, *between}
        made = self.new(source.operands[0])
        shape = of(made).shape
        for step in reversed(between):
            made = copy_node(self.builder, step, [made])
            made.type = TensorType(of(step).dtype, shape)
        return made


def _is_step(node: Node) -> bool:
    """Whether a node is a unary elementwise operator that does not depend on the position of the element."""
    if len(node.operands) != 1 or node.bodies or not is_elementwise(node):
        return False
    mine, its = node.type, node.operands[0].type
    return isinstance(mine, TensorType) and isinstance(its, TensorType) and mine.shape == its.shape


def permutation(node: Node) -> list[int] | None:
    """Which dimension of the operand each dimension of the result is; None if the type is unknown or has a non-default layout."""
    if not isinstance(node.type, TensorType) or chosen(node.type):
        return None
    rank = node.type.rank
    if node.op is hlo.transpose:
        return list(attributes.Transpose.of(node).dimensions)
    axes = Transpose.of(node).axes
    return list(range(rank))[::-1] if axes is None else [int(a) % rank for a in axes]
