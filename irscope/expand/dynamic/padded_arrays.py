"""Values of a padded graph: a node of static type, and the sizes of those of its dimensions that are dynamic."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Union

from irscope.expand.values import fold
from irscope.graph import DynamicDim, Node, TensorType, TupleType, Type
from irscope.graph.walk import leaves_of

Place = tuple[int, int]
"""A leaf of a value and a dimension of it."""


@dataclass(frozen=True, slots=True)
class PaddedArray:
    """An array as large as its bound; ``sizes`` maps each dynamic dimension to the s32[] that counts its valid elements."""

    node: Node
    sizes: Mapping[int, Node] = field(default_factory=dict)

    @property
    def type(self) -> TensorType:
        assert isinstance(self.node.type, TensorType), f"%{self.node.name} is {self.node.type}"
        return self.node.type

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.dims()


Tree = Union[PaddedArray, "list[Tree]"]


def leaves(tree: Tree) -> list[PaddedArray]:
    """The arrays of a value, in order."""
    return leaves_of(tree, lambda value: None if isinstance(value, PaddedArray) else value)


def rebuilt(type: Type, given: Iterator[PaddedArray]) -> Tree:
    """Build a value of a type from its arrays, in order."""

    def join(_: Type, parts: list[Tree]) -> Tree:
        return parts
    return fold(type, lambda t: t.elements if isinstance(t, TupleType) else None, lambda _: next(given), join)


def static(type: Type) -> Type:
    """The type with each bounded dimension replaced by its bound, without a layout."""
    if not isinstance(type, TensorType):
        return type
    return TensorType(type.dtype, tuple(d.bound if isinstance(d, DynamicDim) and d.bound is not None else d for d in type.shape))


def static_array(node: Node) -> TensorType:
    """The static type of a node, which must be an array."""
    t = static(node.type)
    assert isinstance(t, TensorType)
    return t


def static_value(type: Type) -> Type:
    """:func:`static` for tuples too."""
    if not isinstance(type, TupleType):
        return static(type)
    return TupleType(tuple(static_value(element) for element in type.elements))


def bounded(type: Type) -> list[int]:
    """The dimensions that a type declares dynamic, with a bound."""
    if not isinstance(type, TensorType):
        return []
    return [i for i, d in enumerate(type.shape) if isinstance(d, DynamicDim) and d.bound is not None]


def places(tree: Tree) -> set[Place]:
    """The dynamic dimensions of a value."""
    return {(number, d) for number, held in enumerate(leaves(tree)) for d in held.sizes}
