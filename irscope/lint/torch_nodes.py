"""What rules for TorchScript ask about its nodes."""

from __future__ import annotations

from typing import Any

from irscope.formats.torchscript.attributes import Constant
from irscope.graph import Node
from irscope.ops.sets import torchscript

POINTWISE = torchscript(
    "abs add addcmul ceil clamp clamp_max clamp_min cos div elu exp floor gelu hardsigmoid hardswish hardtanh leaky_relu log mish mul "
    "neg pow reciprocal relu relu6 rsqrt rsub sigmoid silu sin softplus sqrt sub tanh threshold where batch_norm masked_fill"
)
"""Operators that work on each element by itself, and the normalisation that is one in inference."""
TURNS = torchscript("permute transpose t movedim swapaxes numpy_T mT")
"""Views whose elements stand in another order in memory."""
READS = torchscript("Bool Int Float item is_nonzero ScalarImplicit IntImplicit")
"""A Python number out of a tensor."""
CONSTANT = torchscript("prim::Constant")


def constant(node: Node) -> Any:
    """The value of ``prim::Constant``; None for None and for what is no constant."""
    return Constant.of(node).value if node.op in CONSTANT else None
