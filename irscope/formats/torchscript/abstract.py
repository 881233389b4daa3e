"""Values while a TorchScript program runs abstractly: tensors are nodes being built, everything else is a plain Python value.

A :class:`Tensor` is a handle: an in-place operator gives it another node. A view knows how to read itself from its base and how to write
a new value of itself back into it, so that a write is seen through every alias.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from irscope.graph import Node

if TYPE_CHECKING:
    import numpy as np

ReadView = Callable[[Node], Node]
WriteView = Callable[[Node, Node], Node]


class Tensor:
    """A tensor of the program. ``known`` is the value of a 0-dimensional tensor that is plain arithmetic on sizes, else None.

    ``number``: it stands for a Python number, which a trace writes as a 0-dimensional tensor; ``viewed``: a view reads through it.
    """

    __slots__ = ("_node", "_read", "_seen", "_write", "base", "known", "make", "number", "version", "viewed")

    def __init__(self, node: Node | None = None, base: Tensor | None = None, read: ReadView | None = None, write: WriteView | None = None,
                 known: np.ndarray[Any, Any] | None = None, make: Callable[[], Node] | None = None) -> None:
        self._node = node
        self.base = base
        self._read = read
        self._write = write
        self.known = known
        self.make = make
        self.number = False
        self.version = 0
        self.viewed = False
        if base is not None:
            base.viewed = True
        self._seen = base.root().version if base is not None else 0

    def root(self) -> Tensor:
        """The tensor that owns the memory."""
        tensor = self
        while tensor.base is not None:
            tensor = tensor.base
        return tensor

    @property
    def built(self) -> bool:
        """Whether it has a node of its own: it is no view, and was asked for or computed."""
        return self.base is None and self._node is not None

    @property
    def state(self) -> tuple[object, ...]:
        """Equal as long as neither this tensor nor what it is a view of is written to or becomes another view."""
        root = self.root()
        return self.base, self._read, root, root.version

    def get(self) -> Node:
        """The value now."""
        if self.base is None:
            if self._node is None:
                assert self.make is not None, "a tensor without a node knows how to make one"
                self._node = self.make()
            return self._node
        version = self.root().version
        if self._node is None or self._seen != version:
            assert self._read is not None
            self._node = self._read(self.base.get())
            self._seen = version
        return self._node

    def become(self, view: Callable[[Tensor], Tensor]) -> None:
        """This handle is from now on a view of what it was: ``x.t_()``. Raises ValueError when other views read through it."""
        if self.viewed:
            raise ValueError("the shape of a tensor changes in place while views of it exist: use the form without underscore")
        old = Tensor(self._node, self.base, self._read, self._write, self.known, self.make)
        old.version, old._seen = self.version, self._seen
        made = view(old)
        self._node, self.base, self._read, self._write = made._node, made.base, made._read, made._write
        self.known, self.make, self._seen = None, None, made._seen

    def set(self, node: Node) -> None:
        """A new value, for this tensor and whatever shares its memory."""
        self.known = None
        if self.base is None:
            self._node = node
            self.version += 1
            return
        assert self._write is not None
        self.base.set(self._write(self.base.get(), node))


@dataclass(frozen=True, slots=True, eq=False)
class Scalar:
    """A number that depends on data: a 0-dimensional node, and which Python type it stands for."""

    node: Node
    kind: str


@dataclass(frozen=True, slots=True, eq=False)
class Maybe:
    """An Optional of which data decides whether it is None: ``present`` is a number (bool), ``value`` is meaningless where it is false."""

    present: Any
    value: Any


class Uninitialized:
    """What ``prim::Uninitialized`` gives: the value of a variable on a way that does not reach its use."""

    def __repr__(self) -> str:
        return "nothing"


UNINITIALIZED = Uninitialized()


@dataclass(frozen=True, slots=True)
class ModuleRef:
    """An object of the program by its path from the top (empty: the top), and the name of its class."""

    path: str
    type: str = ""

    def child(self, name: str, type: str) -> ModuleRef:
        return ModuleRef(f"{self.path}.{name}" if self.path else name, type)


@dataclass(frozen=True, slots=True)
class FunctionRef:
    """A function constant by name."""

    name: str


@dataclass(slots=True, eq=False)
class Text:
    """A tensor whose values the text elides and nobody gave."""

    name: str
