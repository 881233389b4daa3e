"""Name resolution for Relay: locals by block, numbered names for the whole text, and the captures of bodies."""

from __future__ import annotations

from irscope.graph import Graph, Node, Op


class FunctionFrame:
    """One graph under construction, and its captures."""

    def __init__(self, graph: Graph, outer: FunctionFrame | None) -> None:
        self.graph = graph
        self.outer = outer
        self.captured: list[Node] = []
        self.local: dict[Node, Node] = {}
        self.copies: dict[Node, Node] = {}
        self._declared: set[str] = set()
        self._counted = 0

    def declares(self, name: str) -> bool:
        """Whether the graph has a parameter of a name."""
        self._declared.update(param.name for param in self.graph.params[self._counted:])
        self._counted = len(self.graph.params)
        return name in self._declared


class NameBlock(dict[str, Node]):
    """The local names of a block; ``bound`` has the offsets of bindings without ``let``."""

    def __init__(self) -> None:
        super().__init__()
        self.bound: dict[str, int] = {}


class ScopedNames:
    """Locals are scoped by block; numbered names (``%12``) are one flat map, as in TVM's reader.

    A value of an enclosing graph is captured: it becomes an operand of the node with the body, and a parameter.
    A value of another branch is copied with everything that it needs.
    """

    def __init__(self, param: Op) -> None:
        self._param = param
        self.frames: list[FunctionFrame] = []
        self.blocks: list[NameBlock] = [NameBlock()]
        self.numbered: dict[str, Node] = {}
        self.owner: dict[Node, FunctionFrame] = {}
        self.ever: set[str] = set()

    @property
    def frame(self) -> FunctionFrame:
        return self.frames[-1]

    def push(self, graph: Graph, closed_over: bool) -> FunctionFrame:
        """Begin a graph; ``closed_over`` when it may use outer values."""
        self.frames.append(FunctionFrame(graph, self.frames[-1] if closed_over and self.frames else None))
        self.blocks.append(NameBlock())
        return self.frame

    def pop(self) -> FunctionFrame:
        """Complete the graph."""
        self.blocks.pop()
        return self.frames.pop()

    def add(self, node: Node) -> Node:
        """Append a node to the current graph."""
        self.owner[node] = self.frame
        return self.frame.graph.add(node)

    def bind(self, name: str, node: Node) -> None:
        """Bind a local name to a node until the block ends."""
        self.blocks[-1][name] = node
        self.ever.add(name)

    def bound_before(self, name: str, at: int) -> int | None:
        """Record a binding without ``let`` at ``at``; returns where this block bound the name before."""
        first = self.blocks[-1].bound.setdefault(name, at)
        return first if first != at else None

    def find(self, name: str) -> Node | None:
        """The value of a name, as a node of the current graph."""
        node = next((block[name] for block in reversed(self.blocks) if name in block), self.numbered.get(name))
        try:
            return self.here(node) if node is not None else None
        except LookupError:
            return None

    def known(self) -> set[str]:
        """Every name in scope."""
        return {name for block in self.blocks for name in block} | self.numbered.keys()

    def here(self, node: Node) -> Node:
        """The node of the current graph that stands for a node. Raises LookupError when it needs a parameter of a completed function."""
        frame, owner = self.frame, self.owner.get(node)
        if owner is None or owner is frame:
            return node
        chain: list[FunctionFrame] = []
        at: FunctionFrame | None = frame
        while at is not None and at is not owner:
            chain.append(at)
            at = at.outer
        if at is None:
            return self._copied(node)
        for inner in reversed(chain):
            node = self._captured(inner, node)
        return node

    def _captured(self, frame: FunctionFrame, node: Node) -> Node:
        made = frame.local.get(node)
        if made is None:
            graph = frame.graph
            made = Node(self._param, node.name, node.type, (), {"number": len(graph.params)}, (), node.loc, synthetic=True)
            graph.add(made)
            graph.params.append(made)
            self.owner[made] = frame
            frame.local[node] = made
            frame.captured.append(node)
        return made

    def _copied(self, node: Node) -> Node:
        """A copy of a value of a sibling graph, with everything that it needs. Each graph has one copy of a value."""
        stack: list[tuple[Node, bool]] = [(node, False)]
        became = self.frame.copies
        while stack:
            top, ready = stack.pop()
            if top in became:
                continue
            owner = self.owner.get(top)
            if owner is None or owner is self.frame or self._around(owner):
                became[top] = self.here(top)
                continue
            if top.op is self._param:
                outside = next((outer for outer, inner in owner.local.items() if inner is top), None)
                if outside is None:
                    raise LookupError(top.name)
                became[top] = self.here(outside)
                continue
            if not ready:
                stack.append((top, True))
                stack.extend((operand, False) for operand in top.operands)
                continue
            copy = Node(top.op, top.name, top.type, tuple(became[o] for o in top.operands), top.attrs, top.bodies, top.loc,
                        synthetic=top.synthetic)
            became[top] = self.add(copy)
        return became[node]

    def _around(self, owner: FunctionFrame) -> bool:
        at: FunctionFrame | None = self.frame
        while at is not None:
            if at is owner:
                return True
            at = at.outer
        return False
