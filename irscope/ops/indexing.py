"""Reads and writes at positions given by arrays of index vectors: gather and scatter."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from irscope.graph import Dim, Kind, Node, Op, TensorType, TupleType, Type
from irscope.graph.node import ArrayView, Emitter, Index, Read, Run, Value
from irscope.lazy import Array, np
from irscope.ops import infer
from irscope.ops.attributes import Gather, Scatter
from irscope.ops.bodies import COMBINERS, combiner, over_arrays, scalar_results
from irscope.ops.costs import body_flops, no_cost
from irscope.ops.dynamic_slices import clamp_starts
from irscope.ops.faults import TypeFault
from irscope.ops.nests import as_index, below, both, clamped, independent, loops, not_below, place, zero
from irscope.ops.registry import declare
from irscope.ops.shapes import same_sizes, size


def _increasing(node: Node, numbers: Sequence[int], rank: int, what: str) -> None:
    """Check that dimension numbers are in range and strictly increasing."""
    for number in numbers:
        infer.dimension(node, number, rank, what)
    infer.distinct(node, numbers, what)
    if list(numbers) != sorted(numbers):
        raise TypeFault(f"{what} of {node.op.name} must be in increasing order, but are {{{', '.join(map(str, numbers))}}}")


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Indexed:
    """How index vectors address an operand, in terms that gather and scatter share.

    ``window`` are the dimensions of the other array (gather's result, scatter's updates) that run inside one window, the rest run over
    the index vectors; ``dropped`` the operand dimensions that a window does not have; ``to_operand`` maps each component
    of an index vector to an operand dimension; ``batch`` pairs operand dimensions with the dimensions of the indices that they follow.
    """

    window: tuple[int, ...]
    dropped: tuple[int, ...]
    to_operand: tuple[int, ...]
    batch: tuple[tuple[int, int], ...]
    vector: int
    operand_rank: int
    indices_rank: int

    @staticmethod
    def of(node: Node, operand: TensorType, indices: TensorType) -> Indexed:
        """From the attributes of a gather or a scatter."""
        fields = _GATHER if node.op is gather else _SCATTER
        window, dropped, to_operand = (infer.attr(node, field) for field in fields[:3])
        mine, theirs = (field.given(node) or () for field in fields[3:])
        if len(mine) != len(theirs):
            raise TypeFault(f"{node.op.name} has {len(mine)} batching dimensions in the operand, but {len(theirs)} in the indices")
        return Indexed(window, dropped, to_operand, tuple(zip(mine, theirs, strict=True)), infer.attr(node, Gather.index_vector_dim),
                       operand.rank, indices.rank)

    @property
    def batched(self) -> list[int]:
        """The operand dimensions that run along with the indices."""
        return [d for d, _ in self.batch]

    @property
    def kept(self) -> list[int]:
        """The operand dimensions that a window has, in order."""
        away = {*self.dropped, *self.batched}
        return [d for d in range(self.operand_rank) if d not in away]

    def check(self, node: Node, operand: TensorType, indices: TensorType, other_rank: int) -> list[Dim]:
        """Check all numbers; returns the shape in which index vectors are arranged."""
        infer.kind_of(node, indices, ("int", "uint"), "indices operand")
        if not 0 <= self.vector <= indices.rank:
            raise TypeFault(f"index_vector_dim={self.vector} of {node.op.name} is out of range for indices {infer.plain(indices)}")
        names = [field.key for field in (_GATHER if node.op is gather else _SCATTER)]
        _increasing(node, self.window, other_rank, names[0])
        _increasing(node, self.dropped, operand.rank, names[1])
        for number in self.to_operand:
            infer.dimension(node, number, operand.rank, f"Invalid {names[2]} mapping: operand dimension")
        infer.distinct(node, self.to_operand, names[2])
        length = indices.shape[self.vector] if self.vector < indices.rank else 1
        if (n := size(length)) is not None and n != len(self.to_operand):
            raise TypeFault(f"{names[2]} of {node.op.name} has {len(self.to_operand)} components, but an index vector has {n}: "
                            f"{infer.plain(indices)} with index_vector_dim={self.vector}")
        for d, i in self.batch:
            infer.dimension(node, d, operand.rank, names[3])
            infer.dimension(node, i, indices.rank, names[4])
            if d in self.dropped or i == self.vector:
                raise TypeFault(f"batching dimension {d} of {node.op.name} is dropped as well, or holds the index vectors")
            infer.equal_dims(node, operand.shape[d], indices.shape[i], f"batching dimension {d} of the operand and {i} of the indices")
        if len(self.window) != len(self.kept):
            raise TypeFault(f"{node.op.name} has {len(self.window)} window dimensions, but {len(self.kept)} dimensions of the operand "
                            f"{infer.plain(operand)} are left after {len(self.dropped) + len(self.batch)} were dropped")
        return [n for d, n in enumerate(indices.shape) if d != self.vector]

    def outer(self, rank: int) -> tuple[int, ...]:
        """The dimensions of the other array that run over index vectors, in the order of XLA's ScatterExpander: row by row, each vector's
        window as a whole."""
        return tuple(d for d in range(rank) if d not in self.window)

    def parts(self, index: Sequence[T]) -> tuple[list[T], list[T]]:
        """Split an index into the other array: the index of the index vector, and that inside the window."""
        return [index[d] for d in self.outer(len(index))], [index[d] for d in self.window]

    def vector_index(self, batch: Sequence[T], component: T) -> list[T]:
        """The index of one component of an index vector."""
        return [*batch, component][:self.indices_rank] if self.vector >= self.indices_rank else \
            [*batch[:self.vector], component, *batch[self.vector:]]

    def within(self, batch: Sequence[T], inside: Sequence[T]) -> list[T | int]:
        """The operand index of an element of a window before the start indices are added: ``inside`` in the dimensions of the window, the
        position of the index vector in the batching dimensions, 0 in the dropped ones."""
        at: list[T | int] = [0] * self.operand_rank
        for d, i in (*zip(self.kept, inside, strict=True), *self.batch_places(batch).items()):
            at[d] = i
        return at

    def batch_places(self, batch: Sequence[T]) -> dict[int, T]:
        """The positions of an index vector in the operand's batching dimensions."""
        return {d: batch[i - (i > self.vector)] for d, i in self.batch}


_GATHER = (Gather.offset_dims, Gather.collapsed_slice_dims, Gather.start_index_map, Gather.operand_batching_dims,
           Gather.start_indices_batching_dims)
_SCATTER = (Scatter.update_window_dims, Scatter.inserted_window_dims, Scatter.scatter_dims_to_operand_dims, Scatter.input_batching_dims,
            Scatter.scatter_indices_batching_dims)


# ---------------------------------------------------------------- gather

def _gather_type(node: Node) -> Type:
    infer.arity(node, 2)
    operand, indices = infer.array(node, 0, "the operand"), infer.array(node, 1, "the indices")
    how = Indexed.of(node, operand, indices)
    sizes: tuple[int, ...] = infer.attr(node, Gather.slice_sizes)
    if len(sizes) != operand.rank:
        raise TypeFault(f"gather has {len(sizes)} slice_sizes, but its operand {infer.plain(operand)} has rank {operand.rank}")
    for d, (n, whole) in enumerate(zip(sizes, operand.shape, strict=True)):
        if n < 0 or ((limit := size(whole)) is not None and n > limit):
            raise TypeFault(f"slice size {n} of gather does not fit dimension {d} of {infer.plain(operand)}, which has {whole} elements")
        if n > 1 and (d in how.dropped or d in how.batched):
            raise TypeFault(f"gather drops dimension {d} of its operand, so its slice size must be 1 (or 0), but is {n}")
    batch = iter(how.check(node, operand, indices, indices.rank - (how.vector < indices.rank) + len(how.window)))
    window = iter([operand.shape[d] if sizes[d] == size(operand.shape[d]) else sizes[d] for d in how.kept])
    rank = indices.rank - (how.vector < indices.rank) + len(how.window)
    return TensorType(operand.dtype, tuple(next(window) if d in how.window else next(batch) for d in range(rank)))


def _gather_element(k: Emitter, node: Node, index: Sequence[Value], read: Read) -> Value:
    operand, indices = infer.array(node, 0), infer.array(node, 1)
    how, sizes, shape = Indexed.of(node, operand, indices), Gather.of(node).slice_sizes, operand.dims()
    if not operand.elements or 0 in sizes:
        return zero(k, operand.dtype)  # collapsed slices of size 0 have no element to read: zeros, as XLA returns for an empty operand
    batch, inside = how.parts(index)
    at = how.within(batch, inside)
    for component, d in enumerate(how.to_operand):
        start = read(1, how.vector_index(batch, k.index(component)))
        found = clamped(k, start, shape[d] - sizes[d]) + at[d]
        # XLA lets a batching dimension be addressed as well; an index that is then out of bounds is clamped.
        at[d] = clamped(k, found, shape[d] - 1) if d in how.batched else found
    return read(0, [place(k, i) for i in at])


def _gather_reference(run: Run, node: Node, operand: Array, indices: Array) -> Array:
    t, ti = infer.array(node, 0), infer.array(node, 1)
    how, sizes = Indexed.of(node, t, ti), Gather.of(node).slice_sizes
    shape = tuple(infer.declared_array(node).dims())
    if not operand.size or 0 in sizes:
        return np.zeros(shape, operand.dtype)
    grids = np.indices(shape, sparse=True)
    batch, inside = how.parts(grids)
    at: list[Any] = how.within(batch, inside)
    for component, d in enumerate(how.to_operand):
        start = indices[tuple(how.vector_index(batch, component))]
        place = at[d] + clamp_starts(start, operand.shape[d] - sizes[d])
        at[d] = clamp_starts(place, operand.shape[d] - 1) if d in how.batched else place
    return np.broadcast_to(operand[tuple(at)], shape).copy()


gather = declare(Op(
    "gather", doc="Slices of the operand, at starts given by an array of index vectors. Starts are clamped so that every slice fits.",
    kind=Kind.INJECTIVE, infer=_gather_type, reference=_gather_reference, element=_gather_element, cost=no_cost))


# ---------------------------------------------------------------- scatter

def _scatter_type(node: Node) -> Type:
    n = len(node.operands) // 2
    if not n or len(node.operands) != 2 * n + 1:
        raise TypeFault(f"scatter takes operands, indices and as many updates, but has {len(node.operands)} operands")
    operands = [infer.array(node, i) for i in range(n)]
    indices = infer.array(node, n, "the indices")
    for i, operand in enumerate(operands):
        updates = infer.array(node, n + 1 + i, "the updates")
        how = Indexed.of(node, operand, indices)
        rank = indices.rank - (how.vector < indices.rank) + len(how.window)
        if updates.rank != rank:
            raise TypeFault(f"the updates of scatter are {infer.plain(updates)}, but must have rank {rank}")
        if not same_sizes(operand.shape, operands[0].shape) or not same_sizes(updates.shape, infer.array(node, n + 1).shape):
            raise TypeFault(f"operands of scatter disagree on shape: {infer.plain(operands[0])} and {infer.plain(operand)}")
        batch = iter(how.check(node, operand, indices, rank))
        window = dict(zip(how.window, how.kept, strict=True))
        for d, mine in enumerate(updates.shape):
            length = size(mine)
            if d in window:
                limit = size(operand.shape[window[d]])
                if length is not None and limit is not None and length > limit:
                    raise TypeFault(f"dimension {d} of the updates {infer.plain(updates)} exceeds dimension {window[d]} "
                                    f"of the operand {infer.plain(operand)}: {length} > {limit}")
            else:
                infer.equal_dims(node, mine, next(batch), f"dimension {d} of the updates and the matching one of the indices")
    _check_update(node, operands, [infer.array(node, n + 1 + i) for i in range(n)])
    plain = [TensorType(t.dtype, t.shape) for t in operands]
    return TupleType(tuple(plain)) if n > 1 else plain[0]


def _check_update(node: Node, operands: Sequence[TensorType], updates: Sequence[TensorType]) -> None:
    body = infer.body(node, 0, "update")
    infer.reducer(node, body, [TensorType(t.dtype, ()) for t in operands], [t.dtype for t in updates])


def _scatter_nest(k: Emitter, node: Node, ins: Sequence[ArrayView], outs: Sequence[ArrayView]) -> None:
    n = len(outs)
    how = Indexed.of(node, infer.array(node, 0), infer.array(node, n))
    shape, indices, updates = outs[0].shape, ins[n], ins[n + 1:]
    for source, out in zip(ins[:n], outs, strict=True):
        with independent(k, shape) as at:
            out.store(at, source.load(at))
    other = updates[0].shape
    outer, inner = how.parts(other)
    with loops(k, outer) as batch:
        starts: list[Index] = [0] * len(shape)
        for d, i in how.batch_places(batch).items():
            starts[d] = i
        fits: Value | None = None
        extent = dict(zip(how.kept, inner, strict=True))
        for component, d in enumerate(how.to_operand):
            # A batching dimension may be addressed as well: the index is then counted from the place of the batch.
            start = as_index(k, indices.load(how.vector_index(batch, k.index(component)))) + starts[d]
            starts[d] = start
            # A window with one element out of bounds is skipped as a whole.
            fits = both(k, fits, not_below(k, start, 0), below(k, start, shape[d] - extent.get(d, 1) + 1))
        with k.when(fits) if fits is not None else loops(k, ()), loops(k, inner) as inside:
            target = list(starts)
            for d, i in zip(how.kept, inside, strict=True):
                target[d] = target[d] + i
            at = [place(k, i) for i in target]
            whence = _joined(how, batch, inside)
            given = [update.load(whence) for update in updates]
            have = [out.load(at) for out in outs]
            for out, value in zip(outs, _updated(k, node, have, given), strict=True):
                out.store(at, k.convert(value, out.dtype))


def _updated(k: Emitter, node: Node, have: Sequence[Value], given: Sequence[Value]) -> Sequence[Value]:
    op = combiner(node.bodies[0]) if len(have) == 1 else None
    if op is not None:
        return [k.binary(COMBINERS[op], have[0], k.convert(given[0], have[0].dtype))]
    return k.inline(node.bodies[0], [*have, *given])


def _joined(how: Indexed, batch: Sequence[object], inside: Sequence[object]) -> list[Any]:
    """The index into the updates of a place inside a window."""
    outer, inner = iter(batch), iter(inside)
    return [next(inner) if d in how.window else next(outer) for d in range(len(batch) + len(inside))]


def _scatter_reference(run: Run, node: Node, *arrays: Array) -> object:
    n = len(arrays) // 2
    operands, indices, updates = arrays[:n], arrays[n], arrays[n + 1:]
    how = Indexed.of(node, infer.array(node, 0), infer.array(node, n))
    shape, other = operands[0].shape, updates[0].shape
    results = [np.array(a, order="C") for a in operands]  # row-major, so that flattening below does not copy
    if updates[0].size and operands[0].size:
        at, valid = _scatter_places(how, indices, shape, other)
        in_order = (*how.outer(len(other)), *how.window)
        flat, keep, *ordered = (np.broadcast_to(a, other).transpose(in_order).reshape(-1)
                                for a in (np.ravel_multi_index(tuple(at), shape), valid, *updates))
        _scatter_in_rounds(run, node, [r.reshape(-1) for r in results], flat[keep], [u[keep] for u in ordered])
    return tuple(results) if isinstance(node.type, TupleType) else results[0]


def _scatter_places(how: Indexed, indices: Array, shape: Sequence[int], other: Sequence[int]) -> tuple[list[Array], Array]:
    """For every element of the updates, its position in the operand (0 where its window is skipped), and whether it is used."""
    grids = np.indices(other, sparse=True)
    batch, inside = how.parts(grids)
    extent = dict(zip(how.kept, (other[d] for d in how.window), strict=True))
    at: list[Any] = how.within(batch, inside)
    valid = np.ones((1,) * len(other), bool)
    for component, d in enumerate(how.to_operand):
        start = indices[tuple(how.vector_index(batch, component))].astype(np.int64)
        if d in how.batched:
            start = start + at[d]
        valid = valid & (start >= 0) & (start <= shape[d] - extent.get(d, 1))
        at[d] = start if d in how.batched else at[d] + start
    return [np.where(valid, a, 0) for a in at], valid


def _scatter_in_rounds(run: Run, node: Node, results: Sequence[Array], places: Array, updates: Sequence[Array]) -> None:
    """Combine in order: the first update of every position, then the second of those that have one, and so on."""
    combine = over_arrays(run, node.bodies[0])
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    first = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if ordered.size else ordered
    counts = np.diff(np.r_[first, ordered.size])
    for turn in range(int(counts.max()) if counts.size else 0):
        now = order[first[counts > turn] + turn]
        to = places[now]
        made = scalar_results(node, combine([*(r[to] for r in results), *(u[now] for u in updates)]))
        for result, value in zip(results, made, strict=True):
            result[to] = value


def _scatter_cost(node: Node) -> float:
    updates = node.operands[-1].type
    count = updates.elements if isinstance(updates, TensorType) else 0
    return count * body_flops(node.bodies[0])


scatter = declare(Op(
    "scatter", work="reduction", infer=_scatter_type, reference=_scatter_reference, nest=_scatter_nest, cost=_scatter_cost,
    doc="Updates combined into a copy of the operand at places that index vectors give: vector by vector in row-major order, each with its "
        "whole window. A window that does not fit is skipped."))
