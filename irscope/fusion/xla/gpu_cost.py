"""XLA's GPU cost model: how long a kernel takes (gpu_performance_model*.cc)."""
from __future__ import annotations

from dataclasses import dataclass, field

from irscope.fusion.xla.durations import duration, single, ticks
from irscope.fusion.xla.gpu_cost_analysis import CostAnalysis
from irscope.fusion.xla.gpu_device import Device
from irscope.fusion.xla.gpu_kinds import KernelEmitter, kind_of
from irscope.fusion.xla.gpu_launch import launch, reads_coalesced
from irscope.fusion.xla.instructions import Instruction
from irscope.fusion.xla.tiling import L1_SPEEDUP, L2_SPEEDUP, OVERLAP, TileModel
from irscope.graph import TensorType
from irscope.ops import hlo

LAUNCH = 1000.0
"""Nanoseconds of a launch (``kKernelLaunchOverhead``)."""
@dataclass(slots=True)
class Run:
    """The time of one kernel in nanoseconds, and its components."""

    flops: float
    written: float
    write: float
    time: float


@dataclass(slots=True)
class Sums:
    """The summed times of all users of one producer, separately and with the producer fused, and of each user.

    Times are whole quarters of a nanosecond, so that addition and subtraction are exact. ``changed`` are users that may have been added,
    removed or changed since the sums were made.
    """

    changed: dict[Instruction, None]
    apart: float = 0.0
    fused: float = 0.0
    of: dict[Instruction, tuple[float, float]] = field(default_factory=dict)

    def drop(self, user: Instruction) -> None:
        """Remove a user that has changed, or that no longer reads the producer."""
        self.changed[user] = None
        known = self.of.pop(user, None)
        if known is not None:
            self.apart -= known[0]
            self.fused -= known[1]


class CostModel(CostAnalysis):
    """Times on one device. Results are cached until :meth:`forget`."""

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self.tiles = TileModel(device)
        self._runs: dict[Instruction, Run] = {}
        self._reads: dict[tuple[float, float, int, int], float] = {}
        self._sums: dict[Instruction, Sums] = {}
        self._whole: dict[Instruction, dict[tuple[int, bool], float]] = {}

    def forget(self, instruction: Instruction) -> None:
        """Invalidate what is cached of an instruction that changes or is removed."""
        super().forget(instruction)
        self.tiles.forget(instruction)
        self._runs.pop(instruction, None)
        self._sums.pop(instruction, None)
        self._whole.pop(instruction, None)
        for operand in instruction.operands:
            if operand in self._sums:
                self._sums[operand].drop(instruction)

    def gain(self, producer: Instruction) -> tuple[float, float]:
        """Nanoseconds without and with fusing ``producer`` into all its users."""
        sums = self._sums.get(producer)
        if sums is None:
            sums = self._sums[producer] = Sums(dict.fromkeys(producer.users))
        users = producer.users
        # The text does not show which of several identical users XLA times for all of them; most also read something else.
        alike = len(sums.changed) > 1 and producer.kind == "triton"
        for user in sorted(sums.changed, key=lambda u: -len(set(u.operands))) if alike else sums.changed:
            if user in users:
                apart, fused = sums.of[user] = self.run(user).time, self._fuse(producer, user)
                sums.apart += apart
                sums.fused += fused
        sums.changed = {}
        return LAUNCH * (len(users) + 1) + self.run(producer).time + sums.apart, LAUNCH * len(users) + sums.fused

    def gain_of(self, producer: Instruction, users: list[Instruction]) -> float:
        """Nanoseconds that fusing ``producer`` into some of its users saves, without its own launch."""
        sums = self._sums.get(producer)
        total = self.run(producer).time
        for user in users:
            known = sums.of.get(user) if sums is not None else None
            apart, fused = known or (self.run(user).time, self._fuse(producer, user))
            total += apart - fused
        return total

    def run(self, instruction: Instruction) -> Run:
        """The time of one kernel by itself."""
        found = self._runs.get(instruction)
        if found is None:
            facts = self.facts(instruction)
            kind = kind_of(instruction)
            blocks, threads = self._launch(None, instruction, kind)
            coalesced = reads_coalesced(kind, instruction, None)
            read = sum(self._read(o, facts.read[i], blocks, coalesced) for i, o in enumerate(instruction.operands) if o.is_array)
            write = duration(facts.written, self.device.bandwidth)
            compute = self._compute(facts.flops, blocks, threads)
            found = self._runs[instruction] = Run(facts.flops, facts.written, write, self._combined(compute, read + write))
            if kind is KernelEmitter.TRITON and (tiled := self.tiles.alone(instruction)):
                found.flops, found.time = tiled.flops, tiled.time
        return found

    def with_output(self, producer: Instruction, consumer: Instruction) -> tuple[float, float]:
        """Nanoseconds of two kernels, and of one that computes the results of both (``EstimateRunTimesForMultiOutputFusion``)."""
        apart = 2 * LAUNCH + self.run(producer).time + self.run(consumer).time
        return apart, LAUNCH + self._fuse(producer, consumer, self.run(producer).write)

    def _fuse(self, producer: Instruction, consumer: Instruction, more: float = 0.0) -> float:
        """The time of the kernel of ``consumer`` with ``producer`` fused; ``more`` is the additional time to write."""
        if "triton" in (producer.kind, consumer.kind) and consumer.op is not hlo.bitcast \
                and (tiled := self.tiles.together(producer, consumer)):
            return tiled.time
        mine, theirs = self.run(producer), self.run(consumer)
        a, b = self.facts(producer), self.facts(consumer)
        places = consumer.positions()
        number = places[producer][0]
        used = b.used[number]
        kind = kind_of(consumer, producer)
        blocks, threads = self._launch(producer, consumer, kind)
        # The model assumes that a user that reads a value twice, as in x * x, computes it twice but reads its operands once.
        times = used if consumer.body is not None else sum(b.used[i] for i in places[producer])
        compute = self._compute(mine.flops * times + theirs.flops, blocks, threads)
        coalesced = reads_coalesced(kind, producer, consumer)
        # What the consumer reads, without the producer and with the producer's operands. Times are whole quarters of a nanosecond, so that
        # the difference is exact; a sum over all operands for each producer of a wide kernel would take their number squared.
        read = self._read_once(consumer, blocks, coalesced)
        if producer.is_array:
            read -= self._read(producer, b.read[number], blocks, coalesced)
        for operand, numbers in producer.positions().items():
            if not operand.is_array:
                continue
            ours, other, common = a.read[numbers[0]], 0.0, 0.0
            if operand in places:
                other = b.read[places[operand][0]]
                read -= self._read(operand, other, blocks, coalesced)
                if ours and other:
                    common = operand.size * self._common(producer, consumer, operand, number)
            read += self._read(operand, round(ours * used) + other - round(common), blocks, coalesced)
        return self._combined(compute, read + theirs.write + more)

    def _common(self, producer: Instruction, consumer: Instruction, operand: Instruction, number: int) -> float:
        """How much of an operand both read at the same index."""
        if producer.body is not None:
            facts = self.facts(producer)
            assert facts.share is not None
            roots = facts.roots[producer.positions()[operand][0]]
            if sum(facts.share[r] for r in roots if r is producer.body.root) != 1.0:
                return 0.0
        elif not producer.is_elementwise:
            return 0.0
        if consumer.body is None:
            return 1.0 if consumer.is_elementwise else 0.0
        facts = self.facts(consumer)
        assert facts.share is not None
        both = facts.roots[number] & facts.roots[consumer.positions()[operand][0]]
        return sum(facts.share[r] for r in both)

    def _launch(self, producer: Instruction | None, consumer: Instruction, kind: KernelEmitter) -> tuple[int, int]:
        return launch(self.device, producer, consumer, kind)

    def _read_once(self, kernel: Instruction, blocks: int, coalesced: bool) -> float:
        """Nanoseconds to read each operand of a kernel, an operand that it has twice as at its first position."""
        known = self._whole.setdefault(kernel, {})
        if (blocks, coalesced) not in known:
            read = self.facts(kernel).read
            known[blocks, coalesced] = sum(self._read(operand, read[numbers[0]], blocks, coalesced)
                                           for operand, numbers in kernel.positions().items() if operand.is_array)
        return known[blocks, coalesced]

    def _read(self, operand: Instruction, total: float, blocks: int, coalesced: bool) -> float:
        line = 0 if coalesced or not isinstance(operand.type, TensorType) else max(1, operand.type.dtype.bits // 8)
        key = operand.size, total, blocks, line
        found = self._reads.get(key)
        if found is None:
            found = self._reads[key] = self._read_time(*key)
        return found

    def _read_time(self, size: float, total: float, blocks: int, line: int) -> float:
        """Nanoseconds to read ``total`` bytes of an operand; of each line of the memory ``line`` bytes are used, 0: all."""
        device = self.device
        net = min(size, total)
        rate = line / device.line if line else 1.0
        first = device.bandwidth * rate
        again = device.bandwidth
        if net < device.l2:
            again *= L2_SPEEDUP
            if net < device.l1_per_core * device.cores:
                again *= L1_SPEEDUP
        else:
            again *= rate
        limit = blocks * single(device.clock) * 1e9 * device.transactions
        return duration(net, min(first, limit)) + duration(total - net, min(again, limit))

    def _compute(self, flops: float, blocks: int, threads: int) -> float:
        device = self.device
        units = min(blocks, device.cores) * min(threads, device.fpus)
        return ticks(single(single(flops) / max(1, int(device.operations * units))))

    def _combined(self, compute: float, memory: float) -> float:
        """Nanoseconds of computing and of memory access, overlapped as far as the model assumes."""
        return compute + memory - ticks(min(compute, memory) * OVERLAP)
