"""Reshapes: which dimension of the result is dynamic, and where each valid element goes.

    f32[2,<=5] of size 3 -> f32[<=10] of size 6        0 1 2 . .        0 1 2 5 6 7 . . . .
                                                       5 6 7 . .
"""
from __future__ import annotations

from collections.abc import Sequence
from math import prod

from irscope.expand.dynamic.padded_arrays import PaddedArray, Tree, bounded, static_array
from irscope.expand.dynamic.work import GraphExpansion, Rule
from irscope.graph import DType, Node, Op
from irscope.graph.dtypes import S32, S64
from irscope.ops import hlo
from irscope.ops.attributes import Reshape


def _reshape(w: GraphExpansion, node: Node, operands: list[PaddedArray]) -> Tree:
    x = operands[0]
    t = static_array(node)
    if not prod(t.dims()):
        return PaddedArray(w.copy(node, [x.node]), {d: w.number(0) for d in bounded(node.type)})
    sizes: dict[int, Node] = {}
    stays = True
    for before, after in common_factors(x.shape, t.dims()):
        dynamic = [d for d in before if d in x.sizes]
        if not dynamic:
            continue
        place = _dynamic_place(w, node, x, before, after, t.dims())
        total = w.total(w.size(x, d) for d in before)
        rest = prod(t.dims()[d] for d in after if d != place)
        sizes[place] = total if rest == 1 else w.div(total, w.number(rest))
        stays = stays and dynamic == _outermost(before, x.shape) and [place] == _outermost(after, t.dims())
    if stays:
        return PaddedArray(w.copy(node, [x.node]), sizes)
    return PaddedArray(_moved(w, x, t.dims(), sizes), sizes)


def common_factors(before: Sequence[int], after: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """The runs of dimensions, on both sides, that hold the same elements; each is as short as it can be.

    >>> common_factors((2, 6, 5), (2, 2, 3, 5))
    [([0], [0]), ([1], [1, 2]), ([2], [3])]
    """
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(before) or j < len(after):
        left: list[int] = []
        right: list[int] = []
        have = want = 1
        while True:
            if have == want and left and right and have > 1:
                break
            if have <= want and i < len(before):
                have *= before[i]
                left.append(i)
                i += 1
            elif j < len(after):
                want *= after[j]
                right.append(j)
                j += 1
            else:
                break
        if groups and have == want == 1:  # dimensions of 1 at the end belong to the preceding run
            groups[-1][0].extend(left)
            groups[-1][1].extend(right)
        else:
            groups.append((left, right))
    return groups


def _dynamic_place(w: GraphExpansion, node: Node, x: PaddedArray, before: list[int], after: list[int], shape: Sequence[int]) -> int:
    """The dimension of the result, among those of a group, that becomes dynamic."""
    declared = [d for d in bounded(node.type) if d in after]
    if len(declared) == 1:
        return declared[0]
    if not declared:
        inferred = Reshape.of(node).inferred_dimension
        large = [d for d in after if shape[d] > 1]
        if inferred in after:
            return inferred
        if len(large) == 1:
            return large[0]
        if len(before) == len(after) == 1:
            return after[0]
    dims = ", ".join(map(str, before))
    raise w.refusal(node, f"dimension {dims} of {node.operands[0].type} is dynamic, but which of {node.type} becomes dynamic is not stated",
                    "declare one of its dimensions dynamic, or use dynamic-reshape")


def _outermost(dims: Sequence[int], shape: Sequence[int]) -> list[int]:
    """The first of these dimensions larger than 1: a dynamic size along it keeps the valid elements contiguous."""
    return next(([d] for d in dims if shape[d] > 1), list(dims[:1]))


def _dynamic_reshape(w: GraphExpansion, node: Node, operands: list[PaddedArray]) -> Tree:
    x, *given = operands
    t = static_array(node)
    sizes = {d: size.node for d, size in enumerate(given) if w.known(size.node) != t.dims()[d]}
    if not sizes and not x.sizes:
        return PaddedArray(w.reshape(x.node, t.dims()))
    return PaddedArray(_moved(w, x, t.dims(), sizes), sizes)


def _moved(w: GraphExpansion, x: PaddedArray, shape: Sequence[int], sizes: dict[int, Node]) -> Node:
    """Valid elements keep their row-major order: the n-th one of the result is the n-th one of the operand."""
    shape = tuple(shape)
    if not prod(shape) or not prod(x.shape):
        return w.full(shape, 0, x.type.dtype)
    dtype = S32 if max(prod(shape), prod(x.shape)) < 1 << 31 else S64
    number = _number(w, shape, [w.convert(sizes.get(d, w.number(n)), dtype) for d, n in enumerate(shape)], dtype)
    at = w.full(shape, 0, dtype)
    stride = 1
    for d in reversed(range(x.type.rank)):
        size = w.maximum(w.convert(w.size(x, d), dtype), w.array(1, dtype))
        at = w.add(at, w.mul(w.binary("remainder", number, size), w.array(stride, dtype)))
        number = w.div(number, size)
        stride *= x.shape[d]
    return w.take(w.reshape(x.node, (prod(x.shape),)), at, 0)


def _number(w: GraphExpansion, shape: tuple[int, ...], sizes: Sequence[Node], dtype: DType) -> Node:
    """The index of each position among the valid ones, in row-major order."""
    number = w.full(shape, 0, dtype)
    step = w.array(1, dtype)
    for d in reversed(range(len(shape))):
        number = w.add(number, w.mul(w.iota(shape, d, dtype), step))
        step = w.mul(step, sizes[d])
    return number


RULES: dict[Op, Rule] = {hlo.reshape: _reshape, hlo.dynamic_reshape: _dynamic_reshape}
