"""A scatter of one window is an update of a slice, unless it would stand over the edge (XLA's ``ScatterExpander``)."""
from __future__ import annotations

from irscope.fusion.canonicalise.terms import Body, Term, tensor_type
from irscope.fusion.canonicalise.values import combiner
from irscope.graph import Graph
from irscope.ops import hlo
from irscope.ops.attributes import Scatter


def expand_single_scatters(body: Body) -> bool:
    """Write out the scatters, in their simple form, that write one window: XLA's loop over windows runs once and is no loop then."""
    changed = False
    for term in [t for t in body.instructions if t.op is hlo.scatter and len(t.operands) == 3 and t.is_array]:
        target, places, update = term.operands
        graph = term.bodies[0] if term.bodies else None
        if places.rank != 2 or places.dims[0] != 1 or update.rank != target.rank + 1 or not _is_followed(graph):
            continue
        _expand(body, term, target, places, update, graph)
        changed = True
    return changed


def _is_followed(graph: Graph | None) -> bool:
    """Whether what is written is the update, or one operation of the element that stands there and the update."""
    return graph is not None and (combiner(graph) is not None or (graph.root is not None and graph.root in graph.params[1:]))


def _expand(body: Body, term: Term, target: Term, places: Term, update: Term, graph: Graph | None) -> None:
    sizes = update.dims[1:]
    named = Scatter.of(term).scatter_dims_to_operand_dims
    zero = body.constant(0, places.dtype, term)
    flat = body.reshape(places, (places.dims[1],), term)
    parts: list[Term] = []
    for dimension in range(target.rank):
        if dimension not in named:
            parts.append(body.reshape(zero, (1,), term))
            continue
        i = named.index(dimension)
        if len(named) == 1:
            parts.append(flat)
        elif i:
            parts.append(body.make(hlo.slice, tensor_type(places.dtype, (1,)), (flat,), {"slice": ((i, i + 1, 1),)}, term))
        else:  # XLA reads the first number out of the row, the others out of the numbers in a row.
            first = body.make(hlo.slice, tensor_type(places.dtype, (1, 1)), (places,), {"slice": ((0, 1, 1), (0, 1, 1))}, term)
            parts.append(body.reshape(first, (1,), term))
    starts = [body.reshape(part, (), term) for part in parts]
    index = parts[0] if len(parts) == 1 else body.make(hlo.concatenate, tensor_type(places.dtype, (len(parts),)), parts,
                                                       {"dimensions": (0,)}, term)
    last = body.vector([n - k for n, k in zip(target.dims, sizes, strict=True)], places.dtype, term)
    inside = body.elementwise(hlo.and_, (body.compare(body.broadcast(zero, index.dims, (), term), index, "LE", term),
                                      body.compare(last, index, "GE", term)), term)
    fits = body.all(inside, term)
    there = body.make(hlo.dynamic_slice, tensor_type(target.dtype, sizes), (target, *starts), {"dynamic_slice_sizes": tuple(sizes)}, term)
    written = body.reshape(update, sizes, term)
    if op := combiner(graph):
        written = body.elementwise(op, (there, written), term)
    chosen = body.make(hlo.select, there.type, (body.broadcast(fits, sizes, (), term), written, there), {}, term)
    body.become(term, hlo.dynamic_update_slice, (target, chosen, *starts))
