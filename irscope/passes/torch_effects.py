"""Effects of TorchScript's statements: which only construct values, and which may write in place to values that others read."""
from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import accumulate

from irscope.formats.torchscript.operators import overloads
from irscope.graph import Node
from irscope.ops.sets import hlo, torchscript

CONSTANT, LIST = torchscript("prim::Constant"), torchscript("prim::ListConstruct")
BUILDING = hlo("parameter tuple get-tuple-element constant") | torchscript(
    "prim::Constant prim::ListConstruct prim::TupleConstruct prim::ListUnpack prim::TupleUnpack prim::TupleIndex prim::GetAttr "
    "prim::NumToTensor prim::unchecked_cast prim::device prim::dtype prim::ConstantChunk prim::FusionGroup aten::Int aten::Float "
    "aten::Bool aten::ScalarImplicit"
)
"""Lines of the language itself that read and build values."""


def may_write(node: Node) -> bool:
    """Whether a statement may modify a value in place: operators that end in ``_``, and unknown operators."""
    return node.op not in BUILDING and _may_write(node.op.name)


@cache
def _may_write(name: str) -> bool:
    found = overloads(name)
    return found is None or any(choice.style not in ("pure", "view") for choice in found.choices)


def writes_before(nodes: Sequence[Node]) -> list[int]:
    """By index, how many statements up to and including this one may write."""
    return list(accumulate(int(may_write(node)) for node in nodes))


def small_value(node: Node) -> bool:
    """Numbers, flags and lists of them."""
    return node.op in CONSTANT or (node.op in LIST and bool(node.operands) and all(o.op in CONSTANT for o in node.operands))


def without_unused_values(nodes: list[Node]) -> list[Node]:
    """The statements renumbered, without unused numbers and lists."""
    uses = [0] * len(nodes)
    for node in nodes:
        for operand in node.operands:
            uses[operand.index] += 1
    kept = [True] * len(nodes)
    for node in reversed(nodes):
        if not uses[node.index] and small_value(node):
            kept[node.index] = False
            for operand in node.operands:
                uses[operand.index] -= 1
    left = [node for node in nodes if kept[node.index]]
    for index, node in enumerate(left):
        node.index = index
    return left
