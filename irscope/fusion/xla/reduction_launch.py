"""How XLA launches a reduction on a GPU: blocks and threads by its sizes and by the width of its operands (emitters/reduction.cc)."""
from __future__ import annotations

from collections.abc import Iterable

from irscope.fusion.xla.gpu_device import Device
from irscope.fusion.xla.instructions import Instruction
from irscope.fusion.xla.shapes import WARP, reduction_dims
from irscope.graph import TensorType, Type

THREADS = 256
"""Threads in a block that reduces rows; short rows share it (``kThreadsPerBlockTarget``)."""
MAX_THREADS = 1024
"""Minimum of threads for one row (``MinThreadsXRowReduction``)."""
COLUMN_THREADS = 1024
"""Threads in a block that reduces columns."""
TILE = 16
"""Elements of a row that one thread adds (``kMinorReducedElementsPerThread``)."""
FEW_THREADS = 128
"""Threads in a block if few columns are left."""
WORD, LONG, LONGEST = 32, 64, 128
"""Bits: what is narrower than a word is read four at a time, what is as wide as ``LONG`` one at a time, short rows in loads of ``LONG`` or
``LONGEST``."""


def reduction_launch(device: Device, producer: Instruction | None, consumer: Instruction, hero: Instruction) -> tuple[int, int]:
    """Blocks, and threads in a block, of a kernel whose results are decided by a reduction."""
    rows, (batch, middle, minor) = reduction_dims(hero)
    read = _narrowest(operand.type for operand in _inputs(producer, consumer))
    if not rows:
        return _columns(batch, middle, minor, read)
    if hero.is_array and minor & (minor - 1) == 0 and (shared := _shared_rows(device, middle, minor, read, _narrowest([consumer.type]))):
        return shared
    across = min(MAX_THREADS, -(-minor // (TILE * WARP)) * WARP)
    beside = 1 if across * 2 > THREADS else max(1, min(middle, THREADS // across))
    return max(1, -(-middle // beside)), across * beside


def _columns(batch: int, middle: int, minor: int, read: int) -> tuple[int, int]:
    """Adjacent columns share a block of 32 rows of threads; if they are few, the block covers all of them."""
    if minor and WARP % minor == 0:
        vector = _vector(middle * minor, WARP, read)
        together = vector * FEW_THREADS // minor
        while together > WARP and vector > 1:
            vector, together = vector // 2, together // 2
        return max(1, batch), FEW_THREADS // max(1, together // WARP)
    return max(1, batch * -(-minor // (WARP * _vector(minor, WARP, read)))), MAX_THREADS


def _shared_rows(device: Device, kept: int, minor: int, read: int, written: int) -> tuple[int, int] | None:
    """Short rows share a block (``MultiRowReductionFusion``); None if a row needs more than a warp.

    Each thread reads as many elements at a time as leaves work for every core.
    """
    narrow, wide = min(read, written), max(read, written)
    vector = max(1, min(minor, LONG // narrow))
    if wide >= WORD:
        vector = max(1, min(LONGEST // wide, vector))

    def beside(by: int) -> int:
        return max(1, min(kept, THREADS // max(1, minor // by)))

    if minor > WARP * vector:
        return None
    while vector > 1 and -(-kept // beside(vector)) < device.cores:
        vector //= 2
    if minor > WARP * vector:
        return None
    return max(1, -(-kept // beside(vector))), beside(vector) * max(1, minor // vector)


def _vector(minor: int, threads: int, bits: int) -> int:
    """Elements that a thread reads at a time (``GetVectorSizeForMlir``): several if all threads still have work."""
    if minor % 2 or threads * 2 > minor or bits >= LONG:
        return 1
    if bits >= WORD or threads * 4 > minor:
        return 2
    return 4 if minor % 4 == 0 else 2


def _inputs(producer: Instruction | None, consumer: Instruction) -> Iterable[Instruction]:
    """The values that a kernel reads from outside."""
    for part in (producer, consumer):
        if part is not None:
            yield from (operand for operand in part.operands if operand is not producer)


def _narrowest(types: Iterable[Type]) -> int:
    """Bits of the narrowest element; 32 where there are none."""
    found = [leaf.dtype.bits for type in types for leaf in ([type] if isinstance(type, TensorType) else type.leaves())
             if isinstance(leaf, TensorType)]
    return min(found, default=WORD)
