"""The fusion passes of XLA's GPU compiler before priority fusion, in sequence, on one computation.

jaxlib ran them by default until 0.4.24; until 0.4.35 they were available with ``--xla_gpu_enable_priority_fusion=false``, and they are
modelled as of that release (fusion_pipeline.cc): instruction fusion twice, first without duplication, then the merger,
``MultiOutputFusion`` and the two passes that join kernels horizontally.
"""
from __future__ import annotations

from irscope.fusion.xla import cpu
from irscope.fusion.xla.cpu import Outcome
from irscope.fusion.xla.fusion_merger import Merger
from irscope.fusion.xla.gpu_device import Device
from irscope.fusion.xla.horizontal_loops import join_side_by_side
from irscope.fusion.xla.horizontal_reductions import join_reductions
from irscope.fusion.xla.instruction_fusion import InstructionRules
from irscope.fusion.xla.instructions import Computation
from irscope.fusion.xla.older_cost import MergerCost
from irscope.fusion.xla.releases import SideBySide
from irscope.ops import hlo


def run(computation: Computation, device: Device) -> Outcome:
    """Fuse a computation in place: producers into users, then kernels into kernels."""
    first = cpu.run(computation, rules=InstructionRules(computation, device, may_duplicate=False))
    second = cpu.run(computation, rules=InstructionRules(computation, device, may_duplicate=True))
    merger = Merger(computation, MergerCost(device))
    merger.run()
    outcome = Outcome(computation, [*first.fused, *second.fused, *merger.merged])
    rules = InstructionRules(computation, device, may_duplicate=True)
    for producer in computation.instructions:
        whole = merger.refusal(producer) if producer.body is not None and producer.users else None
        for consumer in producer.users:
            refusal = whole or second.refusals.get((producer.name, consumer))
            if refusal is None and producer.body is None:  # the second run has not tested a kernel that the merger made
                refusal = rules.refusal(consumer, producer, consumer.operands.index(producer))
            if refusal is not None:
                outcome.refusals[producer.name, consumer] = refusal
    return outcome


def drop_dead(computation: Computation) -> None:
    """Dead-code elimination (``HloDCE``): XLA does not join dead kernels with others."""
    for instruction in reversed(computation.post_order()):
        if not instruction.users and instruction is not computation.root and instruction.op is not hlo.parameter \
                and not instruction.has_side_effect:
            computation.remove(instruction)


def join_all(computation: Computation, device: Device, release: SideBySide, entry: bool) -> list[tuple[str, str]]:
    """Join kernels horizontally in place, to a fixpoint; returns the joined pairs, in order."""
    joined: list[tuple[str, str]] = []
    made = [("", "")]
    while made:
        made = join_side_by_side(computation, release) if entry or release.later else []
        made += join_reductions(computation, device)
        joined += made
    return joined
