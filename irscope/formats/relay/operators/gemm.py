"""Convolutions as products of matrices whose kernel was packed into tiles beforehand."""

from __future__ import annotations

from math import prod

from irscope.formats.relay.algebra import Relay, each, shape_text
from irscope.formats.relay.operators import Attributes, operator
from irscope.formats.relay.operators.convolution import attributes, convolve
from irscope.graph import DType, Kind, Node
from irscope.ops.faults import TypeFault

C = Kind.CONTRACTION
INTERLEAVED = 4
"""The rows of a kernel are filled up to so many tiles of it (TVM's own kernels read four at a time)."""


def _bytes(dtype: DType) -> bool:
    return dtype.is_integer and dtype.bits == 8


@operator("nn.contrib_conv2d_gemm_weight_transform(weights: 1d+; tile_N!, tile_K!)", kind=C)
def gemm_weight(t: Relay, a: Attributes, w: Node) -> Node:
    """A kernel (H, W, I, O) as a matrix of tiles: (O tiles, rows in tiles, O, rows) of bytes, rows before O of wider types."""
    *lead, o = t.shape(w)
    rows, n, k = prod(lead), int(a.tile_N), int(a.tile_K)
    more = (-rows % (INTERLEAVED * k), -o % n)
    matrix = t.pad(t.reshape(w, (rows, o)), t.array(0, t.dtype(w)), [0, 0], list(more))
    tiles = t.reshape(matrix, ((rows + more[0]) // k, k, (o + more[1]) // n, n))
    return t.transpose(tiles, (2, 0, 3, 1) if _bytes(t.dtype(w)) else (2, 0, 1, 3))


@operator(f"nn.contrib_conv2d_gemm_without_weight_transform(data: 4d, weight: 4d; {attributes(2, 'NCHW', 'OIHW')})", kind=C)
def gemm_convolution(t: Relay, a: Attributes, x: Node, w: Node) -> Node:
    """A convolution over a kernel that is a matrix of tiles."""
    layout = str(a.data_layout)
    if a.kernel_size is None or not isinstance(a.channels, int) or t.rank(w) != 4 or sorted(layout) != sorted("NHWC"):
        raise TypeFault(f"channels and kernel_size determine the tiles of {shape_text(t.shape(w))}; one of them is missing")
    kh, kw = each(a.kernel_size, 2)
    inner = t.shape(x)[layout.index("C")]
    tiles = t.transpose(w, (1, 3, 0, 2) if _bytes(t.dtype(w)) else (1, 2, 0, 3))
    rows, k, columns, n = t.shape(tiles)
    matrix = t.reshape(tiles, (rows * k, columns * n))
    if rows * k < kh * kw * inner or columns * n < a.channels:
        raise TypeFault(f"the tiles have {rows * k} x {columns * n} numbers, the kernel {kh * kw * inner} x {a.channels}")
    kernel = t.reshape(t.slice(matrix, (0, 0), (kh * kw * inner, a.channels)), (kh, kw, inner, a.channels))
    return convolve(t, Attributes(**(vars(a) | {"kernel_layout": "HWIO"})), x, kernel, 2)
