"""Triangles, diagonals, and block matrices."""
from __future__ import annotations

from dataclasses import replace

from irscope.formats.torchscript.abstract import TensorView
from irscope.formats.torchscript.operators import operator, view
from irscope.formats.torchscript.operators.slices import with_part
from irscope.formats.torchscript.strides import Strided
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node, TensorType
from irscope.graph.dtypes import S64
from irscope.ops.checked import at_least, table
from irscope.ops.faults import TypeFault
from irscope.source.budget import require_nodes


def within(diagonal: int, rows: int, columns: int) -> int:
    """A diagonal with the same triangles that lies next to the matrix: rows and diagonals near 2^63 have no sum of 64 bits."""
    return max(-rows, min(diagonal, columns))


def _band(t: Torch, x: Node, diagonal: int, upper: bool) -> Node:
    shape = t.shape_of(x, 2)[-2:]
    diagonal = within(diagonal, *shape)
    row, column = t.plus(t.iota(shape, 0, S64), diagonal), t.iota(shape, 1, S64)
    return t.select(t.compare("LE" if upper else "GE", row, column), x, t.array(0, t.dtype(x)))


@operator("tril(Tensor self, int diagonal=0)")
def tril(t: Torch, x: Node, diagonal: int) -> Node:
    return _band(t, x, diagonal, False)


@operator("triu(Tensor self, int diagonal=0)")
def triu(t: Torch, x: Node, diagonal: int) -> Node:
    return _band(t, x, diagonal, True)


@view("diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1)",
      "linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1)")
def diagonal(t: Torch, x: Node, offset: int, dim1: int, dim2: int) -> TensorView:
    """The diagonal of the matrices in two dimensions, as a new last dimension."""
    a, b = t.dim(x, dim1), t.dim(x, dim2)
    others = [d for d in range(t.rank(x)) if d not in (a, b)]
    rows, columns = t.shape(x)[a], t.shape(x)[b]
    first, second = max(0, -offset), max(0, offset)
    n = max(0, min(rows - first, columns - second))
    table("the diagonal", n)

    def read(base: Node) -> Node:
        turned = t.transpose(base, [*others, a, b])
        flat = t.reshape(turned, (*t.shape(turned)[:-2], rows * columns))
        return t.take(flat, t.array([(first + i) * columns + second + i for i in range(n)], S64), len(others))

    def place(at: Strided) -> Strided:
        start = first * at.strides[a] + second * at.strides[b] if n else 0
        kept = at.with_dims(others)
        return replace(kept, sizes=(*kept.sizes, n), strides=(*kept.strides, at.strides[a] + at.strides[b]),
                       offset=None if at.offset is None else at.offset + start)
    return TensorView(read, lambda base, new: _with_diagonal(t, base, new, offset, a, b), place)


@operator("diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1)")
def diagonal_scatter(t: Torch, x: Node, source: Node, offset: int, dim1: int, dim2: int) -> Node:
    return with_part(t, x, diagonal(t, x, offset, dim1, dim2), source)


def _with_diagonal(t: Torch, x: Node, source: Node, offset: int, a: int, b: int) -> Node:
    """``x`` with another diagonal of the matrices in dimensions ``a`` and ``b``."""
    rows, columns = t.iota(t.shape(x), a, S64), t.iota(t.shape(x), b, S64)
    on = t.compare("EQ", t.plus(rows, offset), columns)
    n = t.shape(source)[-1]
    # The diagonal's element k is in row k (or k - offset below): broadcast it along both dimensions.
    low, size = max(0, -offset), t.shape(x)[a]
    padded = t.pad(source, t.array(0, t.dtype(source)), [0] * (t.rank(source) - 1) + [low],
                   [0] * (t.rank(source) - 1) + [size - low - n])
    order = [d for d in range(t.rank(x)) if d not in (a, b)] + [a]
    turned = t.transpose(t.convert(padded, t.dtype(x)), [order.index(d) for d in sorted(order)])
    spread = t.emit("broadcast", (turned,), {"dimensions": tuple(sorted(order))}, type=t.type(x))
    return t.select(on, spread, x)


@operator("diag(Tensor self, int diagonal=0)")
def diag(t: Torch, x: Node, offset: int) -> Node:
    return diag_embed(t, x, offset, -2, -1) if t.rank(x) == 1 else diagonal(t, x, offset, 0, 1).read(x)


@operator("diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1)")
def diag_embed(t: Torch, x: Node, offset: int, dim1: int, dim2: int) -> Node:
    *lead, n = t.shape_of(x, 1)
    size = n + abs(offset)
    rank = len(lead) + 2
    low = [0] * len(lead) + [max(0, offset)]
    padded = t.pad(x, t.array(0, t.dtype(x)), low, [0] * len(lead) + [max(0, -offset)])
    row, column = t.iota((size, size), 0, S64), t.iota((size, size), 1, S64)
    on = t.compare("EQ", t.plus(row, offset), column)
    y = t.select(on, t.unsqueeze(padded, -2), t.array(0, t.dtype(x)))
    a, b = t.dim(rank, dim1), t.dim(rank, dim2)
    if a == b:
        raise TypeFault(f"the dimensions of a diagonal are different ones, not {dim1} and {dim2}")
    order = list(range(rank - 2))
    for place, source in sorted(((a, rank - 2), (b, rank - 1))):
        order.insert(place, source)
    return t.transpose(y, order)


@operator("kron(Tensor self, Tensor other)")
def kron(t: Torch, x: Node, y: Node) -> Node:
    x, y = t.promote(x, y)
    n = max(t.rank(x), t.rank(y))
    xs, ys = ((1,) * (n - t.rank(v)) + t.shape(v) for v in (x, y))
    a = t.reshape(x, tuple(s for v in xs for s in (v, 1)))
    b = t.reshape(y, tuple(s for v in ys for s in (1, v)))
    return t.reshape(t.mul(a, b), tuple(i * j for i, j in zip(xs, ys, strict=True)))


@operator("block_diag(Tensor[] tensors)")
def block_diag(t: Torch, tensors: list[Node]) -> Node:
    xs = [t.reshape(x, (1, *t.shape(x)) if t.rank(x) == 1 else (1, 1)) if t.rank(x) < 2 else x for x in t.promote(*tensors)]
    width = sum(t.shape(x)[1] for x in xs)
    rows, at = [], 0
    for x in xs:
        n = t.shape(x)[1]
        rows.append(t.pad(x, t.array(0, t.dtype(x)), [0, at], [0, width - at - n]))
        at += n
    return t.concat(rows, 0)


@operator("vander(Tensor x, int? N=None, bool increasing=False)", "linalg_vander(Tensor x, *, int? N=None)")
def vander(t: Torch, x: Node, n: int | None, increasing: bool = True) -> Node:
    x = x if t.rank(x) else t.reshape(x, (1,))
    count = t.shape(x)[-1] if n is None else n
    table("the powers", at_least(0, "N", count))
    require_nodes(count, "vander", of="powers")
    powers = list(range(count)) if increasing else list(reversed(range(count)))
    type_: TensorType = t.type(x)
    base = t.unsqueeze(x, -1)
    if not type_.dtype.is_float and not type_.dtype.is_complex:
        return t.binary("power", t.convert(base, S64), t.array(powers, S64))
    return t.binary("power", base, t.array(powers, type_.dtype))
