"""Broadcasts: merged, made of less, and moved behind the arithmetic that can be done before it."""
from __future__ import annotations

from irscope.fusion.canonicalise.terms import Body, Term, tensor_type
from irscope.fusion.canonicalise.values import array_of
from irscope.fusion.dimensions import inserted_or_deleted, inverse, is_sorted
from irscope.fusion.xla.opcodes import ELEMENTWISE
from irscope.lazy import np
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast, Iota

PERMUTES = hlo.named("reshape reverse transpose")
CUTS = hlo.named("slice dynamic-slice")


def broadcast(body: Body, term: Term) -> bool:
    """Simplify a broadcast (``HandleBroadcast``)."""
    source = term.operands[0]
    dimensions = Broadcast.of(term).dimensions
    if term.elements == source.elements:
        if is_sorted(dimensions):
            return body.become(term, hlo.reshape, (source,))
        if term.rank == source.rank:
            return body.become(term, hlo.transpose, (source,), {"dimensions": inverse(dimensions)})
    if source.op is hlo.reshape:
        change = inserted_or_deleted(source.operands[0].dims, source.dims)
        if change is not None and not change[0]:
            kept = tuple(d for i, d in enumerate(dimensions) if i not in change[1])
            return body.become(term, hlo.broadcast, (source.operands[0],), {"dimensions": kept})
    if sink(body, term):
        return True
    if not source.dims:
        return _behind_movement(body, term)
    if source.op is hlo.iota:
        return body.become(term, hlo.iota, (), {"iota_dimension": dimensions[Iota.of(source).iota_dimension]})
    if source.op is hlo.broadcast:
        merged = tuple(dimensions[d] for d in Broadcast.of(source).dimensions)
        return body.become(term, hlo.broadcast, (source.operands[0],), {"dimensions": merged})
    if 1 in source.dims:
        kept = tuple(d for d, n in zip(dimensions, source.dims, strict=True) if n != 1)
        small = body.reshape(source, [n for n in source.dims if n != 1], term)
        return body.become(term, hlo.broadcast, (small,), {"dimensions": kept})
    return False


def _behind_movement(body: Body, term: Term) -> bool:
    """A scalar that is repeated and then moved or cut is repeated less."""
    scalar = term.operands[0]
    for user in list(term.users):
        moves = user.op in PERMUTES or (user.op is hlo.sort and user.is_array)
        cuts = user.op in CUTS and sum(o is term for o in user.operands) == 1 and user.operands[0] is term
        if (moves or cuts) and (user.users or user is body.root):
            return body.replace(user, body.broadcast(scalar, user.dims, (), user))
    return False


def sink(body: Body, term: Term) -> bool:
    """Arithmetic on values that are all spread alike is done before they are spread."""
    if not term.dims:
        return False
    source, dimensions = term.operands[0], Broadcast.of(term).dimensions
    changed = False
    for user in list(term.users):
        if user.erased or user.op not in ELEMENTWISE or user.op in (hlo.copy, hlo.fusion) or not (user.users or user is body.root):
            continue
        if not all(_alike(o, source, dimensions) for o in user.operands):
            continue
        operands = []
        for operand in user.operands:
            inner = operand.operands[0]
            operands.append(body.broadcast(inner, source.dims, (), term) if not inner.dims and source.dims else inner)
        small = body.make(user.op, tensor_type(user.dtype, source.dims), operands, user.attrs, user, user.bodies)
        body.replace(user, body.broadcast(small, user.dims, dimensions, user))
        changed = True
    return changed


def _alike(operand: Term, source: Term, dimensions: tuple[int, ...]) -> bool:
    """Whether an operand is a scalar that is spread, or spread as ``source`` is."""
    if operand.op is not hlo.broadcast:
        return False
    inner = operand.operands[0]
    return not inner.dims or (inner.dims == source.dims and inner.dtype == source.dtype
                              and Broadcast.of(operand).dimensions == dimensions)


def iota(body: Body, term: Term) -> bool:
    """Counting to one gives zeros."""
    return term.dims[Iota.of(term).iota_dimension] <= 1 and body.replace(term, body.full(0, term, term))


def constant(body: Body, term: Term) -> bool:
    """An array of one value is a scalar that is repeated; one that counts is an iota."""
    if not term.is_array or term.elements < 2:
        return False
    array = array_of(term)
    if array is None:
        return False
    flat = array.reshape(-1)
    with np.errstate(invalid="ignore"):  # a NaN equals nothing
        alike = bool((flat == flat[0]).all())
    if alike:
        return body.replace(term, body.full(flat[0], term, term))
    if term.rank == 1 and term.dtype in ("s32", "u32", "s64", "u64", "s16", "u16", "s8", "u8") and not flat[0]:
        step = flat[1]
        if step > 0 and bool((flat == flat.dtype.type(step) * np.arange(len(flat), dtype=flat.dtype)).all()):
            count = body.make(hlo.iota, term.type, (), {"iota_dimension": 0}, term)
            return body.replace(term, count if step == 1 else body.elementwise(hlo.multiply, (count, body.full(step, term, term)), term))
    return False
