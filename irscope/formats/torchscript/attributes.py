"""The attributes of TorchScript's operators: ``Constant.of(node).value``."""
from __future__ import annotations

from typing import Any

from irscope.graph.attributes import Attributes, attribute


class Constant(Attributes):
    """The literal, or the name of a function; None where a node has none, as for ``None`` itself."""

    __slots__ = ()
    value = attribute[Any](None)
    name = attribute[str | None](None)


class GetAttr(Attributes):
    """The name of the attribute."""

    __slots__ = ()
    name = attribute[str]("")


class CallMethod(GetAttr):
    """The name of the method."""

    __slots__ = ()


class TupleSlice(Attributes):
    """Where the slice begins and ends."""

    __slots__ = ()
    beg = attribute[int](0)
    end = attribute[int | None](None)


class IsInstance(Attributes):
    """The types that are tested, as text."""

    __slots__ = ()
    types = attribute[Any]("")


class ConstantChunk(Attributes):
    """How many parts, and the dimension that is cut."""

    __slots__ = ()
    chunks = attribute[int]()
    dim = attribute[int]()
