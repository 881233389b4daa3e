"""Identities for the normal form, besides those that a translation applies."""
from __future__ import annotations

from typing import Any

from irscope.analysis.identities import IDENTITIES
from irscope.graph import Node, TensorType
from irscope.ops import get, hlo
from irscope.ops.attributes import Concatenate, Reduce, Slice, Transpose
from irscope.ops.bodies import combiner, identity
from irscope.passes.algebra import arithmetic, movement, padding, translation
from irscope.passes.algebra.simplifier import Rule, Rules, Simplifier, dims_of, is_static, of, scalar_of

ROWS = "not-not copy extreme-same bitcast-convert-same real-of-real imag-of-real zero-not-equal one-equal"
"""Rows of the table of identities that change no bit of a result."""


def _slice_of_concatenate(s: Simplifier, node: Node) -> Node | None:
    """A slice of one operand of a concatenation."""
    whole = node.operands[0]
    if whole.op is not hlo.concatenate:
        return None
    axis, ranges = Concatenate.of(whole).axis, Slice.of(node).slice
    low, high, stride = ranges[axis]
    begin = 0
    for part in whole.operands:
        size = dims_of(part)[axis]
        if begin <= low and high <= begin + size:
            moved = (*ranges[:axis], (low - begin, high - begin, stride), *ranges[axis + 1:])
            return s.make(hlo.slice, (part,), node.type, {"slice": moved})
        begin += size
    return None


def _transpose_of_ones(s: Simplifier, node: Node) -> Node | None:
    """Dimensions of size 1 are no part of a transpose."""
    x, order = node.operands[0], Transpose.of(node).dimensions
    kept = [d for d in range(len(order)) if dims_of(x)[d] != 1]
    if len(kept) == len(order):
        return None
    left = [kept.index(d) for d in order if dims_of(x)[d] != 1]
    small = s.reshape(x, tuple(dims_of(x)[d] for d in kept))
    if left != sorted(left):
        type = of(x).with_shape(tuple(dims_of(x)[d] for d in order if dims_of(x)[d] != 1))
        small = s.make(hlo.transpose, (small,), type, {"dimensions": tuple(left)})
    return s.reshape(small, dims_of(node))


def _reduce(s: Simplifier, node: Node) -> Node | None:
    """A reduction of single elements from the identity of its operator, and one over no dimensions."""
    if len(node.operands) != 2 or not is_static(node.operands[0]):
        return None
    x, init = node.operands
    dimensions = Reduce.of(node).dimensions
    if any(dims_of(x)[d] != 1 for d in dimensions):
        return None
    op, start = combiner(node.bodies[0]), scalar_of(init)
    if dimensions and (op is None or start is None or not _starts(op, of(x), start)):
        return None
    return s.reshape(x, dims_of(node)) if of(x).dtype is of(node).dtype else None


def _starts(op: Any, type: TensorType, start: Any) -> bool:
    return bool(identity(op, type.dtype.numpy()) == start)


def _rules() -> Rules:
    rules: dict[Any, list[Rule]] = {}
    for table in (translation.RULES, movement.RULES, padding.RULES, arithmetic.RULES):
        for op, own in table.items():
            rules.setdefault(op, []).extend(own)
    for name in ROWS.split():
        for word in IDENTITIES[name].pattern.ops:
            rules.setdefault(get(word), []).append(translation.row_of(name))
    for op, rule in ((hlo.slice, _slice_of_concatenate), (hlo.transpose, _transpose_of_ones), (hlo.reduce, _reduce)):
        rules.setdefault(op, []).append(rule)
    return rules


RULES = _rules()
