"""Views of all elements in another order or shape, and repeats."""
from __future__ import annotations

from dataclasses import replace
from math import prod

from irscope.formats.torchscript.abstract import ITSELF, Copied, Decision, Restrided, TensorView, Unsure
from irscope.formats.torchscript.operators import alias, operator, view
from irscope.formats.torchscript.operators.complex_numbers import conjugated
from irscope.formats.torchscript.strides import Strided, contiguous, is_view_of_any
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import S64
from irscope.ops.checked import in_step, nonzero
from irscope.ops.faults import TypeFault


def sizes(t: Torch, x: Node, wanted: list[int] | Node) -> tuple[int, ...]:
    """The shape that view and reshape mean: ``wanted`` with one -1 inferred, or the shape of the tensor ``wanted``.

    Raises TypeFault when the number of elements does not match.
    """
    wanted, total = list(t.shape(wanted)) if isinstance(wanted, Node) else wanted, prod(t.shape(x))
    if -1 in wanted:
        known = prod(s for s in wanted if s != -1)
        if wanted.count(-1) > 1 or not known or total % known:  # beside a 0, the -1 could be any size
            raise TypeFault(f"{list(t.shape(x))} cannot be viewed as {wanted}")
        wanted = [total // known if s == -1 else s for s in wanted]
    if prod(wanted) != total:
        raise TypeFault(f"{list(t.shape(x))} has {total} elements, {wanted} has {prod(wanted)}")
    return tuple(wanted)


def reshaped(t: Torch, shape: tuple[int, ...]) -> TensorView:
    """The view of all elements under another shape."""
    return TensorView(lambda b: t.reshape(b, shape), lambda b, new: t.reshape(new, t.shape(b)), lambda at: at.viewed(shape))


def reshaped_or_copied(t: Torch, x: Node, at: Strided | None, shape: tuple[int, ...]) -> Decision:
    """A view of another shape where the strides allow it, else a copy, as in ``reshape``; Unsure where unknown strides decide."""
    if at is None and not is_view_of_any(t.shape(x), shape):
        return Unsure(t.reshape(x, shape))
    if at is not None and at.viewed(shape) is None:
        return Copied(t.reshape(x, shape), contiguous(shape))
    return reshaped(t, shape)


def transposed(t: Torch, order: list[int]) -> TensorView:
    """A view with the dimensions in another order. Raises TypeFault where ``order`` does not name each once."""
    if sorted(order) != list(range(len(order))):
        raise TypeFault(f"the order {order} must name each of {len(order)} dimensions once")
    back = [order.index(i) for i in range(len(order))]
    return TensorView(lambda b: t.transpose(b, order), lambda b, new: t.transpose(new, back), lambda at: at.with_dims(order))


def composed(*views: TensorView) -> TensorView:
    """A view of a view of a tensor."""
    first, *rest = views
    if not rest:
        return first
    second = composed(*rest)

    def write(base: Node, new: Node) -> Node:
        return first.into(base, second.into(first.read(base), new))

    def place(at: Strided) -> Strided | None:
        between = first.place(at)
        return None if between is None else second.place(between)
    return TensorView(lambda b: second.read(first.read(b)), write if first.write and second.write else None, place)


@view("view(Tensor(a) self, int[] size)", "_unsafe_view(Tensor self, int[] size)", "view_as(Tensor(a) self, Tensor other)")
def view_sizes(t: Torch, x: Node, size: list[int] | Node) -> TensorView:
    return reshaped(t, sizes(t, x, size))


@alias("reshape(Tensor(a) self, int[] shape)", "reshape_as(Tensor(a) self, Tensor other)", traits="dense-view")
def reshape(t: Torch, x: Node, at: Strided | None, size: list[int] | Node) -> Decision:
    return reshaped_or_copied(t, x, at, sizes(t, x, size))


@view("_reshape_alias(Tensor(a) self, int[] size, int[] stride)")
def reshape_alias(t: Torch, x: Node, size: list[int], stride: list[int]) -> TensorView:
    return reshaped(t, tuple(size))


@view("view.dtype(Tensor(a) self, ScalarType dtype)")
def view_dtype(t: Torch, x: Node, dtype: int) -> TensorView:
    """Reinterprets the bits as another type of the same width."""
    old, new = t.dtype(x), t.dtype_number(dtype, t.dtype(x))
    if old.storage != new.storage:
        raise TypeFault(f"a view of {old.name} as {new.name}, which has another width, is not supported")
    return TensorView(lambda b: t.bitcast_convert(b, new), lambda b, part: t.bitcast_convert(part, old), lambda at: at)


@alias("flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1)", traits="dense-view")
def flatten(t: Torch, x: Node, at: Strided | None, start: int, end: int) -> Decision:
    s, e = t.dim(x, start), t.dim(x, end)
    if t.rank(x) == 0:
        return reshaped(t, (1,))
    if s > e:
        raise TypeFault(f"dimension {start} comes after dimension {end}, to which it is flattened")
    if s == e:
        return ITSELF
    shape = t.shape(x)
    return reshaped_or_copied(t, x, at, (*shape[:s], prod(shape[s:e + 1]), *shape[e + 1:]))


@view("unflatten.int(Tensor(a) self, int dim, int[] sizes)")
def unflatten(t: Torch, x: Node, dim: int, parts: list[int]) -> TensorView:
    d, shape = t.dim(x, dim), t.shape(x)
    if parts.count(-1) > 1 or not parts:
        raise TypeFault(f"dimension {dim} of {list(shape)} cannot be unflattened as {parts}")
    if -1 in parts:
        known = prod(p for p in parts if p != -1)
        parts = [shape[d] // nonzero("the product of the other sizes", known) if p == -1 else p for p in parts]
    return reshaped(t, (*shape[:d], *parts, *shape[d + 1:]))


@alias("ravel(Tensor(a) self)", traits="dense-view")
def ravel(t: Torch, x: Node, at: Strided | None) -> Decision:
    """``contiguous().view(-1)``."""
    shape = (prod(t.shape(x)),)
    if at is None:
        return reshaped_or_copied(t, x, at, shape)
    return reshaped(t, shape) if at.is_contiguous() else Copied(t.reshape(x, shape), contiguous(shape))


@alias("contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format)", traits="dense-view")
def in_format(t: Torch, x: Node, at: Strided | None, memory_format: int | None) -> Decision:
    """The tensor itself where its strides are those of the format, else a copy."""
    wanted = memory_format or 0
    if at is None:
        return Unsure(x)
    if at.is_contiguous(wanted):
        return ITSELF
    return Copied(x, replace(contiguous(t.shape(x), wanted), conjugated=at.conjugated, negated=at.negated))


@view("squeeze(Tensor(a) self)", "squeeze.dim(Tensor(a) self, int dim)", "squeeze.dims(Tensor(a) self, int[] dim)")
def squeeze(t: Torch, x: Node, dim: int | list[int] | None = None) -> TensorView:
    dims = t.dims(x, dim) if dim != [] else []
    return _kept(t, x, [i for i, s in enumerate(t.shape(x)) if i not in dims or s != 1])


def _kept(t: Torch, x: Node, dims: list[int]) -> TensorView:
    """The view without some dimensions of size 1."""
    shape = tuple(t.shape(x)[d] for d in dims)
    return TensorView(lambda b: t.reshape(b, shape), lambda b, new: t.reshape(new, t.shape(b)), lambda at: at.with_dims(dims))


@view("unsqueeze(Tensor(a) self, int dim)")
def unsqueeze(t: Torch, x: Node, dim: int) -> TensorView:
    d, shape = t.dim(x, dim, 1), t.shape(x)
    made = (*shape[:d], 1, *shape[d:])

    def place(at: Strided) -> Strided:
        stride = at.sizes[d] * at.strides[d] if d < at.rank else 1
        return replace(at, sizes=made, strides=(*at.strides[:d], stride, *at.strides[d:]))
    return TensorView(lambda b: t.reshape(b, made), lambda b, new: t.reshape(new, t.shape(b)), place)


@view("transpose.int(Tensor(a) self, int dim0, int dim1)", "swapaxes(Tensor(a) self, int axis0, int axis1)",
      "swapdims(Tensor(a) self, int dim0, int dim1)")
def transpose(t: Torch, x: Node, a: int, b: int) -> TensorView:
    order = list(range(t.rank(x)))
    a, b = t.dim(x, a), t.dim(x, b)
    if order:
        order[a], order[b] = order[b], order[a]
    return transposed(t, order)


@view("permute(Tensor(a) self, int[] dims)")
def permute(t: Torch, x: Node, dims: list[int]) -> TensorView:
    if len(dims) != t.rank(x):
        raise TypeFault(f"the order {dims} must name each of {t.rank(x)} dimensions once")
    return transposed(t, [t.dim(x, d) for d in dims])


@view("t(Tensor(a) self)")
def t_(t: Torch, x: Node) -> TensorView:
    t.shape_of(x, 0, 2)
    return numpy_t(t, x)


@view("numpy_T(Tensor(a) self)")
def numpy_t(t: Torch, x: Node) -> TensorView:
    return transposed(t, list(reversed(range(t.rank(x)))))


@view("mT(Tensor(a) self)")
def matrix_t(t: Torch, x: Node) -> TensorView:
    n = t.rank(x)
    return transposed(t, [*range(n - 2), n - 1, n - 2])


@view("mH(Tensor(a) self)", "adjoint(Tensor(a) self)", "matrix_H(Tensor(a) self)")
def adjoint(t: Torch, x: Node) -> TensorView:
    turned = transpose(t, x, -2, -1)
    return composed(turned, conjugated(t)) if t.dtype(x).is_complex else turned


@view("movedim.int(Tensor(a) self, int source, int destination)", "movedim.intlist(Tensor(a) self, int[] source, int[] destination)",
      "moveaxis.int(Tensor(a) self, int source, int destination)",
      "moveaxis.intlist(Tensor(a) self, int[] source, int[] destination)")
def movedim(t: Torch, x: Node, source: int | list[int], destination: int | list[int]) -> TensorView:
    src = [t.dim(x, d) for d in ([source] if isinstance(source, int) else source)]
    dst = [t.dim(x, d) for d in ([destination] if isinstance(destination, int) else destination)]
    rest = iter(i for i in range(t.rank(x)) if i not in src)
    if len(set(src)) != len(src) or len(set(dst)) != len(dst):
        raise TypeFault(f"the dimensions {source} and {destination} have repetitions")
    place = dict(in_step("source and destination", dst, src))
    return transposed(t, [place[i] if i in place else next(rest) for i in range(t.rank(x))])


@view("expand(Tensor(a) self, int[] size, *, bool implicit=False)", "broadcast_to(Tensor(a) self, int[] size)")
def expand(t: Torch, x: Node, size: list[int], implicit: bool = False) -> TensorView:
    shape = t.shape(x)
    lead = len(size) - len(shape)
    if -1 in size[:max(lead, 0)]:
        raise TypeFault(f"{list(shape)} cannot be expanded to {size}: a new dimension needs a size")
    return stretched(t, shape, tuple(shape[i - lead] if s == -1 else s for i, s in enumerate(size)))


def stretched(t: Torch, shape: tuple[int, ...], full: tuple[int, ...]) -> TensorView:
    """The view in which dimensions of size 1, and new ones in front, repeat."""
    # Where elements repeat, only their addresses determine what a write to some of them changes.
    write = (lambda b, new: t.reshape(new, t.shape(b))) if prod(full) == prod(shape) else None
    return TensorView(lambda b: t.broadcast_to(b, full), write, lambda at: at.expanded(full))


@view("expand_as(Tensor(a) self, Tensor other)")
def expand_as(t: Torch, x: Node, other: Node) -> TensorView:
    return expand(t, x, list(t.shape(other)))


@alias("as_strided(Tensor(a) self, int[] size, int[] stride, int? storage_offset=None)", traits="view")
def as_strided(t: Torch, x: Node, at: Strided | None, size: list[int], stride: list[int], offset: int | None) -> Decision:
    """Any elements of the storage, whatever the strides of the tensor are."""
    if len(size) != len(stride) or min((*size, *stride, offset or 0), default=0) < 0:
        raise TypeFault(f"as_strided of sizes {size}, strides {stride} and offset {offset}")
    return Restrided(Strided(tuple(size), tuple(stride), offset if offset is not None or at is None else at.offset))


@operator("repeat(Tensor self, int[] repeats)")
def repeat(t: Torch, x: Node, repeats: list[int]) -> Node:
    t.shape_of(x, 0, len(repeats))
    return tile(t, x, repeats)


@operator("tile(Tensor self, int[] dims)")
def tile(t: Torch, x: Node, repeats: list[int]) -> Node:
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
    """Repeats each slice by its entry; the size of the result is computed from the inputs."""
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


@alias("meshgrid(Tensor[] tensors)", "meshgrid.indexing(Tensor[] tensors, *, str indexing)", traits="view")
def meshgrid(t: Torch, tensors: list[Node], at: list[Strided | None], indexing: str = "ij") -> list[Decision]:
    """Each vector along a separate dimension, repeated along the others; "xy" exchanges the first two."""
    shape = tuple(prod(t.shape(x)) for x in tensors)
    out: list[Decision] = []
    for i, n in enumerate(shape):
        alone = tuple(n if j == i else 1 for j in range(len(shape)))
        steps = [reshaped(t, alone), stretched(t, alone, shape)]
        if indexing == "xy" and len(shape) > 1:
            steps.append(transposed(t, [1, 0, *range(2, len(shape))]))
        out.append(composed(*steps))
    return out
