"""Common-subexpression elimination: equal computations are done once."""
from __future__ import annotations

from collections.abc import Sequence

from irscope.graph import Builder, Effect, Graph, Module, Node, copy_node, rewrite, see_through
from irscope.graph.numbering import Numbering
from irscope.ops import hlo
from irscope.passes.base import Pass, per_graph


class ShareEqual(Pass):
    """Let nodes with the same operator, attributes and operands be one node, and called graphs with the same content be one graph.

        a = f32[2] negate(x)                            a = f32[2] negate(x)
        b = f32[2] negate(x)                   ->       ROOT r = f32[2] add(a, a)
        ROOT r = f32[2] add(a, b)

    Only pure nodes are shared. ``skip`` names operators that are left alone, as the callback of TVM's EliminateCommonSubexpr does:
    ``share-equal{skip=add+cast}``.
    """

    name = "share-equal"
    opt_level = 3

    def __init__(self, skip: str = "") -> None:
        self.skip = frozenset(skip.split("+"))

    def run(self, module: Module) -> Module:
        numbering = Numbering()
        canonical: dict[int, Graph] = {}

        def change(graph: Graph, became: dict[Graph, Graph]) -> Graph:
            shared = {old: canonical[numbering.graph(new)] for old, new in became.items()}
            made = see_through(rewrite(graph, _Sharing(numbering.values(graph, self._is_alone, shared), shared).rule, shared), graph)
            canonical.setdefault(numbering.graph(made), made)
            return made
        return per_graph(module, change)

    def _is_alone(self, node: Node) -> bool:
        return node.op is hlo.parameter or node.op.effect is not Effect.PURE or node.op.name in self.skip


class _Sharing:
    """The first node of each number that was made in one graph."""

    def __init__(self, numbers: list[int], bodies: dict[Graph, Graph]) -> None:
        self.numbers = numbers
        self.bodies = bodies
        self.made: dict[int, Node] = {}

    def rule(self, builder: Builder, node: Node, operands: Sequence[Node]) -> Node:
        number = self.numbers[node.index]
        made = self.made.get(number)
        if made is None:
            made = self.made[number] = copy_node(builder, node, operands, [self.bodies.get(b, b) for b in node.bodies])
        return made
