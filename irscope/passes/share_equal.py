"""Common-subexpression elimination (CSE): merges nodes that compute the same value."""
from __future__ import annotations

from collections.abc import Sequence

from irscope.graph import Builder, Graph, Module, Node, copy_node, pure, rewrite, see_through
from irscope.graph.numbering import Numbering
from irscope.ops import hlo
from irscope.passes.base import Pass, per_graph
from irscope.passes.torch_effects import written_values


class ShareEqual(Pass):
    """Merge nodes with the same operator, attributes and operands, and called graphs with the same content.

        a = f32[2] negate(x)                            a = f32[2] negate(x)
        b = f32[2] negate(x)                   ->       ROOT r = f32[2] add(a, a)
        ROOT r = f32[2] add(a, b)

    Merges only pure nodes, and no values whose memory a statement may write in place. ``skip`` names operators to leave unchanged, like the
    callback of TVM's EliminateCommonSubexpr: ``share-equal{skip=add+cast}``.
    """

    name = "share-equal"
    opt_level = 3

    def __init__(self, skip: str = "") -> None:
        self.skip = frozenset(skip.split("+"))

    def run(self, module: Module) -> Module:
        numbering = Numbering()
        canonical: dict[int, Graph] = {}
        main = module.main()
        shared: dict[Graph, Graph] = {}
        impure: dict[Graph, bool] = {}
        acting: dict[Graph, bool] = {}

        def change(graph: Graph, became: dict[Graph, Graph]) -> Graph:
            written = written_values(graph, graph is main) if module.dialect.writes_in_place and not module.is_primitive else None
            shareable = pure(graph, impure)
            alone = [self._is_alone(node) or not shareable[node.index] or (written is not None and written[node.index])
                     for node in graph.nodes]
            numbers = numbering.values(graph, lambda node: alone[node.index], shared)
            made = see_through(rewrite(graph, _Sharing(numbers, shared).rule, shared, acting=acting), graph)
            shared[graph] = canonical.setdefault(numbering.graph(made), made)
            return made
        return per_graph(module, change)

    def _is_alone(self, node: Node) -> bool:
        return node.op is hlo.parameter or node.op.name in self.skip


class _Sharing:
    """Maps each value number to the first node with it in one graph."""

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
