"""Torch's algebra over the graphs under construction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from irscope.expand.frames import Frame, Framed
from irscope.formats.torchscript.abstract import TensorStorage
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Graph, Node
from irscope.ops.faults import TypeFault


class FramedTorch(Framed, Torch):
    """Torch's algebra in the innermost frame.

    While a body is built, the last of ``journals`` maps each outer storage to its value before the body wrote it; the others
    are those of the bodies around it. ``doubts`` has, for each of them, the storages whose value is unknown since a write in it, and
    the reason; the value is known again after the body, for the other way of a branch.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.journals: list[dict[TensorStorage, Node]] = []
        self.doubts: list[dict[TensorStorage, str]] = []
        self.measure: Callable[[Node], int] | None = None

    @contextmanager
    def body(self, name: str) -> Iterator[Frame]:
        """Build into a new body until the block ends."""
        self.journals.append({})
        self.doubts.append({})
        try:
            with super().body(name) as frame:
                yield frame
        finally:
            self.journals.pop()
            for storage in self.doubts.pop():
                storage.stale = ""

    def doubt(self, storage: TensorStorage, why: str) -> None:
        """Mark the value of a storage as unknown from here on."""
        if not storage.stale:
            storage.stale = why
            if self.doubts:
                self.doubts[-1][storage] = why

    def size_from_data(self, node: Node) -> int:
        """The value of an integer scalar that determines a size, for the given inputs. Raises ValueError where it cannot be computed."""
        if self.measure is None or self.frame.outer is not None:
            return super().size_from_data(node)
        if self.shape(node) or not self.dtype(node).is_integer:
            raise TypeFault(f"the size of the result is an integer, not {self.type(node)}")
        return self.measure(node)

    def is_own(self, node: Node) -> bool:
        """Whether a node was built in the body under construction."""
        return self._owner.get(node) is self.frame

    def written(self, storage: TensorStorage, before: Node) -> None:
        """Prepare a write to a storage: the bodies under construction for which it is an outer storage record its old value."""
        frame: Frame | None = self.frame
        for journal in reversed(self.journals):
            if frame is None or self._owner.get(before) is frame:
                break  # created in this body, or already written there
            journal.setdefault(storage, before)
            frame = frame.outer
