"""Values of an abstract TorchScript run: tensors over storages; all other values are plain Python values.

    x = randn(4, 6)    Tensor -> Region (all of it)            -> Storage (the node of its value)
    y = x.t()          Tensor -> Region (transposed) -> Region -> the same Storage

A write through y updates the storage, which x and every other view read afterwards. Views have strides as torch
computes them (:mod:`~irscope.formats.torchscript.strides`): they decide whether ``reshape`` and the like return a view or a copy.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from irscope.formats.torchscript.strides import Place, Strided, contiguous
from irscope.graph import Node, TensorType
from irscope.lazy import Array
from irscope.ops.faults import TypeFault
from irscope.source import UserError

ReadView = Callable[[Node], Node]
WriteView = Callable[[Node, Node], Node]


@dataclass(frozen=True, slots=True)
class TensorView:
    """A view of a tensor: a function that reads it from its base, one that writes a new value into the base, and its layout.

    ``write`` is None where elements are skipped or repeated so that only their addresses determine what a write changes.
    """

    read: ReadView
    write: WriteView | None
    place: Place

    def into(self, base: Node, new: Node) -> Node:
        """The base with ``new`` written into this part of it."""
        assert self.write is not None, "only views of every element once are written this way"
        return self.write(base, new)


@dataclass(frozen=True, slots=True)
class Restrided:
    """A view of the whole storage by sizes and strides: ``as_strided``. An offset of None is that of the tensor."""

    layout: Strided


@dataclass(frozen=True, slots=True)
class Copied:
    """New memory."""

    node: Node
    layout: Strided | None


@dataclass(frozen=True, slots=True)
class Unsure:
    """The value is known; whether torch returns the operand's memory or a copy is not, because the operand's strides are unknown."""

    node: Node


@dataclass(frozen=True, slots=True)
class Written:
    """The results of an operator that also writes: the new values of its arguments, by their positions."""

    results: Node | tuple[Node, ...]
    values: Mapping[int, Node]


class Itself:
    """The operand: the same tensor, not another view of it."""


ITSELF = Itself()
Decision = TensorView | Restrided | Copied | Unsure | Itself
"""The result of an operator that may share memory with its operand."""


class TensorStorage:
    """The memory of a tensor: its value, and the number of writes. Later storages have a larger ``serial``.

    ``shared``: it has more than one region. ``origins`` maps the storages that this one may be, itself included, to the reason;
    ``members`` has those that may be this one; ``apart`` those that are distinct memory despite a common origin. ``stale`` says why
    the value is unknown after a write to a storage that may be the same; it is empty otherwise.
    """

    __slots__ = ("_node", "apart", "make", "members", "origins", "serial", "shared", "stale", "version")
    _serials = count()

    def __init__(self, node: Node | None = None, make: Callable[[], Node] | None = None) -> None:
        self._node = node
        self.make = make
        self.serial = next(self._serials)
        self.version = 0
        self.shared = False
        self.origins: dict[TensorStorage, str] = {self: ""}
        self.members: list[TensorStorage] = [self]
        self.apart: set[TensorStorage] = set()
        self.stale = ""

    @property
    def built(self) -> bool:
        return self._node is not None

    def get(self) -> Node:
        """The current value. Raises UserError after a write to a storage that may be this one."""
        if self.stale:
            raise UserError(self.stale, "clone() the tensor before the write; or print traced.inlined_graph, whose types state strides")
        return self.last()

    def last(self) -> Node:
        """The value written last, even if it is stale."""
        if self._node is None:
            assert self.make is not None, "a storage without a value knows how to make one"
            self._node = self.make()
        return self._node

    def set(self, node: Node) -> None:
        """Set the value, for every tensor of this storage."""
        self._node = node
        self.version += 1

    def derive(self, other: TensorStorage, why: str) -> None:
        """Record that this memory may be that of another storage, or of any that the other one may be."""
        for origin in other.origins:
            if origin not in self.origins:
                self.origins[origin] = why
                origin.members.append(self)

    def may_be(self, other: TensorStorage) -> bool:
        """Whether the two may be the same memory."""
        return other is self or (other not in self.apart and not self.origins.keys().isdisjoint(other.origins))

    def others(self) -> list[tuple[TensorStorage, str]]:
        """The other storages that may be the same memory, and why."""
        return [(other, why or other.origins[origin]) for origin, why in self.origins.items() for other in origin.members
                if other is not self and other not in self.apart]


class MemoryRegion:
    """The memory region of a tensor: a whole storage, or a view of another region. ``layout`` is None where it is unknown."""

    __slots__ = ("base", "layout", "storage", "view")

    def __init__(self, storage: TensorStorage, layout: Strided | None = None, base: MemoryRegion | None = None,
                 view: TensorView | None = None) -> None:
        self.storage = storage
        self.layout = layout
        self.base = base
        self.view = view
        storage.shared |= base is not None

    def _chain(self) -> list[MemoryRegion]:
        """This region, its base, and so on up to the whole storage."""
        chain, region = [self], self
        while region.base is not None:
            region = region.base
            chain.append(region)
        return chain

    def depth(self) -> int:
        """The number of views between this region and the storage."""
        return len(self._chain()) - 1

    def get(self) -> Node:
        """The current value."""
        value = self.storage.get()
        for region in reversed(self._chain()):
            if region.view is not None:
                value = region.view.read(value)
        return value

    def can_write(self) -> bool:
        """Whether :meth:`set` can determine what a write changes in the storage."""
        return all(region.view is None or region.view.write is not None for region in self._chain())

    def set(self, node: Node) -> None:
        """Set the value of this part of the storage."""
        chain = self._chain()
        value = self.storage.get()
        bases = []  # from the storage to this region: each is read from the one before
        for region in reversed(chain):
            if region is self:
                break
            value = region.view.read(value) if region.view is not None else value
            bases.append(value)
        bases.reverse()
        for region, base in zip(chain, bases, strict=False):
            assert region.view is not None
            node = region.view.into(base, node)
        self.storage.set(node)


class Tensor:
    """A tensor of the program. ``known`` is the value of a 0-dimensional tensor that is plain arithmetic on sizes, else None.

    ``number``: it stands for a Python number, which a trace writes as a 0-dimensional tensor. ``layout`` of a tensor with its own storage:
    None where it is unknown.
    """

    __slots__ = ("known", "number", "region")

    def __init__(self, node: Node | None = None, known: Array | None = None, make: Callable[[], Node] | None = None,
                 layout: Strided | None = None, region: MemoryRegion | None = None) -> None:
        self.region = region or MemoryRegion(TensorStorage(node, make), layout)
        self.known = known
        self.number = False

    @property
    def storage(self) -> TensorStorage:
        return self.region.storage

    @property
    def built(self) -> bool:
        """Whether its node exists: it is not a view, and has been computed."""
        return self.region.base is None and self.storage.built

    @property
    def state(self) -> tuple[object, ...]:
        """A token that stays equal until this tensor or its base is written to or becomes another view."""
        return self.region, self.storage.version, self.storage.stale

    @property
    def layout(self) -> Strided | None:
        """Sizes and strides, where known: those of a number always are."""
        if self.region.layout is None and self.region.base is None:
            type = (self.storage.last() if self.storage.built else self.get()).type
            if isinstance(type, TensorType) and not type.shape:
                self.region.layout = contiguous(())
        return self.region.layout

    def get(self) -> Node:
        """The current value."""
        return self.region.get()

    def view(self, view: TensorView) -> Tensor:
        """A view of this tensor."""
        layout = self.layout
        return Tensor(region=MemoryRegion(self.storage, view.place(layout) if layout is not None else None, self.region, view))


def tensor(value: object) -> Tensor:
    """The value, which an operator takes as a tensor. Raises TypeFault for any other."""
    if not isinstance(value, Tensor):
        raise TypeFault(f"a tensor is needed here, not a value of type {type(value).__name__}")
    return value


def tensors(values: Iterable[object]) -> list[Tensor]:
    """The values, which an operator takes as tensors. Raises TypeFault for any other."""
    return [tensor(value) for value in values]


@dataclass(frozen=True, slots=True, eq=False)
class Scalar:
    """A number that depends on data: a 0-dimensional node, and the Python type that it represents."""

    node: Node
    kind: str

    def _computed(self, *others: object) -> Any:
        """Raise TypeFault: an operator computes with a plain number here."""
        raise TypeFault("it takes a number that is known, and this one depends on data")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _computed
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __neg__ = __abs__ = _computed
    __lt__ = __le__ = __gt__ = __ge__ = __int__ = __float__ = __complex__ = __round__ = _computed


@dataclass(frozen=True, slots=True, eq=False)
class Maybe:
    """An Optional that is None depending on data: ``present`` is a number (bool), ``value`` is meaningless where it is false."""

    present: object
    value: Any


class Uninitialized:
    """The result of ``prim::Uninitialized``: the value of a variable on a path that does not reach its use."""

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
