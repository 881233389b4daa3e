"""Gradients of reads: of slices, rows, diagonals, windows and tables; and writes by strides."""
from __future__ import annotations

from math import prod

from irscope.formats.torchscript.abstract import Copied, Decision
from irscope.formats.torchscript.memory import check_places, read_places, write_places
from irscope.formats.torchscript.operators import alias, operator
from irscope.formats.torchscript.operators.indexing import embedding_bag, wrapped
from irscope.formats.torchscript.operators.logic import truth
from irscope.formats.torchscript.operators.matrices import diagonal
from irscope.formats.torchscript.operators.slices import with_part
from irscope.formats.torchscript.operators.wide import widened
from irscope.formats.torchscript.strides import Strided, contiguous
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import S64
from irscope.ops.checked import at_least


def _zeros(t: Torch, shape: list[int], grad: Node) -> Node:
    return t.full(tuple(shape), 0, t.dtype(grad))


@operator("slice_backward(Tensor grad_output, int[] input_sizes, int dim, int start, int end, int step)")
def slice_backward(t: Torch, grad: Node, shape: list[int], dim: int, start: int, end: int, step: int) -> Node:
    """Zeros around (and between) the gradients of a slice."""
    d = t.dim(len(shape), dim)
    n, made = shape[d], t.shape(grad)[d]
    if not made:
        return _zeros(t, shape, grad)
    first = min(max(start + n if start < 0 else start, 0), n)
    low, high, interior = ([0] * len(shape) for _ in range(3))
    low[d], interior[d], high[d] = first, step - 1, n - first - ((made - 1) * step + 1)
    return t.pad(grad, t.array(0, t.dtype(grad)), low, high, interior)


@operator("select_backward(Tensor grad_output, int[] input_sizes, int dim, int index)")
def select_backward(t: Torch, grad: Node, shape: list[int], dim: int, index: int) -> Node:
    d = t.dim(len(shape), dim)
    row = t.reshape(grad, (*shape[:d], 1, *shape[d + 1:]))
    index %= at_least(1, "the size of a dimension", shape[d])
    low, high = [0] * len(shape), [0] * len(shape)
    low[d], high[d] = index, shape[d] - 1 - index
    return t.pad(row, t.array(0, t.dtype(grad)), low, high)


@operator("diagonal_backward(Tensor grad_output, int[] input_sizes, int offset, int dim1, int dim2)")
def diagonal_backward(t: Torch, grad: Node, shape: list[int], offset: int, dim1: int, dim2: int) -> Node:
    zeros = _zeros(t, shape, grad)
    return with_part(t, zeros, diagonal(t, zeros, offset, dim1, dim2), grad) if prod(t.shape(grad)) else zeros


@operator("embedding_dense_backward(Tensor grad_output, Tensor indices, int num_weights, int padding_idx, bool scale_grad_by_freq)")
def embedding_dense_backward(t: Torch, grad: Node, indices: Node, rows: int, padding: int, by_frequency: bool) -> Node:
    """Each row of the table adds up the gradients of its uses; the row of padding has none."""
    g = widened(t, grad)
    n, width = prod(t.shape(indices)), t.shape(g)[-1]
    at, g = t.convert(t.reshape(indices, (n,)), S64), t.reshape(g, (n, width))
    if by_frequency:
        uses = t.scatter(t.full((rows,), 0, t.dtype(g)), t.reshape(at, (n, 1)), t.full((n,), 1, t.dtype(g)), "add", inserted=(0,))
        g = t.div(g, t.unsqueeze(t.take(uses, at, 0), 1))
    if padding >= 0:
        g = t.select(t.unsqueeze(t.compare("EQ", at, t.like(at, padding)), 1), t.array(0, t.dtype(g)), g)
    made = t.scatter(t.full((rows, width), 0, t.dtype(g)), t.reshape(at, (n, 1)), g, "add", window_dims=(1,), inserted=(0,))
    return t.convert(made, t.dtype(grad))


@operator("embedding_backward(Tensor grad, Tensor indices, int num_weights, int padding_idx, bool scale_grad_by_freq, bool sparse)")
def embedding_backward(t: Torch, grad: Node, indices: Node, rows: int, padding: int, by_frequency: bool, sparse: bool) -> Node:
    return embedding_dense_backward(t, grad, indices, rows, padding, by_frequency)


@operator("_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, "
          "Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1)",
          "_embedding_bag_forward_only(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, "
          "bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1)")
def bag(t: Torch, weight: Node, indices: Node, offsets: Node, scale: bool, mode: int, sparse: bool, factors: Node | None, last: bool,
        padding: int) -> tuple[Node, Node, Node, Node]:
    """``embedding_bag`` with -1 for no row of padding. Sums leave the sizes of the bags 0; other modes than maxima copy them."""
    made, bag_of, counts, _ = embedding_bag(t, weight, indices, offsets, scale, mode, sparse, factors, last,
                                            None if padding < 0 else padding)
    if mode == MAXIMUM:
        return made, bag_of, counts, _largest_rows(t, weight, indices, bag_of, t.shape(counts)[0])
    sizes = counts if mode else t.like(counts, 0)
    return made, bag_of, sizes, sizes


MAXIMUM = 2
"""The mode in which each column of a bag is its largest element."""


def _largest_rows(t: Torch, weight: Node, indices: Node, bag_of: Node, bags: int) -> Node:
    """The row of the table that each bag takes in each column."""
    rows = t.take(weight, indices, 0)
    mine = t.compare("EQ", t.unsqueeze(bag_of, 0), t.iota((bags, t.shape(indices)[0]), 0, t.dtype(bag_of)))
    wide = t.select(t.unsqueeze(mine, 2), t.unsqueeze(rows, 0), t.array(float("-inf"), t.dtype(rows)))
    return t.convert(t.take(indices, t.arg_extreme(wide, 1, True, S64)[1], 0), S64)


@operator("_embedding_bag_dense_backward(Tensor grad, Tensor indices, Tensor offset2bag, Tensor bag_size, Tensor maximum_indices, "
          "int num_weights, bool scale_grad_by_freq, int mode, Tensor? per_sample_weights, int padding_idx=-1)")
def bag_dense_backward(t: Torch, grad: Node, indices: Node, bag_of: Node, sizes: Node, largest: Node, rows: int, by_frequency: bool,
                       mode: int, factors: Node | None, padding: int) -> Node:
    """Each row of the table adds up the gradients of the bags that it is in."""
    if mode == MAXIMUM:
        width = t.shape(grad)[1]
        columns = t.iota(t.shape(largest), 1, S64)
        places = t.concat([t.unsqueeze(t.convert(largest, S64), 2), t.unsqueeze(columns, 2)], 2)
        filled = t.select(t.unsqueeze(t.compare("GT", sizes, t.like(sizes, 0)), 1), grad, t.like(grad, 0))
        return t.scatter(t.full((rows, width), 0, t.dtype(grad)), places, filled, "add", inserted=(0, 1))
    g = t.take(grad, bag_of, 0)
    if mode:
        count = t.take(t.convert(t.maximum(sizes, t.like(sizes, 1)), t.dtype(g)), bag_of, 0)
        g = t.div(g, t.unsqueeze(count, 1))
    if factors is not None:
        g = t.mul(g, t.unsqueeze(factors, 1))
    return embedding_dense_backward(t, g, indices, rows, padding, by_frequency)


@operator("_embedding_bag_backward(Tensor grad, Tensor indices, Tensor offsets, Tensor offset2bag, Tensor bag_size, "
          "Tensor maximum_indices, int num_weights, bool scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, "
          "int padding_idx=-1)")
def bag_backward(t: Torch, grad: Node, indices: Node, offsets: Node, bag_of: Node, sizes: Node, largest: Node, rows: int,
                 by_frequency: bool, mode: int, sparse: bool, factors: Node | None, padding: int) -> Node:
    """The kernels of torch may leave out which bag an index is in."""
    bag_of = _bags(t, indices, offsets, bag_of)
    return bag_dense_backward(t, grad, indices, bag_of, sizes, largest, rows, by_frequency, mode, factors, padding)


def _bags(t: Torch, indices: Node, offsets: Node, bag_of: Node) -> Node:
    """The bag of each index: ``bag_of``, or computed from the offsets where torch's kernel left it out."""
    if t.shape(bag_of) == t.shape(indices):
        return bag_of
    n, bags = t.shape(indices)[0], t.shape(offsets)[0]
    after = t.compare("GE", t.iota((bags, n), 1, t.dtype(offsets)), t.unsqueeze(offsets, 1))
    return t.plus(t.sum(t.convert(after, S64), [0]), -1)


@operator("_embedding_bag_per_sample_weights_backward(Tensor grad, Tensor weight, Tensor indices, Tensor offsets, Tensor offset2bag, "
          "int mode, int padding_idx=-1)")
def bag_factors_backward(t: Torch, grad: Node, weight: Node, indices: Node, offsets: Node, bag_of: Node, mode: int, padding: int) -> Node:
    bag_of = _bags(t, indices, offsets, bag_of)
    made = t.sum(t.mul(t.take(grad, bag_of, 0), t.take(weight, indices, 0)), [1])
    return made if padding < 0 else t.select(t.compare("EQ", indices, t.like(indices, padding)), t.like(made, 0), made)


@operator("masked_scatter_backward(Tensor grad_output, Tensor mask, int[] sizes)")
def masked_scatter_backward(t: Torch, grad: Node, mask: Node, sizes: list[int]) -> Node:
    """The gradients where the mask is true, one after the other, then zeros."""
    grad, mask = t.together(grad, truth(t, mask))
    n, wanted = prod(t.shape(grad)), prod(sizes)
    flat, here = t.reshape(grad, (n,)), t.reshape(mask, (n,))
    order = t.sort([t.convert(t.unary("not", here), S64), t.iota((n,), 0, S64)], 0)[1]
    count = t.sum(t.convert(here, S64), [0])
    kept = t.slice_dim(order, 0, 0, min(n, wanted))
    values = t.pad(t.take(flat, kept, 0), t.array(0, t.dtype(grad)), [0], [max(wanted - n, 0)])
    inside = t.compare("LT", t.iota((wanted,), 0, S64), count)
    return t.reshape(t.select(inside, values, t.like(values, 0)), tuple(sizes))


@operator("value_selecting_reduction_backward(Tensor grad, int dim, Tensor indices, int[] sizes, bool keepdim)")
def value_selecting_backward(t: Torch, grad: Node, dim: int, indices: Node, sizes: list[int], keep: bool) -> Node:
    """The gradient at the element that was selected along a dimension."""
    if not sizes:
        return grad
    d = t.dim(len(sizes), dim)
    if not keep:
        grad, indices = t.unsqueeze(grad, d), t.unsqueeze(indices, d)
    hit = t.compare("EQ", wrapped(t, indices, sizes[d]), t.iota(tuple(sizes), d, S64))
    return t.select(hit, grad, t.array(0, t.dtype(grad)))


@operator("index_select_backward(Tensor grad, int[] self_sizes, int dim, Tensor index)")
def index_select_backward(t: Torch, grad: Node, shape: list[int], dim: int, index: Node) -> Node:
    d, n = t.dim(len(shape), dim), prod(t.shape(index))
    windows = tuple(i for i in range(len(shape)) if i != d)
    grad = t.reshape(grad, tuple(n if i == d else s for i, s in enumerate(shape)))
    return t.scatter(_zeros(t, shape, grad), t.reshape(t.convert(index, S64), (n, 1)), grad, "add", window_dims=windows, inserted=(d,))


@operator("trace_backward(Tensor grad, int[] sizes)")
def trace_backward(t: Torch, grad: Node, sizes: list[int]) -> Node:
    same = t.compare("EQ", t.iota(tuple(sizes), 0, S64), t.iota(tuple(sizes), 1, S64))
    return t.select(same, grad, t.array(0, t.dtype(grad)))


# ---------------------------------------------------------------------- by strides


@alias("as_strided_copy(Tensor self, int[] size, int[] stride, int? storage_offset=None)")
def as_strided_copy(t: Torch, x: Node, at: Strided | None, size: list[int], stride: list[int], offset: int | None) -> Decision:
    """A copy of elements of the storage by sizes and strides; the tensor is taken as the whole storage."""
    whole, part = check_places(at or contiguous(t.shape(x)), Strided(tuple(size), tuple(stride), offset or 0))
    return Copied(read_places(t, x, whole, part), contiguous(tuple(size)))


@alias("as_strided_scatter(Tensor self, Tensor src, int[] size, int[] stride, int? storage_offset=None)",
       "prims::as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt storage_offset)")
def as_strided_scatter(t: Torch, x: Node, at: Strided | None, new: Node, size: list[int], stride: list[int],
                       offset: int | None) -> Decision:
    """A copy of the tensor with other elements at these places of its storage."""
    whole, part = check_places(at or contiguous(t.shape(x)), Strided(tuple(size), tuple(stride), offset or 0))
    return Copied(write_places(t, x, whole, part, new), at)

