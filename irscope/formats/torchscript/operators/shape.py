"""Views and copies: what gives elements another place. A view comes with the function that writes a new value of it back into its base."""
from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import prod
from typing import Any, TypeVar

from irscope.formats.torchscript.abstract import Scalar
from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.complex_numbers import conjugate
from irscope.formats.torchscript.torch import END, Torch
from irscope.graph import Node
from irscope.graph.dtypes import PRED, S64

F = TypeVar("F", bound=Callable[..., Any])
ReadWrite = tuple[Callable[[Node], Node], Callable[[Node, Node], Node]]


def view(*schemas: str) -> Callable[[F], F]:
    """Declare a view."""
    return operator(*schemas, style="view")


def sizes(t: Torch, x: Node, wanted: list[int]) -> tuple[int, ...]:
    """The shape that view and reshape mean: one -1 is what is left. Raises ValueError when the elements do not come out even."""
    total = prod(t.shape(x))
    if -1 in wanted:
        known = prod(s for s in wanted if s != -1)
        if wanted.count(-1) > 1 or (known and total % known):
            raise ValueError(f"{list(t.shape(x))} cannot be viewed as {wanted}")
        wanted = [(total // known if known else 0) if s == -1 else s for s in wanted]
    if prod(wanted) != total:
        raise ValueError(f"{list(t.shape(x))} has {total} elements, {wanted} has {prod(wanted)}")
    return tuple(wanted)


def reshaped(t: Torch, x: Node, shape: tuple[int, ...]) -> ReadWrite:
    """The view of all elements under another shape."""
    return lambda b: t.reshape(b, shape), lambda b, new: t.reshape(new, t.shape(b))


def transposed(t: Torch, order: list[int]) -> ReadWrite:
    back = [order.index(i) for i in range(len(order))]
    return lambda b: t.transpose(b, order), lambda b, new: t.transpose(new, back)


@view("view(Tensor(a) self, int[] size)", "reshape(Tensor(a) self, int[] shape)", "_unsafe_view(Tensor self, int[] size)")
def reshape(t: Torch, x: Node, size: list[int]) -> ReadWrite:
    return reshaped(t, x, sizes(t, x, size))


@operator("view.dtype(Tensor(a) self, ScalarType dtype)")
def view_dtype(t: Torch, x: Node, dtype: int) -> Node:
    return t.bitcast_convert(x, t.dtype_number(dtype, t.dtype(x)))


@view("view_as(Tensor(a) self, Tensor other)", "reshape_as(Tensor(a) self, Tensor other)")
def view_as(t: Torch, x: Node, other: Node) -> ReadWrite:
    return reshaped(t, x, t.shape(other))


@view("flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1)")
def flatten(t: Torch, x: Node, start: int, end: int) -> ReadWrite:
    if t.rank(x) == 0:
        return reshaped(t, x, (1,))
    s, e = t.dim(x, start), t.dim(x, end)
    shape = t.shape(x)
    return reshaped(t, x, (*shape[:s], prod(shape[s:e + 1]), *shape[e + 1:]))


@view("unflatten.int(Tensor(a) self, int dim, int[] sizes)")
def unflatten(t: Torch, x: Node, dim: int, parts: list[int]) -> ReadWrite:
    d, shape = t.dim(x, dim), t.shape(x)
    if -1 in parts:
        known = prod(p for p in parts if p != -1)
        parts = [shape[d] // known if p == -1 else p for p in parts]
    return reshaped(t, x, (*shape[:d], *parts, *shape[d + 1:]))


@view("ravel(Tensor(a) self)")
def ravel(t: Torch, x: Node) -> ReadWrite:
    return reshaped(t, x, (prod(t.shape(x)),))


@view("squeeze(Tensor(a) self)")
def squeeze(t: Torch, x: Node) -> ReadWrite:
    return reshaped(t, x, tuple(s for s in t.shape(x) if s != 1))


@view("squeeze.dim(Tensor(a) self, int dim)", "squeeze.dims(Tensor(a) self, int[] dim)")
def squeeze_dim(t: Torch, x: Node, dim: int | list[int]) -> ReadWrite:
    dims = t.dims(x, dim) if dim != [] else []
    return reshaped(t, x, tuple(s for i, s in enumerate(t.shape(x)) if i not in dims or s != 1))


@view("unsqueeze(Tensor(a) self, int dim)")
def unsqueeze(t: Torch, x: Node, dim: int) -> ReadWrite:
    shape = list(t.shape(x))
    shape.insert(t.dim(x, dim, 1), 1)
    return reshaped(t, x, tuple(shape))


@view("transpose.int(Tensor(a) self, int dim0, int dim1)", "swapaxes(Tensor(a) self, int axis0, int axis1)",
      "swapdims(Tensor(a) self, int dim0, int dim1)")
def transpose(t: Torch, x: Node, a: int, b: int) -> ReadWrite:
    order = list(range(t.rank(x)))
    if order:
        a, b = t.dim(x, a), t.dim(x, b)
        order[a], order[b] = order[b], order[a]
    return transposed(t, order)


@view("permute(Tensor(a) self, int[] dims)")
def permute(t: Torch, x: Node, dims: list[int]) -> ReadWrite:
    return transposed(t, [t.dim(x, d) for d in dims])


@view("t(Tensor(a) self)", "numpy_T(Tensor(a) self)")
def t_(t: Torch, x: Node) -> ReadWrite:
    return transposed(t, list(reversed(range(t.rank(x)))))


@view("mT(Tensor(a) self)")
def matrix_t(t: Torch, x: Node) -> ReadWrite:
    n = t.rank(x)
    return transposed(t, [*range(n - 2), n - 1, n - 2])


@operator("mH(Tensor(a) self)", "adjoint(Tensor(a) self)", "matrix_H(Tensor(a) self)")
def adjoint(t: Torch, x: Node) -> Node:
    return conjugate(t, t.swap(x, -2, -1)) if t.rank(x) else x


@view("movedim.int(Tensor(a) self, int source, int destination)", "movedim.intlist(Tensor(a) self, int[] source, int[] destination)",
      "moveaxis.int(Tensor(a) self, int source, int destination)")
def movedim(t: Torch, x: Node, source: int | list[int], destination: int | list[int]) -> ReadWrite:
    src = [t.dim(x, d) for d in ([source] if isinstance(source, int) else source)]
    dst = [t.dim(x, d) for d in ([destination] if isinstance(destination, int) else destination)]
    rest = iter(i for i in range(t.rank(x)) if i not in src)
    place = dict(zip(dst, src, strict=True))
    return transposed(t, [place[i] if i in place else next(rest) for i in range(t.rank(x))])


# ---------------------------------------------------------------------- pieces


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


# ---------------------------------------------------------------------- repeated elements


@view("expand(Tensor(a) self, int[] size, *, bool implicit=False)", "broadcast_to(Tensor(a) self, int[] size)")
def expand(t: Torch, x: Node, size: list[int], implicit: bool = False) -> ReadWrite:
    shape = t.shape(x)
    lead = len(size) - len(shape)
    full = tuple(shape[i - lead] if s == -1 else s for i, s in enumerate(size))

    def write(base: Node, new: Node) -> Node:
        # torch forbids writes to overlapping elements; where none overlaps the shapes are equal but for ones.
        old = t.shape(base)
        if prod(t.shape(new)) != prod(old):
            raise ValueError("a tensor that was expanded is written: its elements share memory (clone it first)")
        return t.reshape(new, old)
    return lambda b: t.broadcast_to(b, full), write


@view("expand_as(Tensor(a) self, Tensor other)")
def expand_as(t: Torch, x: Node, other: Node) -> ReadWrite:
    return expand(t, x, list(t.shape(other)))


@operator("repeat(Tensor self, int[] repeats)", "tile(Tensor self, int[] dims)")
def repeat(t: Torch, x: Node, repeats: list[int]) -> Node:
    rank = max(len(repeats), t.rank(x))
    repeats = [1] * (rank - len(repeats)) + repeats
    shape = (1,) * (rank - t.rank(x)) + t.shape(x)
    x = t.reshape(x, tuple(s for n in shape for s in (1, n)))
    x = t.broadcast_to(x, tuple(s for n, r in zip(shape, repeats, strict=True) for s in (r, n)))
    return t.reshape(x, tuple(n * r for n, r in zip(shape, repeats, strict=True)))


@operator("repeat_interleave.self_int(Tensor self, int repeats, int? dim=None, *, int? output_size=None)")
def repeat_interleave(t: Torch, x: Node, repeats: int, dim: int | None, output_size: int | None) -> Node:
    if dim is None:
        x, dim = t.reshape(x, (prod(t.shape(x)),)), 0
    d, shape = t.dim(x, dim), t.shape(x)
    x = t.broadcast_to(t.reshape(x, (*shape[:d + 1], 1, *shape[d + 1:])), (*shape[:d + 1], repeats, *shape[d + 1:]))
    return t.reshape(x, (*shape[:d], shape[d] * repeats, *shape[d + 1:]))


@operator("repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, int? output_size=None)")
def repeat_interleave_each(t: Torch, x: Node, repeats: Node, dim: int | None, output_size: int | None) -> Node:
    """Each slice as often as its entry says; the size of the result is taken from the inputs."""
    if dim is None:
        x, dim = t.reshape(x, (prod(t.shape(x)),)), 0
    d = t.dim(x, dim)
    repeats = t.broadcast_to(t.convert(repeats, S64), (t.shape(x)[d],))
    n = output_size if output_size is not None else t.size_from_data(t.sum(repeats, [0]))
    return t.take(x, _repeated(t, repeats, n), d)


@operator("repeat_interleave.Tensor(Tensor repeats, *, int? output_size=None)")
def repeat_interleave_counts(t: Torch, repeats: Node, output_size: int | None) -> Node:
    counts = t.convert(repeats, S64)
    n = output_size if output_size is not None else t.size_from_data(t.sum(counts, [0]))
    return t.convert(_repeated(t, counts, n), t.dtype(repeats))


def _repeated(t: Torch, repeats: Node, n: int) -> Node:
    """0 as often as the first entry says, then 1, and so on."""
    ends = t.cumulative("add", repeats, 0, 0)
    passed = t.compare("GE", t.unsqueeze(t.iota((n,), 0, S64), 1), t.unsqueeze(ends, 0))
    return t.sum(t.convert(passed, S64), [1])


@operator("meshgrid(Tensor[] tensors)", "meshgrid.indexing(Tensor[] tensors, *, str indexing)")
def meshgrid(t: Torch, tensors: list[Node], indexing: str = "ij") -> list[Node]:
    flat = [t.reshape(x, (prod(t.shape(x)),)) for x in tensors]
    if indexing == "xy" and len(flat) > 1:
        return [t.swap(grid, 0, 1) for grid in meshgrid(t, flat)]
    shape = tuple(t.shape(x)[0] for x in flat)
    return [t.broadcast_to(t.reshape(x, tuple(n if j == i else 1 for j, n in enumerate(shape))), shape) for i, x in enumerate(flat)]


# ---------------------------------------------------------------------- the same tensor


@view("detach(Tensor(a) self)", "alias(Tensor(a) self)", "contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format)",
      "lift_fresh(Tensor(a) self)", "cpu(Tensor(a) self)", "requires_grad_(Tensor(a!) self, bool requires_grad=True)",
      "to_dense(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None)", "to_mkldnn(Tensor self, ScalarType? dtype=None)")
def same(t: Torch, x: Node, *rest: Any) -> ReadWrite:
    return lambda b: b, lambda b, new: new


@operator("clone(Tensor self, *, MemoryFormat? memory_format=None)", "lift_fresh_copy(Tensor self)", "detach_copy(Tensor self)")
def clone(t: Torch, x: Node, memory: Any = None) -> Node:
    return x


@operator("to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None)")
def to_dtype(t: Torch, x: Node, dtype: int, *rest: Any) -> Node:
    return t.convert(x, t.dtype_number(dtype, t.dtype(x)))


@operator("to.device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, bool copy=False, "
          "MemoryFormat? memory_format=None)")
def to_device(t: Torch, x: Node, device: Any, dtype: int, *rest: Any) -> Node:
    return t.convert(x, t.dtype_number(dtype, t.dtype(x)))


@operator("to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None)",
          "type_as(Tensor self, Tensor other)")
def to_other(t: Torch, x: Node, other: Node, *rest: Any) -> Node:
    return t.convert(x, t.dtype(other))


@operator("to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
          "bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None)",
          "to.prim_Device(Tensor(a) self, Device? device, int? dtype=None, bool non_blocking=False, bool copy=False)")
def to_layout(t: Torch, x: Node, *rest: Any) -> Node:
    dtype = rest[0] if isinstance(rest[0], int) or rest[0] is None else rest[1]
    return t.convert(x, t.dtype_number(dtype, t.dtype(x)))


def _cast(name: str, number: int) -> None:
    @operator(f"{name}(Tensor self)", f"_cast_{name.capitalize()}(Tensor self, bool non_blocking=False)")
    def cast(t: Torch, x: Node, *rest: Any) -> Node:
        return t.convert(x, t.dtype_number(number, t.dtype(x)))


for _name, _number in (("float", 6), ("double", 7), ("half", 5), ("bfloat16", 15), ("long", 4), ("int", 3), ("bool", 11), ("byte", 0)):
    _cast(_name, _number)


@operator("copy(Tensor self, Tensor src, bool non_blocking=False)")
def copy(t: Torch, x: Node, source: Node, non_blocking: bool) -> Node:
    return t.broadcast_to(t.convert(source, t.dtype(x)), t.shape(x))


@operator("fill.Scalar(Tensor self, Scalar value)", "fill.Tensor(Tensor self, Tensor value)")
def fill(t: Torch, x: Node, value: Any) -> Node:
    return t.broadcast_to(t.as_tensor(value, t.dtype(x)), t.shape(x))


@operator("zero(Tensor self)")
def zero(t: Torch, x: Node) -> Node:
    return t.like(x, 0)
