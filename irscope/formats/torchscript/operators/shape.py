"""Views of all elements in another order or shape, and repeats. A view's function gives how to read it and how to write it back."""
from __future__ import annotations

from math import prod

from irscope.formats.torchscript.operators import ReadWrite, operator, view
from irscope.formats.torchscript.operators.complex_numbers import conjugate
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import S64


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
