"""The attributes of TorchScript's operators: ``Constant.of(node).value``."""
from __future__ import annotations

from typing import Any

from irscope.graph.attributes import Attributes, attribute
from irscope.ops.faults import TypeFault


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


class Call(Attributes):
    """What a node of an FX graph calls.

    ``target``: as torch names it, ``torch.ops.aten.add.Tensor`` or ``_operator.add``. ``keywords``: the names of the last operands, which
    are passed by keyword, in alphabetical order.
    """

    __slots__ = ()
    target = attribute[str]("")
    keywords = attribute[tuple[str, ...]](())

    @property
    def passed(self) -> tuple[str, ...]:
        """The keywords. Raises TypeFault for what are none: the text of a TorchScript graph may have any attribute."""
        words: object = self.keywords
        if not isinstance(words, tuple) or not all(isinstance(word, str) for word in words) or len(set(words)) != len(words):
            raise TypeFault("its attribute keywords is a list of different names")
        return words

    @property
    def overload(self) -> str | None:
        """The overload that the target names, empty for the default one; None where it names none."""
        target: object = self.target
        if not isinstance(target, str):  # an attribute that the text of a TorchScript graph made up
            return None
        namespace, *names = target.removeprefix("torch.ops.").split(".")
        if len(names) != 2 or not target.startswith("torch.ops.") or namespace == "higher_order":
            return None
        return "" if names[1] == "default" else names[1]


class Subgraph(Attributes):
    """``name``: the attribute of an FX graph module that a node reads, a tensor; ``callee``: the name of the graph where it is one."""

    __slots__ = ()
    name = attribute[str]("")
    callee = attribute[str]("")


class IsInstance(Attributes):
    """The types that are tested, as text."""

    __slots__ = ()
    types = attribute[Any]("")


class ConstantChunk(Attributes):
    """How many parts, and the dimension that is cut."""

    __slots__ = ()
    chunks = attribute[int]()
    dim = attribute[int]()
