"""Name resolution while a graph is read; the captures of a block become its parameters."""
from __future__ import annotations

from irscope.graph import Graph, Node, Op, Type


class BlockNames:
    """The names of one block, and the block around it. Bodies are closed: a captured value is a parameter of each block in between."""

    def __init__(self, graph: Graph, outer: BlockNames | None, param_op: Op) -> None:
        self.graph = graph
        self.outer = outer
        self.names: dict[str, Node] = {}
        self.captured: list[Node] = []
        self._param = param_op

    def param(self, name: str, type: Type, loc: int) -> Node:
        """Add a parameter to the block; the text has it in a header, so it is not a statement."""
        node = Node(self._param, name, type, (), {"number": len(self.graph.params)}, (), loc, synthetic=True)
        self.graph.add(node)
        self.graph.params.append(node)
        self.names[name] = node
        return node

    def find(self, name: str) -> Node | None:
        """The value that ``name`` means here, or None."""
        inner: list[BlockNames] = []
        scope: BlockNames | None = self
        while scope is not None:
            node = scope.names.get(name)
            if node is not None:
                for block in reversed(inner):
                    block.captured.append(node)
                    node = block.param(name, node.type, node.loc)
                return node
            inner.append(scope)
            scope = scope.outer
        return None

    def settle(self) -> None:
        """Move parameters to the front: a nested block may capture an outer value after its node was read."""
        nodes, params = self.graph.nodes, self.graph.params
        if not params or params[-1].index == len(params) - 1:
            return
        mine = set(params)
        nodes[:] = [*params, *(node for node in nodes if node not in mine)]
        for index, node in enumerate(nodes):
            node.index = index

    def all_names(self) -> set[str]:
        """Every name in scope."""
        names: set[str] = set()
        scope: BlockNames | None = self
        while scope is not None:
            names |= scope.names.keys()
            scope = scope.outer
        return names
