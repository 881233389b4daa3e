"""Broadcasts: merges them, simplifies their operands, and sinks them below elementwise operations."""
from __future__ import annotations

from irscope.fusion.canonicalise.computation import HloComputation, HloInstruction
from irscope.fusion.canonicalise.values import array_of
from irscope.fusion.dimensions import inserted_or_deleted, inverse, is_sorted
from irscope.fusion.xla.opcodes import ELEMENTWISE
from irscope.lazy import np
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast, Iota

PERMUTES = hlo.named("reshape reverse transpose")
CUTS = hlo.named("slice dynamic-slice")


def broadcast(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Simplify a broadcast (``HandleBroadcast``)."""
    source = instr.operands[0]
    dimensions = Broadcast.of(instr).dimensions
    if instr.elements == source.elements:
        if is_sorted(dimensions):
            return rewriter.become(instr, hlo.reshape, (source,))
        if instr.rank == source.rank:
            return rewriter.become(instr, hlo.transpose, (source,), {"dimensions": inverse(dimensions)})
    if source.op is hlo.reshape:
        change = inserted_or_deleted(source.operands[0].dims, source.dims)
        if change is not None and not change[0]:
            kept = tuple(d for i, d in enumerate(dimensions) if i not in change[1])
            return rewriter.become(instr, hlo.broadcast, (source.operands[0],), {"dimensions": kept})
    if sink(rewriter, instr):
        return True
    if not source.dims:
        return _behind_movement(rewriter, instr)
    if source.op is hlo.iota:
        return rewriter.become(instr, hlo.iota, (), {"iota_dimension": dimensions[Iota.of(source).iota_dimension]})
    if source.op is hlo.broadcast:
        merged = tuple(dimensions[d] for d in Broadcast.of(source).dimensions)
        return rewriter.become(instr, hlo.broadcast, (source.operands[0],), {"dimensions": merged})
    if 1 in source.dims:
        kept = tuple(d for d, n in zip(dimensions, source.dims, strict=True) if n != 1)
        small = rewriter.reshape(source, [n for n in source.dims if n != 1])
        return rewriter.become(instr, hlo.broadcast, (small,), {"dimensions": kept})
    return False


def _behind_movement(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Sink a broadcast below movement: a scalar that is broadcast and then moved or sliced is broadcast to the final shape."""
    scalar = instr.operands[0]
    for user in list(instr.users):
        moves = user.op in PERMUTES or (user.op is hlo.sort and user.is_array)
        cuts = user.op in CUTS and sum(o is instr for o in user.operands) == 1 and user.operands[0] is instr
        if (moves or cuts) and (user.users or user is rewriter.root):
            return rewriter.replace(user, rewriter.broadcast(scalar, user.dims, (), at=user))
    return False


def sink(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Compute elementwise operations before the broadcast if all operands are broadcast alike."""
    if not instr.dims:
        return False
    source, dimensions = instr.operands[0], Broadcast.of(instr).dimensions
    changed = False
    for user in list(instr.users):
        if user.erased or user.op not in ELEMENTWISE or user.op in (hlo.copy, hlo.fusion) or not (user.users or user is rewriter.root):
            continue
        if not all(_alike(o, source, dimensions) for o in user.operands):
            continue
        operands = [o.operands[0] if o.operands[0].dims else rewriter.spread(o.operands[0], source.dims) for o in user.operands]
        small = rewriter.like(user, operands, source.dims)
        rewriter.replace(user, rewriter.broadcast(small, user.dims, dimensions, at=user))
        changed = True
    return changed


def _alike(operand: HloInstruction, source: HloInstruction, dimensions: tuple[int, ...]) -> bool:
    """Whether an operand is a broadcast scalar, or broadcast as ``source`` is."""
    if operand.op is not hlo.broadcast:
        return False
    inner = operand.operands[0]
    return not inner.dims or (inner.dims == source.dims and inner.dtype == source.dtype and Broadcast.of(operand).dimensions == dimensions)


def iota(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Replace an iota along a dimension of size 1 by zeros."""
    return instr.dims[Iota.of(instr).iota_dimension] <= 1 and rewriter.replace(instr, rewriter.full(0, instr))


def constant(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Replace an array of one value by a broadcast scalar, and an array 0, 1, 2, ... by an iota."""
    if not instr.is_array or instr.elements < 2:
        return False
    array = array_of(instr)
    if array is None:
        return False
    flat = array.reshape(-1)
    with np.errstate(invalid="ignore"):  # NaN is not equal to itself
        alike = bool((flat == flat[0]).all())
    if alike:
        return rewriter.replace(instr, rewriter.full(flat[0], instr))
    if instr.rank == 1 and instr.dtype in ("s32", "u32", "s64", "u64", "s16", "u16", "s8", "u8") and not flat[0]:
        step = flat[1]
        if step > 0 and bool((flat == flat.dtype.type(step) * np.arange(len(flat), dtype=flat.dtype)).all()):
            count = rewriter.make(hlo.iota, instr.type, (), {"iota_dimension": 0})
            return rewriter.replace(instr, count if step == 1 else rewriter.elementwise(hlo.multiply, (count, rewriter.full(step, instr))))
    return False
