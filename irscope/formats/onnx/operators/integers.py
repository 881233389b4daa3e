"""Operators on bits."""
from __future__ import annotations

from irscope.formats.onnx.algebra import Onnx
from irscope.formats.onnx.declarations import Attributes
from irscope.formats.onnx.operators import operator
from irscope.graph import Node
from irscope.ops.faults import TypeFault


def _bitwise(name: str, primitive: str) -> None:
    @operator(f"{name}(A, B)")
    def bitwise(t: Onnx, a: Attributes, x: Node, y: Node) -> Node:
        t.alike(x, y)
        return t.binary(primitive, x, y)


for _name, _primitive in {"BitwiseAnd": "and", "BitwiseOr": "or", "BitwiseXor": "xor"}.items():
    _bitwise(_name, _primitive)


@operator("BitwiseNot(X)")
def bitwise_not(t: Onnx, a: Attributes, x: Node) -> Node:
    """All bits inverted."""
    return t.unary("not", x)


@operator("BitShift(X, Y; direction: str!)")
def bit_shift(t: Onnx, a: Attributes, x: Node, y: Node) -> Node:
    """Bits shifted to the left or to the right; a right shift of signed integers keeps the sign."""
    t.alike(x, y)
    if a.direction not in ("LEFT", "RIGHT"):
        raise TypeFault(f"direction is LEFT or RIGHT, not {a.direction!r}")
    right = "shift-right-arithmetic" if t.dtype(x).kind == "int" else "shift-right-logical"
    return t.binary("shift-left" if a.direction == "LEFT" else right, x, y)
