"""Calls of TorchScript operators with fewer operands than any overload takes.

    %y : Tensor = aten::contiguous()        aten::contiguous takes 1 operand at least, got 0
"""
from __future__ import annotations

from collections.abc import Iterator

from irscope.analysis.verify.faults import GraphFault
from irscope.formats.torchscript.operators import overloads
from irscope.graph import Graph, Op
from irscope.ops.sets import torchscript

_AT_LEAST_ONE = torchscript("prim::If prim::GetAttr prim::CallMethod prim::CallFunction prim::TupleUnpack prim::ListUnpack "
                            "prim::NumToTensor prim::TupleIndex Int Float Bool")
_AT_LEAST_TWO = torchscript("prim::Loop prim::SetAttr __getitem__ append")
"""The least operands of the interpreter's own operators (torch/csrc/jit/runtime/register_prim_ops.cpp)."""


def call_faults(graph: Graph) -> Iterator[GraphFault]:
    """The nodes that lack operands. Operators without a schema are not reported, nor are extra operands: versions of torch differ."""
    least: dict[Op, tuple[int, str]] = {}
    for node in graph.nodes:
        op = node.op
        if op.is_primitive:
            continue
        if op not in least:
            least[op] = _least(op)
        wanted, schema = least[op]
        if len(node.operands) < wanted:
            message = f"{op.name} takes {wanted} operand{'s' if wanted != 1 else ''} at least, got {len(node.operands)}"
            yield GraphFault(node, message, schema, about="type")


def _least(op: Op) -> tuple[int, str]:
    """The fewest operands that an overload takes, and its schema."""
    known = overloads(op.name)
    if known is None or not known.choices:
        return (2 if op in _AT_LEAST_TWO else 1 if op in _AT_LEAST_ONE else 0), ""
    least = [(sum(not (a.has_default or a.optional) for a in choice.schema.arguments), choice.schema.text) for choice in known.choices]
    return min(least)
