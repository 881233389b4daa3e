"""How XLA launches a kernel on a GPU: blocks, threads, and whether neighbours read neighbours."""
from __future__ import annotations

from itertools import zip_longest
from math import ceil

from irscope.fusion.xla.gpu_device import Device
from irscope.fusion.xla.gpu_kinds import Emitter, heroes_of, kind_of, traits
from irscope.fusion.xla.instructions import Instruction
from irscope.fusion.xla.shapes import WARP, reduction_dims
from irscope.fusion.xla.transposes import tiled_transpose

ROW_THREADS = 256
"""Threads of a block that reduces rows: short rows share it."""
ROW_THREADS_LONG = 1024
ROW_TILE = 16
"""Elements of a row that one thread adds."""
THREADS = 128
"""Threads of a block of a loop."""


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
        return max(1, batch * -(-minor // (WARP * vector))), 1024
    if kind is Emitter.TRANSPOSE:
        tiled = next(t for _, hero in heroes_of(consumer, producer) if (t := tiled_transpose(hero)) is not None)
        return max(1, tiled.blocks), THREADS
    count = max(1, _elements(consumer) // unroll_factor(device, producer, consumer))
    threads = min(THREADS, count)
    return -(-count // threads), threads


def unroll_factor(device: Device, producer: Instruction | None, consumer: Instruction) -> int:
    """How many elements one thread of a loop computes (``ComputeLoopFusionConfig``): several where there is work for every thread."""
    count = _elements(consumer)
    if count < device.threads or traits(consumer).unroll_stops or (producer is not None and traits(producer).unroll_stops):
        return 1
    return 4 if count % 4 == 0 else 2 if count % 2 == 0 else 1


def _elements(kernel: Instruction) -> int:
    """Elements of the first result of a kernel."""
    outputs = kernel.body is not None and kernel.body.root.op == "tuple"
    return kernel.body.root.operands[0].elements if outputs and kernel.body is not None else kernel.elements


def reads_coalesced(kind: Emitter, producer: Instruction, consumer: Instruction | None) -> bool:
    """XLA's ``IsReadCoalescedHeuristic``."""
    if kind is not Emitter.TRANSPOSE:
        for part in (producer, consumer):
            if part is not None and traits(part).moves_minor:
                return False
    if kind is Emitter.REDUCTION and consumer is not None:
        return not (kind_of(producer) is Emitter.REDUCTION and kind_of(consumer) is Emitter.REDUCTION)
    return True
