"""Views of a part: slices, rows, splits. Each comes with the function that writes a new value of the part back into its base."""
from __future__ import annotations

from itertools import pairwise

from irscope.formats.torchscript.abstract import Scalar
from irscope.formats.torchscript.operators import ReadWrite, operator, view
from irscope.formats.torchscript.torch import END, Torch
from irscope.graph import Node
from irscope.graph.dtypes import PRED, S64


def piece(t: Torch, d: int, start: int, limit: int, step: int = 1, drop: bool = False) -> ReadWrite:
    """The view of a slice along one dimension; ``drop`` leaves the dimension of one out."""

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
        if step == 1:
            return t.update_slice(base, new, [t.array(start if i == d else 0, S64) for i in range(len(shape))])
        low, high, interior = [0] * len(shape), [0] * len(shape), [0] * len(shape)
        low[d], interior[d] = start, step - 1
        high[d] = shape[d] - start - ((n - 1) * step + 1)
        spread = t.pad(new, t.array(0, t.dtype(base)), low, high, interior)
        mask = t.pad(t.full(t.shape(new), True, PRED), t.array(False, PRED), low, high, interior)
        return t.select(mask, spread, base)
    return read, write


def bounds(n: int, start: int | None, end: int | None) -> tuple[int, int]:
    """Start and end of a slice of ``n`` elements, clamped."""
    s, e = 0 if start is None else start, n if end is None else end
    s, e = s + n if s < 0 else s, e + n if e < 0 else e
    s = min(max(s, 0), n)
    return s, max(s, min(max(e, 0), n))


@view("slice.Tensor(Tensor(a) self, int dim=0, int? start=None, int? end=None, int step=1)")
def slice_(t: Torch, x: Node, dim: int, start: int | None, end: int | None, step: int) -> ReadWrite:
    d = t.dim(x, dim)
    s, e = bounds(t.shape(x)[d], start, None if end is not None and end >= END // 2 else end)
    return piece(t, d, s, e, step)


@view("narrow(Tensor(a) self, int dim, int start, int length)")
def narrow(t: Torch, x: Node, dim: int, start: int, length: int) -> ReadWrite:
    d = t.dim(x, dim)
    start = start + t.shape(x)[d] if start < 0 else start
    return piece(t, d, start, start + length)


@operator("narrow.Tensor(Tensor(a) self, int dim, Tensor start, int length)", "narrow_copy(Tensor self, int dim, int start, int length)")
def narrow_at(t: Torch, x: Node, dim: int, start: Node | int, length: int) -> Node:
    """A part that begins where a tensor says."""
    if isinstance(start, int):
        return narrow(t, x, dim, start, length)[0](x)
    d, n = t.dim(x, dim), t.shape(x)[t.dim(x, dim)]
    start = t.convert(t.reshape(start, ()), S64)
    start = t.select(t.compare("LT", start, t.like(start, 0)), t.plus(start, n), start)
    zero = t.array(0, S64)
    sizes = tuple(length if i == d else s for i, s in enumerate(t.shape(x)))
    return t.dynamic_slice(x, [start if i == d else zero for i in range(t.rank(x))], sizes)


@view("select.int(Tensor(a) self, int dim, int index)")
def select(t: Torch, x: Node, dim: int, index: int | Scalar) -> ReadWrite:
    d = t.dim(x, dim)
    n = t.shape(x)[d]
    if isinstance(index, Scalar):
        return _moving(t, d, wrapped_place(t, index.node, n))
    if not -n <= index < n:
        raise ValueError(f"index {index} is out of range for dimension {dim} of {list(t.shape(x))}")
    index %= n
    return piece(t, d, index, index + 1, drop=True)


def wrapped_place(t: Torch, at: Node, n: int) -> Node:
    """A place that depends on data, counted from the end where it is negative."""
    at = t.convert(t.reshape(at, ()), S64)
    return t.select(t.compare("LT", at, t.like(at, 0)), t.plus(at, n), at)


def _moving(t: Torch, d: int, at: Node) -> ReadWrite:
    """The view of one element along a dimension, at a place that depends on data."""
    def starts(base: Node) -> list[Node]:
        zero = t.array(0, S64)
        return [at if i == d else zero for i in range(t.rank(base))]

    def read(base: Node) -> Node:
        shape = t.shape(base)
        part = t.dynamic_slice(base, starts(base), tuple(1 if i == d else s for i, s in enumerate(shape)))
        return t.reshape(part, (*shape[:d], *shape[d + 1:]))

    def write(base: Node, new: Node) -> Node:
        shape = t.shape(base)
        return t.update_slice(base, t.reshape(new, (*shape[:d], 1, *shape[d + 1:])), starts(base))
    return read, write


@view("unbind.int(Tensor(a -> *) self, int dim=0)")
def unbind(t: Torch, x: Node, dim: int) -> list[ReadWrite]:
    d = t.dim(x, dim)
    return [piece(t, d, i, i + 1, drop=True) for i in range(t.shape(x)[d])]


def cut(t: Torch, d: int, lengths: list[int]) -> list[ReadWrite]:
    """Pieces of the given lengths, one behind the other."""
    out, at = [], 0
    for n in lengths:
        out.append(piece(t, d, at, at + n))
        at += n
    return out


@view("chunk(Tensor(a -> *) self, int chunks, int dim=0)", "unsafe_chunk(Tensor self, int chunks, int dim=0)")
def chunk(t: Torch, x: Node, chunks: int, dim: int) -> list[ReadWrite]:
    d = t.dim(x, dim)
    n = t.shape(x)[d]
    size = max(1, -(-n // chunks))
    return cut(t, d, [min(size, n - at) for at in range(0, n, size)] or [0])


@view("split.Tensor(Tensor(a -> *) self, int split_size, int dim=0)", "unsafe_split.Tensor(Tensor self, int split_size, int dim=0)")
def split(t: Torch, x: Node, size: int, dim: int) -> list[ReadWrite]:
    d = t.dim(x, dim)
    n = t.shape(x)[d]
    return cut(t, d, [min(size, n - at) for at in range(0, n, size)] or [0])


@view("split_with_sizes(Tensor(a -> *) self, int[] split_sizes, int dim=0)",
      "split.sizes(Tensor(a -> *) self, int[] split_size, int dim=0)",
      "unsafe_split_with_sizes(Tensor self, int[] split_sizes, int dim=0)")
def split_with_sizes(t: Torch, x: Node, parts: list[int], dim: int) -> list[ReadWrite]:
    return cut(t, t.dim(x, dim), parts)


@view("tensor_split.sections(Tensor(a -> *) self, int sections, int dim=0)")
def tensor_split(t: Torch, x: Node, sections: int, dim: int) -> list[ReadWrite]:
    d = t.dim(x, dim)
    n = t.shape(x)[d]
    return cut(t, d, [n // sections + (i < n % sections) for i in range(sections)])


@operator("tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, Tensor tensor_indices_or_sections, int dim=0)")
def tensor_split_by(t: Torch, x: Node, places: Node, dim: int) -> list[Node]:
    """Sections or places out of a tensor: taken from the inputs."""
    if t.rank(places) == 0:
        return [read(x) for read, _ in tensor_split(t, x, t.size_from_data(places), dim)]
    at = [t.size_from_data(t.reshape(t.slice_dim(places, 0, i, i + 1), ())) for i in range(t.shape(places)[0])]
    return [read(x) for read, _ in tensor_split_at(t, x, at, dim)]


@view("tensor_split.indices(Tensor(a -> *) self, int[] indices, int dim=0)")
def tensor_split_at(t: Torch, x: Node, indices: list[int], dim: int) -> list[ReadWrite]:
    d = t.dim(x, dim)
    n = t.shape(x)[d]
    places = [0, *[bounds(n, i, None)[0] for i in indices], n]
    return [piece(t, d, a, max(a, b)) for a, b in pairwise(places)]
