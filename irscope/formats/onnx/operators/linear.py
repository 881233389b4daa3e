"""Matrix products and determinants."""
from __future__ import annotations

from irscope.formats.onnx.algebra import Onnx
from irscope.formats.onnx.declarations import Attributes
from irscope.formats.onnx.operators import operator
from irscope.formats.torchscript.operators.linear import einsum as einsum_of
from irscope.formats.torchscript.operators.solving import determinant
from irscope.graph import Node
from irscope.ops.checked import real
from irscope.ops.faults import TypeFault


@operator("MatMul(A, B)")
def matmul(t: Onnx, a: Attributes, x: Node, y: Node) -> Node:
    """numpy's ``matmul``."""
    return product(t, x, y)


def product(t: Onnx, x: Node, y: Node) -> Node:
    """The product of vectors, matrices, and batches that broadcast. Raises TypeFault where the sizes differ."""
    t.alike(x, y)
    xs, ys = t.shape(x), t.shape(y)
    if not xs or not ys or xs[-1] != ys[max(0, len(ys) - 2)]:
        raise TypeFault(f"{list(xs)} cannot be multiplied by {list(ys)}")
    return t.matmul(x, y)


@operator("Gemm(A: tensor[2], B: tensor[2], C?: tensor[0-2]; alpha=1.0, beta=1.0, transA=0, transB=0, broadcast=0)")
def gemm(t: Onnx, a: Attributes, x: Node, y: Node, c: Node | None) -> Node:
    """``alpha A B + beta C``, both matrices transposed on request."""
    if t.rank(x) != 2 or t.rank(y) != 2:
        raise TypeFault(f"the operands are matrices, got {list(t.shape(x))} and {list(t.shape(y))}")
    t.alike(x, y, c)
    left, right = (0 if a.transA else 1), (1 if a.transB else 0)
    if t.shape(x)[left] != t.shape(y)[right]:
        raise TypeFault(f"{list(t.shape(x))} cannot be multiplied by {list(t.shape(y))}")
    made = _scaled(t, t.dot(x, y, ([left], [right])), a.alpha)
    return made if c is None else t.add(made, t.broadcast_to(_scaled(t, c, a.beta), t.shape(made)))


def _scaled(t: Onnx, x: Node, factor: float) -> Node:
    if factor == 1:
        return x
    if t.dtype(x).is_float:
        return t.mul(x, t.like(x, factor))
    real("the factor of integers", factor)
    return t.mul(x, t.like(x, int(factor)))


@operator("Einsum(Inputs*; equation: str!)")
def einsum(t: Onnx, a: Attributes, *xs: Node) -> Node:
    """A sum of products over the letters that the result omits."""
    if not xs:
        raise TypeFault("at least one operand is needed")
    t.alike(*xs)
    return t.convert(t.by_torch(einsum_of, a.equation, [t.here(x) for x in xs], None), t.dtype(xs[0]))


@operator("Det(X: float[2+])")
def det(t: Onnx, a: Attributes, x: Node) -> Node:
    """The determinants of matrices."""
    made: Node = t.by_torch(determinant, x)
    return made


@operator("com.microsoft.FusedMatMul(A, B; alpha=1.0, transA=0, transB=0, transBatchA=0, transBatchB=0)",
          "com.microsoft.TransposeMatMul(A, B; alpha=1.0, transA=0, transB=0, transBatchA=0, transBatchB=0)")
def fused_matmul(t: Onnx, a: Attributes, x: Node, y: Node) -> Node:
    """``alpha A B``, both transposed on request."""
    if a.transBatchA or a.transBatchB:
        raise TypeFault("transposed batches are not supported")
    x, y = (t.transpose(v, [*range(t.rank(v) - 2), t.rank(v) - 1, t.rank(v) - 2]) if swap and t.rank(v) > 1 else v
            for v, swap in ((x, a.transA), (y, a.transB)))
    return _scaled(t, product(t, x, y), a.alpha)
