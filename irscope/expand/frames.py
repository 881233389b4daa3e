"""The graphs under construction: the main one, and the bodies of branches and loops, which capture outer values."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Generic, TypeVar

from irscope.expand.values import synthetic_part
from irscope.graph import NO_ATTRS, UNKNOWN, Builder, Graph, Module, Node, TupleType, Type
from irscope.ops import hlo
from irscope.ops.tensors import Tensors


class NotAround(Exception):
    """A value of one body is used while another graph is built."""


class Frame:
    """One graph under construction. A body has one parameter, a tuple: the values that it captures; in a loop, the state before them."""

    def __init__(self, graph: Graph, outer: Frame | None) -> None:
        self.graph = graph
        self.outer = outer
        self.builder = Builder(graph)
        self.parts: list[Node] = []
        self.captured: list[Node] = []
        self._local: dict[Node, Node] = {}
        if outer is not None:
            self.builder.param(hlo.parameter, UNKNOWN, "state")

    def part(self, type: Type) -> Node:
        """Add a part to the parameter."""
        node = synthetic_part(self.builder, self.graph.params[0], len(self.parts), type=type)
        self.parts.append(node)
        return node

    def capture(self, node: Node) -> tuple[Node, bool]:
        """The part of the parameter that stands for an outer node, and whether it is new."""
        if node in self._local:
            return self._local[node], False
        made = self._local[node] = self.part(node.type)
        self.captured.append(node)
        return made, True

    def number(self, places: Mapping[Node, int], whole: Type) -> None:
        """Set the tuple indices of the parts of a loop's body: captures have ``places``, the other parts are the state, in order.

        ``whole`` becomes the type of the parameter.
        """
        captured = {part: places[node] for node, part in self._local.items()}
        state = count()
        for part in self.parts:
            part.attrs = {"index": captured[part] if part in captured else next(state)}
        self.graph.params[0].type = whole

    def finish(self, root: Node) -> None:
        """Complete the body: give its parameter the type of its parts."""
        self.graph.params[0].type = TupleType(tuple(p.type for p in self.parts))
        self.graph.root = root


def captures(node: Node, values: Sequence[object]) -> list[list[object]]:
    """The values that each body of a node captures, out of those that the node captures for all of them."""
    taken, at = [], 0
    for body in node.bodies:
        count = body.notes.get("captures", 0)
        taken.append(list(values[at:at + count]))
        at += count
    return taken


class Framed(Tensors):
    """An algebra of tensors in the innermost frame; operands from outer frames are captured.

    A subclass lists the algebra of its format after this class among its bases.
    """

    def __init__(self, graph: Graph) -> None:
        self.frame = Frame(graph, None)
        super().__init__(self.frame.builder)
        self._owner: dict[Node, Frame] = {}

    @property
    def built(self) -> int:
        """The number of nodes built, in all bodies."""
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
        """Build into a frame again."""
        before, at = self.frame, self.builder.at
        self.frame, self.builder = frame, frame.builder
        self.builder.at = at
        try:
            yield
        finally:
            self.frame, self.builder = before, before.builder

    @contextmanager
    def placed(self, at: tuple[Node, ...]) -> Iterator[None]:
        """Attribute the nodes built until the block ends to these nodes of the program."""
        builder, before = self.builder, self.builder.at
        builder.at = at
        try:
            yield
        finally:
            builder.at = before

    def own(self, node: Node) -> Node:
        """Record that the node belongs to the frame under construction."""
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

    def emit(self, name: str, operands: Sequence[Node], attrs: Mapping[str, object] = NO_ATTRS, bodies: Sequence[Graph] = (),
             type: Type | None = None, dialect: str = "hlo") -> Node:
        return self.own(super().emit(name, operands, attrs, bodies, type, dialect))

    def conditional(self, condition: Node, frames: Sequence[Frame], rows: Sequence[Sequence[Node]]) -> list[Node]:
        """Emit a ``conditional`` over the bodies built in these frames, and return the parts of its result.

        Body i returns ``rows[i]`` and takes a tuple of what it captures.
        """
        for frame, row in zip(frames, rows, strict=True):
            with self.again(frame):
                frame.finish(self.tuple(row))
        operands = [self.tuple([self.here(c) for c in frame.captured]) for frame in frames]
        bodies = [frame.graph for frame in frames]
        made = self.emit("conditional", (condition, *operands), {}, bodies, bodies[0].result().type)
        return [self.part(made, i) for i in range(len(rows[0]))]

    def loop(self, body: Frame, test: Frame, start: Sequence[Node], results: Sequence[Node]) -> Node:
        """Emit a ``while`` over the bodies built in these frames, and return it.

        Its tuple has the state, then the values that the two bodies capture. The state is ``start`` before the loop and
        ``results``, nodes of ``body``, after an iteration. The root of ``test``, which the caller has set, is the condition.
        """
        captured = list(dict.fromkeys([*body.captured, *test.captured]))
        given = self.tuple([*start, *map(self.here, captured)])
        with self.again(body):
            passed = [self.own(body.capture(node)[0]) for node in captured]
            body.graph.root = self.tuple([*results, *passed])
        for frame in (body, test):
            frame.number({node: len(start) + i for i, node in enumerate(captured)}, given.type)
        return self.emit("while", (given,), {}, (test.graph, body.graph), given.type)

    def tuple(self, parts: Sequence[Node]) -> Node:
        """A tuple of these parts."""
        return self.emit("tuple", parts, type=TupleType(tuple(p.type for p in parts)))


A = TypeVar("A", bound=Framed)


class FramedProgram(ABC, Generic[A]):
    """The state of a run: ``module`` is the program, ``t`` the algebra that builds ``graph``, and ``made`` the module of ``graph``."""

    def __init__(self, module: Module, algebra: Callable[[Graph], A]) -> None:
        self.module = module
        self.made = module.derived()
        self.graph = Graph(module.entry)
        self.t = algebra(self.graph)

    def keep(self, graph: Graph) -> None:
        """Add a completed body to the module."""
        self.made.graphs[self.made.fresh_name(graph.name)] = graph

    def size_from_inputs(self, node: Node, measure: Callable[[Graph], int]) -> int:
        """The value of an integer scalar of the main graph for the given inputs, computed by ``measure``.

        Marks the module by ``attrs["sizes_from_data"]``.
        """
        self.made.attrs |= {"sizes_from_data": True}
        return int(measure(Graph(self.graph.name, list(self.graph.nodes), list(self.graph.params), node)))
