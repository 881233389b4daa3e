"""Relay's data movement: merges chains of reshapes, of transposes and layout changes, and of slices, and removes identities."""
from __future__ import annotations

from irscope.formats.relay.algebra import layout_axes
from irscope.formats.relay.attributes import LayoutTransform, Reshape, StridedSlice
from irscope.graph import Node, TensorType
from irscope.ops import hlo
from irscope.ops.sets import relay
from irscope.passes.algebra.relay_arithmetic import same_type
from irscope.passes.algebra.simplifier import RelayRules, Simplifier, of
from irscope.passes.cancel_transposes import permutation
from irscope.passes.op_table import OpTable

RESHAPE, TRANSPOSE, LAYOUT, SLICE = relay("reshape"), relay("transpose"), relay("layout_transform"), relay("strided_slice")
MOVES = TRANSPOSE | LAYOUT
RESHAPES = relay("reshape reverse_reshape contrib_reverse_reshape squeeze nn.batch_flatten")
RESHAPED = RESHAPES | relay("expand_dims")
"""What keeps the elements in their order."""


def reshape(s: Simplifier, d: Node) -> Node | None:
    """A reshape of operators that keep the order of elements becomes one reshape, with static sizes if they are known."""
    x, newshape = d.operands[0], Reshape.of(d).newshape
    if x.op not in RESHAPED:
        return None
    if of(d).is_static:
        return s.make("reshape", x.operands, d.type, {"newshape": list(of(d).dims())})
    # The codes 0, -2, -3 and -4 refer to the operand's shape, which the previous reshape has changed.
    plain = isinstance(newshape, list) and all(isinstance(n, int) and (n == -1 or n > 0) for n in newshape) and not Reshape.of(d).allowzero
    return s.again(d, x.operands) if d.op in RESHAPE and x.op in RESHAPE and plain else None


# ---- transposes and layouts


def still(s: Simplifier, d: Node) -> Node | None:
    """A transpose or layout change that leaves every axis in place."""
    if d.op in LAYOUT:
        return d.operands[0] if LayoutTransform.of(d).src_layout == LayoutTransform.of(d).dst_layout else None
    return d.operands[0] if _order(d) == list(range(of(d).rank)) else None


def moved_twice(s: Simplifier, d: Node) -> Node | None:
    """Merges two transposes or layout changes into one: a transpose, or a layout change if an axis is split or merged.

        %0 = transpose(%x, axes=[0, 3, 1, 2]);
        layout_transform(%0, src_layout="NCHW", dst_layout="NCHW4c")    ->    layout_transform(%x, src_layout="NHWC", dst_layout="NCHW4c")
    """
    middle = d.operands[0]
    if middle.op not in MOVES or not isinstance(middle.type, TensorType):
        return None
    x, rank = middle.operands[0], middle.type.rank
    first, second = _order(middle), _order(d)
    before, after = LayoutTransform.of(middle), LayoutTransform.of(d)
    if first is not None and second is not None:
        return s.make("transpose", [x], d.type, {"axes": [first[n] for n in second]})
    if not _same_elements(x, middle, of(d)):
        return None
    if second is None and first is not None:
        # The dimensions before the first movement get the names of the corresponding ones after it.
        names, behind = [""] * rank, _names(after.src_layout)
        if len(behind) != rank:
            return None
        for place, name in zip(first, behind, strict=True):
            names[place] = name
        return _relaid(s, x, "".join(names), after.dst_layout, d)
    if first is None and second is not None:
        behind = _names(before.dst_layout)
        return _relaid(s, x, before.src_layout, "".join(behind[n] for n in second), d) if len(behind) == len(second) else None
    return _relaid(s, x, before.src_layout, after.dst_layout, d) if before.dst_layout == after.src_layout else None


def _relaid(s: Simplifier, x: Node, source: str, wanted: str, d: Node) -> Node:
    if source == wanted:
        return x
    return s.make("layout_transform", [x], d.type, {"src_layout": source, "dst_layout": wanted})


def _order(d: Node) -> list[int] | None:
    """Which dimension of the operand each dimension of the result is; None if an axis is split, or the type is unknown."""
    if d.op in TRANSPOSE:
        return permutation(d)
    source, wanted = _names(LayoutTransform.of(d).src_layout), _names(LayoutTransform.of(d).dst_layout)
    if sorted(source) != sorted(wanted) or len(set(source)) != len(source) or len(source) != of(d).rank:
        return None
    return [source.index(name) for name in wanted]


def _names(layout: str) -> list[str]:
    """``NCHW4c`` as ``N C H W 4c``."""
    try:
        return [f"{size}{letter}" if size else letter for letter, size in layout_axes(str(layout))]
    except ValueError:
        return []


def _same_elements(x: Node, middle: Node, result: TensorType) -> bool:
    """Whether no step padded the elements."""
    types = [x.type, middle.type, result]
    return all(isinstance(t, TensorType) and t.is_static and t.elements == result.elements for t in types)


# ---- slices and pieces


def strided_slice(s: Simplifier, d: Node) -> Node | None:
    """A slice of the whole operand, or of a slice, if both have positive strides in a known shape."""
    x = d.operands[0]
    outer = _ranges(x, StridedSlice.of(d))
    if outer is None or not isinstance(x.type, TensorType):
        return None
    if outer == [range(n) for n in x.type.dims()]:
        return x
    inner = _ranges(x.operands[0], StridedSlice.of(x)) if x.op in SLICE else None
    if inner is None:
        return None
    both = [i[o.start:o.stop:o.step] for i, o in zip(inner, outer, strict=True)]
    if any(not len(r) for r in both):
        return None
    attrs = {"begin": [r.start for r in both], "end": [r[-1] + 1 for r in both], "strides": [r.step for r in both]}
    return s.make("strided_slice", [x.operands[0]], d.type, attrs)


def _ranges(x: Node, given: StridedSlice) -> list[range] | None:
    """The indices along each dimension that a slice reads; None for a negative stride or a dynamic shape."""
    begin, end, strides = given.begin, given.end, given.strides or [1]
    if not isinstance(x.type, TensorType) or not x.type.is_static or not all(isinstance(each, list) for each in (begin, end, strides)):
        return None
    shape = x.type.dims()
    axes = [int(a) % len(shape) for a in given.axes or range(len(begin))]
    ranges = [range(n) for n in shape]
    if len(end) != len(begin) or len(axes) != len(begin):
        return None
    for i, axis in enumerate(axes):
        n, first, last = shape[axis], begin[i], end[i]
        step = strides[i] if i < len(strides) else strides[0] if len(strides) == 1 else 1
        if first is None or last is None or step < 1:
            return None
        if given.slice_mode == "size":
            first, step = first + n if first < 0 else first, 1
            last = n if last < 0 else first + last
        ranges[axis] = range(n)[first:last:step]
    return ranges


def concatenate(s: Simplifier, d: Node) -> Node | None:
    """A concatenation of one operand."""
    parts = d.operands[0]
    return parts.operands[0] if parts.op is hlo.tuple and len(parts.operands) == 1 and parts.operands[0].type == d.type else None


RULES: RelayRules = OpTable(
    (RESHAPES, (same_type, reshape)),
    (relay("broadcast_to"), (same_type,)),
    (MOVES, (still, moved_twice)),
    (SLICE, (strided_slice,)),
    (relay("concatenate"), (concatenate,)),
)
