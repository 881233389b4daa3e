"""The fusion passes of XLA's GPU compiler before priority fusion, one behind the other, on one computation.

jaxlib ran them by default until 0.4.25; until 0.4.35 they could still be had by ``--xla_gpu_enable_priority_fusion=false``, and as of that
release they are modelled (fusion_pipeline.cc): twice instruction fusion, first without copying, then the merger. Behind it stand
``MultiOutputFusion``, as today, and the two passes that join kernels side by side, which ran behind priority fusion too for a while.
"""
from __future__ import annotations

from irscope.fusion.xla import cpu
from irscope.fusion.xla.cpu import Outcome
from irscope.fusion.xla.fusion_merger import Merger
from irscope.fusion.xla.gpu_device import Device
from irscope.fusion.xla.horizontal_loops import SideBySide, join_side_by_side
from irscope.fusion.xla.horizontal_reductions import join_reductions
from irscope.fusion.xla.instruction_fusion import InstructionRules
from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.fusion.xla.older_cost import MergerCost
from irscope.fusion.xla.refusal import Refusal


def run(computation: Computation, device: Device) -> Outcome:
    """Fuse a computation in place."""
    first = cpu.run(computation, rules=InstructionRules(computation, device, may_duplicate=False))
    second = cpu.run(computation, rules=InstructionRules(computation, device, may_duplicate=True))
    merger = Merger(computation, MergerCost(device))
    merger.run()
    outcome = Outcome(computation, [*first.fused, *second.fused, *merger.merged])
    rules = InstructionRules(computation, device, may_duplicate=True)
    for producer in computation.instructions:
        whole = merger.refusal(producer) if producer.body is not None and producer.users else None
        for consumer in producer.users:
            refusal = whole or second.refusals.get((producer.name, consumer)) or _told(rules, producer, consumer)
            if refusal is not None:
                outcome.refusals[producer.name, consumer] = refusal
    return outcome


def _told(rules: InstructionRules, producer: Instruction, consumer: Instruction) -> Refusal | None:
    """Why an instruction is not in a kernel that the merger made or changed."""
    return rules.refusal(consumer, producer, consumer.operands.index(producer)) if producer.body is None else None


def join(computation: Computation, device: Device, release: SideBySide, entry: bool) -> list[tuple[str, str]]:
    """Join kernels side by side in place, until there are no more; the pairs that were joined, in order."""
    joined: list[tuple[str, str]] = []
    made = [("", "")]
    while made:
        made = join_side_by_side(computation, release) if entry or not release.entry else []
        made += join_reductions(computation, device)
        joined += made
    return joined
