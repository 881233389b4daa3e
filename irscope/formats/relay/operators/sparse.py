"""Sparse matrices: rows packed one after the other (CSR), in blocks too (BSR), and lists of coordinates (COO).

Operators on them are computed with the equivalent dense matrix. Where a model's structure and values are constants, that
matrix is built once, when the model is loaded.
"""

from __future__ import annotations

from math import prod

from irscope.formats.relay.algebra import Relay, each, steps_of, table_of
from irscope.formats.relay.operators import Attributes, operator
from irscope.formats.relay.operators.dense import product
from irscope.formats.relay.operators.indexing import sparse_to_dense
from irscope.graph import DynamicDim, Kind, Node, TensorType, TupleType, Type
from irscope.graph.dtypes import S32, S64
from irscope.lazy import np
from irscope.ops.attrs import ConvDims, Window
from irscope.ops.faults import TypeFault

C = Kind.CONTRACTION


def row_of(t: Relay, indptr: Node, count: int) -> Node:
    """The row of each of ``count`` stored elements (s64): the number of rows that end before it."""
    rows = t.shape(indptr)[0] - 1
    if rows == 1:
        return t.full((count,), 0, S64)
    ends = t.reshape(t.convert(t.slice_dim(indptr, 0, 1, rows), S64), (rows - 1, 1))
    marks = t.scatter(t.full((count + 1,), 0, S64), ends, t.full((rows - 1,), 1, S64), "add", inserted=(0,))
    return t.slice_dim(t.cumulative("add", marks, 0, 0), 0, 0, count)


def dense_of(t: Relay, data: Node, indices: Node, indptr: Node, columns: int) -> Node:
    """The matrix that CSR (data (n)) or BSR (data (n, block rows, block columns)) represents; duplicate entries are added."""
    stored, rows = t.shape(data), t.shape(indptr)[0] - 1
    if len(stored) not in (1, 3):
        raise TypeFault(f"the data of a sparse matrix has 1 or 3 axes, not {len(stored)}")
    count = stored[0]
    places = [t.reshape(p, (count, 1)) for p in (row_of(t, indptr, count), t.convert(indices, S64))]
    starts = t.concat(places, 1)
    if len(stored) == 1:
        base = t.full((rows, columns), 0, t.dtype(data))
        return t.scatter(base, starts, data, "add", inserted=(0, 1))
    _, tall, wide = stored
    if not wide or columns % wide:
        raise TypeFault(f"{columns} columns are not whole blocks of {wide}")
    base = t.full((rows, columns // wide, tall, wide), 0, t.dtype(data))
    whole = t.scatter(base, starts, data, "add", window_dims=(1, 2), inserted=(0, 1))
    return t.reshape(t.transpose(whole, (0, 2, 1, 3)), (rows * tall, columns))


@operator("nn.sparse_dense(data: 2d, weight_data: 1-3d, weight_indices: int 1d, weight_indptr: int 1d; sparse_lhs=False)",
          "nn.internal.sparse_dense_padded(data: 2d, weight_data: 1-3d, weight_indices: int 1d, weight_indptr: int 1d; sparse_lhs=False)",
          kind=C)
def sparse_dense(t: Relay, a: Attributes, x: Node, data: Node, indices: Node, indptr: Node) -> Node:
    """A dense layer whose weight is sparse; with ``sparse_lhs``, the sparse matrix times the transposed other one."""
    matrix = dense_of(t, data, indices, indptr, t.shape(x)[1])
    left, right = (matrix, x) if a.sparse_lhs else (x, matrix)
    return product(t, left, right, ([1], [1]), t.dtype(x))


@operator("nn.sparse_add(dense_data: 2d, sparse_data: 1-3d, sparse_indices: int 1d, sparse_indptr: int 1d)")
def sparse_add(t: Relay, a: Attributes, x: Node, data: Node, indices: Node, indptr: Node) -> Node:
    """A matrix plus a sparse one."""
    return t.add(x, dense_of(t, data, indices, indptr, t.shape(x)[1]))


@operator("nn.sparse_transpose(sparse_data: 1-3d, sparse_indices: int 1d, sparse_indptr: int 1d)", kind=C)
def sparse_transpose(t: Relay, a: Attributes, data: Node, indices: Node, indptr: Node) -> list[Node]:
    """A square CSR matrix transposed: its elements in the order of their columns, rows of a column in order."""
    count, rows = t.shape(data)[0], t.shape(indptr)[0] - 1
    if t.rank(data) != 1:
        raise TypeFault("only CSR matrices are transposed: their data has one axis")
    column, order = t.sort([t.convert(indices, S64), t.iota((count,), 0, S64)], 0)
    here = t.take(t.convert(row_of(t, indptr, count), t.dtype(indices)), order, 0)
    ones = t.full((count,), 1, S64)
    places = t.reshape(t.plus(column, 1), (count, 1))
    counts = t.scatter(t.full((rows + 1,), 0, S64), places, ones, "add", inserted=(0,))
    return [t.take(data, order, 0), here, t.convert(t.cumulative("add", counts, 0, 0), t.dtype(indptr))]


@operator("nn.sparse_conv2d(data: 4d, sparse_data: 1-3d, sparse_indices: int 1d, sparse_indptr: int 1d; layout='NHWC', kernel_size=[1, 1])",
          kind=C)
def sparse_conv2d(t: Relay, a: Attributes, x: Node, data: Node, indices: Node, indptr: Node) -> Node:
    """A convolution of 1 x 1, or of 3 x 3 with a border of 1, whose kernel is a sparse matrix with a row per output."""
    layout, (kh, kw) = str(a.layout), each(a.kernel_size, 2)
    if (kh, kw) not in ((1, 1), (3, 3)) or layout not in ("NHWC", "NCHW"):
        raise TypeFault(f"sparse convolutions are of 1 x 1 or 3 x 3 over NHWC or NCHW, not of {kh} x {kw} over {layout}")
    x = t.to_layout(x, layout, "NHWC")
    channels = t.shape(x)[3]
    matrix = dense_of(t, data, indices, indptr, kh * kw * channels)
    kernel = t.reshape(matrix, (t.shape(matrix)[0], kh, kw, channels))
    dims = ConvDims(0, 3, (1, 2), 3, 0, (1, 2), 0, 3, (1, 2))
    made = t.conv(x, kernel, dims, Window.make((kh, kw), pad=((kh // 2, kh // 2), (kw // 2, kw // 2))))
    return t.to_layout(made, "NHWC", layout)


@operator("sparse_reshape(sparse_indices: int 1-2d, prev_shape: int 1d, new_shape: int 1d)", kind=Kind.INJECTIVE)
def sparse_reshape(t: Relay, a: Attributes, indices: Node, before: Node, after: Node) -> list[Node]:
    """The coordinates of a list in another shape, and that shape; one of its sizes may be -1."""
    dtype = t.dtype(indices)
    places = indices if t.rank(indices) == 2 else t.reshape(indices, (prod(t.shape(indices)), 1))
    count, old = t.shape(places)
    steps_of(old + t.shape(after)[0])
    new = t.shape(after)[0]
    sizes = [t.reshape(t.slice_dim(t.convert(before, dtype), 0, i, i + 1), ()) for i in range(old)]
    flat, step = t.full((count,), 0, dtype), t.array(1, dtype)
    for i in reversed(range(old)):
        column = t.reshape(t.slice_dim(places, 1, i, i + 1), (count,))
        flat = t.add(flat, t.mul(column, t.broadcast_to(step, (count,))))
        step = t.mul(step, sizes[i])
    wanted = t.convert(after, dtype)
    open_ = t.compare("EQ", wanted, t.like(wanted, -1))
    told = t.product(t.select(open_, t.like(wanted, 1), wanted), [0])
    resolved = t.select(open_, t.broadcast_to(t.div(step, told), (new,)), wanted)
    columns: list[Node] = []
    for i in reversed(range(new)):
        size = t.broadcast_to(t.reshape(t.slice_dim(resolved, 0, i, i + 1), ()), (count,))
        columns.insert(0, t.reshape(t.binary("remainder", flat, size), (count, 1)))
        flat = t.div(flat, size)
    return [t.concat(columns, 1), t.convert(resolved, t.dtype(after))]


def _filled_type(a: Attributes, indices: Type, values: Type, shape: Type, default: Type) -> Type | None:
    """The result type; the number of empty rows is unknown until the coordinates are known."""
    if not (isinstance(indices, TensorType) and isinstance(values, TensorType) and indices.rank == 2):
        return None
    some = DynamicDim()
    return TupleType((TensorType(S64, (some, indices.shape[1])), TensorType(values.dtype, (some,)), TensorType(S64, (some,))))


@operator("sparse_fill_empty_rows(sparse_indices: int 2d, sparse_values: 1d, dense_shape: int 1d, default_value)", values=True,
          infer=_filled_type)
def sparse_fill_empty_rows(t: Relay, a: Attributes, indices: Node, values: Node, shape: Node, default: Node) -> list[Node]:
    """A coordinate list with an entry in every row: coordinates, values, and which rows were empty. The coordinates must be constant."""
    known = t.known(indices)
    if known is None:
        raise TypeFault("how many rows are empty depends on data: irscope compiles programs whose sizes are known")
    sizes = t.ints(shape, "the dense shape")
    if not sizes or len(sizes) != known.shape[1]:
        raise TypeFault(f"places of {known.shape[1]} numbers in a shape of {len(sizes)}")
    rows = table_of(sizes[0])
    empty = np.setdiff1d(np.arange(rows), known[:, 0])
    added = np.zeros((len(empty), known.shape[1]), np.int64)
    added[:, 0] = empty
    whole = np.concatenate([known.astype(np.int64), added])
    order = np.lexsort(whole.T[::-1])
    both = t.concat([values, t.broadcast_to(t.reshape(default, (1,)), (len(empty),))], 0) if len(empty) else values
    marks = np.isin(np.arange(rows), empty).astype(np.int64)
    return [t.array(whole[order], S64), t.take(both, t.array(order, S64), 0), t.array(marks, S64)]


@operator("dyn.sparse_to_dense(sparse_indices, sparse_values, default_value, output_shape)", values=True)
def dynamic_sparse_to_dense(t: Relay, a: Attributes, indices: Node, values: Node, default: Node, shape: Node) -> Node:
    """``sparse_to_dense`` to a shape that is an operand."""
    return sparse_to_dense(t, Attributes(output_shape=t.ints(shape, "the shape")), indices, values, default)


def _places_type(a: Attributes, condition: Type) -> Type | None:
    if not isinstance(condition, TensorType):
        return None
    return TensorType(S32, (DynamicDim(), condition.rank))


@operator("argwhere(condition)", values=True, infer=_places_type)
def argwhere(t: Relay, a: Attributes, condition: Node) -> Node:
    """The coordinates of non-zero elements, in order. The condition must be a constant."""
    known = t.known(condition)
    if known is None:
        raise TypeFault("how many places there are depends on data: irscope compiles programs whose sizes are known")
    return t.array(np.argwhere(known), S32)
