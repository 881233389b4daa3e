"""Reads by index (embedding, index, gather, masks), and functional writes by index."""
from __future__ import annotations

from math import prod
from typing import Any

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.arithmetic import by_alpha, floor_divide
from irscope.formats.torchscript.operators.logic import truth
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import PRED, S64, U8
from irscope.ops.checked import at_least
from irscope.ops.faults import TypeFault


def wrapped(t: Torch, index: Node, n: int) -> Node:
    """An index with negative values counted from the end. Raises TypeFault for one that does not have integers."""
    if not t.dtype(index).is_integer:
        raise TypeFault(f"an index has integers, not {t.dtype(index).name}")
    index = t.convert(index, S64) if t.dtype(index).kind != "int" else index
    return t.select(t.compare("LT", index, t.like(index, 0)), t.plus(index, n), index)


@operator("embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False)")
def embedding(t: Torch, weight: Node, indices: Node, padding: int, scale: bool, sparse: bool) -> Node:
    t.shape_of(weight, 2, 2)
    return t.take(weight, indices, 0)


@operator("embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, "
          "Tensor? per_sample_weights=None, bool include_last_offset=False)",
          "embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq, int mode, bool sparse, "
          "Tensor? per_sample_weights, bool include_last_offset, int? padding_idx)")
def embedding_bag(t: Torch, weight: Node, indices: Node, offsets: Node, scale: bool, mode: int, sparse: bool, factors: Node | None,
                  last: bool, padding: int | None = None) -> tuple[Node, Node, Node, Node]:
    """Sums (mode 0), means (1) or maxima (2) of the rows between offsets."""
    n = t.shape(indices)[0]
    bags = t.shape(offsets)[0] - (1 if last else 0)
    rows = t.take(weight, indices, 0)
    if factors is not None:
        rows = t.mul(rows, t.unsqueeze(factors, 1))
    starts = t.slice_dim(offsets, 0, 0, bags)
    at = t.iota((bags, n), 1, t.dtype(offsets))
    after = t.compare("GE", at, t.unsqueeze(starts, 1))
    ends = t.concat([t.slice_dim(offsets, 0, 1, t.shape(offsets)[0]), *([] if last else [t.array([n], t.dtype(offsets))])], 0)
    inside = t.binary("and", after, t.compare("LT", at, t.unsqueeze(ends, 1)))
    if padding is not None:
        padding %= at_least(1, "the number of rows", t.shape(weight)[0])
        inside = t.binary("and", inside, t.unsqueeze(t.compare("NE", indices, t.like(indices, padding)), 0))
    counts = t.sum(t.convert(inside, S64), [1])
    if mode == 2:
        wide = t.select(t.unsqueeze(inside, 2), t.unsqueeze(rows, 0), t.array(float("-inf"), t.dtype(rows)))
        result = t.max(wide, [1])
        result = t.select(t.unsqueeze(t.compare("EQ", counts, t.like(counts, 0)), 1), t.like(result, 0), result)
    else:
        result = t.matmul(t.convert(inside, t.dtype(rows)), rows)
        if mode == 1:
            result = t.div(result, t.unsqueeze(t.convert(t.maximum(counts, t.like(counts, 1)), t.dtype(rows)), 1))
    bag_of = t.plus(t.sum(t.convert(after, S64), [0]), -1)
    return result, bag_of, counts, t.full((bags,), 0, S64)


@operator("index_select(Tensor self, int dim, Tensor index)")
def index_select(t: Torch, x: Node, dim: int, index: Node) -> Node:
    d = t.dim(x, dim)
    t.shape_of(index, 0, 1)
    if t.rank(x) == 0:
        return x
    return t.take(x, index if t.rank(index) else t.reshape(index, (1,)), d)


@operator("gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False)")
def gather(t: Torch, x: Node, dim: int, index: Node, sparse: bool) -> Node:
    d = t.dim(x, dim)
    if t.rank(x) == 0:
        return t.broadcast_to(x, t.shape(index))
    if prod(t.shape(index)) == 0:
        return t.full(t.shape(index), 0, t.dtype(x))
    _require_inside(t, x, d, index)
    return t.gather_elements(x, index if t.rank(index) else t.reshape(index, (1,) * t.rank(x)), d)


def _require_inside(t: Torch, x: Node, d: int, index: Node) -> None:
    """Raise TypeFault where an index is larger than the tensor in a dimension other than the indexed one."""
    xs, ys = t.shape(x) or (1,), t.shape(index) or (1,)
    if len(xs) != len(ys) or any(i != d and b > a for i, (a, b) in enumerate(zip(xs, ys, strict=False))):
        raise TypeFault(f"an index of the sizes {list(ys)} does not fit a tensor of the sizes {list(xs)}, indexed along dimension {d}")


@operator("take(Tensor self, Tensor index)")
def take(t: Torch, x: Node, index: Node) -> Node:
    flat = t.reshape(x, (prod(t.shape(x)),))
    if prod(t.shape(index)) == 0:
        return t.full(t.shape(index), 0, t.dtype(x))
    return t.take(flat, wrapped(t, index, t.shape(flat)[0]), 0)


@operator("take_along_dim(Tensor self, Tensor indices, int? dim=None)")
def take_along_dim(t: Torch, x: Node, index: Node, dim: int | None) -> Node:
    if dim is None:
        return take(t, x, t.reshape(index, (prod(t.shape(index)),)))
    d, xs, ys = t.dim(x, dim), t.shape_of(x, 1), t.shape_of(index, t.rank(x), t.rank(x))
    shape = t.broadcast_shape(tuple(1 if i == d else n for i, n in enumerate(xs)), tuple(1 if i == d else n for i, n in enumerate(ys)))
    x = t.broadcast_to(x, tuple(xs[d] if i == d else n for i, n in enumerate(shape)))
    index = t.broadcast_to(index, tuple(ys[d] if i == d else n for i, n in enumerate(shape)))
    return t.gather_elements(x, wrapped(t, index, xs[d]), d)


# ---------------------------------------------------------------------- index tensors


class IndexedPlaces:
    """The meaning of ``x[i, :, j]``: the indexed dimensions, index tensors of one shape, and the position of their result."""

    def __init__(self, t: Torch, x: Node, indices: list[Node | None]) -> None:
        shape = t.shape(x)
        indices = _without_masks(t, x, indices)
        self.dims = [d for d, i in enumerate(indices) if i is not None]
        given = [wrapped(t, i, shape[d]) for d, i in enumerate(indices) if i is not None]
        if not given:
            raise TypeFault("it takes at least one index")
        self.indices = t.together(*given)
        self.shape = t.shape(self.indices[0])
        apart = self.dims != list(range(self.dims[0], self.dims[-1] + 1))
        self.at = 0 if apart else self.dims[0]
        self.kept = [d for d in range(len(shape)) if d not in self.dims]

    def starts(self, t: Torch) -> Node:
        """Index vectors in the last dimension."""
        n = len(self.shape)
        return t.concat([t.reshape(i, (*self.shape, 1)) for i in self.indices], n)


def is_mask(t: Torch, index: Node) -> bool:
    """Whether an index is a mask: of bools, or of bytes, as old programs write it."""
    return t.dtype(index) in (PRED, U8)


def _without_masks(t: Torch, x: Node, indices: list[Node | None]) -> list[Node | None]:
    """Replace each mask by the indices of its true elements, one index per dimension of the mask.

    Raises TypeFault for a mask that does not have the sizes of the dimensions that it indexes.
    """
    out: list[Node | None] = []
    for i in indices:
        if i is not None and is_mask(t, i):
            covered = t.shape(x)[len(out):len(out) + t.rank(i)]
            if t.shape(i) != covered:
                raise TypeFault(f"a mask of the sizes {list(t.shape(i))} does not fit the sizes {list(covered)} that it indexes")
            out += coordinates(t, true_places(t, i), t.shape(i))
        else:
            out.append(i)
    return out


@operator("index.Tensor(Tensor self, Tensor?[] indices)", "_unsafe_index.Tensor(Tensor self, Tensor?[] indices)")
def index(t: Torch, x: Node, indices: list[Node | None]) -> Node:
    if not any(i is not None for i in indices):
        return x
    p = IndexedPlaces(t, x, indices)
    shape, n = t.shape(x), len(p.shape)
    sizes = tuple(1 if d in p.dims else s for d, s in enumerate(shape))
    before = sum(1 for d in p.kept if d < p.at) if p.at else 0
    offsets = tuple(range(before)) + tuple(range(before + n, n + len(p.kept)))
    attrs = {"offset_dims": offsets, "collapsed_slice_dims": tuple(p.dims), "start_index_map": tuple(p.dims), "index_vector_dim": n,
             "slice_sizes": sizes}
    return t.emit("gather", (x, p.starts(t)), attrs)


@operator("index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False)",
          "_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False)",
          "_index_put_impl(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False, bool unsafe=False)")
def index_put(t: Torch, x: Node, indices: list[Node | None], values: Node, accumulate: bool, unsafe: bool = False) -> Node:
    t.alike(x, values)
    masks = [(d, i) for d, i in enumerate(indices) if i is not None and is_mask(t, i)]
    if len(masks) == 1 and sum(i is not None for i in indices) == 1 and prod(t.shape(values)) == 1:
        d, mask = masks[0]
        shape = (*t.shape(mask), *(1,) * (t.rank(x) - d - t.rank(mask)))
        value = t.reshape(values, ())
        return t.select(t.reshape(truth(t, mask), shape), t.add(x, value) if accumulate else value, x)
    p = IndexedPlaces(t, x, indices)
    n, shape = len(p.shape), t.shape(x)
    before = sum(1 for d in p.kept if d < p.at) if p.at else 0
    kept = [shape[d] for d in p.kept]
    updates = t.broadcast_to(values, (*kept[:before], *p.shape, *kept[before:]))
    windows = tuple(range(before)) + tuple(range(before + n, n + len(kept)))
    return t.scatter(x, p.starts(t), updates, "add" if accumulate else None, window_dims=windows, inserted=tuple(p.dims))


def true_places(t: Torch, mask: Node) -> Node:
    """The flat indices where a mask is true; their number is computed from the inputs."""
    flat = t.reshape(truth(t, mask), (prod(t.shape(mask)),))
    n = t.size_from_data(t.sum(t.convert(flat, S64), [0]))
    order = t.sort([t.convert(t.unary("not", flat), S64), t.iota(t.shape(flat), 0, S64)], 0)[1]
    return t.slice_dim(order, 0, 0, n)


def coordinates(t: Torch, places: Node, shape: tuple[int, ...]) -> list[Node]:
    """Flat indices as an index per dimension."""
    out = []
    for d in range(len(shape)):
        step = t.like(places, prod(shape[d + 1:]))
        out.append(t.binary("remainder", t.div(places, step), t.like(places, max(shape[d], 1))))
    return out


@operator("nonzero(Tensor self)", "argwhere(Tensor self)")
def nonzero(t: Torch, x: Node) -> Node:
    places = true_places(t, x)
    parts = [t.unsqueeze(c, 1) for c in coordinates(t, places, t.shape(x))]
    return t.concat(parts, 1) if parts else t.full((t.shape(places)[0], 0), 0, S64)


@operator("nonzero_static(Tensor self, *, SymInt size, int fill_value=-1)")
def nonzero_static(t: Torch, x: Node, size: int, filler: int) -> Node:
    """The first ``size`` positions, padded with a value."""
    n, rank = prod(t.shape(x)), t.rank(x)
    if rank == 0 or n == 0 or size == 0:
        if n and rank == 0:
            return t.full((size, 0), 0, S64)
        return t.full((size, rank), filler, S64)
    flat = t.reshape(truth(t, x), (n,))
    order = t.sort([t.convert(t.unary("not", flat), S64), t.iota((n,), 0, S64)], 0)[1]
    kept = t.slice_dim(order, 0, 0, min(size, n))
    parts = t.concat([t.unsqueeze(c, 1) for c in coordinates(t, kept, t.shape(x))], 1)
    parts = t.pad(parts, t.array(filler, S64), [0, 0], [max(size - n, 0), 0])
    count = t.sum(t.convert(flat, S64), [0])
    there = t.compare("LT", t.iota((size, rank), 0, S64), count)
    return t.select(there, parts, t.array(filler, S64))


@operator("nonzero_numpy(Tensor self)", "where(Tensor condition)")
def nonzero_numpy(t: Torch, x: Node) -> list[Node]:
    x = x if t.shape(x) else t.reshape(x, (1,))  # a scalar has one coordinate here
    return coordinates(t, true_places(t, x), t.shape(x))


@operator("masked_select(Tensor self, Tensor mask)")
def masked_select(t: Torch, x: Node, mask: Node) -> Node:
    x, mask = t.together(x, truth(t, mask))
    return t.take(t.reshape(x, (prod(t.shape(x)),)), true_places(t, mask), 0)


# ---------------------------------------------------------------------- writing by index


def scattered(t: Torch, x: Node, dim: int, index: Node, source: Node, combine: str | None) -> Node:
    """``x`` with elements of ``source`` written at ``x[index[i, j], j]`` (for dimension 0); ``x`` itself for an empty index.

    ``combine`` says how an element is combined with the one in its place; None overwrites it.
    """
    t.alike(x, source)
    d = t.dim(x, dim)
    if 0 in t.shape(index):
        return x
    if t.rank(x) == 0:
        return t.reshape(scattered(t, t.reshape(x, (1,)), 0, t.reshape(index, (1,)), t.reshape(source, (1,)), combine), ())
    if t.rank(x) == 1:
        index, source = (v if t.rank(v) else t.reshape(v, (1,)) for v in (index, source))
    shape = t.shape_of(index, t.rank(x), t.rank(x))
    t.shape_of(source, t.rank(x), t.rank(x))
    _require_inside(t, x, d, index)
    index = t.convert(index, S64)
    parts = [index if i == d else t.iota(shape, i, S64) for i in range(len(shape))]
    starts = t.concat([t.reshape(p, (*shape, 1)) for p in parts], len(shape))
    updates = t.slice(source, [0] * len(shape), list(shape))
    every = tuple(range(len(shape)))
    return t.scatter(x, starts, updates, combine, inserted=every)


@operator("scatter.src(Tensor self, int dim, Tensor index, Tensor src)",
          "scatter.value(Tensor self, int dim, Tensor index, Scalar value)",
          "scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce)",
          "scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce)")
def scatter(t: Torch, x: Node, dim: int, index: Node, source: object, reduce: str | None = None) -> Node:
    if reduce not in (None, "add", "multiply"):
        raise TypeFault(f"the reductions of scatter are add and multiply, not {reduce!r}")
    return scattered(t, x, dim, index, source if isinstance(source, Node) else t.full(t.shape(index), source, t.dtype(x)), reduce)


@operator("scatter_add(Tensor self, int dim, Tensor index, Tensor src)")
def scatter_add(t: Torch, x: Node, dim: int, index: Node, source: Node) -> Node:
    return scattered(t, x, dim, index, source, "add")


@operator("scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True)")
def scatter_reduce(t: Torch, x: Node, dim: int, index: Node, source: Node, reduce: str, include_self: bool) -> Node:
    combine, neutral = reduction(t, x, reduce)
    touched = scattered(t, t.full(t.shape(x), 0, S64), dim, index, t.full(t.shape(index), 1, S64), "add")
    base = x if include_self else t.select(t.compare("GT", touched, t.like(touched, 0)), t.like(x, neutral), x)
    return averaged(t, scattered(t, base, dim, index, source, combine), touched, reduce, include_self)


def reduction(t: Torch, x: Node, reduce: str) -> tuple[str, object]:
    """The combining operator, and its neutral element."""
    dtype = t.dtype(x)
    ways: dict[str, tuple[str, object]] = {
        "sum": ("add", 0), "prod": ("multiply", 1), "amax": ("maximum", dtype.lowest), "amin": ("minimum", dtype.highest),
        "mean": ("add", 0),
    }
    if reduce not in ways:
        raise TypeFault(f"the reductions of a scatter are {', '.join(ways)}, not {reduce}")
    return ways[reduce]


def averaged(t: Torch, y: Node, touched: Node, reduce: str, include_self: bool) -> Node:
    """Sums divided by their number of summands, for a mean; integers rounded down."""
    if reduce != "mean":
        return y
    count = t.plus(touched, 1) if include_self else t.maximum(touched, t.like(touched, 1))
    return floor_divide(t, y, t.convert(count, t.dtype(y))) if t.dtype(y).is_integer else t.div(y, t.convert(count, t.dtype(y)))


@operator("index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True)")
def index_reduce(t: Torch, x: Node, dim: int, index: Node, source: Node, reduce: str, include_self: bool) -> Node:
    combine, neutral = reduction(t, x, reduce)
    if reduce == "sum":
        raise TypeFault("the reductions of index_reduce are prod, amax, amin and mean: index_add sums")
    touched = _rows(t, t.full(t.shape(x), 0, S64), dim, index, t.full(t.shape(source), 1, S64), "add")
    base = x if include_self else t.select(t.compare("GT", touched, t.like(touched, 0)), t.like(x, neutral), x)
    return averaged(t, _rows(t, base, dim, index, source, combine), touched, reduce, include_self)


@operator("put(Tensor self, Tensor index, Tensor source, bool accumulate=False)")
def put(t: Torch, x: Node, index: Node, source: Node, accumulate: bool) -> Node:
    """Writes elements at flat indices."""
    n = prod(t.shape(index))
    flat = t.reshape(x, (prod(t.shape(x)),))
    made = _rows(t, flat, 0, t.reshape(index, (n,)), t.reshape(source, (n,)), "add" if accumulate else None)
    return t.reshape(made, t.shape(x))


@operator("index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1)")
def index_add(t: Torch, x: Node, dim: int, index: Node, source: Node, alpha: Any) -> Node:
    return _rows(t, x, dim, index, by_alpha(t, source, alpha), "add")


@operator("index_copy(Tensor self, int dim, Tensor index, Tensor source)")
def index_copy(t: Torch, x: Node, dim: int, index: Node, source: Node) -> Node:
    return _rows(t, x, dim, index, source, None)


@operator("index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value)",
          "index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value)")
def index_fill(t: Torch, x: Node, dim: int, index: Node, value: object) -> Node:
    if isinstance(value, Node):
        t.shape_of(value, 0, 0)
    d = t.dim(x, dim)
    n = prod(t.shape(index))
    shape = tuple(n if i == d else s for i, s in enumerate(t.shape(x) or (1,)))
    return _rows(t, x, dim, index, t.broadcast_to(t.as_tensor(value, t.dtype(x)), shape), None)


def _rows(t: Torch, x: Node, dim: int, index: Node, source: Node, combine: str | None) -> Node:
    """Writes slices along one dimension at indices."""
    t.alike(x, source)
    d = t.dim(x, dim)
    if t.rank(x) == 0:
        return t.reshape(_rows(t, t.reshape(x, (1,)), 0, index, t.reshape(source, (prod(t.shape(index)),)), combine), ())
    if t.rank(source) == 0:
        source = t.reshape(source, (1,) * t.rank(x))
    n = prod(t.shape(index))
    starts = t.reshape(wrapped(t, index, t.shape(x)[d]), (n, 1))
    wanted = tuple(n if i == d else size for i, size in enumerate(t.shape(x)))
    if t.shape(source) != wanted:
        raise TypeFault(f"the source has the sizes {list(t.shape(source))}, and {list(wanted)} are written")
    windows = tuple(i for i in range(t.rank(x)) if i != d)
    return t.scatter(x, starts, source, combine, window_dims=windows, inserted=(d,))


@operator("masked_scatter(Tensor self, Tensor mask, Tensor source)")
def masked_scatter(t: Torch, x: Node, mask: Node, source: Node) -> Node:
    """The next element of ``source`` wherever the mask is true."""
    t.alike(x, source)
    x, mask = t.together(x, truth(t, mask))
    flat = t.reshape(mask, (prod(t.shape(x)),))
    at = t.plus(t.cumulative("add", t.convert(flat, S64), 0, 0), -1)
    if prod(t.shape(source)) == 0:
        return x
    picked = t.take(t.reshape(source, (prod(t.shape(source)),)), at, 0)
    return t.select(mask, t.reshape(picked, t.shape(x)), x)
