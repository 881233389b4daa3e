"""Kernels under construction by a policy: their nodes, their users, and how each user reads a value."""
from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from heapq import heapify, heappop, heappush

from irscope.fusion.closure import closure
from irscope.fusion.plan import Group
from irscope.fusion.views import VIEWS, Chain, Repeat
from irscope.graph import Graph, Node, TensorType
from irscope.ops import hlo


class Way(Enum):
    """Ways to read a value other than through a chain of views."""

    MOVED = "moved"    # element by element, at computed indices (a gather, a window)
    WHOLE = "whole"    # from memory
    BEHIND = "behind"  # from memory, through the view that is read


MOVED, WHOLE, BEHIND = Way.MOVED, Way.WHOLE, Way.BEHIND
Reach = Chain | Way | None
"""How a kernel reads a node: through a chain of views (None: element i in iteration i), or in one of the ways above."""

MAX_SEARCH = 1000
"""Kernels that a search for cycles visits before it assumes a cycle."""


class Draft:
    """A kernel under construction.

    ``space`` is its iteration space (if ``kind`` is ``rows``, the ``rows`` leading axes are the rows), ``outputs`` maps each node that it
    stores to its chain, ``free`` holds the movement that it reads through, ``moved`` says whether some of its reads compute indices.
    """

    __slots__ = ("anchor", "free", "kind", "moved", "nodes", "number", "outputs", "repeated", "rows", "space")

    def __init__(self, number: int, kind: str, space: tuple[int, ...]) -> None:
        self.number = number
        self.kind = kind
        self.space = space
        self.rows = 0
        self.nodes: dict[Node, None] = {}
        self.free: dict[Node, None] = {}
        self.outputs: dict[Node, Chain | None] = {}
        self.anchor: Node | None = None
        self.moved = False
        self.repeated = 0

    def last(self) -> int:
        """The index of its last node."""
        return max(node.index for node in self.nodes)


class Drafts:
    """All kernels of one graph, and the users of every node.

    ``thorough``: a search for cycles follows every path, including those through nodes that come after the kernel in question.
    """

    def __init__(self, graph: Graph, thorough: bool = False) -> None:
        self.graph = graph
        self.thorough = thorough
        self.all: list[Draft] = []
        self._readers: list[dict[Draft, list[Reach]]] = [{} for _ in graph.nodes]
        self._stored = [False] * len(graph.nodes)
        self._sources: dict[Node, Draft] = {}
        self._pending: dict[Draft, set[Node]] = {}
        self.group_of: dict[Draft, Group] = {}

    def new(self, kind: str, space: tuple[int, ...]) -> Draft:
        """Create a kernel without nodes."""
        draft = Draft(len(self.all), kind, space)
        self.all.append(draft)
        return draft

    def of_source(self, node: Node) -> Draft:
        """The kernel of an operator with several results; creates it on first use."""
        if node not in self._sources:
            draft = self._sources[node] = self.new("whole", ())
            draft.nodes[node] = None
            draft.anchor = node
            if isinstance(node.type, TensorType):
                draft.outputs[node] = None
        return self._sources[node]

    # ---- reading

    def reach(self, node: Node, draft: Draft, reach: Reach) -> None:
        """Record that a kernel reads a node this way."""
        reaches = self._readers[node.index].setdefault(draft, [])
        if reach not in reaches:
            reaches.append(reach)
        self._pending.setdefault(draft, set()).add(node)

    def readers(self, node: Node) -> dict[Draft, list[Reach]]:
        """The kernels that read a node, and how each reads it."""
        return self._readers[node.index]

    def store(self, node: Node) -> None:
        """Mark a node as stored: its value is a result or part of a tuple, so it needs its own memory."""
        self._stored[node.index] = True

    def is_stored(self, node: Node) -> bool:
        return self._stored[node.index]

    def widen(self, draft: Draft, axes: tuple[int, ...]) -> None:
        """Append the axes of a row to a kernel over rows: what it has read so far is one value a row."""
        draft.space = (*draft.space, *axes)
        step = Repeat(draft.space)
        draft.outputs = {node: _outermost(chain, step) for node, chain in draft.outputs.items()}
        for node in self._pending.get(draft, ()):
            reaches = self._readers[node.index].get(draft)
            if reaches is not None and node not in draft.nodes:
                self._readers[node.index][draft] = [_outermost(r, step) if isinstance(r, Chain | None) else r for r in reaches]

    def reaches(self, sources: list[Draft], target: Draft) -> bool:
        """Whether the results of these kernels reach ``target``; a search that grows too long assumes that they do.

        A value read after the last node of ``target`` reaches it only through a kernel that also stores a much earlier node.
        That is rare, and searching to the end of the graph for each node is expensive, so only a thorough search does it.
        """
        limit = len(self.graph.nodes) if self.thorough else target.last()
        longest = MAX_SEARCH * MAX_SEARCH if self.thorough else MAX_SEARCH
        seen: set[Draft] = set()
        stack = list(sources)
        while stack:
            draft = stack.pop()
            if draft is target:
                return True
            if draft in seen:
                continue
            seen.add(draft)
            if len(seen) > longest:
                return True
            for output in (*draft.outputs, *self._tokens(draft)):
                if output.index < limit:
                    stack.extend(self._readers[output.index])
        return False

    @staticmethod
    def _tokens(draft: Draft) -> list[Node]:
        """The non-array results of an operator: users of a token wait for everything that the token waits for."""
        return [node for node in draft.nodes if not isinstance(node.type, TensorType)] if draft.kind == "whole" else []

    # ---- the result

    def groups(self) -> list[Group] | None:
        """The kernels in an executable order, each after the kernels that it reads; None if they form a cycle."""
        made: dict[Node, Draft] = {}
        for draft in self.all:
            for output in draft.outputs:
                made[output] = draft
            for node in draft.nodes:
                made.setdefault(node, draft)
        inputs = {draft: self._inputs(draft) for draft in self.all}
        waiting: dict[Draft, int] = {}
        users: dict[Draft, list[Draft]] = {draft: [] for draft in self.all}
        for draft in self.all:
            before = {made[n] for node in inputs[draft] for n in _behind(node) if n in made} - {draft}
            waiting[draft] = len(before)
            for earlier in before:
                users[earlier].append(draft)
        ready = [(d.last(), d.number, d) for d in self.all if not waiting[d]]
        heapify(ready)
        order: list[Group] = []
        while ready:
            _, _, draft = heappop(ready)
            nodes = sorted([*draft.nodes, *(n for n in draft.free if n not in draft.nodes)], key=lambda n: n.index)
            outputs = sorted(draft.outputs, key=lambda n: n.index)
            group = Group(draft.kind, nodes, outputs, inputs[draft], draft.anchor, draft.space, draft.rows, dict(draft.outputs))
            self.group_of[draft] = group
            order.append(group)
            for user in users[draft]:
                waiting[user] -= 1
                if not waiting[user]:
                    heappush(ready, (user.last(), user.number, user))
        return order if len(order) == len(self.all) else None

    def _inputs(self, draft: Draft) -> list[Node]:
        """What a kernel reads but does not compute: operands that it reads whole, and the sources of the views that it reads through.

        They are in order of first use by its nodes, so that equal kernels list them alike wherever they are in the text.
        """
        found: set[Node] = set()
        for node in self._pending.get(draft, ()):
            reaches = self._readers[node.index].get(draft, [])
            if node not in draft.nodes and reaches != [BEHIND] and (node not in draft.free or WHOLE in reaches):
                found.add(node)
        used = sorted({*draft.nodes, *draft.free}, key=lambda n: n.index)
        order = dict.fromkeys(o for node in used for o in node.operands if o in found)
        return [*order, *sorted(found - order.keys(), key=lambda n: n.index)]


def _behind(node: Node) -> Iterator[Node]:
    """A node and, if it is a view, a tuple or a tuple element, all nodes whose memory it refers to."""
    return closure([node], lambda n: n.operands if n.op in VIEWS or n.op in (hlo.get_tuple_element, hlo.tuple) else ())


def _outermost(chain: Chain | None, step: Repeat) -> Chain:
    """The chain with one more step on the loop side."""
    made = Chain(step)
    for inner in reversed(list(chain or ())):
        made = Chain(inner, made)
    return made


def dims_of(node: Node) -> tuple[int, ...]:
    """The static shape of a tensor; () for anything else."""
    type = node.type
    return type.shape if isinstance(type, TensorType) and type.is_static else ()  # type: ignore[return-value]
