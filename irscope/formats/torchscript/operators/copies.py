"""Forms of shape operators that copy (``permute_copy``), and small relatives: atleast, dstack, splits, Cartesian products."""
from __future__ import annotations

from collections.abc import Callable
from itertools import combinations as chosen
from itertools import combinations_with_replacement as chosen_again
from math import comb, prod
from typing import Any

from irscope.formats.torchscript.abstract import ITSELF, Copied, Decision, Scalar, TensorView
from irscope.formats.torchscript.operators import alias, complex_numbers, operator, shape, slices
from irscope.formats.torchscript.operators.indexing import index, index_put, scattered
from irscope.formats.torchscript.operators.logic import truth
from irscope.formats.torchscript.operators.matrices import diag_embed, diagonal
from irscope.formats.torchscript.operators.reduction import accumulating
from irscope.formats.torchscript.strides import Strided, contiguous
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import PRED, S64
from irscope.ops.checked import at_least
from irscope.ops.faults import TypeFault
from irscope.source.budget import NODES, require_nodes


def _copying(schema: str, function: Callable[..., Any]) -> None:
    """Declare an operator that copies a view, as ``permute_copy`` copies that of ``permute``."""
    @operator(schema)
    def copied(t: Torch, x: Node, *rest: object) -> object:
        made = function(t, x, *rest)
        return [part.read(x) for part in made] if isinstance(made, list) else made.read(x)


for _schema, _function in (
    ("permute_copy(Tensor self, int[] dims)", shape.permute),
    ("expand_copy(Tensor self, int[] size, *, bool implicit=False)", shape.expand),
    ("view_copy(Tensor self, int[] size)", shape.view_sizes), ("unbind_copy.int(Tensor self, int dim=0)", slices.unbind),
    ("squeeze_copy(Tensor self)", shape.squeeze), ("squeeze_copy.dim(Tensor self, int dim)", shape.squeeze),
    ("squeeze_copy.dims(Tensor self, int[] dim)", shape.squeeze), ("unsqueeze_copy(Tensor self, int dim)", shape.unsqueeze),
    ("transpose_copy.int(Tensor self, int dim0, int dim1)", shape.transpose), ("t_copy(Tensor self)", shape.t_),
    ("unfold_copy(Tensor self, int dimension, int size, int step)", slices.unfold),
    ("diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1)", diagonal),
    ("split_copy.Tensor(Tensor self, int split_size, int dim=0)", slices.split),
    ("split_with_sizes_copy(Tensor self, int[] split_sizes, int dim=0)", slices.split_with_sizes),
    ("slice_copy.Tensor(Tensor self, int dim=0, int? start=None, int? end=None, int step=1)", slices.slice_),
    ("select_copy.int(Tensor self, int dim, int index)", slices.select),
    ("view_copy.dtype(Tensor self, ScalarType dtype)", shape.view_dtype),
    ("view_as_real_copy(Tensor self)", complex_numbers.view_as_real),
    ("view_as_complex_copy(Tensor self)", complex_numbers.view_as_complex), ("_neg_view_copy(Tensor self)", complex_numbers.neg_view),
    ("_reshape_alias_copy(Tensor self, int[] size, int[] stride)", shape.reshape_alias),
):
    _copying(_schema, _function)


@operator("diagflat(Tensor self, int offset=0)")
def diagflat(t: Torch, x: Node, offset: int) -> Node:
    return diag_embed(t, t.reshape(x, (prod(t.shape(x)),)), offset, -2, -1)


def _grown_to_three(t: Torch, x: Node) -> TensorView:
    """A vector between two new dimensions, a matrix in front of one."""
    if t.rank(x) == 2:
        return shape.unsqueeze(t, x, -1)
    row = shape.unsqueeze(t, x, 0)
    return shape.composed(row, shape.unsqueeze(t, row.read(x), -1))


def _at_least(rank: int) -> None:
    def grown(t: Torch, x: Node) -> Decision:
        old = t.shape(x)
        if len(old) >= rank:
            return ITSELF
        if rank == 3 and old:
            return _grown_to_three(t, x)
        return shape.unsqueeze(t, x, 0) if old else shape.reshaped(t, (1,) * rank)

    @alias(f"atleast_{rank}d(Tensor(a) self)", traits="view")
    def one(t: Torch, x: Node, at: Strided | None) -> Decision:
        return grown(t, x)

    @alias(f"atleast_{rank}d.Sequence(Tensor[] tensors)")
    def several(t: Torch, xs: list[Node], at: list[Strided | None]) -> list[Decision]:
        return [grown(t, x) for x in xs]

    if rank == 3:
        @operator("dstack(Tensor[] tensors)")
        def dstack(t: Torch, xs: list[Node]) -> Node:
            parts = [(x, grown(t, x)) for x in t.promote(*xs)]
            return t.concat([part.read(x) if isinstance(part, TensorView) else x for x, part in parts], 2)


for _rank in (1, 2, 3):
    _at_least(_rank)


@alias("broadcast_tensors(Tensor[] tensors)", traits="view")
def broadcast_tensors(t: Torch, xs: list[Node], at: list[Strided | None]) -> list[Decision]:
    full = t.broadcast_shape(*map(t.shape, xs))
    return [ITSELF if t.shape(x) == full else shape.stretched(t, t.shape(x), full) for x in xs]


@alias("sum_to_size(Tensor(a) self, int[] size)")
def sum_to_size(t: Torch, x: Node, at: Strided | None, size: list[int]) -> Decision:
    lead = t.rank(x) - len(size)
    summed = [d for d, n in enumerate(t.shape(x)) if d < lead or (size[d - lead] == 1 and n != 1)]
    if tuple(size) == t.shape(x) and t.rank(x):
        return ITSELF
    return Copied(t.reshape(t.sum(accumulating(t, x, None), summed), tuple(size)), contiguous(tuple(size)))


@operator("_chunk_cat(Tensor[] tensors, int dim, int num_chunks)")
def chunk_cat(t: Torch, xs: list[Node], dim: int, chunks: int) -> Node:
    """Every tensor in equal chunks (padded with zeros), flattened and concatenated."""
    rows = []
    for x in t.promote(*xs):
        d = t.dim(x, dim)
        n = t.shape(x)[d]
        size = -(-n // at_least(1, "chunks", chunks))
        high = [size * chunks - n if i == d else 0 for i in range(t.rank(x))]
        x = t.pad(x, t.array(0, t.dtype(x)), [0] * t.rank(x), high)
        lead = t.shape(x)[:d]
        rows.append(t.reshape(x, (*lead, chunks, prod(t.shape(x)[d:]) // chunks)))
    if not rows:
        raise TypeFault("it takes at least one tensor")
    return t.concat(rows, t.rank(rows[0]) - 1)


@operator("cartesian_prod(Tensor[] tensors)")
def cartesian_prod(t: Torch, xs: list[Node]) -> Node:
    if len(xs) == 1:
        return xs[0]
    lengths = tuple(t.shape(x)[0] for x in xs)
    columns = [t.reshape(x, tuple(n if j == i else 1 for j in range(len(xs)))) for i, (x, n) in enumerate(zip(xs, lengths, strict=True))]
    return t.concat([t.reshape(t.broadcast_to(x, lengths), (prod(lengths), 1)) for x in columns], 1)


MOST_CHOSEN = 32
"""So many of twice as many have more combinations than a program may have elements."""


@operator("combinations(Tensor self, int r=2, bool with_replacement=False)")
def combinations(t: Torch, x: Node, r: int, again: bool) -> Node:
    n = t.shape_of(x, 1, 1)[0] + (at_least(0, "r", r) - 1) * again
    many = 0 <= r <= n and min(r, n - r) >= MOST_CHOSEN  # more than 2**MOST_CHOSEN, which are not counted
    require_nodes(NODES + 1 if many else comb(max(n, 0), r) * r, "combinations", of="elements")
    if r == 0 or r > n or not t.shape(x)[0]:  # itertools takes memory for r places even where there are none
        return t.full((0,) if r == 0 else (0, r), 0, t.dtype(x))
    places = list((chosen_again if again else chosen)(range(t.shape(x)[0]), r))
    return t.take(x, t.array(places, S64), 0)


@operator("isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False)",
          "isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool invert=False)",
          "isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool invert=False)")
def isin(t: Torch, x: object, among: object, unique: bool, invert: bool) -> Node:
    x, among = t.promote(x, among)
    found = t.compare("EQ", t.unsqueeze(x, -1), t.reshape(among, (prod(t.shape(among)),)))
    found = t.any(found, [t.rank(found) - 1])
    return t.unary("not", found) if invert else found


@operator("_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill)")
def masked_index(t: Torch, x: Node, mask: Node, indices: list[Node | None], fill: object) -> Node:
    """Elements at indices where the mask is true, else ``fill``."""
    made = index(t, x, _inside(t, x, indices))
    return t.select(truth(t, mask), made, t.like(made, fill))


@operator("_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values)")
def masked_index_put(t: Torch, x: Node, mask: Node, indices: list[Node | None], values: Node) -> Node:
    return index_put(t, x, _inside(t, x, indices), t.select(truth(t, mask), values, t.like(values, 0)), True)


def _inside(t: Torch, x: Node, indices: list[Node | None]) -> list[Node | None]:
    """The indices, clamped to the sizes of ``x``."""
    return [None if i is None else t.minimum(t.maximum(i, t.like(i, 0)), t.like(i, t.shape(x)[d] - 1)) for d, i in enumerate(indices)]


@operator("trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1)", "trapz.dx(Tensor y, *, float dx=1, int dim=-1)",
          "trapezoid.x(Tensor y, Tensor x, *, int dim=-1)", "trapz.x(Tensor y, Tensor x, *, int dim=-1)")
def trapezoid(t: Torch, y: Node, *, x: Node | None = None, dx: float = 1, dim: int) -> Node:
    d = t.dim(y, dim)
    return t.scale(t.floating(t.sum(_strips(t, y, x, d), [d])), dx / 2)


@operator("cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1)",
          "cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1)")
def cumulative_trapezoid(t: Torch, y: Node, *, x: Node | None = None, dx: float = 1, dim: int) -> Node:
    d = t.dim(y, dim)
    return t.scale(t.floating(t.cumulative("add", _strips(t, y, x, d), d, 0)), dx / 2)


def _strips(t: Torch, y: Node, x: Node | None, d: int) -> Node:
    """Twice the area of each strip between neighbours along dimension ``d``. ``x`` has the coordinates; without it, widths are 1."""
    return accumulating(t, _heights(t, y, d) if x is None else t.mul(*t.promote(_gaps(t, y, x, d), _heights(t, y, d))), None)


def _gaps(t: Torch, y: Node, x: Node, d: int) -> Node:
    """Differences of neighbouring coordinates; a vector ``x`` has the coordinates of dimension ``d`` of ``y``."""
    if t.rank(x) == 1:
        x = t.reshape(x, tuple(t.shape(x)[0] if i == d else 1 for i in range(t.rank(y))))
    d += t.rank(x) - t.rank(y)
    n = t.shape(x)[d]
    return t.sub(t.slice_dim(x, d, 1, n), t.slice_dim(x, d, 0, n - 1))


def _heights(t: Torch, y: Node, d: int) -> Node:
    """Sums of neighbours: twice the mean height of each strip."""
    n = t.shape(y)[d]
    return t.add(t.slice_dim(y, d, 1, n), t.slice_dim(y, d, 0, n - 1))


# Zeros, except for the elements that a pooling selected, at their positions.
@operator("max_unpool2d(Tensor self, Tensor indices, int[2] output_size)",
          "max_unpool3d(Tensor self, Tensor indices, int[3] output_size, int[3] stride, int[3] padding)")
def max_unpool(t: Torch, x: Node, places: Node, size: list[int], *rest: object) -> Node:
    lead = t.shape(x)[:-len(size)]
    m, n = prod(lead), prod(t.shape(x)[len(lead):])
    flat = scattered(t, t.full((m, prod(size)), 0, t.dtype(x)), 1, t.reshape(places, (m, n)), t.reshape(x, (m, n)), None)
    return t.reshape(flat, (*lead, *size))


@operator("equal(Tensor self, Tensor other)", work="elementwise")
def equal(t: Torch, x: Node, y: Node) -> object:
    """Whether sizes and all elements are equal."""
    if t.shape(x) != t.shape(y):
        return False
    same = t.all(t.compare("EQ", x, y), list(range(t.rank(x))))
    return Scalar(t.convert(same, PRED), "bool")
