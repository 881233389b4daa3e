"""Changes of reductions: two become one, and what scales a sum is applied before it."""

from __future__ import annotations

from irscope.analysis.values import body_operator, dims, number
from irscope.graph import Node
from irscope.lint.edits import Edit, Site
from irscope.lint.proven.site import RefusedEdge, has_wide_range, shaped, tensor
from irscope.ops import hlo
from irscope.ops.attributes import Reduce

NEUTRAL = {hlo.add: 0.0, hlo.multiply: 1.0, hlo.maximum: float("-inf"), hlo.minimum: float("inf")}
"""The neutral element of each operator, with which a reduction begins."""
SCALES = hlo.named("multiply divide")


def is_plain(node: Node) -> bool:
    """Whether a node is a reduction of one array by an operator of :data:`NEUTRAL` from its neutral element."""
    operator = body_operator(node) if node.op is hlo.reduce and len(node.operands) == 2 else None
    return operator in NEUTRAL and tensor(node) is not None and number(node.operands[1]) == NEUTRAL[operator]


def merge_reductions(edge: RefusedEdge) -> Edit | None:
    """A reduction of a reduction by the same operator becomes one over both sets of dimensions."""
    first, second = edge.producer, edge.consumer
    if not is_plain(first) or not is_plain(second) or body_operator(first) is not body_operator(second) or second.operands[0] is not first:
        return None
    return at_once(first, second) if tensor(first.operands[0]) is not None else None


def at_once(first: Node, second: Node) -> Edit:
    """The edit that replaces ``second``, a reduction of ``first`` by the same operator, by one reduction over the dimensions of both."""
    source = first.operands[0]

    def make(site: Site) -> Node:
        reduced = set(Reduce.of(first).dimensions)
        kept = [d for d in range(len(dims(source))) if d not in reduced]
        both = tuple(sorted(reduced | {kept[d] for d in Reduce.of(second).dimensions}))
        return site.copy(second, site.new(source), site.new(second.operands[1]), attrs={**second.attrs, "dimensions": both})

    return Edit({second: make}, (source,))


def scale_before_sum(edge: RefusedEdge) -> Edit | None:
    """``sum(x) * s`` becomes ``sum(x * s)``: the other operand is broadcast over the dimensions that are summed."""
    total, scale = edge.producer, edge.consumer
    if not is_plain(total) or body_operator(total) is not hlo.add or scale.op not in SCALES or scale.operands[0] is not total:
        if not (is_plain(total) and body_operator(total) is hlo.add and scale.op is hlo.multiply and scale.operands[1] is total):
            return None
    other = scale.operands[1] if scale.operands[0] is total else scale.operands[0]
    source, type = tensor(total.operands[0]), tensor(other)
    if other is total or source is None or type is None or not has_wide_range(source.dtype):
        return None
    kept = tuple(d for d in range(len(source.shape)) if d not in Reduce.of(total).dimensions)

    def make(site: Site) -> Node:
        wide = site.op(hlo.broadcast, site.new(other), type=shaped(type, dims(total.operands[0])), attrs={"dimensions": kept})
        scaled = site.op(scale.op, site.new(total.operands[0]), wide, type=source)
        return site.copy(total, scaled, site.new(total.operands[1]))

    return Edit({scale: make}, (total.operands[0], other))
