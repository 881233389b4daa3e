"""Gathers and scatters in their simple form: one list of places, whole windows.

XLA's ``BatchedGatherScatterNormalizer``, ``GatherExpander`` (of a single window), ``GatherSimplifier`` and ``ScatterSimplifier``.
"""
from __future__ import annotations

from math import prod

from irscope.fusion.canonicalise.terms import Body, Term, tensor_type
from irscope.fusion.dimensions import is_sorted
from irscope.ops import hlo
from irscope.ops.attributes import Gather, Scatter


def unbatch(body: Body) -> None:
    """Write gathers and scatters that have batches of their own as plain ones, which read the number of the batch with each place."""
    for term in [t for t in body.instructions if t.op in (hlo.gather, hlo.scatter)]:
        if term.op is hlo.gather:
            gather = Gather.of(term)
            at, inside, batches, vector = 1, gather.operand_batching_dims, gather.start_indices_batching_dims, gather.index_vector_dim
            plain = {"operand_batching_dims": (), "start_indices_batching_dims": (), "start_index_map": (*inside, *gather.start_index_map),
                     "collapsed_slice_dims": tuple(sorted((*gather.collapsed_slice_dims, *inside)))}
        else:
            scatter = Scatter.of(term)
            at, inside = (len(term.operands) - 1) // 2, scatter.input_batching_dims
            batches, vector = scatter.scatter_indices_batching_dims, scatter.index_vector_dim
            plain = {"input_batching_dims": (), "scatter_indices_batching_dims": (),
                     "scatter_dims_to_operand_dims": (*inside, *scatter.scatter_dims_to_operand_dims),
                     "inserted_window_dims": tuple(sorted((*scatter.inserted_window_dims, *inside)))}
        if not inside:
            continue
        places = term.operands[at]
        places = body.reshape(places, (*places.dims, 1), term) if vector == places.rank else places
        dims = [1 if d == vector else n for d, n in enumerate(places.dims)]
        counts = [body.make(hlo.iota, tensor_type(places.dtype, dims), (), {"iota_dimension": d}, term) for d in batches]
        dims[vector] = len(counts) + places.dims[vector]
        joined = body.make(hlo.concatenate, tensor_type(places.dtype, dims), (*counts, places), {"dimensions": (vector,)}, term)
        operands = (*term.operands[:at], joined, *term.operands[at + 1:])
        body.replace(term, body.make(term.op, term.type, operands, {**term.attrs, **plain}, term, term.bodies))


def simplify_gathers(body: Body) -> bool:
    """Write every gather with its places in a matrix and its windows whole; the result is reshaped and transposed back."""
    changed = False
    for term in [t for t in body.instructions if t.op is hlo.gather]:
        source, places = term.operands
        attrs = Gather.of(term)
        if prod(n for d, n in enumerate(places.dims) if d != attrs.index_vector_dim) == 1 and term.elements:
            _cut(body, term)
            changed = True
            continue
        if _is_simple_gather(term):
            continue
        matrix = _matrix(body, places, attrs.index_vector_dim, term)
        sizes, offsets, collapsed = attrs.slice_sizes, attrs.offset_dims, attrs.collapsed_slice_dims
        count = matrix.dims[0]
        simple = body.make(hlo.gather, tensor_type(term.dtype, (count, *sizes)), (source, matrix),
                           {**term.attrs, "offset_dims": tuple(range(1, len(sizes) + 1)), "collapsed_slice_dims": (),
                            "index_vector_dim": 1}, term)
        kept = [n for d, n in enumerate(sizes) if d not in collapsed]
        made = simple if len(kept) == len(sizes) else body.reshape(simple, (count, *kept), term)
        batch = [d for d in range(term.rank) if d not in offsets]
        lead = [term.dims[d] for d in batch]
        made = made if len(lead) == 1 else body.reshape(made, (*lead, *kept), term)
        order = [0] * term.rank
        for i, d in enumerate((*batch, *offsets)):
            order[d] = i
        body.replace(term, made if is_sorted(order) else body.transpose(made, order, term))
        changed = True
    return changed


def _cut(body: Body, term: Term) -> None:
    """A gather of one window is a slice."""
    source, places = term.operands
    sizes, named = Gather.of(term).slice_sizes, Gather.of(term).start_index_map
    count = len(named)
    flat = places if places.dims == (count,) else body.reshape(places, (count,), term)
    starts = []
    for d in range(source.rank):
        if d not in named:
            starts.append(body.constant(0, places.dtype, term))
            continue
        i = named.index(d)
        part = flat if count == 1 else body.make(hlo.slice, tensor_type(places.dtype, (1,)), (flat,), {"slice": ((i, i + 1, 1),)}, term)
        starts.append(body.reshape(part, (), term))
    cut = body.make(hlo.dynamic_slice, tensor_type(term.dtype, sizes), (source, *starts), {"dynamic_slice_sizes": sizes}, term)
    body.replace(term, cut if cut.dims == term.dims else body.reshape(cut, term.dims, term))


def _is_simple_gather(term: Term) -> bool:
    attrs = Gather.of(term)
    return term.operands[1].rank == 2 and attrs.index_vector_dim == 1 and not attrs.collapsed_slice_dims \
        and attrs.offset_dims == tuple(range(1, term.rank))


def _matrix(body: Body, places: Term, vector: int, at: Term) -> Term:
    """Places as a matrix: a row for each window, a column for each dimension that it names."""
    if vector == places.rank:
        return body.reshape(places, (prod(places.dims), 1), at)
    order = [d for d in range(places.rank) if d != vector] + [vector]
    moved = places if is_sorted(order) else body.transpose(places, order, at)
    rows = prod(moved.dims[:-1])
    return moved if moved.rank == 2 else body.reshape(moved, (rows, moved.dims[-1]), at)


def simplify_scatters(body: Body) -> bool:
    """Write every scatter with its places in a matrix, its updates one window a row, and no dimension left out."""
    changed = False
    for term in [t for t in body.instructions if t.op is hlo.scatter]:
        count = (len(term.operands) - 1) // 2
        if count != 1 or _is_simple_scatter(term):
            continue
        target, places, update = term.operands
        attrs = Scatter.of(term)
        matrix = _matrix(body, places, attrs.index_vector_dim, term)
        window = attrs.update_window_dims
        order = [d for d in range(update.rank) if d not in window] + list(window)
        moved = update if is_sorted(order) else body.transpose(update, order, term)
        sizes = [update.dims[d] for d in window]
        for d in attrs.inserted_window_dims:
            sizes.insert(d, 1)
        dims = (matrix.dims[0], *sizes)
        moved = moved if moved.dims == dims else body.reshape(moved, dims, term)
        made = {**term.attrs, "update_window_dims": tuple(range(1, len(dims))), "inserted_window_dims": (), "index_vector_dim": 1}
        simple = body.make(hlo.scatter, term.type, (target, matrix, moved), made, term, term.bodies)
        body.replace(term, simple)
        changed = True
    return changed


def _is_simple_scatter(term: Term) -> bool:
    attrs = Scatter.of(term)
    return term.operands[1].rank == 2 and attrs.index_vector_dim == 1 and not attrs.inserted_window_dims \
        and attrs.update_window_dims == tuple(range(1, term.operands[2].rank))
