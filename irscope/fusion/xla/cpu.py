"""XLA's CPU fusion pass on one computation: greedy, consumers first, what was fused is looked at again."""
from __future__ import annotations

from dataclasses import dataclass, field

from irscope.fusion.xla.cpu_rules import CAN_NOT_DUPLICATE, CONSUMER_NOT_FUSIBLE, LASTING, NOT_FUSIBLE, CpuRules
from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.fusion.xla.refusal import Refusal
from irscope.fusion.xla.unfusible import globally_unfusible


@dataclass(slots=True)
class Outcome:
    """What the pass made of a computation: the changed computation, every decision that it took (producer, consumer), in order,
    and why each pair of kernels that ends up apart was kept apart."""

    computation: Computation
    fused: list[tuple[str, str]] = field(default_factory=list)
    refusals: dict[tuple[str, Instruction], Refusal] = field(default_factory=dict)


def run(computation: Computation) -> Outcome:
    """Fuse a computation in place."""
    rules = CpuRules(computation)
    outcome = Outcome(computation)
    queue: list[Instruction | None] = list(computation.post_order())
    unfusible = globally_unfusible([i for i in queue if i is not None], rules)
    settled: dict[Instruction, set[Instruction]] = {}
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
        known = settled.setdefault(consumer, set())
        numbers = [i for i, operand in enumerate(consumer.operands) if operand in place and operand not in known]
        numbers.sort(key=lambda i: -place[consumer.operands[i]])
        for number in numbers:
            producer = consumer.operands[number]
            if not producer.is_fusible:
                refusal: Refusal | None = Refusal(NOT_FUSIBLE)
            elif producer in unfusible:
                refusal = Refusal(CAN_NOT_DUPLICATE, because=unfusible[producer])
            else:
                refusal = rules.refusal(consumer, number)
            if refusal is not None:
                outcome.refusals[producer.name, consumer] = refusal
                if refusal.rule in LASTING:
                    known.add(producer)
                continue
            outcome.fused.append((producer.name, consumer.name))
            fusion = rules.fuse(producer, consumer)
            place[fusion] = len(queue)
            queue.append(fusion)
            if not producer.users:
                unfusible.pop(producer, None)
                queue[place.pop(producer)] = None
                computation.remove(producer)
            if fusion is not consumer:
                settled.pop(consumer)
                unfusible.pop(consumer, None)
            break
    return outcome
