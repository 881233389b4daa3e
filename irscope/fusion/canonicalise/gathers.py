"""Gathers and scatters in their simple form: one list of places, whole windows.

XLA's ``BatchedGatherScatterNormalizer``, ``GatherExpander`` (of a single window), ``GatherSimplifier`` and ``ScatterSimplifier``.
"""
from __future__ import annotations

from math import prod

from irscope.fusion.canonicalise.dimensions import is_sorted
from irscope.fusion.canonicalise.terms import Body, Term, tensor_type
from irscope.ops import hlo


def unbatch(body: Body) -> None:
    """Write gathers and scatters that have batches of their own as plain ones, which read the number of the batch with each place."""
    for term in [t for t in body.instructions if t.op in (hlo.gather, hlo.scatter)]:
        attrs = term.attrs
        array, left_out, start = ("operand_batching_dims", "collapsed_slice_dims", "start_index_map") if term.op is hlo.gather else \
            ("input_batching_dims", "inserted_window_dims", "scatter_dims_to_operand_dims")
        batches = "start_indices_batching_dims" if term.op is hlo.gather else "scatter_indices_batching_dims"
        inside = tuple(attrs.get(array, ()))
        if not inside:
            continue
        at = 1 if term.op is hlo.gather else (len(term.operands) - 1) // 2
        places, vector = term.operands[at], attrs["index_vector_dim"]
        places = body.reshape(places, (*places.dims, 1), term) if vector == places.rank else places
        dims = [1 if d == vector else n for d, n in enumerate(places.dims)]
        counts = [body.make(hlo.iota, tensor_type(places.dtype, dims), (), {"iota_dimension": d}, term) for d in attrs[batches]]
        dims[vector] = len(counts) + places.dims[vector]
        joined = body.make(hlo.concatenate, tensor_type(places.dtype, dims), (*counts, places), {"dimensions": (vector,)}, term)
        plain = {**attrs, array: (), batches: (), left_out: tuple(sorted((*attrs.get(left_out, ()), *inside))),
                 start: (*inside, *attrs[start])}
        operands = (*term.operands[:at], joined, *term.operands[at + 1:])
        body.replace(term, body.make(term.op, term.type, operands, plain, term, term.bodies))


def simplify_gathers(body: Body) -> bool:
    """Write every gather with its places in a matrix and its windows whole; the result is reshaped and transposed back."""
    changed = False
    for term in [t for t in body.instructions if t.op is hlo.gather]:
        source, places = term.operands
        if prod(n for d, n in enumerate(places.dims) if d != term.attrs["index_vector_dim"]) == 1 and term.elements:
            _cut(body, term)
            changed = True
            continue
        if _is_simple_gather(term):
            continue
        attrs = term.attrs
        matrix = _matrix(body, places, attrs["index_vector_dim"], term)
        sizes = tuple(attrs["slice_sizes"])
        count = matrix.dims[0]
        collapsed = tuple(attrs.get("collapsed_slice_dims", ()))
        simple = body.make(hlo.gather, tensor_type(term.dtype, (count, *sizes)), (source, matrix),
                           {**attrs, "offset_dims": tuple(range(1, len(sizes) + 1)), "collapsed_slice_dims": (), "index_vector_dim": 1},
                           term)
        kept = [n for d, n in enumerate(sizes) if d not in collapsed]
        made = simple if len(kept) == len(sizes) else body.reshape(simple, (count, *kept), term)
        offsets = tuple(attrs.get("offset_dims", ()))
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
    sizes, named = tuple(term.attrs["slice_sizes"]), tuple(term.attrs["start_index_map"])
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
    places, attrs = term.operands[1], term.attrs
    return places.rank == 2 and attrs["index_vector_dim"] == 1 and not attrs.get("collapsed_slice_dims") \
        and tuple(attrs.get("offset_dims", ())) == tuple(range(1, term.rank))


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
        attrs = term.attrs
        matrix = _matrix(body, places, attrs["index_vector_dim"], term)
        window = tuple(attrs.get("update_window_dims", ()))
        inserted = tuple(attrs.get("inserted_window_dims", ()))
        order = [d for d in range(update.rank) if d not in window] + list(window)
        moved = update if is_sorted(order) else body.transpose(update, order, term)
        sizes = [update.dims[d] for d in window]
        for d in inserted:
            sizes.insert(d, 1)
        dims = (matrix.dims[0], *sizes)
        moved = moved if moved.dims == dims else body.reshape(moved, dims, term)
        made = {**attrs, "update_window_dims": tuple(range(1, len(dims))), "inserted_window_dims": (), "index_vector_dim": 1}
        simple = body.make(hlo.scatter, term.type, (target, matrix, moved), made, term, term.bodies)
        body.replace(term, simple)
        changed = True
    return changed


def _is_simple_scatter(term: Term) -> bool:
    places, update, attrs = term.operands[1], term.operands[2], term.attrs
    return places.rank == 2 and attrs["index_vector_dim"] == 1 and not attrs.get("inserted_window_dims") \
        and tuple(attrs.get("update_window_dims", ())) == tuple(range(1, update.rank))
