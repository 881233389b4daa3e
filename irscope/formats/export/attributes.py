"""The attributes of FX's nodes: ``Call.of(node).target``."""
from __future__ import annotations

from irscope.graph.attributes import Attributes, attribute


class Call(Attributes):
    """What a node calls.

    ``target``: as torch names it, ``torch.ops.aten.add.Tensor`` or ``_operator.add``. ``keywords``: the names of the last operands, which
    are passed by keyword, in alphabetical order.
    """

    __slots__ = ()
    target = attribute[str]("")
    keywords = attribute[tuple[str, ...]](())


class GetAttr(Attributes):
    """``name``: the attribute of the graph module; ``callee``: the name of the graph where it is one, else empty."""

    __slots__ = ()
    name = attribute[str]("")
    callee = attribute[str]("")
