"""The graphs that are being built: the main one, and bodies of branches and loops that take values from around them."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from irscope.formats.torchscript.abstract import Tensor
from irscope.formats.torchscript.torch import Torch
from irscope.graph import NO_ATTRS, UNKNOWN, Builder, Graph, Node, TupleType, Type
from irscope.ops import get


class Frame:
    """One graph under construction. A body has one parameter, a tuple, whose parts are the values it takes from outside."""

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
            self.builder.param(get("parameter"), UNKNOWN, "state")

    def part(self, type: Type) -> Node:
        """One more part of the parameter."""
        param = self.graph.params[0]
        node = self.builder.add(get("get-tuple-element"), (param,), {"index": len(self.parts)}, type, synthetic=True)
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


class FramedTorch(Torch):
    """Torch's algebra in the innermost frame; operands from outer frames are captured on the way in.

    ``journal`` holds, while a body is built, the value that each tensor from outside had before the body wrote it.
    """

    def __init__(self, graph: Graph) -> None:
        self.frame = Frame(graph, None)
        super().__init__(self.frame.builder)
        self._owner: dict[Node, Frame] = {}
        self.journals: list[dict[Tensor, Node]] = []
        self.measure: Callable[[Node], int] | None = None

    @contextmanager
    def body(self, name: str) -> Iterator[Frame]:
        """Build into a new body until the block ends."""
        outer, at = self.frame, self.builder.at
        self.frame = Frame(Graph(name), outer)
        self.builder = self.frame.builder
        self.builder.at = at
        self.journals.append({})
        try:
            yield self.frame
        finally:
            self.journals.pop()
            self.frame, self.builder = outer, outer.builder

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

    def emit(self, name: str, operands: Sequence[Node], attrs: Mapping[str, Any] = NO_ATTRS, bodies: Sequence[Graph] = (),
             type: Type | None = None) -> Node:
        return self.own(super().emit(name, operands, attrs, bodies, type))

    def size_from_data(self, node: Node) -> int:
        """The value of an integer scalar that decides a size, for the given inputs. Raises ValueError where it cannot be known."""
        if self.measure is None or self.frame.outer is not None:
            return super().size_from_data(node)
        return self.measure(node)

    def tuple(self, parts: Sequence[Node]) -> Node:
        """One value of several."""
        return self.emit("tuple", parts, type=TupleType(tuple(p.type for p in parts)))

    def written(self, tensor: Tensor, before: Node) -> None:
        """A tensor is about to be written: the bodies under construction remember what it was."""
        for journal in self.journals:
            journal.setdefault(tensor, before)
