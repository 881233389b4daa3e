"""Aliasing: operands of concatenations, pads, updates and copies of views are written directly into the memory of the result."""
from __future__ import annotations

from collections.abc import Sequence

from irscope.fusion import Group
from irscope.fusion.drafts import dims_of
from irscope.fusion.views import Strides
from irscope.graph import Node
from irscope.lower.storage import Storage
from irscope.lower.values import tensor_of
from irscope.ops import hlo
from irscope.ops.attributes import Concatenate, Pad


def can_alias_operands(node: Node) -> bool:
    """Whether a node's operands can be written directly into its result: a concatenation, or padding that cuts nothing off."""
    whole = node.op is hlo.concatenate or (node.op is hlo.pad and all(min(low, high) >= 0 for low, high, _ in Pad.of(node).padding))
    return whole and _has_one_dtype(node, node.operands)


def is_update(node: Node) -> bool:
    """Whether a node is its first operand with a part overwritten."""
    starts = node.operands[2:]
    return node.op is hlo.dynamic_update_slice and all(dims_of(start) == () for start in starts) and _has_one_dtype(node, node.operands[:2])


def _has_one_dtype(node: Node, operands: Sequence[Node]) -> bool:
    """Whether the operands are of the element type of the result. XLA accepts floats of another precision in some modes."""
    return all(tensor_of(operand).dtype is tensor_of(node).dtype for operand in operands)


def is_view_copy(group: Group) -> bool:
    """Whether a group only copies a view of its one input: another shape or order of dimensions."""
    return (group.kind == "map" and len(group.inputs) == 1 and len(group.outputs) == 1
            and all(node.op in (hlo.reshape, hlo.transpose) for node in group.nodes))


def parts_of(node: Node, whole: Storage) -> list[tuple[Node, Storage]]:
    """The operands of a concatenation or padding, with their storage inside the result."""
    if node.op is hlo.pad:
        operand = node.operands[0]
        cut = [(low, low + (n - 1) * (hole + 1) + 1 if n else low, hole + 1)
               for n, (low, _, hole) in zip(dims_of(operand), Pad.of(node).padding)]
        return [(operand, whole.under(whole.walk().sliced(cut)))]
    axis, at = Concatenate.of(node).axis, 0
    found: list[tuple[Node, Storage]] = []
    for operand in node.operands:
        size = dims_of(operand)[axis]
        cut = [(at, at + size, 1) if d == axis else (0, n, 1) for d, n in enumerate(whole.shape)]
        found.append((operand, whole.under(Strides(whole.shape, whole.strides, whole.offset).sliced(cut))))
        at += size
    return found
