"""Gradients of pooling, padding, resizing and windows: an element that is read several times gets the sum of its gradients."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from irscope.formats.sampling import product_along
from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.indexing import scattered
from irscope.formats.torchscript.operators.interpolation import NAMES, Interpolation, band, mirror, nearest
from irscope.formats.torchscript.operators.pooling import PoolWindow, divisors
from irscope.formats.torchscript.operators.wide import widened
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.lazy import np
from irscope.ops.attrs import Window
from irscope.ops.checked import at_least, real, table
from irscope.ops.faults import TypeFault

# ---------------------------------------------------------------------- pooling


def avg_pool_gradient(t: Torch, grad: Node, x: Node, pool: PoolWindow, count_padding: bool, divisor: int | None) -> Node:
    """Each window's gradient, divided as its sum was, at all elements of the window."""
    g, shape, n = widened(t, grad), t.shape(x), pool.n
    if t.rank(g) != len(shape):
        raise TypeFault(f"the gradient has {t.rank(g)} dimensions, and the tensor {len(shape)}")
    g = t.div(g, divisors(t, g, shape, pool, count_padding, divisor))
    lead = len(t.shape_of(x, n)) - n
    low, high, interior = [0] * lead, [0] * lead, [0] * lead
    for size, count, k, s, p in zip(shape[lead:], t.shape(g)[lead:], pool.kernel, pool.stride, pool.padding, strict=True):
        low.append(k - 1 - p)
        high.append(size + p - 1 - (count - 1) * s)
        interior.append(s - 1)
    spread = t.pad(g, t.array(0, t.dtype(g)), low, high, interior)
    made = t.window("add", spread, 0, Window.make((1,) * lead + pool.kernel))
    return t.convert(made, t.dtype(x))


def _average(n: int) -> None:
    @operator(f"avg_pool{n}d_backward(Tensor grad_output, Tensor self, int[{n}] kernel_size, int[{n}] stride, int[{n}] padding, "
              "bool ceil_mode, bool count_include_pad, int? divisor_override)")
    def backward(t: Torch, grad: Node, x: Node, kernel: object, stride: object, padding: object, ceil: bool, count: bool,
                 divisor: int | None) -> Node:
        return avg_pool_gradient(t, grad, x, PoolWindow(n, kernel, stride, padding, ceil=ceil), count, divisor)

    @operator(f"_adaptive_avg_pool{n}d_backward(Tensor grad_output, Tensor self)",
              *([f"adaptive_avg_pool{n}d_backward(Tensor grad_output, Tensor self)"] if n == 3 else []))
    def adaptive(t: Torch, grad: Node, x: Node) -> Node:
        g = widened(t, grad)
        for d in range(len(t.shape_of(x, n)) - n, t.rank(x)):
            have, want = at_least(1, "a size", t.shape(x)[d]), t.shape(g)[d]
            matrix = np.zeros((want, have))
            for o in range(want):
                low, high = o * have // want, -(-(o + 1) * have // want)
                matrix[o, low:high] = 1 / (high - low)
            g = _along(t, g, d, matrix)
        return t.convert(g, t.dtype(x))


for _n in (2, 3):
    _average(_n)


def at_places(t: Torch, grad: Node, x: Node, places: Node, n: int) -> Node:
    """The gradients at the flat places of their elements in the last ``n`` dimensions of ``x``, zeros elsewhere."""
    shape = t.shape(x)
    lead, plane = prod(shape[:-n]), prod(shape[-n:])
    g = widened(t, grad)
    count = prod(t.shape(g)) // max(lead, 1)
    zeros = t.full((lead, plane), 0, t.dtype(g))
    made = scattered(t, zeros, 1, t.reshape(places, (lead, count)), t.reshape(g, (lead, count)), "add")
    return t.convert(t.reshape(made, shape), t.dtype(x))


def _largest(n: int) -> None:
    @operator(f"max_pool{n}d_with_indices_backward(Tensor grad_output, Tensor self, int[{n}] kernel_size, int[{n}] stride, "
              f"int[{n}] padding, int[{n}] dilation, bool ceil_mode, Tensor indices)",
              f"adaptive_max_pool{n}d_backward(Tensor grad_output, Tensor self, Tensor indices)",
              f"fractional_max_pool{n}d_backward(Tensor grad_output, Tensor self, int[{n}] kernel_size, int[{n}] output_size, "
              "Tensor indices)")
    def backward(t: Torch, grad: Node, x: Node, *, indices: Node) -> Node:
        return at_places(t, grad, x, indices, n)


for _n in (2, 3):
    _largest(_n)

# ---------------------------------------------------------------------- linear maps of single dimensions


def _along(t: Torch, g: Node, d: int, matrix: object) -> Node:
    """The product of a dimension with a constant matrix."""
    return product_along(t, g, d, t.array(matrix, t.dtype(g)))


def _picking(places: Sequence[int], n: int) -> object:
    """The matrix that adds element i to ``places[i]`` of ``n``."""
    matrix = np.zeros(table("the weights of an interpolation", len(places), n))
    np.add.at(matrix, (np.arange(len(places)), np.asarray(places, np.int64)), 1)
    return matrix


def _padding(kind: str, mode: str, n: int) -> None:
    @operator(f"{kind}_pad{n}d_backward(Tensor grad_output, Tensor self, int[{2 * n}] padding)")
    def backward(t: Torch, grad: Node, x: Node, pads: list[int]) -> Node:
        g = widened(t, grad)
        if len(pads) != 2 * n:
            raise TypeFault(f"it takes {2 * n} sizes of padding, not {len(pads)}")
        for i in range(n):
            d = len(t.shape_of(x, n)) - 1 - i
            size, (low, high) = at_least(1, "a size", t.shape(x)[d]), pads[2 * i:2 * i + 2]
            if low or high:
                g = _along(t, g, d, _picking(mirror(size, low, high, mode), size))
        return t.convert(g, t.dtype(x))


for _n in (1, 2, 3):
    _padding("reflection", "reflect", _n)
    _padding("replication", "replicate", _n)


def _resized(name: str, mode: str, n: int) -> None:
    align = mode not in ("nearest", "exact")
    plain, tail = name.removesuffix("_aa"), "_aa" if name.endswith("_aa") else ""
    prefix = "_upsample_" if mode == "exact" or tail else "upsample_"
    flag = "bool align_corners, " if align else ""
    each = ", ".join(f"float? scales_{axis}=None" for axis in ("d", "h", "w")[3 - n:]) if n > 1 else "float? scales=None"

    @operator(f"{prefix}{plain}{n}d{tail}_backward(Tensor grad_output, int[{n}] output_size, int[{n + 2}] input_size, {flag}{each})")
    def backward(t: Torch, grad: Node, made: list[int], size: list[int], *rest: Any) -> Node:
        corners, factors = (rest[0], rest[1:]) if align else (False, rest)
        real("factors", *(factor for factor in factors if factor is not None))
        g = widened(t, grad)
        for i in range(n):
            d, have, want = 2 + i, at_least(1, "an input's size", size[2 + i]), at_least(1, "a result's size", made[i])
            if mode in ("nearest", "exact"):
                matrix = _picking(nearest(have, want, mode == "exact", factors[i]), have)
            else:
                matrix = band(have, want, Interpolation(mode, corners).mode, corners, factors[i]).T
            g = _along(t, g, d, matrix)
        return t.convert(g, t.dtype(grad))


for _name, (_mode, _ranks) in NAMES.items():
    for _n in _ranks:
        _resized(_name, _mode, _n)


@operator("unfold_backward(Tensor grad_in, int[] input_sizes, int dim, int size, int step)")
def unfold_backward(t: Torch, grad: Node, shape: list[int], dim: int, size: int, step: int) -> Node:
    """Windows added up where they overlap."""
    rank = len(shape)
    g = widened(t, grad)
    if rank == 0:
        return t.convert(t.sum(g, [0]), t.dtype(grad))
    d = t.dim(rank, dim)
    windows = t.shape(g)[d]
    total = t.full(tuple(shape), 0, t.dtype(g))
    for i in range(size if windows else 0):
        part = t.slice_dim(g, rank, i, i + 1)
        part = t.reshape(part, t.shape(part)[:-1])
        low, high, interior = [0] * rank, [0] * rank, [0] * rank
        low[d], interior[d] = i, step - 1
        high[d] = shape[d] - i - ((windows - 1) * step + 1)
        total = t.add(total, t.pad(part, t.array(0, t.dtype(g)), low, high, interior))
    return t.convert(total, t.dtype(grad))
