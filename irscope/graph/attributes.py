"""Attributes of nodes as typed records: ``Reduce.of(node).dimensions``.

A record is a view of ``node.attrs``: it costs no copy, and its fields are typed descriptors.

    class Reduce(Attributes):
        dimensions = attribute[tuple[int, ...]]()          # KeyError where the node has none
        is_stable = attribute[bool](False)                 # with a default

``Reduce.dimensions.given(node)`` is None where the text of a node omits a required attribute.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, Protocol, Self, TypeVar, cast, overload

T = TypeVar("T")


class HasAttrs(Protocol):
    """Anything with attributes: a node, a module, an instruction of a rewriter."""

    @property
    def attrs(self) -> Mapping[str, Any]: ...


class Attributes:
    """A typed view of the attributes of one operator."""

    __slots__ = ("attrs",)

    def __init__(self, attrs: Mapping[str, object]) -> None:
        self.attrs = attrs

    @classmethod
    def of(cls, node: HasAttrs) -> Self:
        """The attributes of a node, whose operator must be one that this record describes."""
        return cls(node.attrs)


class _Required:
    """Marks an attribute without a default."""


_REQUIRED = _Required()


class attribute(Generic[T]):
    """One field of a record: the attribute of the same name, or of ``key`` where the name is a Python keyword."""

    __slots__ = ("default", "key")

    def __init__(self, default: T | _Required = _REQUIRED, key: str = "") -> None:
        self.default = default
        self.key = key

    def __set_name__(self, owner: type[Attributes], name: str) -> None:
        self.key = self.key or name

    @overload
    def __get__(self, record: None, owner: type[Attributes]) -> attribute[T]: ...
    @overload
    def __get__(self, record: Attributes, owner: type[Attributes]) -> T: ...
    def __get__(self, record: Attributes | None, owner: type[Attributes]) -> attribute[T] | T:
        if record is None:
            return self
        if self.default is _REQUIRED:
            return cast(T, record.attrs[self.key])
        return cast(T, record.attrs.get(self.key, self.default))

    def given(self, node: HasAttrs) -> T | None:
        """The attribute as the node states it, None where it states none: ``Reduce.dimensions.given(node)``."""
        return cast(T | None, node.attrs.get(self.key))
