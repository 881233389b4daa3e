"""The attributes of Relay's operators of structure, and of its modules: ``Named.of(node).name``."""
from __future__ import annotations

from collections.abc import Sequence

from irscope.graph.attributes import Attributes, attribute


class Named(Attributes):
    """The function that ``global`` stands for, the type's alternative that ``constructor`` makes."""

    __slots__ = ()
    name = attribute[str]()


class Callee(Attributes):
    """The function or operator that ``call`` names."""

    __slots__ = ()
    callee = attribute[str]()


class RelayModule(Attributes):
    """What a module declares beside its functions: fields by constructor by data type, functions that are defined elsewhere, and the
    moment (``before`` or ``after``) and the pass of which a log printed it."""

    __slots__ = ()
    types = attribute[dict[str, dict[str, tuple[object, ...]]]]({})
    externs = attribute[Sequence[str]](())
    snapshot = attribute[tuple[str, str] | None](None)
