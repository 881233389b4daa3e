"""The graphs that are being built: the main one, and bodies of branches and loops that take values from around them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from irscope.expand.values import synthetic_part
from irscope.graph import NO_ATTRS, UNKNOWN, Builder, Graph, Node, TupleType, Type
from irscope.ops import hlo
from irscope.ops.tensors import Tensors


class NotAround(Exception):
    """A value of one body is asked for where another graph is built."""


class Frame:
    """One graph under construction. A body has one parameter, a tuple, whose parts are the values it takes from outside.

    In a loop ``state_parts`` are those that a trip hands to the next, ``captured_parts`` those that stay.
    """

    def __init__(self, graph: Graph, outer: Frame | None) -> None:
        self.graph = graph
        self.outer = outer
        self.builder = Builder(graph)
        self.parts: list[Node] = []
        self.captured: list[Node] = []
        self.state_parts: list[Node] = []
        self.captured_parts: list[Node] = []
        self._local: dict[Node, Node] = {}
        if outer is not None:
            self.builder.param(hlo.parameter, UNKNOWN, "state")

    def part(self, type: Type) -> Node:
        """One more part of the parameter."""
        node = synthetic_part(self.builder, self.graph.params[0], len(self.parts), type=type)
        self.parts.append(node)
        return node

    def capture(self, node: Node) -> tuple[Node, bool]:
        """The node as this body knows it, and whether it is new here."""
        if node in self._local:
            return self._local[node], False
        made = self._local[node] = self.part(node.type)
        self.captured.append(node)
        return made, True

    def finish(self, root: Node) -> None:
        """The body is complete: its parameter has the type of its parts."""
        self.graph.params[0].type = TupleType(tuple(p.type for p in self.parts))
        self.graph.root = root


def captures(node: Node, values: Sequence[Any]) -> list[list[Any]]:
    """What each body of a node takes from outside, of the values that the node captures for all of them."""
    taken, at = [], 0
    for body in node.bodies:
        count = body.notes.get("captures", 0)
        taken.append(list(values[at:at + count]))
        at += count
    return taken


class Framed(Tensors):
    """An algebra of tensors in the innermost frame; operands from outer frames are captured on the way in.

    A format's own algebra stands behind this one among the bases of a class.
    """

    def __init__(self, graph: Graph) -> None:
        self.frame = Frame(graph, None)
        super().__init__(self.frame.builder)
        self._owner: dict[Node, Frame] = {}

    @property
    def built(self) -> int:
        """How many nodes were built, those of all bodies together."""
        return len(self._owner)

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
        before, at = self.frame, self.builder.at
        self.frame, self.builder = frame, frame.builder
        self.builder.at = at
        try:
            yield
        finally:
            self.frame, self.builder = before, before.builder

    @contextmanager
    def placed(self, at: tuple[Node, ...]) -> Iterator[None]:
        """What is built until the block ends stems from these nodes of the program."""
        builder, before = self.builder, self.builder.at
        builder.at = at
        try:
            yield
        finally:
            builder.at = before

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
        if frame is None:
            raise NotAround(f"%{node.name} was built in a body that is not around this one")
        for inner in reversed(chain):
            node, new = inner.capture(node)
            if new:
                self._owner[node] = inner
        return node

    def emit(
        self,
        name: str,
        operands: Sequence[Node],
        attrs: Mapping[str, object] = NO_ATTRS,
        bodies: Sequence[Graph] = (),
        type: Type | None = None,
        dialect: str = "hlo",
    ) -> Node:
        return self.own(super().emit(name, operands, attrs, bodies, type, dialect))

    def conditional(self, condition: Node, frames: Sequence[Frame], rows: Sequence[Sequence[Node]]) -> list[Node]:
        """The parts of a conditional whose bodies, built in these frames, end in these rows; the bodies take what they captured."""
        for frame, row in zip(frames, rows, strict=True):
            with self.again(frame):
                frame.finish(self.tuple(row))
        operands = [self.tuple([self.here(c) for c in frame.captured]) for frame in frames]
        bodies = [frame.graph for frame in frames]
        made = self.emit("conditional", (condition, *operands), {}, bodies, bodies[0].result().type)
        return [self.part(made, i) for i in range(len(rows[0]))]

    def tuple(self, parts: Sequence[Node]) -> Node:
        """One value of several."""
        return self.emit("tuple", parts, type=TupleType(tuple(p.type for p in parts)))
