"""XLA's time estimates at the end of 2024, as its fusion merger used them (``GpuPerformanceModel::EstimateRunTimes``).

While priority fusion compares whole kernels, the merger compares the difference: reading the producer's result back, against
computing the producer in each user and reading its operands there. As of jaxlib 0.4.35 and, except for the merger, 0.4.38
(gpu_performance_model*.cc, gpu_hlo_cost_analysis.cc).
"""
from __future__ import annotations

from dataclasses import replace

from irscope.fusion.xla.durations import duration
from irscope.fusion.xla.gpu_cost import LAUNCH, CostModel
from irscope.fusion.xla.gpu_cost_analysis import MAX_IR
from irscope.fusion.xla.gpu_device import Device
from irscope.fusion.xla.gpu_kinds import KernelEmitter, heroes_of, kind_of
from irscope.fusion.xla.instructions import Instruction
from irscope.fusion.xla.opcodes import EMITTED_AGAIN
from irscope.fusion.xla.reduction_launch import COLUMN_THREADS, MAX_THREADS, THREADS, TILE
from irscope.fusion.xla.shapes import RACE_FREE_BATCH, WARP, reduction_dims
from irscope.fusion.xla.tiling import L1_SPEEDUP, L2_SPEEDUP
from irscope.ops import hlo

COLUMN_TILE = 128
"""Elements of a column that one thread adds (``GetReductionTiling``)."""
MAX_SPLITS = 10
"""``kMaxBasicBlockSplitsPerFusion``: each split may double the code."""


class EarlierCost(CostModel):
    """The earlier cost model of priority fusion."""

    def __init__(self, device: Device) -> None:
        super().__init__(replace(device, whole_rate=True))


class MergerCost(EarlierCost):
    """Times and sizes in the merger's model."""

    def gain(self, producer: Instruction) -> tuple[float, float]:
        """Nanoseconds without and with fusing ``producer`` into all its users, as far as fusion changes them."""
        return self._into(producer, list(producer.users))

    def with_output(self, producer: Instruction, consumer: Instruction) -> tuple[float, float]:
        """The same for one user, whose kernel then also writes the producer's result."""
        apart, fused = self._into(producer, [consumer])
        return apart, fused + self.run(producer).write

    def _into(self, producer: Instruction, consumers: list[Instruction]) -> tuple[float, float]:
        mine, facts = self.run(producer), self.facts(producer)
        apart = LAUNCH * (len(consumers) + 1) + mine.time
        fused = LAUNCH * len(consumers)
        for consumer in consumers:
            number = consumer.operands.index(producer)
            used = self.facts(consumer).used[number]
            blocks, _ = self._launch(None, consumer, kind_of(consumer))
            total = round(mine.written * used)
            apart += self._again(min(mine.written, total), total, blocks)
            blocks, threads = self._launch(producer, consumer, kind_of(consumer, producer))
            read = 0.0
            for place, operand in enumerate(producer.operands):
                bytes_ = facts.read[place]
                common = self._common(producer, consumer, operand, number) if operand in consumer.operands else 0.0
                read += self._again(round(bytes_ / max(facts.used[place], 1.0)), bytes_ * (used - common), blocks)
            fused += self._combined(self._compute(mine.flops * used, blocks, threads), read)
        return apart, fused

    def _launch(self, producer: Instruction | None, consumer: Instruction, kind: KernelEmitter) -> tuple[int, int]:
        if kind is KernelEmitter.REDUCTION:
            return earlier_reduction(heroes_of(consumer, producer)[0][1])
        return super()._launch(producer, consumer, kind)

    def _combined(self, compute: float, memory: float) -> float:
        """The shorter time hides completely behind the longer (``GpuPerformanceModelOptions``)."""
        return max(compute, memory)

    def _again(self, net: float, total: float, blocks: int) -> float:
        """``ReadTime``: the time to read bytes again from the caches, as far as they fit."""
        device = self.device
        bandwidth = device.bandwidth
        if net < device.l2:
            bandwidth *= L2_SPEEDUP
            if net < device.l1_per_core * device.cores:
                bandwidth *= L1_SPEEDUP
        return duration(total, min(bandwidth, blocks * device.clock * 1e9 * device.transactions))

    def too_large(self, producer: Instruction, consumer: Instruction) -> str:
        """Why the code of both would be too large, in numbers; empty if it would not be."""
        a, b = self.facts(producer), self.facts(consumer)
        times = b.emitted[consumer.operands.index(producer)] if consumer.body is not None else 1.0
        splits = times * self.splits(producer) + self.splits(consumer)
        if splits > MAX_SPLITS:
            return f"{splits:.0f} > {MAX_SPLITS} instructions that split a block of code"
        code = (a.code * times + b.code) * 2 ** splits
        return f"{code:.0f} instructions of IR > {MAX_IR}" if code > MAX_IR else ""

    def splits(self, kernel: Instruction) -> float:
        """How many instructions of a kernel, each as often as it is emitted, start a basic block (``IrBasicBlockSplitCount``)."""
        if kernel.body is None:
            return float(kernel.op in EMITTED_AGAIN)
        root, total = kernel.body.root, 0.0
        times = {root: 1.0}
        roots: dict[Instruction, set[Instruction]] = {root: {root}}
        for instruction in reversed(kernel.body.post_order()):
            mine = roots.setdefault(instruction, set())
            copies = sum(times[r] for r in mine)
            total += copies * (instruction.op in EMITTED_AGAIN)
            alike = instruction.is_elementwise or instruction.op in (hlo.tuple, hlo.get_tuple_element)
            for operand in instruction.operands:
                theirs = roots.setdefault(operand, set())
                if alike:
                    theirs |= mine
                else:
                    theirs.add(operand)
                    times[operand] = times.get(operand, 0.0) + copies
        return total


def earlier_reduction(hero: Instruction) -> tuple[int, int]:
    """Blocks and threads of a block of a reduction, in tiles of elements that are read one at a time (reduction_base.cc)."""
    rows, (batch, middle, minor) = reduction_dims(hero)
    if not rows:
        return max(1, batch * -(-middle // (COLUMN_TILE * WARP)) * -(-minor // WARP)), COLUMN_THREADS
    middle, minor = max(1, middle), max(1, minor)  # what has no elements still takes a block
    across = minor if minor < WARP and WARP % minor == 0 else min(MAX_THREADS, -(-minor // (TILE * WARP)) * WARP)
    beside = 1
    if across * 2 <= THREADS:
        beside = THREADS // across
        if middle * across <= THREADS:
            beside = middle + (-middle * across % WARP + across - 1) // across
    return max(1, -(-batch // min(max(1, batch), RACE_FREE_BATCH)) * -(-middle // beside)), across * beside
