"""Conversions stand where fewer bytes are moved."""
from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from irscope.graph import Graph, Module, Node, TensorType
from irscope.graph.rewrite import copy_node
from irscope.passes.base import Pass
from irscope.passes.canonicalize_cast import bits, is_cast, is_widening
from irscope.passes.visitor import GraphMutator

MOVEMENT = frozenset((
    "reshape", "transpose", "broadcast", "slice", "reverse", "squeeze", "expand_dims", "strided_slice", "tile", "repeat", "broadcast_to",
    "nn.batch_flatten", "layout_transform",
))
"""Operators of one operand that only move its elements, of HLO and of Relay."""

ROUNDS = 16
"""A conversion goes over at most so many movements."""


class MoveCast(Pass):
    """Move a conversion to a wider type behind the movement that follows it, and one to a narrower type before the movement it follows.

        %0 = cast(%x, dtype="float32");                       %0 = transpose(%x, axes=[1, 0]);
        %1 = transpose(%0, axes=[1, 0]);            ->        %1 = cast(%0, dtype="float32");

    Only where nobody else reads the value between. The numbers are the same to the last bit.
    """

    name: ClassVar[str] = "move-cast"

    def run(self, module: Module) -> Module:
        for _ in range(ROUNDS):
            moving = _Moving()
            made = moving.run(module)
            if not moving.moved:
                break
            module = made
        return module


class _Moving(GraphMutator):
    def __init__(self) -> None:
        self.moved = 0

    def visit(self, node: Node, operands: Sequence[Node]) -> Node | None:
        if len(node.operands) != 1 or not isinstance(node.type, TensorType):
            return None
        before = node.operands[0]
        # What has just been moved is looked at again in the next round.
        if before not in self._untouched or self.needed_elsewhere(before, node):
            return None
        widens = node.op.name in MOVEMENT and is_widening(before)
        narrows = is_cast(node) and before.op.name in MOVEMENT and len(before.operands) == 1 and 0 < bits(node) < bits(before)
        if not widens and not narrows:
            return None
        self.moved += 1
        self._untouched.discard(node)
        source = self.new(before.operands[0])
        assert isinstance(source.type, TensorType) and isinstance(before.type, TensorType), "movements and conversions are of tensors"
        # The middle has the shape behind the movement and the narrow type, whichever of the two came first.
        middle = copy_node(self.builder, node if widens else before, [source])
        last = copy_node(self.builder, before if widens else node, [middle])
        if widens:
            middle.type, last.type = TensorType(source.type.dtype, node.type.shape, node.type.layout), node.type
        else:
            middle.op, middle.attrs, middle.type = node.op, node.attrs, TensorType(node.type.dtype, source.type.shape, source.type.layout)
            last.op, last.attrs, last.type = before.op, before.attrs, node.type
        return last

    def begin(self, graph: Graph) -> None:
        self._untouched = set(graph.nodes)
