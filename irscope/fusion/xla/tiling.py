"""How XLA times a Triton kernel: each block computes a tile of the result and all that it needs (gpu_indexing_performance_model.cc).

A tile has a size along each dimension of the result. The part that an instruction computes for it follows from its users: the same
part for an elementwise step, whole rows for a reduction of rows, nothing along broadcast dimensions. An instruction that tiles of
two sizes read is computed for both. Of all tiles whose sizes are powers of two, or a whole dimension, XLA takes the fastest.
"""
from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod

from irscope.fusion.memo import Memo
from irscope.fusion.xla.durations import TICKS, single
from irscope.fusion.xla.gpu_cycles import cycles
from irscope.fusion.xla.gpu_device import Device
from irscope.fusion.xla.gpu_kinds import FusedPair
from irscope.fusion.xla.instructions import Instruction
from irscope.fusion.xla.shapes import WARP, by_memory
from irscope.fusion.xla.tile_places import Array, Dims, Place, Places, Root, below
from irscope.graph import TensorType
from irscope.lazy import np
from irscope.ops import hlo

SHARE = 0.4
"""The share of a block's registers that a tile may use (``kFractionOfRegistersAvailableToStoreTile``)."""
REGISTERS = 65536
"""Registers of a block on compute capabilities 8.0 to 10.3 (``registers_per_block_limit``); with ``SHARE``, rows of 16,384 fit."""
WARPS = ((512, 1), (1024, 2), (16384, 4))
"""Elements of the largest tile of a kernel, up to which this many warps compute it (``GetNumWarps``) ..."""
MOST_WARPS = 8
"""... and beyond."""
OVERLAP = 0.95
"""The share of the shorter of computing and memory access that hides behind the longer (``kMemoryComputeParallelism``)."""
L2_SPEEDUP, L1_SPEEDUP = 2.5, 8.0
MAX_PLACES = 4096
"""The number of different tiles above which a kernel is not analysed: XLA's kernels have some tens."""
MAX_TILES = 1 << 16
"""The number of possible tiles above which none is searched: an array of four dimensions of 2**14 has fewer."""
MAX_BYTES = (1 << 63) - 1
"""The largest array that XLA's 64-bit counts hold; sizes of 0 count as 1 here, as the tiles of an empty array multiply too."""
ONLY_MOVED = hlo.named("bitcast broadcast constant copy dynamic-slice dynamic-update-slice gather iota pad parameter slice transpose tuple "
                       "reshape")
"""Operators that count as free: they only decide what is read."""
DECISIVE = frozenset(("dimensions", "slice", "direction", "padding", "iota_dimension"))
"""Attributes that distinguish two instructions."""


@dataclass(frozen=True, slots=True)
class TimedTile:
    """A tile, its number of warps, the number of blocks, and for all blocks the time in nanoseconds and the operations."""

    tile: Dims
    warps: int
    blocks: int
    time: float
    flops: float


class TileModel:
    """Times of tiled kernels on one device.

    Producers in consumers that look alike are timed once: the same operators over the same shapes, whatever they read, as in
    XLA's ``FusionDeduplicationCache``. So ``n * y`` takes the time found for ``n * n`` before.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self._numbers: dict[object, int] = {}
        self._alike: Memo[Instruction, int] = Memo(lambda instruction: self._number(_form(instruction)))
        self._known: dict[tuple[int, int, int], TimedTile | None] = {}

    def alone(self, kernel: Instruction) -> TimedTile | None:
        """A Triton kernel as it is, with its own tile; None if it has none that fits its result."""
        if len(kernel.tile) != len(kernel.dims) or 0 in kernel.tile:
            return None
        made = _Kernel.of(self.device, kernel, None)
        return made.fastest([kernel.tile], kernel.warps) if made is not None else None

    def together(self, producer: Instruction, consumer: Instruction) -> TimedTile | None:
        """The best tile of a producer fused into a consumer; None if there is none."""
        key = self._pair(producer, consumer)
        if key not in self._known:
            made = _Kernel.of(self.device, consumer, producer)
            tiles = _possible(made.root.dims) if made is not None else []
            self._known[key] = made.fastest(tiles) if made is not None and tiles else None
        return self._known[key]

    def likeness(self, producer: Instruction, consumer: Instruction) -> int:
        """The key of the kernel that a fusion of both would make; for :meth:`made`."""
        return self._number(self._pair(producer, consumer))

    def made(self, kernel: Instruction, likeness: int) -> None:
        """Record that a kernel has taken a producer."""
        self._alike[kernel] = likeness

    def forget(self, kernel: Instruction) -> None:
        """Forget a kernel that has changed, or is removed."""
        self._alike.pop(kernel, None)

    def _pair(self, producer: Instruction, consumer: Instruction) -> tuple[int, int, int]:
        return self._alike[producer], self._alike[consumer], consumer.operands.index(producer)

    def _number(self, key: object) -> int:
        return self._numbers.setdefault(key, len(self._numbers))


class _Kernel:
    """A kernel, or a consumer with a producer fused: what it computes and reads, for which tiles.

    ``work`` maps places to the operations that instructions needed at these places do for one element; ``reads`` holds the places of what
    is read, and how many arrays are read alike.
    """

    def __init__(self, device: Device, root: Instruction) -> None:
        self.device, self.root = device, root
        self.work: dict[frozenset[Place], float] = {}
        self.reads: dict[object, tuple[Instruction, frozenset[Place], int]] = {}

    @staticmethod
    def of(device: Device, consumer: Instruction, producer: Instruction | None) -> _Kernel | None:
        """The kernel of a consumer; None if some tile of it has no simple shape, or if an array is too large to be counted."""
        both, root = FusedPair(consumer, producer), consumer.root
        if not _is_counted(root):
            return None
        kernel = _Kernel(device, root)
        computed: dict[Instruction, set[Place]] = {}
        read: dict[Instruction, set[Place]] = {}
        start: Place = tuple(Root(d) for d in range(len(root.dims)))
        pending = [(root, start)]
        seen: set[tuple[Instruction, Place]] = set(pending)
        while pending:
            if len(seen) > MAX_PLACES + len(computed):
                return None
            instruction, place = pending.pop()
            computed.setdefault(instruction, set()).add(place)
            for number, given in enumerate(instruction.operands):
                wanted = below(instruction, number, place)
                inside = both.operand(instruction, number)
                operand = inside if inside is not None else both.outer(given)
                if wanted is None or not _is_counted(operand):
                    return None
                if inside is None:
                    read.setdefault(operand, set()).add(wanted)
                elif (operand, wanted) not in seen:
                    seen.add((operand, wanted))
                    pending.append((operand, wanted))
        for instruction, places in computed.items():
            kept = frozenset(places)
            kernel.work[kept] = kernel.work.get(kept, 0.0) + _work(device, instruction)
        for operand, places in read.items():
            kept = frozenset(places)
            alike = (operand.dims, operand.minor, operand.size, kept)
            kernel.reads[alike] = operand, kept, kernel.reads.get(alike, (operand, kept, 0))[2] + 1
        return kernel

    def fastest(self, tiles: list[Dims], warps: int = 0) -> TimedTile | None:
        """The fastest of ``tiles``, the first of equal ones; None if none fits. With 0 ``warps``, each has the number that XLA chooses.

        All are timed at once, as arrays with an element for each tile.
        """
        device, root = self.device, self.root
        sizes = np.array(tiles, dtype=np.int64).reshape(len(tiles), len(root.dims))
        places = Places(sizes, root.dims)
        blocks = np.prod(-(-np.array(root.dims, dtype=np.int64) // sizes), axis=1)
        flops, read = np.zeros(len(tiles)), np.zeros(len(tiles))
        largest, fits = np.ones(len(tiles), dtype=np.int64), np.ones(len(tiles), dtype=bool)
        for wanted, work in self.work.items():
            for place in places.different(wanted):
                fits &= place.valid & (place.padded <= SHARE * REGISTERS)
                largest = np.maximum(largest, place.padded)
                if work:
                    flops += work * blocks * place.padded * place.counts
        for operand, wanted, count in self.reads.values():
            each = max(1, operand.size // max(1, operand.elements))
            total, rate = np.zeros(len(tiles)), np.ones(len(tiles))
            for place in places.different(wanted):
                fits &= place.valid & (place.padded <= SHARE * REGISTERS)
                largest = np.maximum(largest, place.padded)
                total += blocks.astype(np.float64) * place.elements * each * place.counts
                rate = np.minimum(rate, self._coalesced(operand, place.sizes, each))
            read += count * self._read(operand, total, rate, blocks)
        if not fits.any():
            return None
        by_size = np.select([largest <= size for size, _ in WARPS], [n for _, n in WARPS], MOST_WARPS)
        chosen = np.full(len(tiles), warps) if warps else by_size
        each = max(1, root.size // max(1, root.elements))
        bandwidth = np.floor(self._coalesced(root, [sizes[:, d] for d in range(len(root.dims))], each) * device.bandwidth)
        memory = read + np.floor(root.size / bandwidth * TICKS + 0.5) / 4
        units = np.minimum(blocks, device.cores) * np.minimum(chosen * WARP, device.fpus)
        rates = np.maximum(1, np.floor(device.operations * units))
        compute = _ticks((flops.astype(np.float32) / rates.astype(np.float32)).astype(np.float64))
        time = np.where(fits, compute + memory - _ticks(np.minimum(compute, memory) * OVERLAP), np.inf)
        i = int(np.argmin(time))
        return TimedTile(tiles[i], int(chosen[i]), int(blocks[i]), float(time[i]), float(flops[i]))

    def _coalesced(self, instruction: Instruction, sizes: list[Array], each: int) -> Array:
        """The used share of the bytes moved: memory is moved in whole cache lines."""
        run, together = np.full(1, each, dtype=np.int64), np.ones(1, dtype=bool)
        for dimension in reversed(by_memory(instruction.dims, instruction.minor)):
            run = np.where(together, run * sizes[dimension], run)
            together = together & (sizes[dimension] >= instruction.dims[dimension])
        line = self.device.line
        return np.asarray(run / np.maximum(1, line * -(-run // line)))

    def _read(self, operand: Instruction, total: Array, rate: Array, blocks: Array) -> Array:
        device = self.device
        net = np.minimum(operand.size, total)
        fast, near = net < device.l2, net < device.l1_per_core * device.cores
        again = device.bandwidth * np.where(fast, np.where(near, L2_SPEEDUP * L1_SPEEDUP, L2_SPEEDUP), rate)
        limit = blocks * (single(device.clock) * 1e9 * device.transactions)
        return _duration(net, np.minimum(device.bandwidth * rate, limit)) + _duration(total - net, np.minimum(again, limit))


def _ticks(nanoseconds: Array) -> Array:
    """:func:`~irscope.fusion.xla.durations.ticks` of many."""
    return np.asarray(np.floor(nanoseconds * 4 / TICKS * TICKS + 0.5) / 4)


def _duration(bytes_: Array, bandwidth: Array) -> Array:
    """:func:`~irscope.fusion.xla.durations.duration` of many."""
    seconds = (bytes_.astype(np.float32) / bandwidth.astype(np.float32)).astype(np.float64)
    return np.asarray(np.floor(seconds * TICKS + 0.5) / 4)


def _is_counted(instruction: Instruction) -> bool:
    """Whether 64-bit integers hold the bytes of an instruction's result, as XLA's cost model counts them."""
    each = max(1, instruction.size // max(1, instruction.elements))
    return prod(size or 1 for size in instruction.dims) * each <= MAX_BYTES


def _possible(dims: Dims) -> list[Dims]:
    """All tiles of a result: powers of two along each dimension, or all of it; empty if there are too many."""
    along = [[*(1 << i for i in range((size - 1).bit_length())), size] if size > 1 else [size] for size in dims]
    return list(product(*along)) if prod(map(len, along)) <= MAX_TILES else []


def _work(device: Device, instruction: Instruction) -> float:
    """Cycles of one element."""
    if instruction.op in ONLY_MOVED:
        return 0.0
    if instruction.op is hlo.reduce:
        each = sum(cycles(device.capability, n.op, n.type.dtype.name) for g in instruction.bodies for n in g.nodes
                   if n.operands and isinstance(n.type, TensorType))
        return float(each * (instruction.operands[0].elements // max(1, instruction.elements) - 1))
    return float(cycles(device.capability, instruction.op, instruction.dtype))


def _form(instruction: Instruction) -> object:
    """A key that is equal for instructions that look alike: operators, types, attributes and, in a kernel, their connections."""
    inside = [instruction] if instruction.body is None else instruction.body.post_order()
    number = {member: i for i, member in enumerate(inside)}
    return tuple((member.op, str(member.type), tuple((str(o.type), number.get(o, -1)) for o in member.operands),
                  tuple(sorted((k, str(v)) for k, v in member.attrs.items() if k in DECISIVE))) for member in inside)
