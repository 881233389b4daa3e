"""Reshapes and transposes: merged, cancelled, moved out of the way."""
from __future__ import annotations

from itertools import pairwise

from irscope.fusion.canonicalise.dots import places
from irscope.fusion.canonicalise.terms import Body, Term, tensor_type
from irscope.fusion.dimensions import common_factors, inserted_or_deleted, inverse, is_sorted, unmodified_places
from irscope.fusion.xla.opcodes import ELEMENTWISE
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast, Iota, Transpose


def reshape(body: Body, term: Term) -> bool:
    """Simplify a reshape (``HandleReshape``)."""
    source = term.operands[0]
    if source.dims == term.dims:
        return body.replace(term, source)
    if not term.elements:
        return False
    if source.op is hlo.reshape:
        return body.become(term, hlo.reshape, (source.operands[0],))
    if cancel_chain(body, term) or _hoist_transpose(body, term):
        return True
    if source.op is hlo.broadcast:
        dimensions = Broadcast.of(source).dimensions
        places = unmodified_places(source.dims, term.dims, dimensions)
        if places is not None and is_sorted(dimensions):
            return body.become(term, hlo.broadcast, (source.operands[0],), {"dimensions": tuple(places)})
    if source.op is hlo.iota:
        return _of_iota(body, term)
    return _before_update(body, term)


def _of_iota(body: Body, term: Term) -> bool:
    """Counting under another shape: a count along one dimension, or a sum of several."""
    source = term.operands[0]
    along = Iota.of(source).iota_dimension
    bounds = common_factors(source.dims, term.dims)
    start = next((i for i, (a, b) in enumerate(bounds) if a == along and b < term.rank and term.dims[b] > 1), None)
    if start is None or not any(a == along + 1 for a, _ in bounds):
        return False
    made: Term | None = None
    factor = 1
    for d in range(bounds[start + 1][1] - 1, bounds[start][1] - 1, -1):
        count = body.make(hlo.iota, term.type, (), {"iota_dimension": d}, term)
        if made is None:
            made = count
        else:
            made = body.elementwise(hlo.add, (made, body.elementwise(hlo.multiply, (count, body.full(factor, term, term)), term)), term)
        factor *= term.dims[d]
    return made is not None and body.replace(term, made)


def _before_update(body: Body, term: Term) -> bool:
    """A reshape that only adds or drops dimensions of size 1 goes before an update."""
    update = term.operands[0]
    if update.op is not hlo.dynamic_update_slice or len(update.users) != 1:
        return False
    change = inserted_or_deleted(update.dims, term.dims)
    if change is None:
        return False
    deleted, inserted = change
    part = update.operands[1]
    zero = body.constant(0, update.operands[2].dtype, term)
    dims: list[int] = []
    starts: list[Term] = []
    for d in range(part.rank + 1):
        if d in deleted:
            continue
        while len(dims) in inserted:
            dims.append(1)
            starts.append(zero)
        if d < part.rank:
            dims.append(part.dims[d])
            starts.append(update.operands[2 + d])
    return body.become(term, hlo.dynamic_update_slice,
                       (body.reshape(update.operands[0], term.dims, term), body.reshape(part, dims, term), *starts))


def _hoist_transpose(body: Body, term: Term) -> bool:
    """reshape(transpose(reshape(x))) is transpose(reshape(x)) when the outer reshape only merges what lies together in x."""
    transpose = term.operands[0]
    if transpose.op is not hlo.transpose or transpose.operands[0].op is not hlo.reshape:
        return False
    order = Transpose.of(transpose).dimensions
    bounds = common_factors(term.dims, transpose.dims)
    chunks: list[tuple[int, int, int]] = []  # (first dimension before the transpose, size, dimension of the result)
    for (a, b), (a2, b2) in pairwise(bounds):
        if a2 - a != 1 or b2 == b or any(order[k] != order[k - 1] + 1 for k in range(b + 1, b2)):
            return False
        chunks.append((order[b], term.dims[a], a))
    chunks.sort()
    places = [0] * len(chunks)
    for k, (_, _, result) in enumerate(chunks):
        places[result] = k
    inner = body.reshape(transpose.operands[0].operands[0], [size for _, size, _ in chunks], term)
    return body.become(term, hlo.transpose, (inner,), {"dimensions": tuple(places)})


def transpose(body: Body, term: Term) -> bool:
    """Simplify a transpose (``HandleTranspose``)."""
    source, order = term.operands[0], Transpose.of(term).dimensions
    if is_sorted(order):
        return body.replace(term, source)
    if source.op is hlo.transpose:
        inner = Transpose.of(source).dimensions
        return body.become(term, hlo.transpose, (source.operands[0],), {"dimensions": tuple(inner[d] for d in order)})
    if source.op is hlo.broadcast:
        places = tuple(order.index(d) for d in Broadcast.of(source).dimensions)
        if is_sorted(places):
            return body.become(term, hlo.broadcast, (source.operands[0],), {"dimensions": places})
    if cancel_chain(body, term) or _of_dot(body, term):
        return True
    kept = [d for i, d in enumerate(order) if term.dims[i] != 1]
    if len(kept) < term.rank and is_sorted(kept):
        return body.become(term, hlo.reshape, (source,))
    return False


def copy(body: Body, term: Term) -> bool:
    """A copy changes nothing before layouts are given."""
    return body.replace(term, term.operands[0])


def _of_dot(body: Body, term: Term) -> bool:
    """The transpose of a product is the product of the other order, when nothing else reads it and each side has one free dimension."""
    dot, order = term.operands[0], Transpose.of(term).dimensions
    if dot.op is not hlo.dot or len(dot.users) != 1:
        return False
    lhs, rhs = dot.operands
    batch, rhs_batch, a, b = places(dot)
    if batch != rhs_batch or sorted(batch) != list(range(len(batch))) or not a or not b:
        return False
    if len(a) + len(batch) + 1 != lhs.rank or len(b) + len(batch) + 1 != rhs.rank:
        return False
    if tuple(order) != (*range(dot.rank - 2), dot.rank - 1, dot.rank - 2):
        return False
    attrs = {**dot.attrs, "lhs_contracting_dims": b, "rhs_contracting_dims": a}
    return body.become(term, hlo.dot, (rhs, lhs), attrs)


def cancel_chain(body: Body, term: Term) -> bool:
    """A chain of transposes, and reshapes that move one dimension of size 1, that comes back to where it began."""
    if term.op is hlo.reshape and not _moves_one(term):
        return False
    order = _effective(term) if term.op is hlo.transpose else list(range(sum(n != 1 for n in term.dims)))
    if order is None:
        return False
    last: Term | None = None
    current = term.operands[0]
    while current.op in (hlo.reshape, hlo.transpose):
        if current.op is hlo.transpose:
            step = _effective(current)
            if step is None or is_sorted(Transpose.of(current).dimensions):
                return False
            order = [step[d] for d in order]
        elif not _moves_one(current):
            return False
        last = current
        current = current.operands[0]
    if last is None or not is_sorted(order) or current.dims != term.dims:
        return False
    return body.replace(term, current)


def _moves_one(term: Term) -> bool:
    before, after = term.operands[0].dims, term.dims
    return sum(n == 1 for n in before) <= 1 and sum(n == 1 for n in after) <= 1 and inserted_or_deleted(before, after) is not None


def _effective(term: Term) -> list[int] | None:
    """The permutation of a transpose without its dimension of size 1; None when it has several."""
    order = Transpose.of(term).dimensions
    ones = [d for d, n in enumerate(term.operands[0].dims) if n == 1]
    if len(ones) > 1:
        return None
    if not ones:
        return list(order)
    return [d - (d > ones[0]) for d in order if d != ones[0]]


def move_rearrangements(body: Body) -> bool:
    """Arithmetic on values that are all reshaped or transposed alike is done before: XLA's ``ReshapeMover``.

    A reshape or transpose moves only when all that reads it can move with it.
    """
    candidates = {t: None for t in body.instructions if _is_candidate(t)}
    removed = True
    while candidates and removed:
        moved = {o: None for t in candidates for o in t.operands if o.op in (hlo.reshape, hlo.transpose)}
        removed = False
        for operand in moved:
            if any(user not in candidates for user in operand.users) or operand is body.root:
                for user in operand.users:
                    removed = candidates.pop(user, body) is not body or removed
    for term in candidates:
        if not term.erased:
            _sink_rearrangement(body, term)
    return bool(candidates)


def _is_candidate(term: Term) -> bool:
    if term.op not in ELEMENTWISE or not term.operands:
        return False
    first = _rearrangement(term)
    return first is not None and all(
        _alike(o, first) if o.op in (hlo.reshape, hlo.transpose) else _adapts(o, first) for o in term.operands)


def _rearrangement(term: Term) -> Term | None:
    """The first operand that is reshaped or transposed and cannot simply have another shape."""
    return next((o for o in term.operands if o.op in (hlo.reshape, hlo.transpose) and not _adapts(o.operands[0], o)), None)


def _alike(a: Term, b: Term) -> bool:
    if a.op != b.op or a.dims != b.dims:
        return False
    return Transpose.of(a).dimensions == Transpose.of(b).dimensions if a.op is hlo.transpose else a.operands[0].dims == b.operands[0].dims


def _adapts(term: Term, moved: Term) -> bool:
    """Whether a term can simply be made in the shape before ``moved``: a constant, something repeated."""
    if moved.dims == moved.operands[0].dims and (moved.op is hlo.reshape or is_sorted(Transpose.of(moved).dimensions)):
        return True
    if term.op is hlo.constant:
        return True
    if term.op is not hlo.broadcast or not is_sorted(Broadcast.of(term).dimensions):
        return False
    if moved.op is hlo.reshape:
        return not term.operands[0].dims
    order = Transpose.of(moved).dimensions
    return is_sorted([order[d] for d in Broadcast.of(term).dimensions])


def _sink_rearrangement(body: Body, term: Term) -> None:
    moved = _rearrangement(term)
    if moved is None:
        return
    dims = moved.operands[0].dims
    operands = [_undone(body, o, moved, term) for o in term.operands]
    small = body.make(term.op, tensor_type(term.dtype, dims), operands, term.attrs, term, term.bodies)
    if moved.op is hlo.reshape:
        body.replace(term, body.reshape(small, term.dims, term))
    else:
        body.replace(term, body.make(hlo.transpose, term.type, (small,), {"dimensions": Transpose.of(moved).dimensions}, term))


def _undone(body: Body, operand: Term, moved: Term, at: Term) -> Term:
    """An operand in the shape before ``moved``."""
    dims = moved.operands[0].dims
    if moved.op is hlo.reshape:
        if operand.dims == dims:
            return operand
        if operand.op is hlo.reshape and operand.operands[0].dims == dims:
            return operand.operands[0]
        return body.reshape(operand, dims, at)
    order = Transpose.of(moved).dimensions
    return operand if is_sorted(order) else body.transpose(operand, inverse(order), at)
