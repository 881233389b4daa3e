"""Types of values: tensors, tuples, tokens, and named types of a format."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import prod

from irscope.graph.dtypes import DTYPES, DType
from irscope.source.budget import SIZE_BITS, require_bits


@dataclass(frozen=True, slots=True)
class DynamicDim:
    """A dimension that the text leaves open: ``?``, a name such as ``batch``, or bounded (``<=8``)."""

    name: str = ""
    bound: int | None = None

    def __str__(self) -> str:
        return f"<={self.bound}" if self.bound is not None else self.name or "?"


Dim = int | DynamicDim


@dataclass(frozen=True, slots=True)
class Layout:
    """The order of the elements in memory: ``minor_to_major`` lists dimensions, the fastest first.

    ``rest`` is what follows the colon as written (tiling, memory space, element bits), kept as text;
    ``memory_space`` is its ``S(n)`` (0 by default).
    """

    minor_to_major: tuple[int, ...]
    rest: str = ""
    memory_space: int = 0

    def __str__(self) -> str:
        return "{" + ",".join(map(str, self.minor_to_major)) + (":" + self.rest if self.rest else "") + "}"


class Type:
    """The type of a value. Types are immutable, and the readers share one object for equal texts."""

    __slots__ = ()

    def leaves(self) -> Iterator[Type]:
        """The types that are not tuples, in order, walking into tuples."""
        stack: list[Type] = [self]
        while stack:
            top = stack.pop()
            if isinstance(top, TupleType):
                stack.extend(reversed(top.elements))
            else:
                yield top


@dataclass(frozen=True, slots=True)
class TensorType(Type):
    """An array. Equality includes the layout; :meth:`compatible` leaves it out, as HLO's "Compatible" does."""

    dtype: DType
    shape: tuple[Dim, ...]
    layout: Layout | None = None

    def __post_init__(self) -> None:
        if self.is_static and sum(map(int.bit_length, self.shape)) <= SIZE_BITS:  # type: ignore[arg-type]
            return
        require_bits(prod((size if isinstance(size, int) else size.bound) or 1 for size in self.shape).bit_length() - 1)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def is_static(self) -> bool:
        return DynamicDim not in map(type, self.shape)  # called millions of times: no generator, here and below

    def dims(self) -> tuple[int, ...]:
        """The shape as ints. Bounded dimensions count as their bound; raises ValueError where a dimension is open."""
        if self.is_static:
            return self.shape  # type: ignore[return-value]
        out = []
        for d in self.shape:
            size = d if isinstance(d, int) else d.bound
            if size is None:
                raise ValueError(f"{self} has an open dimension")
            out.append(size)
        return tuple(out)

    @property
    def elements(self) -> int:
        """Number of elements; open dimensions count as 1."""
        count = 1
        for size in self.shape:
            count *= size if isinstance(size, int) else size.bound or 1
        return count

    @property
    def bytes(self) -> int:
        """Bytes of the data, sub-byte types packed, as XLA counts them."""
        return (self.elements * self.dtype.bits + 7) // 8

    def compatible(self, other: Type) -> bool:
        return isinstance(other, TensorType) and self.dtype is other.dtype and self.shape == other.shape

    def with_shape(self, shape: tuple[Dim, ...]) -> TensorType:
        """The same element type under another shape, in the default layout."""
        return TensorType(self.dtype, shape)

    def with_dtype(self, dtype: DType) -> TensorType:
        return TensorType(dtype, self.shape, self.layout)

    def __str__(self) -> str:
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]" + (str(self.layout) if self.layout else "")


@dataclass(frozen=True, slots=True)
class TupleType(Type):
    """Several values in one; also what an operator with several results has."""

    elements: tuple[Type, ...]
    parts: int = field(init=False, repr=False, compare=False)  # all leaves, at any depth; many where elements are shared
    depth: int = field(init=False, repr=False, compare=False)  # levels of tuples: 1 if no element is a tuple

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", sum([e.parts if isinstance(e, TupleType) else 1 for e in self.elements]))
        object.__setattr__(self, "depth", 1 + max([e.depth if isinstance(e, TupleType) else 0 for e in self.elements], default=0))

    def __str__(self) -> str:
        return "(" + ", ".join(map(str, self.elements)) + ")"


@dataclass(frozen=True, slots=True)
class NamedType(Type):
    """A type that is no tensor: ``token``, ``int``, ``str``, ``Optional``, a class of a module; identified by its text."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class FunctionType(Type):
    """The type of a function value."""

    params: tuple[Type, ...]
    result: Type

    def __str__(self) -> str:
        return "(" + ", ".join(map(str, self.params)) + ") -> " + str(self.result)


TOKEN = NamedType("token[]")
OPAQUE = NamedType("opaque[]")
UNKNOWN = NamedType("?")


def tensor(dtype: str | DType, *shape: Dim) -> TensorType:
    """``tensor("f32", 2, 3)`` is ``f32[2,3]``."""
    return TensorType(DTYPES[dtype] if isinstance(dtype, str) else dtype, shape)


def same_type(a: Type, b: Type) -> bool:
    """Equal apart from layouts, deeply (HLO calls it Compatible)."""
    return agree(a, b, TensorType.compatible)


def agree(a: Type, b: Type, same: Callable[[TensorType, TensorType], bool]) -> bool:
    """Whether two types are tuples of the same structure whose arrays are the ``same``; other types must be equal."""
    if a is b or a == b:
        return True
    stack = [(a, b)]
    while stack:
        x, y = stack.pop()
        if isinstance(x, TupleType) and isinstance(y, TupleType):
            if len(x.elements) != len(y.elements):
                return False
            stack.extend(zip(x.elements, y.elements, strict=True))
        elif isinstance(x, TensorType) and isinstance(y, TensorType):
            if not same(x, y):
                return False
        elif x != y:
            return False
    return True


MOST_BYTES = 2**63 - 1
"""The most bytes of one array: sizes are 64-bit integers."""
MOST_DIMENSIONS = 64
"""The most dimensions of an array of numpy."""


def without_array(t: Type) -> str:
    """Why no memory or array can hold a value of this type; empty where one can. A size of 0 does not excuse the others: numpy multiplies
    those, too.
    """
    for leaf in t.leaves():
        if not isinstance(leaf, TensorType):
            continue
        if leaf.rank > MOST_DIMENSIONS:
            return f"has {leaf.rank} dimensions: arrays have at most {MOST_DIMENSIONS}"
        sizes = leaf.with_shape(tuple(size for size in leaf.shape if size != 0))
        if not leaf.elements and sizes.elements * leaf.dtype.storage > MOST_BYTES:
            return "has sizes whose product is no 64-bit number"
    return f"has {bytes_of(t):,} bytes: no memory holds it" if bytes_of(t) > MOST_BYTES else ""


def bytes_of(t: Type) -> int:
    """Bytes of all tensors in a type."""
    if isinstance(t, TensorType):
        return t.bytes
    return sum(leaf.bytes for leaf in t.leaves() if isinstance(leaf, TensorType))
