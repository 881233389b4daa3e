"""Kernels that write into a buffer they read: they loop over the update, not the whole buffer (in_place_dynamic_update_slice.cc)."""
from __future__ import annotations

from irscope.fusion.closure import closure
from irscope.fusion.xla.gpu_kinds import FusedPair
from irscope.fusion.xla.instructions import Instruction
from irscope.ops import hlo


def updated(producer: Instruction | None, consumer: Instruction) -> Instruction | None:
    """The update that an in-place kernel loops over; None if it writes its whole results.

    XLA's ``CanEmitFusedDynamicUpdateSliceInPlace``. Before buffer assignment, as here, it assumes that a result may alias its operand:
    each result must be an update of one shape, of a value from outside that is read only at the updated indices.
    """
    whole = FusedPair(consumer, producer)
    updates = [_update_of(whole, root) for root in consumer.results]
    first = updates[0]
    if first is None:
        return None
    shape = first.operands[1]
    for update in updates:
        if update is None or not _same_shape(update.operands[1], shape):
            return None
        if not _leads_out(whole, update) or not _is_safe(whole, update, shape):
            return None
    return shape


def _same_shape(a: Instruction, b: Instruction) -> bool:
    return a.dims == b.dims and a.dtype == b.dtype and a.minor == b.minor


def _update_of(whole: FusedPair, root: Instruction) -> Instruction | None:
    """The update behind a result, through at most a bitcast."""
    found: Instruction | None = root
    if root.op is hlo.bitcast:
        found = whole.operand(root)
    return found if found is not None and found.op is hlo.dynamic_update_slice else None


def _leads_out(whole: FusedPair, update: Instruction) -> bool:
    """Whether only the result, possibly through one bitcast, uses an update."""
    readers = list(whole.users(update))
    while readers:
        if len(readers) > 1 or readers[0].op not in (hlo.bitcast, hlo.tuple):
            return False
        readers = list(whole.users(readers[0]))
    return True


def _is_safe(whole: FusedPair, update: Instruction, shape: Instruction) -> bool:
    """Whether the kernel reads the buffer only where the update writes."""
    below = whole.operand(update)
    if below is not None and (below.op is not hlo.bitcast or whole.operand(below) is not None):
        return False
    for reader in closure(whole.readers((below or update).operands[0]), lambda i: whole.users(i) if i is not update else ()):
        if reader.op is hlo.dynamic_slice and reader.operands[0] is update.operands[0] and _same_shape(reader, shape):
            if shape.elements != 1 and reader.operands[1:] != update.operands[2:]:
                return False
        elif reader is not update and not reader.is_elementwise and reader.op not in (hlo.bitcast, hlo.tuple):
            return False
    return True
