"""The graphs that are being built: the main one, and bodies of branches and loops that take values from around them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from irscope.expand.torchscript.frames import Frame
from irscope.formats.relay.algebra import Relay
from irscope.graph import NO_ATTRS, Graph, Node, TupleType, Type


class FramedRelay(Relay):
    """Relay's algebra in the innermost frame; operands from outer frames are captured on the way in."""

    def __init__(self, graph: Graph) -> None:
        self.frame = Frame(graph, None)
        super().__init__(self.frame.builder)
        self._owner: dict[Node, Frame] = {}

    @contextmanager
    def body(self, name: str) -> Iterator[Frame]:
        """Build into a new body until the block ends."""
        outer, at = self.frame, self.builder.at
        self.frame = Frame(Graph(name), outer)
        self.builder = self.frame.builder
        self.builder.at = at
        try:
            yield self.frame
        finally:
            self.frame, self.builder = outer, outer.builder

    @contextmanager
    def again(self, frame: Frame) -> Iterator[None]:
        """Build into a frame once more."""
        before = self.frame
        self.frame, self.builder = frame, frame.builder
        try:
            yield
        finally:
            self.frame, self.builder = before, before.builder

    def own(self, node: Node) -> Node:
        """The node belongs to the frame that is being built."""
        self._owner[node] = self.frame
        return node

    def here(self, node: Node) -> Node:
        owner = self._owner.get(node)
        if owner is None or owner is self.frame:
            return node
        chain: list[Frame] = []
        frame: Frame | None = self.frame
        while frame is not None and frame is not owner:
            chain.append(frame)
            frame = frame.outer
        for inner in reversed(chain):
            node, new = inner.capture(node)
            if new:
                self._owner[node] = inner
        return node

    def emit(
        self,
        name: str,
        operands: Sequence[Node],
        attrs: Mapping[str, Any] = NO_ATTRS,
        bodies: Sequence[Graph] = (),
        type: Type | None = None,
    ) -> Node:
        return self.own(super().emit(name, operands, attrs, bodies, type))

    def tuple(self, parts: Sequence[Node]) -> Node:
        """One value of several."""
        return self.emit("tuple", parts, type=TupleType(tuple(p.type for p in parts)))
