"""Views of a part: slices, rows, splits, windows."""
from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from irscope.formats.torchscript.abstract import Scalar, TensorView
from irscope.formats.torchscript.operators import operator, view
from irscope.formats.torchscript.strides import Strided, contiguous
from irscope.formats.torchscript.torch import END, Torch
from irscope.graph import Node
from irscope.graph.dtypes import PRED, S64
from irscope.ops.checked import at_least
from irscope.ops.faults import TypeFault
from irscope.source.budget import require_parts


def piece(t: Torch, d: int, start: int, limit: int, step: int = 1, drop: bool = False) -> TensorView:
    """The view of a slice along one dimension; ``drop`` removes the dimension of size 1."""

    def read(base: Node) -> Node:
        part = t.slice_dim(base, d, start, limit, step)
        return t.reshape(part, tuple(s for i, s in enumerate(t.shape(part)) if i != d)) if drop else part

    def write(base: Node, new: Node) -> Node:
        shape = t.shape(base)
        if drop:
            new = t.reshape(new, (*shape[:d], 1, *shape[d + 1:]))
        n = t.shape(new)[d]
        if n == 0:
            return base
        if n == shape[d]:
            return new  # all of the base, as torch.jit.trace writes x[:, i] = y
        if step == 1:
            return t.update_slice(base, new, [t.array(start if i == d else 0, S64) for i in range(len(shape))])
        low, high, interior = [0] * len(shape), [0] * len(shape), [0] * len(shape)
        low[d], interior[d] = start, step - 1
        high[d] = shape[d] - start - ((n - 1) * step + 1)
        spread = t.pad(new, t.array(0, t.dtype(base)), low, high, interior)
        mask = t.pad(t.full(t.shape(new), True, PRED), t.array(False, PRED), low, high, interior)
        return t.select(mask, spread, base)

    def place(at: Strided) -> Strided:
        part = at.with_dim(d, max(0, -(-(limit - start) // step)), at.strides[d] * step, start * at.strides[d])
        return part.without_dim(d) if drop else part
    return TensorView(read, write, place)


def with_part(t: Torch, x: Node, part: TensorView, source: Node) -> Node:
    """A copy of ``x`` with ``source`` in a part of it. Raises TypeFault where ``source`` has another shape than the part."""
    at = part.place(contiguous(t.shape(x)))
    assert at is not None, "a select, slice or diagonal of strided data is strided"
    if t.shape(source) != at.sizes:
        raise TypeFault(f"expected a source of shape {list(at.sizes)}, like the part that it replaces, got {list(t.shape(source))}")
    return part.into(x, t.convert(source, t.dtype(x)))


def bounds(n: int, start: int | None, end: int | None) -> tuple[int, int]:
    """Start and end of a slice of ``n`` elements, clamped."""
    s, e = 0 if start is None else start, n if end is None else end
    s, e = s + n if s < 0 else s, e + n if e < 0 else e
    s = min(max(s, 0), n)
    return s, max(s, min(max(e, 0), n))


@view("slice.Tensor(Tensor(a) self, int dim=0, int? start=None, int? end=None, int step=1)")
def slice_(t: Torch, x: Node, dim: int, start: int | None, end: int | None, step: int) -> TensorView:
    d = t.dim(x, dim)
    at_least(1, "the step of a slice", step)
    s, e = bounds(t.shape(x)[d], start, None if end is not None and end >= END // 2 else end)
    return piece(t, d, s, e, step)


@view("narrow(Tensor(a) self, int dim, int start, int length)")
def narrow(t: Torch, x: Node, dim: int, start: int, length: int) -> TensorView:
    d = t.dim(x, dim)
    n = t.shape(x)[d]
    first = start + n if start < 0 else start
    if length < 0 or not 0 <= first <= first + length <= n:
        raise TypeFault(f"{length} elements from {start} on are out of range for dimension {dim} of {list(t.shape(x))}")
    return piece(t, d, first, first + length)


@view("narrow.Tensor(Tensor(a) self, int dim, Tensor start, int length)")
def narrow_at(t: Torch, x: Node, dim: int, start: Node, length: int) -> TensorView:
    """A slice whose start is a tensor."""
    d = t.dim(x, dim)
    return _moving(t, d, wrapped_place(t, start, t.shape(x)[d]), length)


@operator("narrow_copy(Tensor self, int dim, int start, int length)")
def narrow_copy(t: Torch, x: Node, dim: int, start: int, length: int) -> Node:
    return narrow(t, x, dim, start, length).read(x)


@view("select.int(Tensor(a) self, int dim, int index)")
def select(t: Torch, x: Node, dim: int, index: int | Scalar) -> TensorView:
    d = t.dim(x, dim)
    n = t.shape(x)[d]
    if isinstance(index, Scalar):
        return _moving(t, d, wrapped_place(t, index.node, n))
    if not -n <= index < n:
        raise TypeFault(f"index {index} is out of range for dimension {dim} of {list(t.shape(x))}")
    index %= n
    return piece(t, d, index, index + 1, drop=True)


def wrapped_place(t: Torch, at: Node, n: int) -> Node:
    """An index that depends on data, counted from the end where it is negative."""
    at = t.convert(t.reshape(at, ()), S64)
    return t.select(t.compare("LT", at, t.like(at, 0)), t.plus(at, n), at)


def _moving(t: Torch, d: int, at: Node, length: int | None = None) -> TensorView:
    """The view of ``length`` elements along a dimension at an index that depends on data; None: one element, without the dimension."""
    def starts(base: Node) -> list[Node]:
        zero = t.array(0, S64)
        return [at if i == d else zero for i in range(t.rank(base))]

    def read(base: Node) -> Node:
        shape = t.shape(base)
        part = t.dynamic_slice(base, starts(base), tuple((length or 0) + (length is None) if i == d else s for i, s in enumerate(shape)))
        return part if length is not None else t.reshape(part, (*shape[:d], *shape[d + 1:]))

    def write(base: Node, new: Node) -> Node:
        shape = t.shape(base)
        return t.update_slice(base, new if length is not None else t.reshape(new, (*shape[:d], 1, *shape[d + 1:])), starts(base))

    def place(at: Strided) -> Strided:
        return at.with_dim(d, length, at.strides[d], None) if length is not None else replace(at.without_dim(d), offset=None)
    return TensorView(read, write, place)


@view("unbind.int(Tensor(a -> *) self, int dim=0)")
def unbind(t: Torch, x: Node, dim: int) -> list[TensorView]:
    d = t.dim(x, dim)
    require_parts(t.shape(x)[d])
    return [piece(t, d, i, i + 1, drop=True) for i in range(t.shape(x)[d])]


def even_lengths(n: int, size: int) -> list[int]:
    """The lengths of the pieces when ``n`` elements are split by ``size``. Raises BudgetExceeded for too many, TypeFault for size 0."""
    if size < 1:
        raise TypeFault(f"pieces of {size} elements")
    require_parts(-(-n // size))
    return [min(size, n - at) for at in range(0, n, size)] or [0]


def cut(t: Torch, d: int, lengths: list[int]) -> list[TensorView]:
    """Consecutive pieces of the given lengths."""
    out, at = [], 0
    for n in lengths:
        at_least(0, "the length of a piece", n)
        out.append(piece(t, d, at, at + n))
        at += n
    return out


@view("chunk(Tensor(a -> *) self, int chunks, int dim=0)", "unsafe_chunk(Tensor self, int chunks, int dim=0)")
def chunk(t: Torch, x: Node, chunks: int, dim: int) -> list[TensorView]:
    d = t.dim(x, dim)
    n = t.shape(x)[d]
    return cut(t, d, even_lengths(n, max(1, -(-n // at_least(1, "chunks", chunks)))))


@view("split.Tensor(Tensor(a -> *) self, int split_size, int dim=0)", "unsafe_split.Tensor(Tensor self, int split_size, int dim=0)")
def split(t: Torch, x: Node, size: int, dim: int) -> list[TensorView]:
    d = t.dim(x, dim)
    return cut(t, d, even_lengths(t.shape(x)[d], size))


@view("split_with_sizes(Tensor(a -> *) self, int[] split_sizes, int dim=0)",
      "split.sizes(Tensor(a -> *) self, int[] split_size, int dim=0)",
      "unsafe_split_with_sizes(Tensor self, int[] split_sizes, int dim=0)")
def split_with_sizes(t: Torch, x: Node, parts: list[int], dim: int) -> list[TensorView]:
    if sum(parts) != t.shape_of(x, 1)[t.dim(x, dim)]:
        raise TypeFault(f"pieces of {parts} elements are not the {t.shape(x)[t.dim(x, dim)]} of dimension {dim}")
    return cut(t, t.dim(x, dim), parts)


@view("tensor_split.sections(Tensor(a -> *) self, int sections, int dim=0)")
def tensor_split(t: Torch, x: Node, sections: int, dim: int) -> list[TensorView]:
    d = t.dim(x, dim)
    n = t.shape(x)[d]
    require_parts(at_least(1, "sections", sections))
    return cut(t, d, [n // sections + (i < n % sections) for i in range(sections)])


@view("tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, Tensor tensor_indices_or_sections, int dim=0)")
def tensor_split_by(t: Torch, x: Node, places: Node, dim: int) -> list[TensorView]:
    """Sections or split points given by a tensor, computed from the inputs."""
    if t.rank(places) == 0:
        return tensor_split(t, x, t.size_from_data(places), dim)
    at = [t.size_from_data(t.reshape(t.slice_dim(places, 0, i, i + 1), ())) for i in range(t.shape(places)[0])]
    return tensor_split_at(t, x, at, dim)


@view("tensor_split.indices(Tensor(a -> *) self, int[] indices, int dim=0)")
def tensor_split_at(t: Torch, x: Node, indices: list[int], dim: int) -> list[TensorView]:
    d = t.dim(x, dim)
    n = t.shape(x)[d]
    places = [0, *[bounds(n, i, None)[0] for i in indices], n]
    return [piece(t, d, a, max(a, b)) for a, b in pairwise(places)]


@view("unfold(Tensor(a) self, int dimension, int size, int step)")
def unfold(t: Torch, x: Node, dimension: int, size: int, step: int) -> TensorView:
    """Windows along a dimension, their elements in a new last one."""
    d, last = t.dim(x, dimension), t.rank(x)
    length = t.shape(x)[d] if last else 1
    if not 0 <= size <= length or step < 1:
        raise TypeFault(f"windows of {size} every {step} along {length} elements")
    n = (length - size) // step + 1
    require_parts(size)

    def read(base: Node) -> Node:
        if not last:
            return t.slice(t.reshape(base, (1,)), [0], [size])
        if not size:
            return t.full((*t.shape(base)[:d], n, *t.shape(base)[d + 1:], 0), 0, t.dtype(base))
        parts = [t.slice_dim(base, d, i, i + (n - 1) * step + 1, step) for i in range(size)]
        return t.concat([t.unsqueeze(p, last) for p in parts], last)

    def place(at: Strided) -> Strided:
        if not last:
            return replace(at, sizes=(size,), strides=(1,))
        windows = at.with_dim(d, n, step * at.strides[d])
        return replace(windows, sizes=(*windows.sizes, size), strides=(*windows.strides, at.strides[d]))
    return TensorView(read, None, place)


def _split_along(name: str, dim: int) -> None:
    @view(f"{name}.int(Tensor(a -> *) self, int sections)", f"{name}.array(Tensor(a -> *) self, int[] indices)")
    def parts(t: Torch, x: Node, places: int | list[int]) -> list[TensorView]:
        d = 0 if name == "hsplit" and t.rank(x) == 1 else dim
        if isinstance(places, int) and t.shape(x)[d] % at_least(1, "sections", places):
            raise TypeFault(f"{t.shape(x)[d]} elements of dimension {d} cannot be split evenly in {places}")
        return tensor_split_at(t, x, places, d) if isinstance(places, list) else tensor_split(t, x, places, d)


for _name, _dim in (("hsplit", 1), ("vsplit", 0), ("dsplit", 2)):
    _split_along(_name, _dim)


@operator("select_scatter(Tensor self, Tensor src, int dim, int index)")
def select_scatter(t: Torch, x: Node, source: Node, dim: int, at: int) -> Node:
    return with_part(t, x, select(t, x, dim, at), source)


@operator("slice_scatter(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, int step=1)")
def slice_scatter(t: Torch, x: Node, source: Node, dim: int, start: int | None, end: int | None, step: int) -> Node:
    return with_part(t, x, slice_(t, x, dim, start, end, step), source)
