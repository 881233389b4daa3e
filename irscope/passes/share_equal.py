"""Equal computations are done once."""
from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from irscope.graph import Builder, Effect, Graph, Module, Node, Structure, rewrite, see_through
from irscope.passes.base import Pass, per_graph


class ShareEqual(Pass):
    """Let nodes with the same operator, attributes and operands be one node, and called graphs with the same content be one graph.

        a = f32[2] negate(x)                            a = f32[2] negate(x)
        b = f32[2] negate(x)                   ->       ROOT r = f32[2] add(a, a)
        ROOT r = f32[2] add(a, b)

    Only pure nodes are shared. ``skip`` names operators that are left alone, as the callback of TVM's EliminateCommonSubexpr does:
    ``share-equal{skip=add+cast}``.
    """

    name: ClassVar[str] = "share-equal"
    opt_level: ClassVar[int] = 3

    def __init__(self, skip: str = "") -> None:
        self.skip = frozenset(skip.split("+"))

    def run(self, module: Module) -> Module:
        structure = Structure()
        canonical: dict[int, Graph] = {}

        def change(graph: Graph, became: dict[Graph, Graph]) -> Graph:
            shared = {old: canonical[structure.graph(new)] for old, new in became.items()}
            made = see_through(rewrite(graph, _Sharing(structure, shared, self.skip).rule, shared), graph)
            canonical.setdefault(structure.graph(made), made)
            return made
        return per_graph(module, change)


class _Sharing:
    """The nodes seen in one graph, by what they do."""

    def __init__(self, structure: Structure, bodies: dict[Graph, Graph], skip: frozenset[str] = frozenset()) -> None:
        self.structure = structure
        self.bodies = bodies
        self.skip = skip
        self.seen: dict[object, Node] = {}

    def rule(self, builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
        if node.op.effect is not Effect.PURE or node.op.name == "parameter" or node.op.name in self.skip:
            return None
        bodies = tuple(self.structure.graph(self.bodies.get(b, b)) for b in node.bodies)
        key = (id(node.op), node.type, self.structure.attrs_of(node), tuple(o.index for o in operands), bodies)
        found = self.seen.get(key)
        if found is not None:
            return found
        called = [self.bodies.get(b, b) for b in node.bodies]
        made = builder.add(node.op, operands, node.attrs, node.type, called, node.name, node.synthetic)
        made.loc, made.origin = node.loc, (node,)
        self.seen[key] = made
        return made
