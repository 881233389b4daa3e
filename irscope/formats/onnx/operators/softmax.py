"""Softmax and its relatives. Up to version 12 the axis splits the tensor into a matrix, whose rows are normalised."""
from __future__ import annotations

from math import prod

from irscope.formats.onnx.algebra import Onnx
from irscope.formats.onnx.declarations import Attributes
from irscope.formats.onnx.operators import operator
from irscope.formats.relay.operators.normalization import log_of
from irscope.formats.relay.operators.normalization import softmax as softmax_of
from irscope.graph import Node
from irscope.graph.dtypes import S64
from irscope.ops.faults import TypeFault

NEW = 13
"""From this version on, one axis is normalised, by default the last."""


def as_rows(t: Onnx, a: Attributes, x: Node) -> tuple[Node, int]:
    """The operand of the computation, and the axis of it."""
    if a.version >= NEW:
        return x, t.axis(x, -1 if a.axis is None else a.axis)
    axis = (1 if a.axis is None else a.axis) + (t.rank(x) if (a.axis or 0) < 0 else 0)
    shape = t.shape(x)
    if a.axis is not None and not 0 <= axis <= len(shape):
        raise TypeFault(f"axis {a.axis} is out of range for {len(shape)} dimensions")
    return t.reshape(x, (prod(shape[:axis]), prod(shape[axis:]))), 1


@operator("Softmax(input; axis: int=None)")
def softmax(t: Onnx, a: Attributes, x: Node) -> Node:
    """``exp(x)`` divided by its sum along an axis."""
    rows, axis = as_rows(t, a, x)
    return t.reshape(t.convert(softmax_of(t, t.widened(rows), axis), t.dtype(x)), t.shape(x))


@operator("LogSoftmax(input; axis: int=None)")
def log_softmax(t: Onnx, a: Attributes, x: Node) -> Node:
    """The logarithm of softmax."""
    rows, axis = as_rows(t, a, x)
    wide = t.widened(rows)
    return t.reshape(t.convert(log_of(t, wide, axis), t.dtype(x)), t.shape(x))


@operator("Hardmax(input; axis: int=None)")
def hardmax(t: Onnx, a: Attributes, x: Node) -> Node:
    """1 at the first greatest element along an axis, 0 elsewhere."""
    rows, axis = as_rows(t, a, x)
    _, place = t.arg_extreme(rows, axis, True, S64)
    shape = t.shape(rows)
    place = t.reshape(place, (*shape[:axis], 1, *shape[axis + 1:]))
    hit = t.compare("EQ", t.iota(shape, axis, S64), place)
    return t.reshape(t.select(hit, t.like(rows, 1), t.like(rows, 0)), t.shape(x))
