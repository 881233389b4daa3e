"""How XLA launches a kernel on a GPU: blocks, threads, and whether neighbours read neighbours."""
from __future__ import annotations

from itertools import zip_longest
from math import ceil

from irscope.fusion.xla.gpu_device import Device
from irscope.fusion.xla.gpu_kinds import Emitter, heroes_of, kind_of, members, traits
from irscope.fusion.xla.instructions import Instruction
from irscope.fusion.xla.shapes import WARP, reduction_dims
from irscope.fusion.xla.transposes import normalised, tiled_transpose, transpose_is_bitcast
from irscope.graph import TensorType

ROW_THREADS = 256
"""Threads of a block that reduces rows: short rows share it."""
ROW_THREADS_LONG = 1024
ROW_TILE = 16
"""Elements of a row that one thread adds."""
COLUMN_THREADS = 1024
"""Threads of a block that reduces columns."""
THREADS = 128
"""Threads of a block of a loop."""
MAX_UNROLLED = 4
"""Elements that one thread of a loop computes (``MaxUnrollFactor``) ..."""
WIDE_LOADS = frozenset(("sm_100", "sm_103"))
VECTOR_BITS = 128
"""... on Blackwell as many as fill a load of 128 bits ..."""
MAX_UNROLLED_WIDE = 8
"""... and 8 where a kernel moves elements: XLA's test of a pad wants 8 of 8 bits; arithmetic on 8 bits was logged with 16."""
SIDE_BY_SIDE = frozenset("parameter constant broadcast iota bitcast reshape tuple get-tuple-element".split())


def launch(device: Device, producer: Instruction | None, consumer: Instruction, kind: Emitter) -> tuple[int, int]:
    """Blocks and threads of a block of a kernel of some kind."""
    if kind is Emitter.TRITON:
        kernel = consumer if producer is None or consumer.kind == "triton" else producer
        blocks = 1
        for size, by in zip_longest(consumer.dims, kernel.tile[:len(consumer.dims)], fillvalue=1):
            blocks *= -(-size // max(1, by))
        return blocks, kernel.warps * WARP
    if kind is Emitter.REDUCTION:
        hero = heroes_of(consumer, producer)[0][1]
        rows, (batch, middle, minor) = reduction_dims(hero)
        if rows:
            across = minor if minor < WARP else min(ROW_THREADS_LONG, ceil(ceil(minor / ROW_TILE) / WARP) * WARP)
            beside = 1 if across * 2 > ROW_THREADS else middle if middle * across <= ROW_THREADS else ROW_THREADS // across
            return max(1, -(-middle // beside)), across * beside
        vector = 2 if minor % 2 == 0 and minor >= 2 * WARP else 1
        return max(1, batch * -(-minor // (WARP * vector))), COLUMN_THREADS
    if kind is Emitter.TRANSPOSE:
        tiled = next(t for _, hero in heroes_of(consumer, producer) if (t := tiled_transpose(hero)) is not None)
        return max(1, tiled.blocks), THREADS
    count = max(1, _first(consumer).elements // unroll_factor(device, producer, consumer))
    threads = min(THREADS, count)
    return -(-count // threads), threads


def unroll_factor(device: Device, producer: Instruction | None, consumer: Instruction) -> int:
    """How many elements one thread of a loop computes (``ComputeLoopFusionConfig``): several where there is work for every thread."""
    count = _first(consumer).elements
    if count < device.threads or traits(consumer).unroll_stops or (producer is not None and traits(producer).unroll_stops):
        return 1
    most = MAX_UNROLLED
    type_ = _first(consumer).type
    if device.capability in WIDE_LOADS and isinstance(type_, TensorType):
        wide = VECTOR_BITS // type_.dtype.bits
        most = max(most, min(_contiguous(part, wide) for part in (producer, consumer) if part is not None))
    while count % most:
        most //= 2
    return most


def _contiguous(kernel: Instruction, wide: int) -> int:
    """So many elements, or fewer, that a thread finds side by side: no reduction, and behind a transpose no more than stay together."""
    for member in members(kernel):
        if member.op == "reduce":
            return 1
        if not member.is_elementwise and member.op not in SIDE_BY_SIDE:
            wide = min(wide, MAX_UNROLLED_WIDE)
        if member.op in ("transpose", "copy") and member.is_array and not transpose_is_bitcast(member):
            dims, axes = normalised(member)
            wide = min(wide, dims[-1] if axes[-1] == len(axes) - 1 else 1)
    return wide


def _first(kernel: Instruction) -> Instruction:
    """What gives the first result of a kernel."""
    root = kernel if kernel.body is None else kernel.body.root
    return root.operands[0] if kernel.body is not None and root.op == "tuple" else root


def reads_coalesced(kind: Emitter, producer: Instruction, consumer: Instruction | None) -> bool:
    """XLA's ``IsReadCoalescedHeuristic``."""
    if kind is not Emitter.TRANSPOSE:
        for part in (producer, consumer):
            if part is not None and traits(part).moves_minor:
                return False
    if kind is Emitter.REDUCTION and consumer is not None:
        return not (kind_of(producer) is Emitter.REDUCTION and kind_of(consumer) is Emitter.REDUCTION)
    return True
