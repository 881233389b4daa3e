"""What rules for TorchScript ask about its nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from irscope.graph import Graph, Module, Node
from irscope.lint.context import Context

POINTWISE = frozenset(
    "aten::" + name
    for name in (
        "abs add addcmul ceil clamp clamp_max clamp_min cos div elu exp floor gelu hardsigmoid hardswish hardtanh leaky_relu log mish mul "
        "neg pow reciprocal relu relu6 rsqrt rsub sigmoid silu sin softplus sqrt sub tanh threshold where batch_norm masked_fill"
    ).split()
)
"""Operators that work on each element by itself, and the normalisation that is one in inference."""
TURNS = frozenset(("aten::permute", "aten::transpose", "aten::t", "aten::movedim", "aten::swapaxes", "aten::numpy_T", "aten::mT"))
"""Views whose elements stand in another order in memory."""
READS = frozenset(("aten::Bool", "aten::Int", "aten::Float", "aten::item", "aten::is_nonzero", "aten::ScalarImplicit", "aten::IntImplicit"))
"""A Python number out of a tensor."""


def is_torchscript(module: Module) -> bool:
    return module.format == "torchscript"


def in_place(node: Node) -> bool:
    """``aten::relu_`` and its like."""
    name = node.op.name
    return name.startswith("aten::") and name.endswith("_") and not name.endswith("__")


def plain_name(node: Node) -> str:
    """``aten::relu`` for ``aten::relu_``."""
    return node.op.name.rstrip("_") if in_place(node) else node.op.name


def constant(node: Node) -> Any:
    """The value of ``prim::Constant``; None for None and for what is no constant."""
    return node.attrs.get("value") if node.op.name == "prim::Constant" else None


def written(graph: Graph) -> Iterator[Node]:
    """The statements of a graph, without the nodes that only take results apart."""
    return (node for node in graph.nodes if not node.synthetic)


def whole_graphs(context: Context) -> list[Graph]:
    """The graphs of a TorchScript module; none of another format."""
    return context.graphs if is_torchscript(context.module) else []
