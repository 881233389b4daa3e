"""Matrix products of integers and of quantised weights, and products with what follows them."""
from __future__ import annotations

from typing import Any

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.activations import gelu
from irscope.formats.torchscript.operators.linear import addmm, linear
from irscope.formats.torchscript.operators.wide import widened
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import F32, S32


@operator("_int_mm(Tensor self, Tensor mat2)")
def int_mm(t: Torch, x: Node, y: Node) -> Node:
    """Bytes times bytes, in int32."""
    return t.matmul(x, y, S32)


@operator("mm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype)", "bmm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype)")
def mm_in(t: Torch, x: Node, y: Node, dtype: int) -> Node:
    """A product that is not rounded to the type of its operands."""
    return t.matmul(x, y, t.dtype_number(dtype, t.dtype(x)))


@operator("addmm.dtype(Tensor self, Tensor mat1, Tensor mat2, ScalarType out_dtype, *, Scalar beta=1, Scalar alpha=1)",
          "baddbmm.dtype(Tensor self, Tensor batch1, Tensor batch2, ScalarType out_dtype, *, Scalar beta=1, Scalar alpha=1)")
def addmm_in(t: Torch, x: Node, a: Node, b: Node, dtype: int, beta: Any, alpha: Any) -> Node:
    kind = t.dtype_number(dtype, t.dtype(a))
    y = t.scale(t.matmul(a, b, kind), alpha)
    return y if beta == 0 else t.add(y, t.scale(t.convert(x, kind), beta))


@operator("_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, bool use_gelu=False)")
def addmm_activation(t: Torch, x: Node, a: Node, b: Node, beta: object, alpha: object, by_gelu: bool) -> Node:
    y = addmm(t, x, a, b, beta, alpha)
    return gelu(t, y, "none") if by_gelu else t.maximum(y, t.like(y, 0))


@operator("_weight_int8pack_mm(Tensor self, Tensor mat2, Tensor scales)")
def weight_int8(t: Torch, x: Node, w: Node, scales: Node) -> Node:
    """A linear layer whose weights are bytes [out, in] with a scale for each output."""
    y = t.matmul(widened(t, x), t.convert(t.swap(w, 0, 1), t.dtype(widened(t, x))))
    return t.convert(t.mul(y, t.convert(scales, t.dtype(y))), t.dtype(x))


@operator("_scaled_mm(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias=None, Tensor? scale_result=None, "
          "ScalarType? out_dtype=None, bool use_fast_accum=False)")
def scaled_mm(t: Torch, x: Node, y: Node, scale_x: Node, scale_y: Node, bias: Node | None, scale: Node | None, dtype: int | None,
              fast: bool) -> Node:
    """A product of 8-bit floats, times the scale of each operand (or of its rows and columns)."""
    z = t.mul(t.mul(t.matmul(t.convert(x, F32), t.convert(y, F32)), scale_x), scale_y)
    z = z if bias is None else t.add(z, t.convert(bias, F32))
    z = z if scale is None else t.mul(z, scale)
    return t.convert(z, t.dtype_number(dtype, t.dtype(x)))


@operator("mkl::_mkl_linear(Tensor X, Tensor MKL_W, Tensor ORI_W, Tensor? B, int batch_size)")
def mkl_linear(t: Torch, x: Node, packed: Node, w: Node, b: Node | None, batch: int) -> Node:
    """A linear layer by weights that MKL packed, of which the graph has the plain ones too."""
    return linear(t, x, w, b)


@operator("linear_backward(Tensor self, Tensor grad_output, Tensor weight, bool[3] output_mask)")
def linear_backward(t: Torch, x: Node, grad: Node, w: Node, wanted: list[bool]) -> tuple[Node | None, Node | None, Node | None]:
    outer = list(range(t.rank(x) - 1))
    return (t.matmul(grad, w) if wanted[0] else None, t.dot(grad, x, (outer, outer)) if wanted[1] else None,
            t.sum(grad, outer) if wanted[2] else None)


@operator("_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, int[] sumdim, int unroll_dim=1)")
def trilinear(t: Torch, a: Node, b: Node, c: Node, new_a: list[int], new_b: list[int], new_c: list[int], summed: list[int],
              unrolled: int) -> Node:
    """The product of three tensors, each with new dimensions of size 1, summed over some."""
    parts = []
    for x, new in ((a, new_a), (b, new_b), (c, new_c)):
        for d in sorted(new):
            x = t.unsqueeze(x, d)
        parts.append(x)
    y = t.mul(t.mul(parts[0], parts[1]), parts[2])
    return t.sum(y, summed)


@operator("_weight_norm_interface(Tensor v, Tensor g, int dim=0)")
def weight_norm_interface(t: Torch, v: Node, g: Node, dim: int) -> tuple[Node, Node]:
    """The weight, and the norms of ``v`` that its gradient takes."""
    norm = t.unary("sqrt", t.sum(t.mul(v, v), [d for d in range(t.rank(v)) if d != t.dim(v, dim)], True))
    return t.mul(v, t.div(g, norm)), norm


@operator("_weight_norm_interface_backward(Tensor grad_w, Tensor saved_v, Tensor saved_g, Tensor saved_norms, int dim)")
def weight_norm_backward(t: Torch, grad: Node, v: Node, g: Node, norm: Node, dim: int) -> tuple[Node, Node]:
    dims = [d for d in range(t.rank(v)) if d != t.dim(v, dim)]
    along = t.sum(t.mul(grad, v), dims, True)
    by_v = t.mul(t.div(g, norm), t.sub(grad, t.mul(v, t.div(along, t.mul(norm, norm)))))
    return by_v, t.div(along, norm)
