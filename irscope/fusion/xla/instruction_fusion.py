"""XLA's GPU fusion pass before priority fusion: greedy, run once without and once with duplication (``GpuInstructionFusion``).

The tests are those of jaxlib 0.4.35 (instruction_fusion.cc, gpu_fusible.cc), in the same order; the engine that calls
them is that of ``xla-cpu``.
"""
from __future__ import annotations

from collections.abc import Iterable
from math import prod

from irscope.fusion.closure import closure
from irscope.fusion.memo import Memo
from irscope.fusion.xla.copies import Copies
from irscope.fusion.xla.cpu_rules import always_duplicable, is_expensive
from irscope.fusion.xla.gpu_device import Device
from irscope.fusion.xla.gpu_kinds import earlier_kind, members, traits_of_both
from irscope.fusion.xla.gpu_outputs import is_input_reduction, is_turning
from irscope.fusion.xla.gpu_rules import budget_refusal
from irscope.fusion.xla.instructions import Computation, Instruction, fuse_into
from irscope.fusion.xla.pairs import pair_refusal
from irscope.fusion.xla.refusal import Refusal, Rule
from irscope.fusion.xla.releases import OLD
from irscope.fusion.xla.reuse import ReusedOperands
from irscope.fusion.xla.shapes import is_unnested_reduction
from irscope.ops import hlo
from irscope.ops.attributes import ReduceWindow

CHEAP_FLOATS = hlo.named("divide sqrt rsqrt exponential")
"""Cheap on a GPU in f32 and f16 (``GpuInstructionFusion::IsExpensive``)."""
MAX_INPUTS = 10
"""A producer that computes one element from more than this many is not duplicated (``kMaxInputsPerOutput``)."""

PRODUCER_IS_FUSION = Rule(
    "producer-is-fusion", "the producer is a fusion",
    "{producer} is a kernel already; this pass fuses single instructions into kernels, the next one kernels into kernels")
CUSTOM = Rule("library-call", "the consumer is a custom fusion", "{consumer} is a library call or Triton kernel; nothing fuses into it")
REUSED = Rule(
    "not-profitable", "the producer is expensive, and the consumer reuses inputs",
    "{producer} is expensive and {consumer} reads its elements more than once, so fusing would recompute it")
UNCOALESCED = Rule(
    "uncoalesced", "fusing the producer would break read coalescing",
    "{consumer} reduces, and {producer} transposes its operand: reads would no longer be coalesced")
HEAVY = Rule(
    "heavy", "the fusion would create a heavy computation",
    "each element of {producer} is made of many, and {consumer}'s kernel would recompute elements of it")
ROOT = Rule("root", "not fusing into the output of the root instruction", "{producer} is the result of the computation")
SHARED = Rule("no-copies", "fusion pass cannot duplicate", "{producer} has other readers, and the first of the two passes copies nothing")
EXPENSIVE_TWICE = Rule(
    "expensive-twice", "expensive producer would be duplicated",
    "{producer} is expensive and has other readers, which would each recompute it")
COPIES = Rule(
    "code-duplication", "the fusion would result in an overly large code duplication",
    "the kernel of {consumer} reads {producer} at so many different indices that its code would be duplicated too often")


class InstructionRules:
    """``GpuInstructionFusion::ShouldFuse`` on one computation; ``may_duplicate`` selects which of the two runs it is."""

    lasting = frozenset((PRODUCER_IS_FUSION, CUSTOM, ROOT))

    def __init__(self, computation: Computation, device: Device, may_duplicate: bool) -> None:
        self.computation = computation
        self.device = device
        self.may_duplicate = may_duplicate
        self.reused = ReusedOperands()
        self.copies = Memo(Copies)

    def refusal(self, consumer: Instruction, producer: Instruction, number: int) -> Refusal | None:
        """Why an operand is not fused into ``consumer``; None if it is."""
        if producer.op is hlo.fusion:
            return Refusal(PRODUCER_IS_FUSION)
        if consumer.kind in ("kCustom", "triton"):
            return Refusal(CUSTOM)
        costly = costs_much(producer)
        if costly and producer in self.reused[consumer]:
            return Refusal(REUSED, f"{producer.op} of {producer.elements} elements, read by {consumer.op}")
        if is_turning(producer) and is_input_reduction(consumer):
            return Refusal(UNCOALESCED)
        if refusal := pair_refusal(producer, consumer):
            return refusal
        if numbers := heavy(producer, consumer):
            return Refusal(HEAVY, numbers)
        if producer is self.computation.root:
            return Refusal(ROOT)
        if len(producer.users) > 1 and (costly or not self.may_duplicate) and not always_duplicable(producer):
            return Refusal(EXPENSIVE_TWICE if self.may_duplicate else SHARED, f"{producer.op} with {len(producer.users)} readers")
        if refusal := budget_refusal(producer, consumer, self.device):
            return refusal
        if consumer.body is not None and (numbers := self.copies[consumer].too_many(producer)):
            return Refusal(COPIES, numbers)
        return None

    def fuse(self, producer: Instruction, consumer: Instruction) -> Instruction:
        """Fuse ``producer`` into the kernel of ``consumer``, which is returned (a new fusion if there was none)."""
        kind = earlier_kind(consumer, producer)
        fusion = self.computation.wrap(consumer, kind) if consumer.body is None else consumer
        self.reused.fusing(producer, fusion)
        copies, both = self.copies[fusion], traits_of_both(producer, fusion)
        readers = copies.take_operand(producer)
        copies.add(fuse_into(fusion, producer), readers)
        fusion.kind, fusion.traits = kind, both
        return fusion


def costs_much(instruction: Instruction) -> bool:
    """``GpuInstructionFusion::IsExpensive``: as on any target, but divisions, roots and exponentials in f32 and f16 are cheap."""
    return not (instruction.op in CHEAP_FLOATS and instruction.dtype in ("f32", "f16")) and is_expensive(instruction, OLD)


def heavy(producer: Instruction, consumer: Instruction) -> str:
    """``CreatesHeavyComputation``: how many elements a producer reads for one, if a consumer would recompute that; else empty."""
    inputs = max(map(_inputs_of_one, members(producer)))
    if inputs <= MAX_INPUTS:
        return ""
    behind: Iterable[Instruction] = [consumer]
    if consumer.body is not None:
        behind = closure([consumer.body.params[consumer.operands.index(producer)]], lambda i: i.users)
    return f"{inputs} > {MAX_INPUTS} elements make one" if any(map(_reads_again, behind)) else ""


def _inputs_of_one(instruction: Instruction) -> int:
    """``IsExpensiveToRepeat``: how many elements a window, or a reduction without a reduction kernel, combines into one."""
    if instruction.op is hlo.reduce_window:
        return prod(ReduceWindow.of(instruction).window.size)
    if instruction.op is hlo.reduce and not is_unnested_reduction(instruction):
        results = instruction.elements // sum(1 for _ in instruction.type.leaves())
        return instruction.operands[0].elements // max(1, results)
    return 1


def _reads_again(instruction: Instruction) -> bool:
    """``IfFusedReadsElementsMultipleTimes``."""
    if instruction.op in (hlo.gather, hlo.broadcast):
        return instruction.elements > instruction.operands[0].elements
    if instruction.op is hlo.reduce_window:
        window = ReduceWindow.of(instruction).window
        return any(size > stride for size, stride in zip(window.size, window.stride, strict=True))
    return False
