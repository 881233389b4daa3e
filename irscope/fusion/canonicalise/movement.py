"""Reshapes and transposes: merges, cancels and moves them."""
from __future__ import annotations

from itertools import pairwise

from irscope.fusion.canonicalise.computation import HloComputation, HloInstruction
from irscope.fusion.canonicalise.dots import places
from irscope.fusion.dimensions import common_factors, inserted_or_deleted, inverse, is_sorted, unmodified_places
from irscope.fusion.xla.opcodes import ELEMENTWISE
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast, Iota, Transpose


def reshape(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Simplify a reshape (``HandleReshape``)."""
    source = instr.operands[0]
    if source.dims == instr.dims:
        return rewriter.replace(instr, source)
    if not instr.elements:
        return False
    if source.op is hlo.reshape:
        return rewriter.become(instr, hlo.reshape, (source.operands[0],))
    if cancel_chain(rewriter, instr) or _hoist_transpose(rewriter, instr):
        return True
    if source.op is hlo.broadcast:
        dimensions = Broadcast.of(source).dimensions
        places = unmodified_places(source.dims, instr.dims, dimensions)
        if places is not None and is_sorted(dimensions):
            return rewriter.become(instr, hlo.broadcast, (source.operands[0],), {"dimensions": tuple(places)})
    if source.op is hlo.iota:
        return _of_iota(rewriter, instr)
    return _before_update(rewriter, instr)


def _of_iota(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Rewrite a reshaped iota to an iota along one dimension, or to a sum of several."""
    source = instr.operands[0]
    along = Iota.of(source).iota_dimension
    bounds = common_factors(source.dims, instr.dims)
    start = next((i for i, (a, b) in enumerate(bounds) if a == along and b < instr.rank and instr.dims[b] > 1), None)
    if start is None or not any(a == along + 1 for a, _ in bounds):
        return False
    total: HloInstruction | None = None
    factor = 1
    for d in range(bounds[start + 1][1] - 1, bounds[start][1] - 1, -1):
        count = rewriter.make(hlo.iota, instr.type, (), {"iota_dimension": d})
        if total is not None:
            count = rewriter.elementwise(hlo.add, (total, rewriter.elementwise(hlo.multiply, (count, rewriter.full(factor, instr)))))
        total = count
        factor *= instr.dims[d]
    return total is not None and rewriter.replace(instr, total)


def _before_update(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Move a reshape that only adds or drops dimensions of size 1 above an update."""
    update = instr.operands[0]
    if update.op is not hlo.dynamic_update_slice or len(update.users) != 1:
        return False
    change = inserted_or_deleted(update.dims, instr.dims)
    if change is None:
        return False
    deleted, inserted = change
    target, part, *starts = update.operands
    zero = rewriter.constant(0, starts[0].dtype)
    kept = [d for d in range(part.rank) if d not in deleted]
    dims, starts = [part.dims[d] for d in kept], [starts[d] for d in kept]
    for d in inserted:
        dims.insert(d, 1)
        starts.insert(d, zero)
    return rewriter.become(instr, hlo.dynamic_update_slice, (rewriter.reshape(target, instr.dims), rewriter.reshape(part, dims), *starts))


def _hoist_transpose(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Rewrite reshape(transpose(reshape(x))) to transpose(reshape(x)) if the outer reshape merges only dimensions contiguous in x."""
    transpose = instr.operands[0]
    if transpose.op is not hlo.transpose or transpose.operands[0].op is not hlo.reshape:
        return False
    order = Transpose.of(transpose).dimensions
    bounds = common_factors(instr.dims, transpose.dims)
    chunks: list[tuple[int, int, int]] = []  # (first dimension before the transpose, size, dimension of the result)
    for (a, b), (a2, b2) in pairwise(bounds):
        if a2 - a != 1 or b2 == b or any(order[k] != order[k - 1] + 1 for k in range(b + 1, b2)):
            return False
        chunks.append((order[b], instr.dims[a], a))
    chunks.sort()
    places = [0] * len(chunks)
    for k, (_, _, result) in enumerate(chunks):
        places[result] = k
    inner = rewriter.reshape(transpose.operands[0].operands[0], [size for _, size, _ in chunks])
    return rewriter.become(instr, hlo.transpose, (inner,), {"dimensions": tuple(places)})


def transpose(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Simplify a transpose (``HandleTranspose``)."""
    source, order = instr.operands[0], Transpose.of(instr).dimensions
    if is_sorted(order):
        return rewriter.replace(instr, source)
    if source.op is hlo.transpose:
        inner = Transpose.of(source).dimensions
        return rewriter.become(instr, hlo.transpose, (source.operands[0],), {"dimensions": tuple(inner[d] for d in order)})
    if source.op is hlo.broadcast:
        places = tuple(order.index(d) for d in Broadcast.of(source).dimensions)
        if is_sorted(places):
            return rewriter.become(instr, hlo.broadcast, (source.operands[0],), {"dimensions": places})
    if cancel_chain(rewriter, instr) or _of_dot(rewriter, instr):
        return True
    kept = [d for i, d in enumerate(order) if instr.dims[i] != 1]
    if len(kept) < instr.rank and is_sorted(kept):
        return rewriter.become(instr, hlo.reshape, (source,))
    return False


def _of_dot(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Rewrite the transpose of a dot to the dot with swapped sides, if the dot has no other users and each side has one free dimension."""
    dot, order = instr.operands[0], Transpose.of(instr).dimensions
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
    return rewriter.become(instr, hlo.dot, (rhs, lhs), attrs)


def cancel_chain(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Cancel a chain of transposes, and of reshapes that move one dimension of size 1, whose product is the identity."""
    if instr.op is hlo.reshape and not _moves_one(instr):
        return False
    order = _effective(instr) if instr.op is hlo.transpose else list(range(sum(n != 1 for n in instr.dims)))
    if order is None:
        return False
    last: HloInstruction | None = None
    current = instr.operands[0]
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
    if last is None or not is_sorted(order) or current.dims != instr.dims:
        return False
    return rewriter.replace(instr, current)


def _moves_one(instr: HloInstruction) -> bool:
    before, after = instr.operands[0].dims, instr.dims
    return sum(n == 1 for n in before) <= 1 and sum(n == 1 for n in after) <= 1 and inserted_or_deleted(before, after) is not None


def _effective(instr: HloInstruction) -> list[int] | None:
    """The permutation of a transpose without its dimension of size 1; None if there are several."""
    order = Transpose.of(instr).dimensions
    ones = [d for d, n in enumerate(instr.operands[0].dims) if n == 1]
    if len(ones) > 1:
        return None
    if not ones:
        return list(order)
    return [d - (d > ones[0]) for d in order if d != ones[0]]


def move_rearrangements(rewriter: HloComputation) -> bool:
    """Sink reshapes and transposes below elementwise operations whose operands are all rearranged alike: XLA's ``ReshapeMover``.

    A reshape or transpose moves only if all of its users can move with it.
    """
    candidates = {t: None for t in rewriter.instructions if _is_candidate(t)}
    removed = True
    while candidates and removed:
        moved = {o: None for t in candidates for o in t.operands if o.op in (hlo.reshape, hlo.transpose)}
        removed = False
        for operand in moved:
            if any(user not in candidates for user in operand.users) or operand is rewriter.root:
                for user in operand.users:
                    removed = candidates.pop(user, rewriter) is not rewriter or removed
    for instr in candidates:
        if not instr.erased:
            _sink_rearrangement(rewriter, instr)
    return bool(candidates)


def _is_candidate(instr: HloInstruction) -> bool:
    if instr.op not in ELEMENTWISE or not instr.operands or any(o.dims != instr.dims for o in instr.operands):
        return False  # a clamp may have scalar bounds, which are not rearranged
    first = _rearrangement(instr)
    return first is not None and all(
        _alike(o, first) if o.op in (hlo.reshape, hlo.transpose) else _adapts(o, first) for o in instr.operands)


def _rearrangement(instr: HloInstruction) -> HloInstruction | None:
    """The first operand that is a reshape or transpose and does not simply adapt to another shape."""
    return next((o for o in instr.operands if o.op in (hlo.reshape, hlo.transpose) and not _adapts(o.operands[0], o)), None)


def _alike(a: HloInstruction, b: HloInstruction) -> bool:
    if a.op != b.op or a.dims != b.dims:
        return False
    return Transpose.of(a).dimensions == Transpose.of(b).dimensions if a.op is hlo.transpose else a.operands[0].dims == b.operands[0].dims


def _adapts(instr: HloInstruction, moved: HloInstruction) -> bool:
    """Whether an instruction can be created in the shape before ``moved`` directly: a constant, or a broadcast."""
    if moved.dims == moved.operands[0].dims and (moved.op is hlo.reshape or is_sorted(Transpose.of(moved).dimensions)):
        return True
    if instr.op is hlo.constant:
        return True
    if instr.op is not hlo.broadcast or not is_sorted(Broadcast.of(instr).dimensions):
        return False
    if moved.op is hlo.reshape:
        return not instr.operands[0].dims
    order = Transpose.of(moved).dimensions
    return is_sorted([order[d] for d in Broadcast.of(instr).dimensions])


def _sink_rearrangement(rewriter: HloComputation, instr: HloInstruction) -> None:
    moved = _rearrangement(instr)
    if moved is None:
        return
    rewriter.at = instr
    dims = moved.operands[0].dims
    operands = [_undo(rewriter, o, moved) for o in instr.operands]
    small = rewriter.like(instr, operands, dims)
    rewriter.become(instr, moved.op, (small,), {} if moved.op is hlo.reshape else {"dimensions": Transpose.of(moved).dimensions})


def _undo(rewriter: HloComputation, operand: HloInstruction, moved: HloInstruction) -> HloInstruction:
    """An operand in the shape before ``moved``."""
    if moved.op is hlo.transpose:
        return rewriter.transpose(operand, inverse(Transpose.of(moved).dimensions))
    dims = moved.operands[0].dims
    is_undone = operand.dims != dims and operand.op is hlo.reshape and operand.operands[0].dims == dims
    return operand.operands[0] if is_undone else rewriter.reshape(operand, dims)
