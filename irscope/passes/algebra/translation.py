"""The identities that jaxlib applies while it translates StableHLO to HLO (stablehlo's aggressive simplification), as rules."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from irscope.analysis.identities import IDENTITIES, INTEGERS, PRED, REALS
from irscope.analysis.trips import MIRRORED
from irscope.graph import Node, Op, TensorType
from irscope.graph.pattern import COMMUTATIVE
from irscope.graph.walk import behind
from irscope.lazy import np
from irscope.ops import get, hlo
from irscope.ops.attributes import Broadcast, Compare, Concatenate, Iota, Reduce, Reverse, Slice, Transpose
from irscope.passes.algebra.arithmetic import row
from irscope.passes.algebra.simplifier import Rule, Rules, Simplifier, dims_of, is_filled, is_static, of, scalar_of

ROWS = """add-zero subtract-zero multiply-one and-ones and-zero not-equal-zero equal-one complex-of-parts convert-same imag-of-complex
real-of-complex multiply-zero or-ones or-zero select-not select-same select-true select-false subtract-same xor-same xor-zero"""
"""Rows of the table of identities."""
KINDS = {"add-zero": REALS | PRED, "subtract-zero": REALS | PRED, "multiply-one": REALS | PRED, "multiply-zero": INTEGERS | PRED}
"""The element types to which stablehlo applies a row, where they are not those of the table: it knows no complex zero or one."""
SAME_IS = {"EQ": True, "GE": True, "LE": True, "NE": False, "GT": False, "LT": False}
"""x compared with x, of integers."""


def _ones(node: Node) -> bool:
    found: Any = scalar_of(node)
    return found is not None and found.dtype.kind in "iub" and bool(found == np.invert(np.zeros((), found.dtype)))


PREDICATES: dict[str, Callable[..., bool]] = {
    "ones": _ones, "pred": lambda x: of(x).dtype.kind == "pred", "real": lambda x: not of(x).dtype.is_complex,
    "same_dims": lambda x, root: dims_of(x) == dims_of(root), "same_dtype": lambda x, root: of(x).dtype is of(root).dtype,
}


def row_of(name: str) -> Rule:
    """A row of the table as a rule, which applies if the replacement has the shape and element type of the node."""
    simplified = row(name, KINDS.get(name), PREDICATES)

    def rule(s: Simplifier, node: Node) -> Node | None:
        found = simplified(s, node)
        return found if found is not None and dims_of(found) == dims_of(node) and of(found).dtype is of(node).dtype else None
    return rule


def _constant_last(s: Simplifier, node: Node) -> Node | None:
    """A constant is the right operand of a commutative operator."""
    x, y = node.operands
    return s.again(node, (y, x)) if _is_constant(x) and not _is_constant(y) else None


def _is_constant(node: Node) -> bool:
    return behind(node, MOVED).op is hlo.constant


MOVED = hlo.named("broadcast reshape")


def _compare(s: Simplifier, node: Node) -> Node | None:
    """Integers compared with themselves, and a constant on the left of integers."""
    x, y = node.operands
    direction = Compare.of(node).direction
    if of(x).dtype.kind not in ("int", "uint", "pred"):
        return None
    if x is y:
        return s.broadcast(s.constant(SAME_IS[direction], of(node)), (), dims_of(node))
    if _is_constant(x) and not _is_constant(y):
        return s.make(hlo.compare, (y, x), node.type, {**node.attrs, "direction": MIRRORED[direction]})
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
        nested = operand.op is hlo.concatenate and Concatenate.of(operand).axis == Concatenate.of(node).axis
        return operand.operands if nested else (operand,)
    flat = [part for operand in node.operands for part in parts(operand)]
    return s.again(node, flat) if len(flat) != len(node.operands) else None


def _iota(s: Simplifier, node: Node) -> Node | None:
    """An iota that counts to one is zero."""
    if dims_of(node)[Iota.of(node).iota_dimension] != 1:
        return None
    return s.broadcast(s.constant(0, of(node)), (), dims_of(node))


def _reverse(s: Simplifier, node: Node) -> Node | None:
    """Reversed dimensions of one element, or equal elements."""
    x = node.operands[0]
    return x if scalar_of(x) is not None or all(dims_of(x)[d] == 1 for d in Reverse.of(node).dimensions) else None


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
    """An update of all elements, at zero, and of none."""
    x, update, *starts = node.operands
    if dims_of(x) == dims_of(update):
        return update if all(is_filled(start, 0) for start in starts) else None
    return x if not of(update).elements else None


def _reshape(s: Simplifier, node: Node) -> Node | None:
    """A reshape of a reshape, and one to the same shape."""
    x = node.operands[0]
    if x.op is hlo.reshape:
        return s.reshape(x.operands[0], dims_of(node))
    return x if dims_of(x) == dims_of(node) else None


def _transpose(s: Simplifier, node: Node) -> Node | None:
    """A transpose of a transpose, and one that keeps the order."""
    x, order = node.operands[0], Transpose.of(node).dimensions
    if list(order) == sorted(order):
        return x
    if x.op is not hlo.transpose:
        return None
    inner = Transpose.of(x).dimensions
    return s.make(hlo.transpose, x.operands, node.type, {"dimensions": tuple(inner[d] for d in order)})


def _broadcast(s: Simplifier, node: Node) -> Node | None:
    """A broadcast of a broadcast; one that repeats nothing is a reshape."""
    x, dimensions = node.operands[0], Broadcast.of(node).dimensions
    if of(x).elements == of(node).elements and list(dimensions) == sorted(dimensions):
        return s.reshape(x, dims_of(node))
    if x.op is not hlo.broadcast:
        return None
    return s.broadcast(x.operands[0], tuple(dimensions[d] for d in Broadcast.of(x).dimensions), dims_of(node))


def _same_type(s: Simplifier, node: Node) -> Node | None:
    """A slice of all, and a pad by nothing."""
    x = node.operands[0]
    attrs = node.attrs.get("padding") or ((0, 0, 0),)
    return x if dims_of(x) == dims_of(node) and not any(any(widths) for widths in attrs) else None


def _slice_of_concatenate(s: Simplifier, node: Node) -> Node | None:
    """A slice of a concatenation becomes a slice of the operands that it overlaps."""
    x = node.operands[0]
    if x.op is not hlo.concatenate or not of(node).elements:
        return None
    axis, ranges = Concatenate.of(x).axis, list(Slice.of(node).slice)
    begin, end, step = ranges[axis]
    kept: list[Node] = []
    first = place = 0
    for operand in x.operands:
        behind = place + dims_of(operand)[axis]
        if behind > begin and place < end:
            if not kept:
                first = place
            kept.append(operand)
        place = behind
    if len(kept) == len(x.operands):
        return None
    ranges[axis] = begin - first, end - first, step
    size = sum(dims_of(operand)[axis] for operand in kept)
    shape = (*dims_of(x)[:axis], size, *dims_of(x)[axis + 1:])
    joined = kept[0] if len(kept) == 1 else s.make(hlo.concatenate, kept, TensorType(of(x).dtype, shape), x.attrs)
    return s.make(hlo.slice, (joined,), node.type, {"slice": tuple(ranges)})


def _reduce(s: Simplifier, node: Node) -> Node | None:
    """A reduction over no dimensions."""
    return node.operands[0] if not Reduce.of(node).dimensions and len(node.operands) == 2 and is_static(node.operands[0]) else None


def _rules() -> Rules:
    # A compiler puts the constant operand of a commutative operator last.
    rules: defaultdict[Op, list[Rule]] = defaultdict(list, {get(name): [_constant_last] for name in COMMUTATIVE})
    for name in ROWS.split():
        for word in IDENTITIES[name].pattern.ops:
            rules[get(word)].append(row_of(name))
    for op, rule in ((hlo.compare, _compare), (hlo.concatenate, _concatenate), (hlo.concatenate, _nested_concatenate), (hlo.iota, _iota),
                     (hlo.reverse, _reverse), (hlo.dynamic_slice, _slice_of_known_start), (hlo.dynamic_update_slice, _update),
                     (hlo.reshape, _reshape), (hlo.transpose, _transpose), (hlo.broadcast, _broadcast), (hlo.slice, _same_type),
                     (hlo.slice, _slice_of_concatenate), (hlo.pad, _same_type), (hlo.reduce, _reduce)):
        rules[op].append(rule)
    return dict(rules)


RULES = _rules()
