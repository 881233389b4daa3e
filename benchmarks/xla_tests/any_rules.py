"""The rules of the fusion pass that XLA's compilers derive theirs from (``InstructionFusion::ShouldFuse``), for ``xla_fusion_tests.py``.

No compiler runs it as it is: it is no policy of irscope, but the engine under the policy ``xla-cpu`` is the same.
"""
from __future__ import annotations

from irscope.fusion.xla.cpu_rules import EXPENSIVE_TWICE, IN_PLACE, ROOT, CpuRules, always_duplicable, is_expensive
from irscope.fusion.xla.inplace import conflict
from irscope.fusion.xla.instructions import Instruction
from irscope.fusion.xla.refusal import Refusal


class AnyRules(CpuRules):
    """Anything fusible goes into anything fusible: not across the root, not twice where it is expensive, nor against writing in place."""

    def refusal(self, consumer: Instruction, producer: Instruction, number: int) -> Refusal | None:
        if producer is self.computation.root:
            return Refusal(ROOT)
        if len(producer.users) > 1 and is_expensive(producer) and not always_duplicable(producer):
            return Refusal(EXPENSIVE_TWICE)
        words = conflict(producer, consumer)
        return Refusal(IN_PLACE[words]) if words else None
