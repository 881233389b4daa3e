"""XLA's CPU fusion pass on one computation: greedy, consumers first, with fusions queued again. XLA's older GPU pass shares the engine."""
from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from irscope.fusion.xla.cpu_rules import CAN_NOT_DUPLICATE, CONSUMER_NOT_FUSIBLE, NOT_FUSIBLE, SHIFTED, CpuRules
from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.fusion.xla.refusal import Refusal, Rules
from irscope.fusion.xla.releases import LATEST, CpuRelease
from irscope.fusion.xla.shifted import shifted_by_their_maximum
from irscope.fusion.xla.unfusible import globally_unfusible


@dataclass(slots=True)
class Outcome:
    """The result of the pass on a computation: the changed computation, each fusion decision (producer, consumer), in order,
    and the refusal for each pair that ends up in different kernels."""

    computation: Computation
    fused: list[tuple[str, str]] = field(default_factory=list)
    refusals: dict[tuple[str, Instruction], Refusal] = field(default_factory=dict)


def run(computation: Computation, release: CpuRelease = LATEST, rules: Rules | None = None) -> Outcome:
    """Fuse a computation in place, as a release of XLA does; other ``rules`` may replace those of its CPU compiler."""
    rules = rules or CpuRules(computation, release)
    outcome = Outcome(computation)
    queue: list[Instruction | None] = list(computation.post_order())
    unfusible = _unfusible([i for i in queue if i is not None], rules, release)
    place = {instruction: i for i, instruction in enumerate(queue) if instruction is not None}
    while queue:
        consumer = queue.pop()
        if consumer is None:
            continue
        del place[consumer]
        if not consumer.is_fusible:
            for operand in consumer.operands:
                outcome.refusals[operand.name, consumer] = Refusal(CONSUMER_NOT_FUSIBLE)
            continue
        kernel = _Kernel(consumer, place)
        while (producer := _fuse_one(kernel, rules, unfusible, outcome)) is not None:
            if kernel.fusion is not consumer:
                unfusible.pop(consumer, None)
            if not producer.users:
                unfusible.pop(producer, None)
                queue[place.pop(producer)] = None
                computation.remove(producer)
    return outcome


class _Kernel:
    """A consumer that takes in one operand after the other, and the operands that it may still take.

    XLA puts a fusion back at the end of its queue whenever it took an operand, so that it finishes it before anything else, and then
    retries its operands from the last to the first. Operands that were refused for a lasting reason are not tried again;
    ``fresh`` are those that were not tried yet, by their places in the queue, ``again`` those that are retried.
    """

    def __init__(self, consumer: Instruction, place: dict[Instruction, int]) -> None:
        self.fusion = consumer
        self.place = place
        self.fresh: list[tuple[int, int, Instruction]] = []
        self.again: list[tuple[int, int, Instruction]] = []
        self.met: set[Instruction] = set()
        for number, operand in enumerate(consumer.operands):
            if operand in place and (consumer.body is None or operand not in self.met):
                self.met.add(operand)
                self.fresh.append((-place[operand], number, operand))
        heapify(self.fresh)

    def take(self, producer: Instruction, rules: Rules) -> None:
        """Fuse an operand into the kernel, and queue the operands that come with it."""
        changed = self.fusion.body is None
        before = len(self.fusion.operands)
        self.fusion = rules.fuse(producer, self.fusion)
        operands = self.fusion.operands if changed else self.fusion.operands[before - 1:]
        self.met.discard(producer)
        if changed:
            # A single instruction may read an operand twice; a kernel reads each operand once, and tries all of them again.
            self.fresh, self.again, self.met = [], [], set()
        for operand in operands:
            if operand not in self.met and operand in self.place:
                self.met.add(operand)
                heappush(self.fresh, (-self.place[operand], 0, operand))


def _fuse_one(kernel: _Kernel, rules: Rules, unfusible: dict[Instruction, Refusal], outcome: Outcome) -> Instruction | None:
    """Fuse the first fusible operand of a kernel, the last in the queue first; None if there is none."""
    asked: list[tuple[int, int, Instruction]] = []
    old = iter(kernel.again)
    repeated = next(old, None)
    while True:
        if repeated is not None and (not kernel.fresh or repeated < kernel.fresh[0]):
            entry, repeated = repeated, next(old, None)
        elif kernel.fresh:
            entry = heappop(kernel.fresh)
        else:
            kernel.again = asked
            return None
        _, number, producer = entry
        consumer = kernel.fusion
        if consumer.body is not None:
            number = -1
        refusal = _refusal(rules, unfusible, consumer, number, producer)
        if refusal is None:
            outcome.fused.append((producer.name, consumer.name))
            kernel.again = asked if repeated is None else [*asked, repeated, *old]
            kernel.take(producer, rules)
            return producer
        outcome.refusals[producer.name, consumer] = refusal
        if refusal.rule not in rules.lasting:
            asked.append(entry)


def _unfusible(instructions: list[Instruction], rules: Rules, release: CpuRelease) -> dict[Instruction, Refusal]:
    """The instructions that are fused into no user, each with the reason."""
    if not rules.may_duplicate:
        return {}
    found = {i: Refusal(CAN_NOT_DUPLICATE, because=why) for i, why in globally_unfusible(instructions, rules).items()}
    if release.stores_shifted and isinstance(rules, CpuRules):
        for instruction in shifted_by_their_maximum(instructions):
            found.setdefault(instruction, Refusal(SHIFTED))
    return found


def _refusal(rules: Rules, unfusible: dict[Instruction, Refusal], consumer: Instruction, number: int,
             producer: Instruction) -> Refusal | None:
    if not producer.is_fusible:
        return Refusal(NOT_FUSIBLE)
    if producer in unfusible:
        return unfusible[producer]
    return rules.refusal(consumer, producer, number)
