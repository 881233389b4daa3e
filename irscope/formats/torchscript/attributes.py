"""The attributes of TorchScript's operators: ``Constant.of(node).value``."""
from __future__ import annotations

from typing import Any

from irscope.graph.attributes import Attributes, attribute


class Constant(Attributes):
    """The literal; None where a node has none, as ``None`` itself."""

    __slots__ = ()
    value = attribute[Any](None)


class GetAttr(Attributes):
    """The name of the attribute."""

    __slots__ = ()
    name = attribute[str]("")
