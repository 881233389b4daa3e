"""Visitors and mutators: passes visit or rebuild a graph node by node with these.

    class CountConvolutions(GraphVisitor):                class Relu6(GraphMutator):
        count = 0                                             def visit_nn_relu(self, node, operands):
                                                                  return self.add("clip", operands, a_min=0.0, a_max=6.0)
        def visit_nn_conv2d(self, node):
            self.count += 1

A method is found by the operator's name, with dots and dashes as underscores; ``visit`` handles operators without a method.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

from irscope.graph import Builder, Dialect, Graph, Module, Node, TupleType, Type, callees_first, kept, rewrite, see_through
from irscope.graph.rewrite import copy_node, keep_order
from irscope.ops import all_ops, hlo, lookup
from irscope.passes.base import per_graph
from irscope.passes.pattern import MAX_NAMED
from irscope.source import UserError, did_you_mean


def method_name(op: str) -> str:
    """``visit_nn_conv2d`` for ``nn.conv2d``."""
    return "visit_" + op.replace(".", "_").replace("-", "_")


class GraphVisitor:
    """Visits every node of a module, operands before users, callees before callers. ``graph`` and ``users`` belong to its graph."""

    graph: Graph
    users: list[list[Node]]

    def run(self, module: Module) -> None:
        """Visit every graph."""
        for graph in callees_first(module):
            self.graph, self.users = graph, graph.users()
            for node in graph.nodes:
                getattr(self, method_name(node.op.name), self.visit)(node)

    def visit(self, node: Node) -> None:
        """A node whose operator has no method of its own."""


class GraphMutator:
    """Rebuilds every graph of a module. A method returns the replacement of a node, or None for a copy.

    ``operands`` are nodes of the new graph; ``new(old)`` is the replacement of any earlier node. Nodes that become dead are removed, so a
    method that merges two nodes has nothing to clean up.
    """

    graph: Graph
    users: list[list[Node]]
    builder: Builder
    dialect: Dialect
    declined: list[str]
    """The candidates that were left unchanged, and why: sentences for the user."""
    became: dict[Graph, Graph]
    """What the graphs that this one calls have become."""

    def run(self, module: Module) -> Module:
        """The rebuilt module; the given one is not modified."""
        self.dialect, self.declined = module.dialect, []
        return per_graph(module, self._mutated)

    def visit(self, node: Node, operands: Sequence[Node]) -> Node | None:
        """A node whose operator has no method of its own: a copy, unless a subclass says otherwise."""
        return None

    def begin(self, graph: Graph) -> None:
        """Called before a graph is rebuilt, to analyse it as a whole."""

    def new(self, old: Node) -> Node:
        """The replacement of an earlier node of the old graph."""
        if old not in self._new:
            # A parameter that no node has read yet: each new node is visited once, however many parameters there are.
            nodes = self.builder.graph.nodes
            while self._seen < len(nodes):
                made = nodes[self._seen]
                self._seen += 1
                if len(made.origin) == 1 and made.op is hlo.parameter:
                    self._new.setdefault(made.origin[0], made)
        return self._new[old]

    def add(self, op: str, operands: Sequence[Node], type: Type | None = None, /, **attrs: object) -> Node:
        """Append a node by its operator's name in the dialect of the module; its type is inferred if none is given.

        It takes the name of the node that is being replaced. Raises UserError for an unknown operator.
        """
        declaration = lookup(op, self.dialect.name)
        if declaration is None:
            names = [known.name for known in all_ops(self.dialect.name)]
            raise UserError(f"there is no operator {op!r} in {self.dialect}", did_you_mean(op, names))
        return self.builder.add(declaration, operands, attrs, type, name=self._name)

    def tuple(self, parts: Sequence[Node]) -> Node:
        """Append a tuple."""
        return self.builder.add(hlo.tuple, parts, type=TupleType(tuple(part.type for part in parts)))

    def needed_elsewhere(self, node: Node, by: Node) -> list[str]:
        """The users of a node other than ``by``: names, and ``the result`` if the graph returns it. If empty, the node may be replaced.

        Lists only the first of very many.
        """
        users = self.users[node.index]
        if len(users) == 1 and users[0] is by and node is not self.graph.root:
            return []
        others = [f"%{user.name}" for user in users[:MAX_NAMED + 1] if user is not by][:MAX_NAMED]
        # Users are counted, not enumerated: a constant may have a hundred thousand.
        more = len(users) - any(o is node for o in by.operands) - len(others)
        result = ["the result of the function"] if node is self.graph.root else []
        return [*others, *([f"{more} more"] if more else []), *result]

    def _mutated(self, graph: Graph, became: dict[Graph, Graph]) -> Graph:
        self.graph, self.users = graph, graph.users()
        self._new: dict[Node, Node] = {}
        self._seen = 0
        self.became = became
        self.begin(graph)
        methods: dict[str, Callable[[Node, Sequence[Node]], Node | None]] = {}

        def rule(builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
            name = node.op.name
            method = methods.get(name)
            if method is None:
                method = methods[name] = getattr(self, method_name(name), self.visit)
            self.builder, self._name = builder, node.name
            for old, new in zip(node.operands, operands, strict=True):
                self._new[old] = new
            made = method(node, operands)
            if made is None:
                made = copy_node(builder, node, operands, [became.get(body, body) for body in node.bodies] if node.bodies else None)
            self._new[node] = made
            return made

        return without_dead(see_through(rewrite(graph, rule, became), graph))


def without_dead(graph: Graph) -> Graph:
    """Remove dead nodes from a graph that a pass has just built, in place: nodes that its methods merged into others."""
    alive = kept(graph)
    if not all(alive):
        before = graph.nodes
        graph.hold([node for node in before if alive[node.index]])
        keep_order(graph, before)
    return graph
