"""Torch's algebra over the graphs that are being built."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from irscope.expand.frames import Frame, Framed
from irscope.formats.torchscript.abstract import Tensor
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Graph, Node


class FramedTorch(Framed, Torch):
    """Torch's algebra in the innermost frame.

    The last of ``journals`` holds, while a body is built, the value that each tensor from outside had before the body wrote it.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.journals: list[dict[Tensor, Node]] = []
        self.measure: Callable[[Node], int] | None = None

    @contextmanager
    def body(self, name: str) -> Iterator[Frame]:
        """Build into a new body until the block ends."""
        self.journals.append({})
        try:
            with super().body(name) as frame:
                yield frame
        finally:
            self.journals.pop()

    def size_from_data(self, node: Node) -> int:
        """The value of an integer scalar that decides a size, for the given inputs. Raises ValueError where it cannot be known."""
        if self.measure is None or self.frame.outer is not None:
            return super().size_from_data(node)
        return self.measure(node)

    def written(self, tensor: Tensor, before: Node) -> None:
        """A tensor is about to be written: the bodies under construction remember what it was."""
        for journal in self.journals:
            journal.setdefault(tensor, before)
