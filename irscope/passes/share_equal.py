"""Common-subexpression elimination (CSE): merges nodes that compute the same value."""
from __future__ import annotations

from collections.abc import Sequence

from irscope.analysis.stated import stated
from irscope.graph import Builder, Graph, Module, Node, copy_node, pure, rewrite, see_through
from irscope.graph.numbering import Numbering
from irscope.graph.rewrite import Replacements, Rule
from irscope.ops import hlo
from irscope.passes.base import Pass, per_graph
from irscope.passes.torch_effects import returned_values, written_values


class ShareEqual(Pass):
    """Merge nodes with the same operator, attributes and operands, and called graphs with the same content.

        a = f32[2] negate(x)                            a = f32[2] negate(x)
        b = f32[2] negate(x)                   ->       ROOT r = f32[2] add(a, a)
        ROOT r = f32[2] add(a, b)

    Merges only pure nodes, and no values whose memory a statement may write in place; of two that a TorchScript graph or block returns,
    each stays, because what follows may write to one of them. ``skip`` names operators to leave unchanged, like the callback of TVM's
    EliminateCommonSubexpr: ``share-equal{skip=add+cast}``.
    """

    name = "share-equal"
    opt_level = 3

    def __init__(self, skip: str = "") -> None:
        self.skip = frozenset(skip.split("+"))

    def run(self, module: Module) -> Module:
        numbering = Numbering(beside=stated(module))
        canonical: dict[int, Graph] = {}
        shared = Replacements()
        impure: dict[Graph, bool] = {}
        main = module.main()
        in_place = module.dialect.writes_in_place and not module.is_primitive

        def change(graph: Graph, became: dict[Graph, Graph]) -> Graph:
            written = written_values(graph, graph is main) if in_place else None
            returned = returned_values(graph) if in_place else ()
            shareable = pure(graph, impure)
            alone = [node.op is hlo.parameter or node.op.name in self.skip or not shareable[node.index]
                     or (written is not None and written[node.index]) for node in graph.nodes]
            numbers = numbering.values(graph, lambda node: alone[node.index], shared)
            made = see_through(rewrite(graph, _sharing(numbers, shared, returned), shared), graph)
            shared[graph] = canonical.setdefault(numbering.graph(made), made)
            return made
        return per_graph(module, change)


def _sharing(numbers: list[int], bodies: dict[Graph, Graph], returned: Sequence[bool]) -> Rule:
    """A rule that replaces each node of one graph by the first node with the same value number.

    Nodes with memory that the graph returns (``returned``, by index) are not merged with each other: the caller may write to one of them.
    """
    first: dict[int, Node] = {}
    given: set[int] = set()

    def rule(builder: Builder, node: Node, operands: Sequence[Node]) -> Node:
        number = numbers[node.index]
        made = first.get(number)
        is_returned = bool(returned) and returned[node.index]
        if made is None or (is_returned and number in given):
            made = copy_node(builder, node, operands, [bodies.get(b, b) for b in node.bodies])
            first.setdefault(number, made)
        if is_returned:
            given.add(number)
        return made
    return rule
