"""Torch's algebra over the graphs that are being built."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from irscope.expand.frames import Frame, Framed
from irscope.formats.torchscript.abstract import Storage
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Graph, Node


class FramedTorch(Framed, Torch):
    """Torch's algebra in the innermost frame.

    The last of ``journals`` holds, while a body is built, the value that each storage from outside had before the body wrote it; the others
    are those of the bodies around it. ``doubts`` holds, for each of them, the storages whose value is not known since a write in it, and
    why: it is known again where the body ends, for the other way of a branch.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.journals: list[dict[Storage, Node]] = []
        self.doubts: list[dict[Storage, str]] = []
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

    def doubt(self, storage: Storage, why: str) -> None:
        """The value of a storage is not known from here on."""
        if not storage.stale:
            storage.stale = why
            if self.doubts:
                self.doubts[-1][storage] = why

    def size_from_data(self, node: Node) -> int:
        """The value of an integer scalar that decides a size, for the given inputs. Raises ValueError where it cannot be known."""
        if self.measure is None or self.frame.outer is not None:
            return super().size_from_data(node)
        return self.measure(node)

    def is_own(self, node: Node) -> bool:
        """Whether a node was built in the body that is under construction."""
        return self._owner.get(node) is self.frame

    def written(self, storage: Storage, before: Node) -> None:
        """A storage is about to be written: the bodies under construction that it came into from outside remember what it was."""
        frame: Frame | None = self.frame
        for journal in reversed(self.journals):
            if frame is None or self._owner.get(before) is frame:
                break  # it was made in this body, or written there before
            journal.setdefault(storage, before)
            frame = frame.outer
