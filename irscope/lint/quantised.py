"""Helpers of the quantisation rules: products, their weights, and dequantised operands."""

from __future__ import annotations

from collections.abc import Iterator

from irscope.analysis.values import ARITHMETIC, CASTS_AND_MOVES, FILLS, LEAVES
from irscope.graph import Graph, Node, TensorType
from irscope.graph.walk import behind
from irscope.lint.view import ModuleView
from irscope.ops import hlo

STEPS = 16
"""Operators between a product and where its weights begin, at most."""


def products(view: ModuleView) -> Iterator[tuple[Node, Graph]]:
    """Every matrix product and convolution."""
    return view.primitives(hlo.dot, hlo.convolution)


def dequantised(node: Node) -> Node | None:
    """The conversion from 8 bits or fewer that the value comes from, past a scale and a zero point; None where there is none."""
    floats = False
    for _ in range(STEPS):
        if node.op is hlo.convert and node.operands:
            source, made = node.operands[0].type, node.type
            # The zero point may be subtracted in wider integers first.
            floats = floats or (isinstance(made, TensorType) and made.dtype.is_float)
            if isinstance(source, TensorType) and source.dtype.is_integer and source.dtype.bits <= 8:
                return node if floats else None
        elif node.op in ARITHMETIC:
            wide = [o for o in node.operands if behind(o, CASTS_AND_MOVES).op not in FILLS]
            if len(wide) != 1:
                return None
            node = wide[0]
            continue
        elif node.op not in CASTS_AND_MOVES:
            return None
        if not node.operands:
            return None
        node = node.operands[0]
    return None


def stored(node: Node) -> Node | None:
    """The parameter or constant that the value is, but for its type, shape and order; None where it is computed."""
    at = behind(node, CASTS_AND_MOVES)
    if at.op is hlo.get_tuple_element and at.operands[0].op is hlo.parameter:
        return at
    return at if at.op in LEAVES else None


def narrow(node: Node) -> bool:
    """Whether the value is of integers of 8 bits or fewer."""
    return isinstance(node.type, TensorType) and node.type.dtype.is_integer and node.type.dtype.bits <= 8
