"""How XLA updates the priority of a producer whose users change: by the difference that these users make.

``PriorityFusionQueue`` (priority_fusion.cc: ``ComputeRuntimesOfRemovedConsumers``, ``CalculateProducerPriority``) estimates a producer with
all its users once. When a fusion replaces some of them, it adds the times of the new ones and subtracts the times that it has cached of the
old ones. The result is not the estimate with all users of that moment: a producer that stays, because a bitcast reads it, is subtracted
from the priorities of its operands although it still reads them, and times that were dropped from the cache are not subtracted at all.
"""
from __future__ import annotations

from collections.abc import Collection, Iterable

from irscope.fusion.xla.gpu_cost import CostModel
from irscope.fusion.xla.gpu_rules import is_free_bitcast
from irscope.fusion.xla.instructions import Instruction


class Increments:
    """The pairs of producer and user whose times XLA's cache has, and what the current step replaces."""

    def __init__(self, cost: CostModel) -> None:
        self.cost = cost
        self._cached: dict[Instruction, dict[Instruction, None]] = {}
        self._replaced: dict[Instruction, float] = {}
        self._new: dict[Instruction, list[Instruction]] = {}

    def begin(self, producer: Instruction, consumers: Iterable[Instruction], queued: Collection[Instruction]) -> None:
        """Note what each queued operand of these loses when ``producer`` is fused into ``consumers``. Call it before they change."""
        taking = dict.fromkeys(consumers)
        lost: dict[Instruction, list[Instruction]] = {}
        for reader in (*taking, producer):
            for operand in dict.fromkeys(reader.operands):
                # A consumer that becomes a fusion is another instruction, which has no priority yet.
                if operand in queued and not is_free_bitcast(operand) and (operand.body is not None or operand not in taking):
                    known = lost.setdefault(operand, [])
                    if reader in self._cached.get(operand, ()):
                        known.append(reader)
        self._replaced = {operand: self.cost.gain_of(operand, readers) for operand, readers in lost.items()}
        self._new = {}

    def add(self, operand: Instruction, fusion: Instruction) -> None:
        """Note that a fusion of the current step reads ``operand``."""
        self._new.setdefault(operand, []).append(fusion)

    def change(self, producer: Instruction) -> float | None:
        """By how many nanoseconds the current step changes a priority; None if XLA estimates the producer with all its users."""
        if producer not in self._replaced:
            return None
        new = self._new[producer]
        self._cached.setdefault(producer, {}).update(dict.fromkeys(new))
        return self.cost.gain_of(producer, new) - self._replaced[producer]

    def estimated(self, producer: Instruction) -> None:
        """Note that XLA has estimated a producer with all its users."""
        self._cached[producer] = dict.fromkeys(producer.users)

    def invalidate(self, instruction: Instruction) -> None:
        """Drop the cached times of an instruction that changes or is removed (``GpuPerformanceModelCache::Invalidate``)."""
        self._cached.pop(instruction, None)
        for operand in instruction.operands:
            if operand in self._cached:
                self._cached[operand].pop(instruction, None)
