"""The class of work of a node, as XLA's own graph dumper colours nodes."""
from __future__ import annotations

from irscope.formats.torchscript.attributes import Constant
from irscope.graph import Kind, Node, TensorType, Type
from irscope.ops import hlo

CLASSES = ("contraction", "reduction", "elementwise", "movement", "fusion", "control", "collective", "custom", "parameter", "constant",
           "free", "unknown")
"""All classes (``Op.work``), the heavy ones first."""
_LIGHT = frozenset({"fusion", "control", "parameter", "constant", "free", "unknown"})


def is_view(node: Node) -> bool:
    """Whether an operator of torch returns its operand or a view of it, and moves no data."""
    if node.op.is_primitive:
        return False
    traits = node.op.traits
    if "view" in traits:
        return True
    if "dense-view" in traits:
        strides = getattr(node.operands[0].type, "strides", None) if node.operands else None
        return strides is None or tuple(strides) == row_major(node.operands[0].type)
    if "cast" in traits:
        x = node.operands[0].type if node.operands else None
        return isinstance(x, TensorType) and isinstance(node.type, TensorType) and x.dtype is node.type.dtype
    return "dropout" in traits and len(node.operands) == 3 and Constant.of(node.operands[2]).value in (0, False)


def row_major(type: Type) -> tuple[int, ...] | None:
    """The strides of an array without gaps; None where its shape is open."""
    if not isinstance(type, TensorType) or not type.is_static:
        return None
    strides, step = [], 1
    for n in reversed(type.dims()):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def drawn_class(node: Node) -> str:
    """The class to draw a node in; for a fusion, that of the heaviest work inside it."""
    if node.op is not hlo.fusion or not node.bodies:
        return node.op.work
    inside = {inner.op.work for inner in node.bodies[0].nodes}
    return next((name for name in CLASSES if name in inside and name not in _LIGHT), "fusion")


def is_leaflike(node: Node) -> bool:
    """Whether a node is a leaf, or a broadcast scalar constant: compilers hoist and share these, so only one copy of a layer has them."""
    op = node.op
    if op.kind is Kind.LEAF or op is hlo.iota or op.work == "constant":
        return True
    return op is hlo.broadcast and bool(node.operands) and node.operands[0].op is hlo.constant


def is_step(node: Node) -> bool:
    """Whether a node does work that a section of an outline is about; others go with their first user."""
    return not (is_leaflike(node) or node.synthetic or node.op is hlo.parameter or node.op.work in ("free", "parameter", "constant"))
