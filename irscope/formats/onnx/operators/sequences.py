"""Sequences and optional values: lists of tensors whose lengths are known while a model is expanded."""
from __future__ import annotations

from itertools import accumulate
from typing import Any

from irscope.formats.onnx.algebra import Onnx, bounded
from irscope.formats.onnx.declarations import Attributes
from irscope.formats.onnx.operators import operator
from irscope.graph import Node
from irscope.graph.dtypes import PRED, S64
from irscope.ops.faults import TypeFault

Sequence = list[Any]


def _place(t: Onnx, position: Node, n: int) -> int:
    """A place in a sequence of n; negative ones count from the end."""
    at = t.single(position, "the position in a sequence")
    if not -n <= at < n:
        raise TypeFault(f"position {at} in a sequence of {n}")
    return at % n


@operator("SequenceConstruct(inputs*)")
def construct(t: Onnx, a: Attributes, *xs: Node) -> Sequence:
    """A sequence of the operands."""
    return list(xs)


@operator("SequenceEmpty(; dtype=1)")
def empty(t: Onnx, a: Attributes) -> Sequence:
    """A sequence of nothing."""
    return []


@operator("SequenceAt(input_sequence: seq, position: int[0-1])")
def at(t: Onnx, a: Attributes, xs: Sequence, position: Node) -> Any:
    """An element."""
    return xs[_place(t, position, len(xs))]


@operator("SequenceInsert(input_sequence: seq, tensor, position?: int[0-1])")
def insert(t: Onnx, a: Attributes, xs: Sequence, x: Node, position: Node | None) -> Sequence:
    """A sequence with one more element, by default at its end."""
    n = len(xs)
    where = n if position is None else t.single(position, "the position in a sequence")
    if not -n <= where <= n:
        raise TypeFault(f"position {where} in a sequence of {n}")
    where = where + n if where < 0 else where
    return [*xs[:where], x, *xs[where:]]


@operator("SequenceErase(input_sequence: seq, position?: int[0-1])")
def erase(t: Onnx, a: Attributes, xs: Sequence, position: Node | None) -> Sequence:
    """A sequence without one element, by default the last."""
    where = len(xs) - 1 if position is None else _place(t, position, len(xs))
    return [*xs[:where], *xs[where + 1:]]


@operator("SequenceLength(input_sequence: seq)")
def length(t: Onnx, a: Attributes, xs: Sequence) -> Node:
    """The number of elements."""
    return t.array(len(xs), S64)


@operator("SplitToSequence(input, split?: int[0-1]; axis=0, keepdims=1)")
def split(t: Onnx, a: Attributes, x: Node, given: Node | None) -> Sequence:
    """The parts along an axis: single slices, equal parts, or parts of given sizes."""
    d = t.axis(x, a.axis)
    n = t.shape(x)[d]
    if given is None:
        parts = [t.slice_dim(x, d, i, i + 1) for i in range(bounded(16 * n, "splitting") // 16)]
        return parts if a.keepdims else [t.reshape(p, tuple(s for i, s in enumerate(t.shape(p)) if i != d)) for p in parts]
    sizes = t.ints(given, "the sizes of the parts")
    if t.rank(given) == 0:
        if sizes[0] < 1:
            raise TypeFault(f"parts of {sizes[0]}")
        sizes = [min(sizes[0], n - i) for i in range(0, bounded(16 * n, "splitting") // 16, sizes[0])]
    if sum(sizes) != n or any(s < 0 for s in sizes):
        raise TypeFault(f"parts of {sizes} for an axis of {n}")
    return [t.slice_dim(x, d, end - s, end) for end, s in zip(accumulate(sizes), sizes, strict=True)]


@operator("ConcatFromSequence(input_sequence: seq; axis: int!, new_axis=0)")
def concat(t: Onnx, a: Attributes, xs: Sequence) -> Node:
    """The elements one after another, or stacked along a new axis."""
    if not xs:
        raise TypeFault("the sequence is empty")
    d = t.axis(t.rank(xs[0]) + bool(a.new_axis), a.axis)
    if a.new_axis:
        xs = [t.reshape(x, (*t.shape(x)[:d], 1, *t.shape(x)[d:])) for x in xs]
    return t.concat(xs, d)


@operator("Optional(input?: any; type: type=None)")
def optional(t: Onnx, a: Attributes, x: Any) -> Any:
    """The operand as a value that may be missing."""
    return x


@operator("OptionalGetElement(input: any)")
def get_element(t: Onnx, a: Attributes, x: Any) -> Any:
    """The value, which must be there."""
    return x


@operator("OptionalHasElement(input?: any)")
def has_element(t: Onnx, a: Attributes, x: Any) -> Node:
    """Whether the value is there."""
    return t.array(x is not None, PRED)
