"""Calls of TorchScript operators with fewer operands than any overload takes.

    %y : Tensor = aten::contiguous()        aten::contiguous takes 1 operand at least, got 0
"""
from __future__ import annotations

from collections.abc import Iterator

from irscope.analysis.verify.faults import Fault
from irscope.formats.torchscript.operators import overloads
from irscope.graph import Graph

LEAST = {"prim::If": 1, "prim::Loop": 2, "prim::GetAttr": 1, "prim::SetAttr": 2, "prim::CallMethod": 1, "prim::CallFunction": 1,
         "prim::TupleUnpack": 1, "prim::ListUnpack": 1, "prim::NumToTensor": 1, "prim::TupleIndex": 1, "aten::Int": 1, "aten::Float": 1,
         "aten::Bool": 1, "aten::__getitem__": 2, "aten::append": 2}
"""Operands that the interpreter's own operators need (torch/csrc/jit/runtime/register_prim_ops.cpp)."""


def call_faults(graph: Graph) -> Iterator[Fault]:
    """The nodes that lack operands. Operators without a schema are no fault, nor are more operands: torch's versions differ in those."""
    least: dict[str, tuple[int, str]] = {}
    for node in graph.nodes:
        name = node.op.name
        if node.op.dialect != "torchscript":
            continue
        if name not in least:
            least[name] = _least(name)
        wanted, schema = least[name]
        if len(node.operands) < wanted:
            message = f"{name} takes {wanted} operand{'s' if wanted != 1 else ''} at least, got {len(node.operands)}"
            yield Fault(node, message, schema, about="type")


def _least(name: str) -> tuple[int, str]:
    """The fewest operands that an overload takes, and its schema."""
    known = overloads(name)
    if known is None or not known.choices:
        return LEAST.get(name, 0), ""
    least = [(sum(not (a.has_default or a.optional) for a in choice.schema.arguments), choice.schema.text) for choice in known.choices]
    return min(least)
