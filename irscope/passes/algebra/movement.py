"""Reshape, broadcast, transpose, slice, reverse, concatenate: merges chains into one operator and removes identities."""
from __future__ import annotations

from irscope.graph import Node
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast, Concatenate, Reverse, Slice, Transpose
from irscope.passes.algebra.simplifier import Rules, Simplifier, dims_of, of


def reshape(s: Simplifier, d: Node) -> Node | None:
    """A reshape to the same shape, of a reshape, or of a broadcast to which it only adds dimensions of size 1."""
    x = d.operands[0]
    shape = of(d).dims()
    if dims_of(x) == shape:
        return x
    if x.op is hlo.reshape:
        return s.reshape(x.operands[0], shape)
    if x.op is hlo.broadcast:
        small = x.operands[0]
        if not of(small).shape:
            return s.broadcast(small, (), shape)
        old = [n for n, size in enumerate(dims_of(x)) if size != 1]
        new = [n for n, size in enumerate(shape) if size != 1]
        if _without_ones(dims_of(x)) == _without_ones(shape) and 1 not in dims_of(small):
            return s.broadcast(small, tuple(new[old.index(n)] for n in Broadcast.of(x).dimensions), shape)
    return None


def broadcast(s: Simplifier, d: Node) -> Node | None:
    """A broadcast to the same shape, of a broadcast, of an operand with dimensions of size 1, or that only adds such dimensions."""
    x = d.operands[0]
    shape, dimensions = of(d).dims(), tuple(Broadcast.of(d).dimensions)
    if dims_of(x) == shape and dimensions == tuple(range(len(shape))):
        return x
    if x.op is hlo.broadcast:
        return s.broadcast(x.operands[0], tuple(dimensions[n] for n in Broadcast.of(x).dimensions), shape)
    if 1 in dims_of(x):
        kept = tuple(n for n, size in enumerate(dims_of(x)) if size != 1)
        return s.broadcast(s.reshape(x, tuple(dims_of(x)[n] for n in kept)), tuple(dimensions[n] for n in kept), shape)
    if list(dimensions) == sorted(dimensions) and of(x).elements == of(d).elements:
        return s.reshape(x, shape)
    return None


def transpose(s: Simplifier, d: Node) -> Node | None:
    """A transpose that keeps the order of all dimensions longer than 1, of a transpose, or of a broadcast."""
    x, order = d.operands[0], Transpose.of(d).dimensions
    moved = [n for n in order if dims_of(x)[n] != 1]
    if moved == sorted(moved):
        return s.reshape(x, of(d).dims())
    if x.op is hlo.transpose:
        inner = Transpose.of(x).dimensions
        return s.make(hlo.transpose, (x.operands[0],), of(d), {"dimensions": tuple(inner[n] for n in order)})
    if x.op is hlo.broadcast:
        dimensions = tuple(order.index(n) for n in Broadcast.of(x).dimensions)
        if list(dimensions) == sorted(dimensions):
            return s.broadcast(x.operands[0], dimensions, of(d).dims())
    return None


def slice_(s: Simplifier, d: Node) -> Node | None:
    """A slice of the whole operand, of a slice, or of a broadcast scalar."""
    x, parts = d.operands[0], Slice.of(d).slice
    if dims_of(x) == of(d).dims():
        return x
    if x.op is hlo.slice:
        # An empty slice may begin behind the last element; with the stride of the inner one that is outside of its operand.
        # The strides of one element or none may be any, and their product more than 64 bits hold.
        inner = [(a + b * c, a + (e - 1) * c + 1, f * c) if e - b > f else (a + b * c, a + b * c + 1, 1) if e > b else (a, a, 1)
                 for (a, _, c), (b, e, f) in zip(Slice.of(x).slice, parts)]
        return s.make(hlo.slice, (x.operands[0],), of(d), {"slice": tuple(inner)})
    if x.op is hlo.broadcast and not of(x.operands[0]).shape:
        return s.broadcast(x.operands[0], (), of(d).dims())
    return None


def concatenate(s: Simplifier, d: Node) -> Node | None:
    """A concatenation of one operand, of one non-empty operand, or of concatenations along the same dimension."""
    axis = Concatenate.of(d).axis
    full = [x for x in d.operands if dims_of(x)[axis]]
    if len(full) == 1 and dims_of(full[0]) == of(d).dims():
        return full[0]
    return None


def reverse(s: Simplifier, d: Node) -> Node | None:
    """A reverse along dimensions of size 1."""
    x = d.operands[0]
    return x if all(dims_of(x)[n] == 1 for n in Reverse.of(d).dimensions) else None


def unit_reshape(node: Node) -> tuple[int, ...] | None:
    """The operand's shape, if a node is a reshape that only adds or removes dimensions of size 1."""
    if node.op is not hlo.reshape:
        return None
    before = dims_of(node.operands[0])
    return before if _without_ones(before) == _without_ones(dims_of(node)) else None


def _without_ones(shape: tuple[int, ...]) -> list[int]:
    return [n for n in shape if n != 1]


RULES: Rules = {
    hlo.reshape: (reshape,),
    hlo.broadcast: (broadcast,),
    hlo.transpose: (transpose,),
    hlo.slice: (slice_,),
    hlo.concatenate: (concatenate,),
    hlo.reverse: (reverse,),
}
