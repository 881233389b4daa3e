"""Relay's movement: chains of reshapes, of transposes and layouts, and of slices become one, and what moves nothing is gone."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from irscope.formats.relay.algebra import layout_axes
from irscope.graph import Node, TensorType
from irscope.passes.algebra.relay import RelaySimplifier, Rules
from irscope.passes.algebra.relay_arithmetic import same_type
from irscope.passes.algebra.simplifier import Draft

RESHAPES = ("reshape", "reverse_reshape", "contrib_reverse_reshape")
RESHAPED = (*RESHAPES, "squeeze", "expand_dims", "nn.batch_flatten")
"""What keeps the elements in their order."""


def reshape(s: RelaySimplifier, d: Draft) -> Node | None:
    """Of what keeps the order of elements: one reshape, by sizes where they are known."""
    x, newshape = d.operands[0], d.attrs.get("newshape")
    if x.op.name not in RESHAPED:
        return None
    if d.tensor.is_static:
        return s.make("reshape", x.operands, {"newshape": list(d.tensor.dims())}, d.type)
    # The codes 0, -2, -3 and -4 speak of the operand's shape, which the one before has made.
    plain = isinstance(newshape, list) and all(isinstance(n, int) and (n == -1 or n > 0) for n in newshape) and not d.attrs.get("allowzero")
    return s.again(d, x.operands) if d.op.name == "reshape" and x.op.name == "reshape" and plain else None


# ---- transposes and layouts


def still(s: RelaySimplifier, d: Draft) -> Node | None:
    """A transpose, or a change of layout, that leaves every axis where it is."""
    if d.op.name == "layout_transform":
        return d.operands[0] if d.attrs.get("src_layout") == d.attrs.get("dst_layout") else None
    return d.operands[0] if _order(d.op.name, d.attrs, d.tensor.rank) == list(range(d.tensor.rank)) else None


def moved_twice(s: RelaySimplifier, d: Draft) -> Node | None:
    """Two movements of axes are one: a transpose, or a change of layout where an axis is taken apart or put together.

        %0 = transpose(%x, axes=[0, 3, 1, 2]);
        layout_transform(%0, src_layout="NCHW", dst_layout="NCHW4c")    ->    layout_transform(%x, src_layout="NHWC", dst_layout="NCHW4c")
    """
    middle = d.operands[0]
    if middle.op.name not in ("transpose", "layout_transform") or not isinstance(middle.type, TensorType):
        return None
    x, rank = middle.operands[0], middle.type.rank
    first, second = _order(middle.op.name, middle.attrs, rank), _order(d.op.name, d.attrs, d.tensor.rank)
    if first is not None and second is not None:
        return s.make("transpose", [x], {"axes": [first[n] for n in second]}, d.type)
    if not _same_elements(x, middle, d.tensor):
        return None
    if second is None and first is not None:
        # The dimensions in front of the first movement have the names that it gave to those behind it.
        names, behind = [""] * rank, _names(str(d.attrs["src_layout"]))
        if len(behind) != rank:
            return None
        for place, name in zip(first, behind, strict=True):
            names[place] = name
        return _relaid(s, x, "".join(names), str(d.attrs["dst_layout"]), d)
    if first is None and second is not None:
        behind = _names(str(middle.attrs["dst_layout"]))
        return _relaid(s, x, str(middle.attrs["src_layout"]), "".join(behind[n] for n in second), d) if len(behind) == len(second) else None
    if middle.attrs["dst_layout"] != d.attrs["src_layout"]:
        return None
    return _relaid(s, x, str(middle.attrs["src_layout"]), str(d.attrs["dst_layout"]), d)


def _relaid(s: RelaySimplifier, x: Node, source: str, wanted: str, d: Draft) -> Node:
    if source == wanted:
        return x
    return s.make("layout_transform", [x], {"src_layout": source, "dst_layout": wanted}, d.type)


def _order(name: str, attrs: Mapping[str, Any], rank: int) -> list[int] | None:
    """Which dimension of the operand each dimension of the result is; None where an axis is taken apart."""
    if name == "transpose":
        axes = attrs.get("axes")
        return list(range(rank))[::-1] if axes is None else [int(a) % rank for a in axes]
    source, wanted = _names(str(attrs.get("src_layout"))), _names(str(attrs.get("dst_layout")))
    if sorted(source) != sorted(wanted) or len(set(source)) != len(source) or len(source) != rank:
        return None
    return [source.index(name) for name in wanted]


def _names(layout: str) -> list[str]:
    """``NCHW4c`` as ``N C H W 4c``."""
    try:
        return [f"{size}{letter}" if size else letter for letter, size in layout_axes(layout)]
    except ValueError:
        return []


def _same_elements(x: Node, middle: Node, result: TensorType) -> bool:
    """Whether nothing was filled up on the way."""
    types = [x.type, middle.type, result]
    return all(isinstance(t, TensorType) and t.is_static and t.elements == result.elements for t in types)


# ---- slices and pieces


def strided_slice(s: RelaySimplifier, d: Draft) -> Node | None:
    """Of everything; of a slice, where both go forwards in a known shape."""
    x = d.operands[0]
    outer = _ranges(x, d.attrs)
    if outer is None or not isinstance(x.type, TensorType):
        return None
    if outer == [range(n) for n in x.type.dims()]:
        return x
    inner = _ranges(x.operands[0], x.attrs) if x.op.name == "strided_slice" else None
    if inner is None:
        return None
    both = [i[o.start:o.stop:o.step] for i, o in zip(inner, outer, strict=True)]
    if any(not len(r) for r in both):
        return None
    attrs = {"begin": [r.start for r in both], "end": [r[-1] + 1 for r in both], "strides": [r.step for r in both]}
    return s.make("strided_slice", [x.operands[0]], attrs, d.type)


def _ranges(x: Node, attrs: Mapping[str, Any]) -> list[range] | None:
    """Which places along each dimension a slice takes; None where it goes backwards or a shape is open."""
    begin, end, strides = attrs.get("begin"), attrs.get("end"), attrs.get("strides") or [1]
    if not isinstance(x.type, TensorType) or not x.type.is_static or not isinstance(begin, list) or not isinstance(end, list):
        return None
    shape = x.type.dims()
    axes = [int(a) % len(shape) for a in attrs.get("axes") or range(len(begin))]
    ranges = [range(n) for n in shape]
    if len(end) != len(begin) or len(axes) != len(begin):
        return None
    for i, axis in enumerate(axes):
        n, first, last = shape[axis], begin[i], end[i]
        step = strides[i] if i < len(strides) else strides[0] if len(strides) == 1 else 1
        if first is None or last is None or step < 1:
            return None
        if attrs.get("slice_mode") == "size":
            first, step = first + n if first < 0 else first, 1
            last = n if last < 0 else first + last
        ranges[axis] = range(n)[first:last:step]
    return ranges


def concatenate(s: RelaySimplifier, d: Draft) -> Node | None:
    """Of one."""
    parts = d.operands[0]
    return parts.operands[0] if parts.op.name == "tuple" and len(parts.operands) == 1 and parts.operands[0].type == d.type else None


RULES: Rules = {
    **dict.fromkeys((*RESHAPES, "squeeze", "nn.batch_flatten"), (same_type, reshape)),
    "broadcast_to": (same_type,),
    "transpose": (still, moved_twice),
    "layout_transform": (still, moved_twice),
    "strided_slice": (strided_slice,),
    "concatenate": (concatenate,),
}
