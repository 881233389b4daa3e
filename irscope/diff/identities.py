"""Identities for the normal form: those that a compiler applies while it translates one dialect into another."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irscope.analysis.identities import IDENTITIES
from irscope.graph import Node, TensorType
from irscope.lazy import np
from irscope.ops import get, hlo
from irscope.ops.attributes import Compare, Concatenate, Iota, Reduce, Reverse, Slice, Transpose
from irscope.ops.bodies import combiner, identity
from irscope.passes.algebra import arithmetic, movement, padding
from irscope.passes.algebra.simplifier import Rule, Rules, Simplifier, dims_of, is_static, of, scalar_of

EXACT = """and-ones and-zero not-equal-zero zero-not-equal equal-one one-equal complex-of-parts imag-of-complex real-of-complex multiply-zero
or-ones or-zero select-not subtract-same xor-same xor-zero not-not copy extreme-same bitcast-convert-same real-of-real imag-of-real"""
"""Rows of the table of identities, besides those of ``simplify-algebra``, that change no bit of a result."""
FLIPPED = {"EQ": "EQ", "NE": "NE", "LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE"}
EMPTY_IS = {"EQ": True, "GE": True, "LE": True, "NE": False, "GT": False, "LT": False}
"""x compared with x, of integers."""


def _is(node: Node, value: float) -> bool:
    found: Any = scalar_of(node)
    return found is not None and bool(found == value)


def _ones(node: Node) -> bool:
    found: Any = scalar_of(node)
    return found is not None and found.dtype.kind in "iub" and bool(found == np.invert(np.zeros((), found.dtype)))


PREDICATES: dict[str, Callable[..., bool]] = {
    "ones": _ones, "pred": lambda x: of(x).dtype.kind == "pred", "real": lambda x: not of(x).dtype.is_complex,
    "same_dims": lambda x, root: dims_of(x) == dims_of(root), "same_dtype": lambda x, root: of(x).dtype is of(root).dtype,
}


def _row(name: str) -> Rule:
    row = IDENTITIES[name]

    def rule(s: Simplifier, node: Node) -> Node | None:
        if of(node).dtype.kind not in row.kinds:
            return None
        bound = row.match(node, _is, PREDICATES)
        if bound is None:
            return None
        found: Node = row.build(bound, arithmetic.Maker(s, of(node)))
        return found if dims_of(found) == dims_of(node) and of(found).dtype is of(node).dtype else None
    return rule


def _constant_last(s: Simplifier, node: Node) -> Node | None:
    """A constant is the right operand of a commutative operator."""
    x, y = node.operands
    return s.again(node, (y, x)) if _is_constant(x) and not _is_constant(y) else None


def _is_constant(node: Node) -> bool:
    while node.op in MOVED:
        node = node.operands[0]
    return node.op is hlo.constant


MOVED = hlo.named("broadcast reshape")


def _compare(s: Simplifier, node: Node) -> Node | None:
    x, y = node.operands
    direction = Compare.of(node).direction
    if x is y and of(x).dtype.kind in ("int", "uint", "pred"):
        return s.broadcast(s.constant(EMPTY_IS[direction], of(node)), (), dims_of(node))
    if _is_constant(x) and not _is_constant(y):
        return s.make(hlo.compare, (y, x), node.type, {**node.attrs, "direction": FLIPPED[direction]})
    return None


def _concatenate(s: Simplifier, node: Node) -> Node | None:
    """Operands without elements, and a concatenation of one."""
    kept = [operand for operand in node.operands if of(operand).elements]
    if len(kept) == 1:
        return kept[0]
    return s.again(node, kept) if kept and len(kept) < len(node.operands) else None


def _nested_concatenate(s: Simplifier, node: Node) -> Node | None:
    """Concatenations along one dimension are one."""
    def parts(operand: Node) -> tuple[Node, ...]:
        return operand.operands if operand.op is hlo.concatenate and operand.attrs == node.attrs else (operand,)
    flat = [part for operand in node.operands for part in parts(operand)]
    return s.again(node, flat) if len(flat) != len(node.operands) else None


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


def _iota(s: Simplifier, node: Node) -> Node | None:
    """An iota that counts to one is zero."""
    if dims_of(node)[Iota.of(node).iota_dimension] != 1:
        return None
    return s.broadcast(s.constant(0, of(node)), (), dims_of(node))


def _reverse(s: Simplifier, node: Node) -> Node | None:
    """Reversed dimensions of one element, or equal elements."""
    x = node.operands[0]
    return x if scalar_of(x) is not None or all(dims_of(x)[d] == 1 for d in Reverse.of(node).dimensions) else None


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


def _slice_of_known_start(s: Simplifier, node: Node) -> Node | None:
    """A dynamic slice of equal elements, or at constant places."""
    x, *starts = node.operands
    if scalar_of(x) is not None:
        return s.broadcast(s.constant(scalar_of(x), of(node)), (), dims_of(node))
    values = [scalar_of(start) for start in starts]
    if len(values) != len(dims_of(x)) or any(value is None for value in values):
        return None
    sizes = dims_of(node)
    begins = [max(0, min(int(value), whole - size)) for value, whole, size in zip(values, dims_of(x), sizes, strict=True)]
    ranges = tuple((begin, begin + size, 1) for begin, size in zip(begins, sizes, strict=True))
    return s.make(hlo.slice, (x,), node.type, {"slice": ranges})


def _update(s: Simplifier, node: Node) -> Node | None:
    """An update of all elements."""
    x, update = node.operands[:2]
    return update if dims_of(x) == dims_of(update) else x if not of(update).elements else None


COMMUTATIVE = hlo.named("add multiply maximum minimum and or xor")
"""Operators whose constant operand a compiler puts last."""


def _rules() -> Rules:
    rules: dict[Any, list[Rule]] = {}
    for op in COMMUTATIVE:
        rules.setdefault(op, []).append(_constant_last)
    for table in (movement.RULES, padding.RULES, arithmetic.RULES):
        for op, own in table.items():
            rules.setdefault(op, []).extend(own)
    for name in EXACT.split():
        for word in IDENTITIES[name].pattern.ops:
            rules.setdefault(get(word), []).append(_row(name))
    for op, rule in ((hlo.compare, _compare), (hlo.concatenate, _concatenate), (hlo.concatenate, _nested_concatenate),
                     (hlo.slice, _slice_of_concatenate), (hlo.transpose, _transpose_of_ones), (hlo.iota, _iota), (hlo.reverse, _reverse),
                     (hlo.reduce, _reduce), (hlo.dynamic_slice, _slice_of_known_start), (hlo.dynamic_update_slice, _update)):
        rules.setdefault(op, []).append(rule)
    return rules


RULES = _rules()
