"""Cast motion: moves conversions across data movement, so that it moves fewer bytes."""
from __future__ import annotations

from collections.abc import Sequence

from irscope.graph import Builder, Graph, Module, Node, TensorType, callees_first, rewrite, see_through
from irscope.graph.collector import collector_paused
from irscope.graph.rewrite import copy_node
from irscope.ops.sets import hlo, relay
from irscope.passes.algebra.simplifier import of
from irscope.passes.base import Pass, per_graph
from irscope.passes.canonicalize_cast import CASTS, bits, is_widening
from irscope.passes.visitor import without_dead

MOVEMENT = hlo("reshape transpose broadcast slice reverse") | relay(
    "reshape transpose reverse squeeze expand_dims strided_slice tile repeat broadcast_to nn.batch_flatten layout_transform"
)
"""Operators of one operand that only move its elements, of HLO and of Relay."""

ROUNDS = 16
"""A conversion goes over at most so many movements."""


class MoveCast(Pass):
    """Move a conversion to a wider type after the movement that follows it, and one to a narrower type before the movement it follows.

        %0 = cast(%x, dtype="float32");                       %0 = transpose(%x, axes=[1, 0]);
        %1 = transpose(%0, axes=[1, 0]);            ->        %1 = cast(%0, dtype="float32");

    Applies only if the value between has no other user. The results are the same to the last bit.
    """

    name = "move-cast"

    def run(self, module: Module) -> Module:
        with collector_paused():
            for _ in range(ROUNDS):
                found = {graph: swaps(graph) for graph in callees_first(module)}
                if not any(found.values()):
                    break
                module = per_graph(module, lambda graph, became: _swapped(graph, became, found[graph]))  # noqa: B023  (called at once)
        return module


def swaps(graph: Graph) -> dict[Node, bool]:
    """The movements and conversions to swap with the node before them, and whether the conversion widens and moves after.

    The next round visits the moved nodes again.
    """
    users = graph.users()
    found: dict[Node, bool] = {}
    for node in graph.nodes:
        if len(node.operands) != 1 or not isinstance(node.type, TensorType):
            continue
        before = node.operands[0]
        if before in found or len(users[before.index]) != 1 or before is graph.root:
            continue
        widens = node.op in MOVEMENT and is_widening(before)
        if widens or (node.op in CASTS and before.op in MOVEMENT and len(before.operands) == 1 and 0 < bits(node) < bits(before)):
            found[node] = widens
    return found


def _swapped(graph: Graph, became: dict[Graph, Graph], found: dict[Node, bool]) -> Graph:
    """The graph after one round."""

    def rule(builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
        widens = found.get(node)
        if widens is None:
            return None
        before, source = node.operands[0], operands[0].operands[0]
        was, type = of(source), of(node)
        # The node between has the shape after the movement and the narrow type, whichever of the two came first.
        middle = copy_node(builder, node if widens else before, [source])
        last = copy_node(builder, before if widens else node, [middle])
        if widens:
            middle.type = TensorType(was.dtype, type.shape, type.layout)
        else:
            middle.op, middle.attrs, middle.type = node.op, node.attrs, TensorType(type.dtype, was.shape, was.layout)
            last.op, last.attrs = before.op, before.attrs
        last.type = type
        return last
    return without_dead(see_through(rewrite(graph, rule, became), graph))
