"""How XLA launches a kernel on a GPU: blocks, threads, and whether its reads are coalesced."""
from __future__ import annotations

from itertools import zip_longest
from math import gcd, prod

from irscope.fusion.xla.gpu_device import Device
from irscope.fusion.xla.gpu_kinds import KernelEmitter, heroes_of, kind_of, members, moves_minor_within, traits
from irscope.fusion.xla.gpu_updates import updated
from irscope.fusion.xla.instructions import Instruction
from irscope.fusion.xla.reduction_launch import reduction_launch
from irscope.fusion.xla.shapes import WARP
from irscope.fusion.xla.transposes import normalised, tiled_transpose, transpose_is_bitcast
from irscope.graph import TensorType
from irscope.ops import hlo
from irscope.ops.attributes import Scatter

THREADS = 128
"""Threads in a block of a loop."""
MAX_UNROLLED = 4
"""Elements that one thread of a loop computes (``MaxUnrollFactor``) ..."""
WIDE_LOADS = frozenset(("sm_100", "sm_103"))
VECTOR_BITS = 128
"""... on Blackwell as many as fill a load of 128 bits ..."""
MAX_UNROLLED_WIDE = 8
"""... and 8 if a kernel moves elements, or reads wider ones than it writes: XLA's test of a pad expects 8 of 8 bits, and so was logged
for comparisons; arithmetic on 8 bits was logged with 16."""
SIDE_BY_SIDE = hlo.named("parameter constant broadcast iota bitcast reshape tuple get-tuple-element")


def launch(device: Device, producer: Instruction | None, consumer: Instruction, kind: KernelEmitter) -> tuple[int, int]:
    """Blocks, and threads in a block, for a kernel of some kind."""
    if kind is KernelEmitter.TRITON:
        kernel = consumer if producer is None or consumer.kind == "triton" else producer
        sizes = zip_longest(consumer.dims, kernel.tile[:len(consumer.dims)], fillvalue=1)
        return prod(-(-size // max(1, by)) for size, by in sizes), kernel.warps * WARP
    if kind is KernelEmitter.REDUCTION:
        return reduction_launch(device, producer, consumer, heroes_of(consumer, producer)[0][1])
    if kind is KernelEmitter.TRANSPOSE:
        tiled = next(t for _, hero in heroes_of(consumer, producer) if (t := tiled_transpose(hero)) is not None)
        return max(1, tiled.blocks), THREADS
    if kind is KernelEmitter.SCATTER:
        return _scattered(device, producer, consumer)
    # The launch of a concatenation is sized for its largest piece.
    over = max(heroes_of(consumer, producer)[0][1].operands, key=lambda piece: piece.elements) if kind is KernelEmitter.CONCATENATE \
        else updated(producer, consumer)
    elements = over.elements if over is not None else _results(consumer)
    return _in_loop(elements, unroll_factor(device, producer, consumer, elements))


def _in_loop(elements: int, by: int) -> tuple[int, int]:
    """Blocks and threads of a loop over elements with several elements a thread (``CalculateLaunchDimensions``)."""
    count = max(1, elements // by)
    threads = min(THREADS, count)
    return -(-count // threads), threads


def _scattered(device: Device, producer: Instruction | None, consumer: Instruction) -> tuple[int, int]:
    """A scatter loops over its updates; if their indices are sorted, each warp adds up several updates."""
    scatter = consumer.results[0]
    results = len(scatter.operands) // 2
    target, places, update = scatter.operands[0], scatter.operands[results], scatter.operands[results + 1]
    slices, each = (update.dims or (1,))[0], prod(update.dims[1:])
    warps = THREADS // WARP
    attrs = Scatter.of(scatter)
    if attrs.indices_are_sorted and not attrs.unique_indices and slices > warps * device.cores:
        named = places.dims[1] if len(places.dims) > 1 else 1
        possible = prod(n - k + 1 for n, k in list(zip(target.dims, update.dims[1:], strict=False))[:named])
        a_warp = -(-slices // max(warps * device.cores, possible))
        wide = VECTOR_BITS // places.type.dtype.bits if isinstance(places.type, TensorType) else 1
        if named == 1 and a_warp > wide:
            a_warp = -(-a_warp // wide) * wide
        return -(-slices // (a_warp * warps)), THREADS
    return _in_loop(update.elements, gcd(each, unroll_factor(device, producer, consumer, update.elements)))


def unroll_factor(device: Device, producer: Instruction | None, consumer: Instruction, count: int | None = None) -> int:
    """How many elements one thread of a loop computes (``ComputeLoopFusionConfig``): several if there is work for every thread.

    ``count`` is the number of elements of the loop; by default those of the first result.
    """
    if count is None:
        count = _results(consumer)
    if count < device.threads or traits(consumer).unroll_stops or (producer is not None and traits(producer).unroll_stops):
        return 1
    most = MAX_UNROLLED
    type_ = consumer.results[0].type
    if device.capability in WIDE_LOADS and isinstance(type_, TensorType):
        wide = VECTOR_BITS // type_.dtype.bits
        most = max(most, min(_contiguous(part, wide) for part in (producer, consumer) if part is not None))
    while count % most:
        most //= 2
    return most


def _contiguous(kernel: Instruction, wide: int) -> int:
    """The largest vector up to a size that a thread reads contiguously: 1 for a reduction, at most the contiguous run of a transpose."""
    for member in members(kernel):
        if member.op is hlo.reduce:
            return 1
        if (not member.is_elementwise and member.op not in SIDE_BY_SIDE) or any(o.size * member.elements > member.size * o.elements
                                                                                for o in member.operands):
            wide = min(wide, MAX_UNROLLED_WIDE)
        if member.op in (hlo.transpose, hlo.copy) and member.is_array and not transpose_is_bitcast(member):
            dims, axes = normalised(member)
            wide = min(wide, dims[-1] if axes[-1] == len(axes) - 1 else 1)
    return wide


def _results(kernel: Instruction) -> int:
    """Elements of the first result of a kernel; of one of the results, if that is a variadic reduction."""
    first = kernel.results[0]
    return first.elements // max(1, sum(1 for _ in first.type.leaves()))


def reads_coalesced(kind: KernelEmitter, producer: Instruction, consumer: Instruction | None) -> bool:
    """XLA's ``IsReadCoalescedHeuristic``."""
    if kind is not KernelEmitter.TRANSPOSE and any(part is not None and moves_minor_within(part) for part in (producer, consumer)):
        return False
    if kind is KernelEmitter.REDUCTION and consumer is not None:
        return not (kind_of(producer) is KernelEmitter.REDUCTION and kind_of(consumer) is KernelEmitter.REDUCTION)
    return True
