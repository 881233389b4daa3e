"""Windows that adapt to a size of result, and resizing by a matrix: shared by torch and Relay."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from irscope.graph import Node
from irscope.lazy import Array
from irscope.ops.tensors import Tensors
from irscope.source.budget import require_parts

Number = TypeVar("Number", float, Array)


def adaptive(t: Tensors, x: Node, size: Sequence[int | None], average: bool) -> Node:
    """The mean or the largest of windows over the last dimensions: window i reaches from floor(i n / size) to ceil((i + 1) n / size).

    None keeps a dimension.
    """
    lead = t.rank(x) - len(size)
    for d, wanted in enumerate(size, lead):
        have = t.shape(x)[d]
        if wanted is None or wanted == have:
            continue
        if have % wanted == 0:
            parts = t.reshape(x, (*t.shape(x)[:d], wanted, have // wanted, *t.shape(x)[d + 1:]))
            x = t.mean(parts, [d + 1]) if average else t.max(parts, [d + 1])
            continue
        require_parts(wanted)
        windows = [t.slice_dim(x, d, o * have // wanted, -(-(o + 1) * have // wanted)) for o in range(wanted)]
        x = t.concat([t.mean(part, [d], True) if average else t.max(part, [d], True) for part in windows], d)
    return x


def product_along(t: Tensors, x: Node, d: int, matrix: Node) -> Node:
    """The product of dimension ``d`` of ``x``, which keeps its place, with the first dimension of a matrix."""
    moved = t.dot(x, matrix, ([d], [0]))
    order = list(range(t.rank(x) - 1))
    order.insert(d, t.rank(x) - 1)
    return t.transpose(moved, order)


def cubic(f: Number, a: float) -> list[Number]:
    """Weights of the four neighbours of a place between two elements, in cubic convolution (Keys 1981)."""
    def near(v: Number) -> Number:
        return ((a + 2) * v - (a + 3)) * v * v + 1

    def far(v: Number) -> Number:
        return ((a * v - 5 * a) * v + 8 * a) * v - 4 * a
    return [far(f + 1), near(f), near(1 - f), far(2 - f)]
