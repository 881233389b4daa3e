"""The tests of XLA's GPU fusion pass in the order in which it makes them (``PriorityFusion::CanFuse`` and its callees)."""
from __future__ import annotations

from math import prod

from irscope.fusion.xla.gpu_cost import CostModel
from irscope.fusion.xla.gpu_device import Device
from irscope.fusion.xla.gpu_kinds import KernelEmitter, kind_of, members, traits
from irscope.fusion.xla.inplace import WORDS, conflict
from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.fusion.xla.refusal import Refusal, Rule
from irscope.fusion.xla.shapes import is_unnested_reduction, reduction_dims
from irscope.fusion.xla.transposes import tiled_transpose
from irscope.graph import TensorType
from irscope.ops import hlo

FUSIBLE = hlo.named(
    "copy iota constant reduce broadcast concatenate dynamic-slice dynamic-update-slice gather pad reduce-window reshape reverse scatter "
    "slice transpose")
SIGNIFICANT = 16
"""A reduction of at least this many elements to one is not fused into another reduction."""
MAX_REDUCTIONS = 8
"""``kMaxUnnestedReductionOutputsPerFusion``."""
MAX_BUFFERS = 96
"""``MaxOperandsAndOutputsPerFusion``."""

ROOT = Rule("root", "not fusing into the output of the root instruction", "{producer} is the result of the computation")
PRODUCER = Rule(
    "producer-not-fusible", "the producer is not fusible",
    "XLA's GPU emitters compute no {producer_op} inside another kernel; {producer} is a separate kernel or library call")
CONSUMER = Rule(
    "consumer-not-fusible", "the consumer is not fusible",
    "XLA's GPU emitters compute nothing inside a {consumer_op}: {consumer} reads {producer} from memory")
NOT_TILED = Rule(
    "not-tiled", "Fusion can not be tiled with SymbolicTileAnalysis: ",
    "{producer} and {consumer} would be one Triton kernel that holds whole rows, and a reshape on the way gives rows no simple shape")
NOT_TRITON = Rule(
    "triton-unsupported", "Unsupported opcode",
    "{producer} and {consumer} would be one Triton kernel, which cannot compute all that they hold")
BITCAST = Rule("bitcast-consumer", "not fusing into a single bitcast as consumer", "{consumer} only reshapes {producer}: nothing is lost")
ONLY_BITCASTS = Rule(
    "only-bitcast-users", "not fusing because there are only bitcast users",
    "every reader of {producer} only reshapes it, and XLA fuses nothing into a bitcast; the bitcast's readers are separate kernels")
NO_USERS = Rule("no-users", "No users to fuse", "nothing reads {producer}")
INTO_SCATTER_RESULT = Rule("scatter-result", "do not fuse into the output of scatter",
                           "{producer} is a scatter, whose result is complete only at its end")
SCATTER_BUFFER = Rule("scatter-buffer", "do not fuse into the in-place operand of scatter",
                      "{consumer} updates the buffer of {producer} in place")
SCATTER_SHARED = Rule("scatter-shared", "Producer uses the in-place operand of a scatter",
                      "{consumer} updates a buffer in place that {producer} reads")
TWO_REDUCTIONS = Rule(
    "reduce-after-reduce", "both the producer and the consumer contain a reduce",
    "both {producer} and {consumer}'s kernel reduce, and XLA computes consecutive significant reductions in two kernels")
EPILOGUE = Rule(
    "reduce-epilogue", "fusion into output of a reduce fusion would create a loop fusion",
    "XLA finishes a reduction only by steps that read nothing else; with {consumer} after it the reduction would become a plain loop")
SHARED_MEMORY = Rule("shared-memory", "shared memory usage would be over the budget of {{}}B",
                     "one kernel would need more shared memory than a block has")
REDUCTIONS = Rule("too-many-reductions", f"over {MAX_REDUCTIONS} unnested reductions in fusion",
                  "one kernel would hold more reductions than XLA emits")
BUFFERS = Rule(
    "too-many-buffers", "Number of operands and output buffers is larger than allowed budget per fusion",
    "one kernel would read and write more buffers than a launch may name")
CODE = Rule(
    "code-duplication", "the fusion would result in an overly large code duplication",
    "{consumer} reads {producer} at so many indices that the code would be duplicated too often")
SLOWER = Rule(
    "slower", "[negative priority]",
    "XLA's cost model expects that fusing {producer} into all its readers takes longer than it saves")
IN_PLACE: dict[str, Rule] = {
    words: Rule("in-place", words, "{consumer} writes into a buffer that {producer} also touches")
    for words in WORDS
}


class GpuRules:
    """``CanFuse`` on one computation; ``triton`` are its Triton kernels."""

    def __init__(self, computation: Computation, cost: CostModel) -> None:
        self.computation = computation
        self.cost = cost

    def refusal(self, producer: Instruction, consumer: Instruction) -> Refusal | None:
        """Why ``producer`` is not fused into ``consumer``; None if it may be."""
        if producer is self.computation.root:
            return Refusal(ROOT)
        if not is_fusible(producer):
            return Refusal(PRODUCER)
        if not is_fusible(consumer):
            return Refusal(CONSUMER)
        if is_triton(producer) or is_triton(consumer):
            return self._triton(producer, consumer)
        if is_free_bitcast(consumer):
            return Refusal(BITCAST)
        if refusal := scatter_refusal(producer, consumer):
            return refusal
        if _reduces(producer) and _reduces(consumer):
            return Refusal(TWO_REDUCTIONS)
        if kind_of(producer) is KernelEmitter.REDUCTION and kind_of(consumer, producer) is KernelEmitter.LOOP:
            return Refusal(EPILOGUE)
        if refusal := budget_refusal(producer, consumer, self.cost.device):
            return refusal
        if numbers := self.cost.too_large(producer, consumer):
            return Refusal(CODE, numbers)
        if words := conflict(producer, consumer):
            return Refusal(IN_PLACE[words])
        return None

    def _triton(self, producer: Instruction, consumer: Instruction) -> Refusal | None:
        """A producer or consumer of a Triton kernel must become part of it."""
        for part in (producer, consumer):
            for instruction in members(part) if not is_triton(part) else ():
                if not _in_triton(instruction):
                    rule = Rule(NOT_TRITON.name, f"Unsupported opcode {instruction.op}", NOT_TRITON.cause)
                    return Refusal(rule, f"{instruction.op} {instruction.name}")
                if instruction.op in (hlo.bitcast, hlo.reshape) and splits_rows(instruction):
                    return Refusal(NOT_TILED, f"{list(instruction.operands[0].dims)} to {list(instruction.dims)}")
        return None


def budget_refusal(producer: Instruction, consumer: Instruction, device: Device, into: bool = True) -> Refusal | None:
    """``FusionFitsInBudget``; ``into`` says that the producer is fused into the consumer, otherwise both stay results."""
    needed, limit = shared_memory(producer) + shared_memory(consumer), device.shared_memory
    if needed > limit:
        rule = Rule(SHARED_MEMORY.name, f"shared memory usage would be over the budget of {limit}B", SHARED_MEMORY.cause)
        return Refusal(rule, f"{needed} > {limit} bytes")
    reductions = traits(producer).reductions + traits(consumer).reductions
    if reductions > MAX_REDUCTIONS:
        return Refusal(REDUCTIONS, f"{reductions} > {MAX_REDUCTIONS}")
    outputs = _buffers(producer) + _buffers(consumer)
    if len(producer.operands) + len(consumer.operands) - 1 + outputs <= MAX_BUFFERS:
        return None
    mine, theirs = producer.positions(), consumer.positions()
    # A set of all operands for each producer of a wide kernel would take their number squared.
    operands = len(theirs) - (producer in theirs) + sum(o not in theirs and o is not consumer for o in mine)
    if into and operands <= len(consumer.operands):
        return None
    if operands + outputs > MAX_BUFFERS:
        return Refusal(BUFFERS, f"{operands + outputs} > {MAX_BUFFERS}")
    return None


def fits_budget(first: Instruction, second: Instruction, device: Device) -> bool:
    """Whether one kernel can have the results of both."""
    return budget_refusal(first, second, device, into=False) is None


def is_full(kernel: Instruction) -> bool:
    """Whether a kernel has so many buffers that it takes no other kernel, which would add at least one."""
    return len(kernel.operands) + _buffers(kernel) + 1 > MAX_BUFFERS


def is_triton(instruction: Instruction) -> bool:
    """Whether an instruction is a Triton kernel of XLA's that may still be extended."""
    return instruction.kind == "triton"


def is_free_bitcast(instruction: Instruction) -> bool:
    """Whether an instruction is a bitcast that keeps the element width: it costs nothing."""
    if instruction.op is not hlo.bitcast:
        return False
    mine, source = instruction.type, instruction.operands[0].type
    return isinstance(mine, TensorType) and isinstance(source, TensorType) and mine.dtype.bits == source.dtype.bits


def is_fusible(instruction: Instruction) -> bool:
    """Whether XLA's GPU emitters can compute an instruction as part of a kernel."""
    if not instruction.is_fusible:
        return False
    if instruction.op is hlo.fusion:
        return instruction.kind != "kCustom" or instruction.is_elementwise
    return instruction.is_elementwise or instruction.op in FUSIBLE or is_free_bitcast(instruction)


TRITON = hlo.named("parameter constant broadcast bitcast reshape transpose slice iota tuple")


def _in_triton(instruction: Instruction) -> bool:
    """Whether XLA's Triton emitter can compute an instruction."""
    if instruction.is_elementwise:
        return instruction.dtype not in ("c64", "c128")
    return instruction.op in TRITON or (instruction.op is hlo.reduce and instruction.is_array)


def splits_rows(instruction: Instruction) -> bool:
    """Whether a reshape merges or splits the last dimension: a tile of whole rows then has no simple shape."""
    ours, theirs = [[d for d in i.dims if d != 1] for i in (instruction, instruction.operands[0])]
    return bool(ours and theirs) and ours[-1] != theirs[-1]


def scatter_refusal(producer: Instruction, consumer: Instruction) -> Refusal | None:
    """``CanEmitInputFusedScatter``: a scatter writes its first operand in place."""
    if producer.root.op is hlo.scatter:
        return Refusal(INTO_SCATTER_RESULT)
    if consumer.root.op is not hlo.scatter:
        return None
    buffer = consumer.root.operands[0]
    if consumer.body is not None:
        if buffer.op is not hlo.parameter:
            return None
        buffer = consumer.operands[consumer.body.params.index(buffer)]
    if buffer is producer:
        return Refusal(SCATTER_BUFFER)
    return Refusal(SCATTER_SHARED) if buffer in producer.operands else None


def _reduces(instruction: Instruction) -> bool:
    """Whether a kernel contains a significant reduction."""
    known = traits(instruction)
    if known.significant is None:
        known.significant = any(i.op is hlo.reduce and i.is_array and prod(i.operands[0].dims) // max(1, prod(i.dims)) >= SIGNIFICANT
                                for i in members(instruction))
    return known.significant


def shared_memory(instruction: Instruction) -> int:
    """Bytes of shared memory that the parts of a kernel would need."""
    known = traits(instruction)
    if known.shared_memory is None:
        known.shared_memory = sum(_shared_by(part) for part in members(instruction) if part.op in (hlo.reduce, hlo.transpose, hlo.copy))
    return known.shared_memory


def _shared_by(part: Instruction) -> int:
    if part.op is hlo.reduce and is_unnested_reduction(part):
        width = sum(map(_width, part.operands[:len(part.operands) // 2]))
        return 32 * width if reduction_dims(part)[0] else 32 * (4 * 32 + 1) * width
    tiled = tiled_transpose(part)
    return tiled.shared_memory if tiled is not None else 0


def _width(instruction: Instruction) -> int:
    return max(1, instruction.type.dtype.bits // 8) if isinstance(instruction.type, TensorType) else 4


def _buffers(instruction: Instruction) -> int:
    """The number of buffers of a result: one for each array, and one for the tuple of several."""
    return sum(1 for _ in instruction.type.leaves()) + (not instruction.is_array)
