"""The groups of TVM's FuseOps for a graph (src/relay/transforms/fuse_ops.cc of TVM 0.7 to 0.19), decision by decision.

A node fuses into its immediate post-dominator if the kinds on every path to it allow that. There are three phases: nodes after a
convolution, then injective operators, then producers of a tuple inside a group.
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
    """A node's group, merged into another by ``parent``; ``root_node`` is the node whose value leaves it."""

    kind: TvmKind
    root_node: Node
    anchor: Node | None = None
    parent: Member | None = None
    size: int = 1

    def root(self) -> Member:
        """The group that this one was merged into."""
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
        # An opaque node, or one whose paths never meet, is not fused into anything.
        fusing = [at for at, d in enumerate(self.dominators) if d.parent >= 0 and self.walk.kinds[at] is not TvmKind.OPAQUE]
        for phase in (self._follow, self._join, self._feed_tuples):
            for at in fusing:
                # In every phase, a group must not become too large.
                if (limit := phase(at)) is not None and self._between(at) <= max_depth:
                    self._fuse_if(at, *limit)

    def group_of(self, node: Node) -> Member:
        """The final group of a node."""
        return self.members[self.walk.place[node.index]].root()

    # ------------------------------------------------------------------ phases: the largest kinds allowed on the paths and at their end

    def _follow(self, at: int) -> tuple[TvmKind, TvmKind] | None:
        """Phase one: fuse what follows a convolution and keeps its shape, and elementwise operators into their users."""
        if self.members[at].kind is TvmKind.OUT_ELEMWISE_FUSABLE:
            wanted = self.dominators[at].kind is TvmKind.ELEMWISE and not self._settled(at)
            return (TvmKind.BROADCAST, TvmKind.BROADCAST) if wanted else None
        return self._pointwise(at)

    def _join(self, at: int) -> tuple[TvmKind, TvmKind] | None:
        """Phase two: fuse injective operators and tuples as well."""
        if self.members[at].kind in (TvmKind.INJECTIVE, TvmKind.TUPLE):
            return None if self._settled(at) else (TvmKind.INJECTIVE, TvmKind.INJECTIVE)
        return self._pointwise(at)

    def _feed_tuples(self, at: int) -> tuple[TvmKind, TvmKind] | None:
        """Phase three: fuse the producers of a tuple that has become part of a group."""
        target = self.members[self.dominators[at].parent]
        if self.members[at].kind > TvmKind.INJECTIVE or target.kind is not TvmKind.TUPLE:
            return None
        return (TvmKind.INJECTIVE, TvmKind.INJECTIVE) if target.root().kind <= TvmKind.INJECTIVE else None

    def _pointwise(self, at: int) -> tuple[TvmKind, TvmKind] | None:
        """Elementwise and broadcasting operators fuse across injective ones into anything that is not opaque."""
        if self.members[at].kind > TvmKind.BROADCAST or self.dominators[at].kind > TvmKind.COMM_REDUCE or self._settled(at):
            return None
        return TvmKind.INJECTIVE, TvmKind.OUT_ELEMWISE_FUSABLE

    def _settled(self, at: int) -> bool:
        """Whether a node is already in its dominator's group, or the dominator is a tuple, which waits for the third phase."""
        target = self.members[self.dominators[at].parent]
        return target.kind is TvmKind.TUPLE or self.members[at].root() is target.root()

    # ------------------------------------------------------------------ paths

    def _fuse_if(self, at: int, on_the_way: TvmKind, at_the_end: TvmKind) -> None:
        """Merge everything between a node and its dominator, if every group on the paths is of an allowed kind."""
        sink = self.dominators[at].parent
        if self.members[sink].root().kind > at_the_end:
            return
        ways = list(self._ways(at, sink))
        if all(self.members[way].root().kind <= on_the_way for way in ways):
            for each in (at, *ways):
                self._merge(self.members[each].root(), self.members[sink].root())

    def _ways(self, source: int, sink: int) -> Iterator[int]:
        """The nodes on all paths between a source and its sink."""
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
        """How many operators a fusion of a source into its sink would hold, as TVM counts them; counting stops beyond the limit.

        A group that was merged into another one still counts with its size before the merge.
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
