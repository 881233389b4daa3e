"""The groups that TVM's FuseOps makes of a graph (src/relay/transforms/fuse_ops.cc of TVM 0.7 to 0.19), decision by decision.

A node fuses into its immediate post-dominator when the kinds on every way there allow it. Three phases: what follows a convolution, then
injective operators, then what feeds a tuple inside a group.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from irscope.fusion.tvm_dominators import dominators
from irscope.fusion.tvm_kinds import TvmKind
from irscope.fusion.tvm_walk import walk
from irscope.graph import Graph, Node

MAX_DEPTH = 256
"""Nodes that one group may hold (``relay.FuseOps.max_depth``)."""


@dataclass(slots=True, eq=False)
class Member:
    """A node's group, joined to others by ``parent``; ``root_node`` is the node whose value leaves it."""

    kind: TvmKind
    root_node: Node
    anchor: Node | None = None
    parent: Member | None = None
    size: int = 1

    def root(self) -> Member:
        """The group that this one has become part of."""
        top = self
        while top.parent is not None:
            top = top.parent
        while self.parent is not None and self.parent is not top:
            self.parent, self = top, self.parent
        return top


class Partition:
    """The groups of one graph."""

    def __init__(self, graph: Graph, max_depth: int = MAX_DEPTH) -> None:
        self.max_depth = max_depth
        self.walk = walk(graph)
        self.dominators = dominators(self.walk)
        self.members = [
            Member(kind, node, node if kind is TvmKind.OUT_ELEMWISE_FUSABLE else None)
            for node, kind in zip(self.walk.nodes, self.walk.kinds, strict=True)
        ]
        # What is opaque, or whose ways meet nowhere, never fuses into anything.
        fusing = [at for at, d in enumerate(self.dominators) if d.parent >= 0 and self.walk.kinds[at] is not TvmKind.OPAQUE]
        for phase in (self._follow, self._join, self._feed_tuples):
            for at in fusing:
                # Whatever the phase asks for, a group must not become too large.
                if (limit := phase(at)) is not None and self._between(at) <= max_depth:
                    self._fuse_if(at, *limit)

    def group_of(self, node: Node) -> Member:
        """The group that a node ended in."""
        return self.members[self.walk.place[node.index]].root()

    # ------------------------------------------------------------------ phases: the largest kinds allowed on the ways, and at their end

    def _follow(self, at: int) -> tuple[TvmKind, TvmKind] | None:
        """First: what follows a convolution and keeps its shape; elementwise operators into what they feed."""
        if self.members[at].kind is TvmKind.OUT_ELEMWISE_FUSABLE:
            wanted = self.dominators[at].kind is TvmKind.ELEMWISE and not self._settled(at)
            return (TvmKind.BROADCAST, TvmKind.BROADCAST) if wanted else None
        return self._pointwise(at)

    def _join(self, at: int) -> tuple[TvmKind, TvmKind] | None:
        """Second: injective operators and tuples too."""
        if self.members[at].kind in (TvmKind.INJECTIVE, TvmKind.TUPLE):
            return None if self._settled(at) else (TvmKind.INJECTIVE, TvmKind.INJECTIVE)
        return self._pointwise(at)

    def _feed_tuples(self, at: int) -> tuple[TvmKind, TvmKind] | None:
        """Third: what feeds a tuple that has become part of a group."""
        target = self.members[self.dominators[at].parent]
        if self.members[at].kind > TvmKind.INJECTIVE or target.kind is not TvmKind.TUPLE:
            return None
        return (TvmKind.INJECTIVE, TvmKind.INJECTIVE) if target.root().kind <= TvmKind.INJECTIVE else None

    def _pointwise(self, at: int) -> tuple[TvmKind, TvmKind] | None:
        """Elementwise and broadcasting operators go over injective ones into anything that is not opaque."""
        if self.members[at].kind > TvmKind.BROADCAST or self.dominators[at].kind > TvmKind.COMM_REDUCE or self._settled(at):
            return None
        return TvmKind.INJECTIVE, TvmKind.OUT_ELEMWISE_FUSABLE

    def _settled(self, at: int) -> bool:
        """Whether a place is in the group of its dominator already, or that is a tuple, which waits for the third phase."""
        target = self.members[self.dominators[at].parent]
        return target.kind is TvmKind.TUPLE or self.members[at].root() is target.root()

    # ------------------------------------------------------------------ ways

    def _fuse_if(self, at: int, on_the_way: TvmKind, at_the_end: TvmKind) -> None:
        """Join everything between a place and its dominator, when every group on the ways is of an allowed kind."""
        sink = self.dominators[at].parent
        if self.members[sink].root().kind > at_the_end:
            return
        ways = list(self._ways(at, sink))
        if all(self.members[way].root().kind <= on_the_way for way in ways):
            for each in (at, *ways):
                self._merge(self.members[each].root(), self.members[sink].root())

    def _ways(self, source: int, sink: int) -> Iterator[int]:
        """The places between a source and its sink, on all ways."""
        outputs = self.walk.outputs
        seen: set[int] = set()
        stack = [to for to, _ in outputs[source]] if len(outputs[source]) > 1 else []
        while stack:
            at = stack.pop()
            if at not in seen and at != sink:
                seen.add(at)
                yield at
                stack.extend(to for to, _ in outputs[at])

    def _between(self, source: int) -> int:
        """How many operators come together when a source is fused into its sink, as TVM counts them; counting ends beyond the limit.

        A group that has become part of another one still counts with the size it had then.
        """
        sink = self.dominators[source].parent
        count = self.members[sink].root().size + self.members[source].size
        for at in self._ways(source, sink) if count <= self.max_depth else ():
            count += self.members[at].size
            if count > self.max_depth:
                break
        return count

    @staticmethod
    def _merge(child: Member, parent: Member) -> None:
        if child is parent:
            return
        parent.size += child.size
        child.parent = parent
        if child.anchor is not None:
            parent.anchor = child.anchor
            parent.kind = max(child.kind, parent.kind)
