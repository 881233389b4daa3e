"""The attributes of Relay's operators as typed records of what the text has: ``Transpose.of(node).axes``.

Defaults are Relay's. A field of type ``Any`` may be anything in a text, and its reader checks it;
``Operator.bound`` fills in all defaults of a call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from irscope.graph.attributes import Attributes, attribute
from irscope.ops.attrs import Literal


class RelayModule(Attributes):
    """The declarations of a module besides its functions: fields by constructor by data type, functions defined elsewhere, and the
    pass and the moment (``before`` or ``after``) at which a log printed it."""

    __slots__ = ()
    types = attribute[Mapping[str, Mapping[str, Any]]](MappingProxyType({}))
    externs = attribute[Sequence[str]](())
    snapshot = attribute[tuple[str, str] | None](None)


class Callee(Attributes):
    """The name of the global function that is called; None where operand 0 is the function."""

    __slots__ = ()
    callee = attribute[str | None](None)


class Named(Attributes):
    """The name of a global function or of a constructor."""

    __slots__ = ()
    name = attribute[str]()


class Match(Attributes):
    """The patterns of the arms, as text."""

    __slots__ = ()
    patterns = attribute[list[str]]()


class Field(Attributes):
    """The path from the scrutinee to the value that a pattern binds: ``Cons.1Cons.0``."""

    __slots__ = ()
    path = attribute[str]()


class TableConstant(Attributes):
    """The value, and its place in the module's table of constants."""

    __slots__ = ()
    literal = attribute[Literal | None](None)
    meta = attribute[Any](None)


class MatMul(Attributes):
    """Whether the operands are transposed."""

    __slots__ = ()
    transpose_a = attribute[bool](False)
    transpose_b = attribute[bool](False)


class Convolution(Attributes):
    """The layout of the weights."""

    __slots__ = ()
    kernel_layout = attribute[str]("")


class Transpose(Attributes):
    """Dimension i of the result is dimension ``axes[i]`` of the operand; None reverses them all."""

    __slots__ = ()
    axes = attribute[list[int] | None](None)


class LayoutTransform(Attributes):
    """The layouts before and after."""

    __slots__ = ()
    src_layout = attribute[str]("")
    dst_layout = attribute[str]("")


class Reshape(Attributes):
    """Sizes and codes of the new shape."""

    __slots__ = ()
    newshape = attribute[object](None)
    allowzero = attribute[bool](False)


class StridedSlice(Attributes):
    """Where the slice begins and ends along each axis, or along ``axes``."""

    __slots__ = ()
    begin = attribute[Any](None)
    end = attribute[Any](None)
    strides = attribute[Any](None)
    axes = attribute[Any](None)
    slice_mode = attribute[str]("end")


class Pad(Attributes):
    """Padding before and after each dimension, and its value."""

    __slots__ = ()
    pad_width = attribute[object](None)
    pad_value = attribute[float](0.0)
    pad_mode = attribute[str]("constant")


class ExpandDims(Attributes):
    """The position of the first new dimension."""

    __slots__ = ()
    axis = attribute[int]()


class BiasAdd(Attributes):
    """The axis of the bias."""

    __slots__ = ()
    axis = attribute[int](1)


class Clip(Attributes):
    """The limits."""

    __slots__ = ()
    a_min = attribute[float]()
    a_max = attribute[float]()


class DeviceCopy(Attributes):
    """The devices that a value is copied from and to."""

    __slots__ = ()
    src_virtual_device = attribute[object](None)
    dst_virtual_device = attribute[object](None)
