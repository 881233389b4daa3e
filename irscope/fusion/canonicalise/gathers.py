"""Gathers and scatters in canonical form: one list of start indices, whole windows.

XLA's ``BatchedGatherScatterNormalizer``, ``GatherExpander`` and ``ScatterExpander`` (of a single window), ``GatherSimplifier`` and
``ScatterSimplifier``.
"""
from __future__ import annotations

from math import prod

from irscope.fusion.canonicalise.computation import HloComputation, HloInstruction
from irscope.fusion.canonicalise.values import combiner
from irscope.fusion.dimensions import inverse
from irscope.ops import hlo
from irscope.ops.attributes import Gather, Scatter


def unbatch(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Rewrite gathers and scatters with batching dimensions as plain ones, which read the batch number with each index."""
    if instr.op is hlo.gather:
        gather = Gather.of(instr)
        at, inside, batches, vector = 1, gather.operand_batching_dims, gather.start_indices_batching_dims, gather.index_vector_dim
        plain = {"operand_batching_dims": (), "start_indices_batching_dims": (), "start_index_map": (*inside, *gather.start_index_map),
                 "collapsed_slice_dims": tuple(sorted((*gather.collapsed_slice_dims, *inside)))}
    else:
        scatter = Scatter.of(instr)
        at, inside = (len(instr.operands) - 1) // 2, scatter.input_batching_dims
        batches, vector = scatter.scatter_indices_batching_dims, scatter.index_vector_dim
        plain = {"input_batching_dims": (), "scatter_indices_batching_dims": (),
                 "scatter_dims_to_operand_dims": (*inside, *scatter.scatter_dims_to_operand_dims),
                 "inserted_window_dims": tuple(sorted((*scatter.inserted_window_dims, *inside)))}
    if not inside:
        return False
    places = instr.operands[at]
    places = rewriter.reshape(places, (*places.dims, 1)) if vector == places.rank else places
    dims = [1 if d == vector else n for d, n in enumerate(places.dims)]
    counts = [rewriter.iota(places.dtype, dims, d) for d in batches]
    joined = rewriter.concatenate((*counts, places), vector)
    return rewriter.replace(instr, rewriter.like(instr, (*instr.operands[:at], joined, *instr.operands[at + 1:]), attrs=plain))


def simplify_gather(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Canonicalise every gather: its indices in a matrix and its windows whole; the result is reshaped and transposed back."""
    source, places = instr.operands
    attrs = Gather.of(instr)
    sizes, offsets, collapsed = attrs.slice_sizes, attrs.offset_dims, attrs.collapsed_slice_dims
    if prod(n for d, n in enumerate(places.dims) if d != attrs.index_vector_dim) == 1 and instr.elements:
        return _cut(rewriter, instr)
    if places.rank == 2 and attrs.index_vector_dim == 1 and not collapsed and offsets == tuple(range(1, instr.rank)):
        return False
    matrix = _matrix(rewriter, places, attrs.index_vector_dim)
    count = matrix.dims[0]
    simple = {"offset_dims": tuple(range(1, len(sizes) + 1)), "collapsed_slice_dims": (), "index_vector_dim": 1}
    made = rewriter.like(instr, (source, matrix), (count, *sizes), simple)
    kept = [n for d, n in enumerate(sizes) if d not in collapsed]
    batch = [d for d in range(instr.rank) if d not in offsets]
    made = rewriter.reshape(rewriter.reshape(made, (count, *kept)), (*(instr.dims[d] for d in batch), *kept))
    return rewriter.replace(instr, rewriter.transpose(made, inverse((*batch, *offsets))))


def _cut(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Rewrite a gather of one window as a slice."""
    source, places = instr.operands
    sizes, named = Gather.of(instr).slice_sizes, Gather.of(instr).start_index_map
    flat = rewriter.reshape(places, (len(named),))
    starts = []
    for d in range(source.rank):
        if d not in named:
            starts.append(rewriter.constant(0, places.dtype))
            continue
        i = named.index(d)
        starts.append(rewriter.reshape(rewriter.slice(flat, [(i, i + 1, 1)]) if len(named) > 1 else flat, ()))
    return rewriter.replace(instr, rewriter.reshape(rewriter.dynamic_slice(source, starts, sizes), instr.dims))


def _matrix(rewriter: HloComputation, places: HloInstruction, vector: int) -> HloInstruction:
    """Start indices as a matrix: a row for each window, a column for each dimension that they index."""
    if vector == places.rank:
        return rewriter.reshape(places, (prod(places.dims), 1))
    rows = rewriter.transpose(places, [d for d in range(places.rank) if d != vector] + [vector])
    return rewriter.reshape(rows, (prod(rows.dims[:-1]), rows.dims[-1]))


def simplify_scatter(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Canonicalise every scatter: its indices in a matrix, its updates one window a row, and no inserted dimension."""
    if len(instr.operands) != 3:
        return False
    target, places, update = instr.operands
    attrs = Scatter.of(instr)
    window = attrs.update_window_dims
    if places.rank == 2 and attrs.index_vector_dim == 1 and not attrs.inserted_window_dims and window == tuple(range(1, update.rank)):
        return False
    matrix = _matrix(rewriter, places, attrs.index_vector_dim)
    sizes = [update.dims[d] for d in window]
    for d in attrs.inserted_window_dims:
        sizes.insert(d, 1)
    rows = rewriter.transpose(update, [d for d in range(update.rank) if d not in window] + list(window))
    rows = rewriter.reshape(rows, (matrix.dims[0], *sizes))
    simple = {"update_window_dims": tuple(range(1, rows.rank)), "inserted_window_dims": (), "index_vector_dim": 1}
    return rewriter.replace(instr, rewriter.like(instr, (target, matrix, rows), attrs=simple))


def expand_scatter(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Expand canonical scatters of a single window, which is skipped if it would be out of bounds (``ScatterExpander``).

    XLA emits a loop over windows, which runs once and is simplified away.
    """
    if len(instr.operands) != 3 or not instr.is_array:
        return False
    target, places, update = instr.operands
    graph = instr.bodies[0] if instr.bodies else None
    op = combiner(graph)
    # The new element is the update, or one operation of the old element and the update.
    is_followed = op is not None or (graph is not None and graph.root is not None and graph.root in graph.params[1:])
    if not target.rank or places.rank != 2 or places.dims[0] != 1 or update.rank != target.rank + 1 or not is_followed:
        return False
    sizes = update.dims[1:]
    named = Scatter.of(instr).scatter_dims_to_operand_dims
    zero = rewriter.constant(0, places.dtype)
    flat = rewriter.reshape(places, (places.dims[1],))
    parts: list[HloInstruction] = []
    for dimension in range(target.rank):
        i = named.index(dimension) if dimension in named else -1
        if i < 0:
            parts.append(rewriter.reshape(zero, (1,)))
        elif len(named) == 1:
            parts.append(flat)
        elif i:
            parts.append(rewriter.slice(flat, [(i, i + 1, 1)]))
        else:  # XLA slices the first index directly out of the row, the others out of the flattened row.
            parts.append(rewriter.reshape(rewriter.slice(places, [(0, 1, 1), (0, 1, 1)]), (1,)))
    starts = [rewriter.reshape(part, ()) for part in parts]
    index = rewriter.concatenate(parts, 0)
    last = rewriter.constant([n - k for n, k in zip(target.dims, sizes, strict=True)], places.dtype)
    inside = rewriter.elementwise(hlo.and_, (rewriter.compare(rewriter.spread(zero, index.dims), index, "LE"),
                                             rewriter.compare(last, index, "GE")))
    fits = rewriter.all(inside)
    old = rewriter.dynamic_slice(target, starts, sizes)
    new = rewriter.reshape(update, sizes)
    if op is not None:
        new = rewriter.elementwise(op, (old, new))
    chosen = rewriter.make(hlo.select, old.type, (rewriter.spread(fits, sizes), new, old))
    return rewriter.become(instr, hlo.dynamic_update_slice, (target, chosen, *starts))
