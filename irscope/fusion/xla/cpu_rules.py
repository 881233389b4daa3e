"""The tests of XLA's CPU fusion pass in the order in which it makes them (cpu_instruction_fusion.cc, instruction_fusion.cc)."""
from __future__ import annotations

from irscope.fusion.memo import Memo
from irscope.fusion.xla.copies import Copies
from irscope.fusion.xla.inplace import WORDS, conflict
from irscope.fusion.xla.instructions import Computation, Instruction, fuse_into
from irscope.fusion.xla.opcodes import CHEAP_WHEN_REAL, CPU_CHEAP, CPU_LOOP_FUSIBLE
from irscope.fusion.xla.refusal import Refusal, Rule
from irscope.fusion.xla.releases import LATEST, CpuRelease, MinorConcatenations
from irscope.fusion.xla.reuse import ReusedOperands
from irscope.graph import TensorType
from irscope.ops import hlo
from irscope.ops.attributes import Concatenate, Dot, Reduce

MAX_CONCATENATED = 8
"""XLA's ``kMaxConcatenateArguments``."""
MAX_REDUCTIONS = 5
"""XLA's ``kMaxReductionsInFusion``."""
SMALL_VECTOR_BYTES = 16 * 1024
"""XLA's ``kFusionThresholdBytes``: a vector below it stays in the cache while a matrix is multiplied by it."""

NOT_FUSIBLE = Rule(
    "operand-not-fusible", "Operand (...) is not fusible",
    "XLA never fuses a {producer_op} into anything: it has side effects or control flow")
CONSUMER_NOT_FUSIBLE = Rule(
    "consumer-not-fusible", "[consumer is not fusible: {consumer_op}]",
    "XLA never fuses anything into a {consumer_op}: it has side effects or control flow")
CAN_NOT_DUPLICATE = Rule(
    "can-not-duplicate", "operand can not be duplicated",
    "{producer} reads more than one large operand, so that XLA fuses it into all that need it or into none, and one path is not fused")
SHIFTED = Rule(
    "shifted-by-its-maximum", "operand can not be duplicated",
    "a maximum of {producer} is subtracted from it under an exponential; two copies of {producer} may be rounded differently, which the "
    "exponential would turn into inf or nan, so that XLA computes it once and stores it (since jaxlib 0.11)")
CUSTOM = Rule(
    "library-call", "Don't fuse instructions from custom fusions/calls",
    "{consumer} is a library call (kind=kCustom); nothing fuses into it in this pass")
LARGE_CONSTANT = Rule("large-constant", "Don't fuse non-scalar constants.", "{producer} is a constant of more than one element")
OUTPUT_FUSED = Rule(
    "output-fused", "Bailing because producer can be output-fused into some operand.",
    "{producer} adds to a matrix-vector product and is fused into that product's kernel instead")
NOT_LOOP_FUSIBLE = Rule(
    "not-loop-fusible", "Producer is not loop-fusible.",
    "XLA's CPU loops cannot compute {producer}, a {producer_op}, element by element; its result is written to memory first")
CONCATENATE = Rule(
    "concatenate", "Concatenate fusion is inefficient.",
    "a concatenation of many pieces, or along a long minor dimension, would branch in the innermost loop")
NOT_PROFITABLE = Rule(
    "not-profitable", "Fusion is not profitable.",
    "{producer} is expensive and {consumer} reads its elements more than once, so fusing would recompute it")
ROOT = Rule("root", "not fusing into the output of the root instruction", "{producer} is the result of the computation")
EXPENSIVE_TWICE = Rule(
    "expensive-twice", "expensive producer would be duplicated",
    "{producer} is expensive and has other readers, which would each recompute it")
REDUCTIONS = Rule(
    "too-many-reductions", "Too many reductions inside single fusion.",
    "the kernel of {consumer} already holds as many reductions as XLA puts into one")
LONE_CONSTANT = Rule("lone-constant", "Not fusing: insufficient non-constant nodes.",
                     "a kernel of {consumer} and a constant alone would gain nothing")
PRODUCER_IS_FUSION = Rule("producer-is-fusion", "Not fusing: producer is itself a fusion node.",
                          "{producer} is a kernel already; on the CPU XLA fuses nothing after a kernel")
TOO_MANY_COPIES = Rule(
    "too-many-copies", "Code duplication too high",
    "the kernel of {consumer} reads {producer} at so many different indices that its code would be duplicated too often")
MAJOR_REDUCTION = Rule(
    "major-reduction", "Not fusing reductions over major dimensions",
    "a reduction that keeps the minor dimension is vectorised, which XLA's loops for fusions are not")
NO_CASE = Rule(
    "no-case", "Not fusing: not found a fusible case",
    "{consumer}, a {consumer_op}, is no loop that XLA's CPU emitter can compute operands in; it reads them from memory")
IN_PLACE: dict[str, Rule] = {
    words: Rule("in-place", words,
                "{consumer} writes into a buffer that {producer} also touches; fused, it could overwrite what is still read")
    for words in WORDS
}

LASTING = frozenset((NOT_FUSIBLE, CAN_NOT_DUPLICATE, SHIFTED, CUSTOM, LARGE_CONSTANT, NOT_LOOP_FUSIBLE, CONCATENATE,
                     NOT_PROFITABLE, ROOT, REDUCTIONS))
"""Rules whose refusal holds whatever else is fused into the same kernel: they are not tested twice."""


WRITES_IN_PLACE = hlo.named("tuple dynamic-update-slice scatter")
"""Roots that let a kernel write into a buffer that it reads."""


class CpuRules:
    """``CpuInstructionFusion::ShouldFuse`` of a release on one computation."""

    lasting = LASTING
    may_duplicate = True

    def __init__(self, computation: Computation, release: CpuRelease = LATEST) -> None:
        self.computation = computation
        self.release = release
        self.reused = ReusedOperands()
        self.copies = Memo(Copies)
        self.easy = Memo(self._is_easy)

    def refusal(self, consumer: Instruction, producer: Instruction, number: int) -> Refusal | None:
        """Why an operand is not fused into ``consumer``; None if it is. ``number`` is its operand number outside fusions."""
        if consumer.kind == "kLoop" and consumer.body is not None and consumer.body.root.op not in WRITES_IN_PLACE \
                and self.easy[producer] and producer is not self.computation.root:
            numbers = self.copies[consumer].too_many(producer)
            return Refusal(TOO_MANY_COPIES, numbers) if numbers else None
        if consumer.kind == "kCustom":
            return Refusal(CUSTOM)
        if producer.op is hlo.constant and producer.elements != 1:
            return Refusal(LARGE_CONSTANT, f"{producer.elements} elements")
        if producer.op is hlo.dot and can_be_output_fused(producer, consumer):
            return None
        if producer.op is hlo.add and any(can_be_output_fused(o, producer) for o in producer.operands[:2]):
            return Refusal(OUTPUT_FUSED)
        if not loop_fusible(producer):
            return Refusal(NOT_LOOP_FUSIBLE)
        for side in (producer, consumer):
            if numbers := inefficient_concatenation(side, self.release.concatenations):
                return Refusal(CONCATENATE, numbers)
        costly = is_expensive(producer, self.release)
        if producer.op is not hlo.fusion and costly and producer in self.reused[consumer]:
            return Refusal(NOT_PROFITABLE, f"{producer.op} of {producer.elements} elements, read by {consumer.op}")
        if producer is self.computation.root:
            return Refusal(ROOT)
        others = len(producer.users) - 1
        if others and costly and not always_duplicable(producer):
            return Refusal(EXPENSIVE_TWICE, f"{producer.op} with {others + 1} readers")
        if words := conflict(producer, consumer):
            return Refusal(IN_PLACE[words])
        return self._in_kernel(producer, consumer, number)

    def _is_easy(self, producer: Instruction) -> bool:
        """Whether a loop without in-place writes takes a producer unless it has too many copies: no other test can refuse.

        Tested once for each producer; most edges of real graphs are of this kind, and XLA copies some producers into hundreds of kernels.
        """
        return (producer.op not in (hlo.dot, hlo.fusion, hlo.reduce) and (producer.op is not hlo.constant or producer.elements == 1)
                and not (producer.op is hlo.add and any(o.op is hlo.dot for o in producer.operands)) and loop_fusible(producer)
                and not inefficient_concatenation(producer, self.release.concatenations) and not is_expensive(producer, self.release))

    def _in_kernel(self, producer: Instruction, consumer: Instruction, number: int) -> Refusal | None:
        """The tests that depend on what the consumer's kernel already contains."""
        if consumer.body is not None:
            if producer.op is hlo.reduce and self.release.reduction_limit:
                held = sum(i.op is hlo.reduce for i in consumer.body.instructions)
                if held > MAX_REDUCTIONS:
                    return Refusal(REDUCTIONS, f"{held} > {MAX_REDUCTIONS}")
        elif producer.op is hlo.constant:
            return Refusal(LONE_CONSTANT)
        if producer.op is hlo.fusion:
            return Refusal(PRODUCER_IS_FUSION)
        if consumer.body is not None and (numbers := self.copies[consumer].too_many(producer)):
            return Refusal(TOO_MANY_COPIES, numbers)
        if consumer.op is hlo.dot and len(consumer.dims) <= 1 and number < 2:
            vector = consumer.operands[1 - number]
            if len(vector.dims) == 1 and _bytes(vector) < SMALL_VECTOR_BYTES:
                return None
        if self.release.major_reductions and (numbers := major_reduction(consumer) or major_reduction(producer)):
            return Refusal(MAJOR_REDUCTION, numbers)
        if (consumer.body is not None and consumer.kind == "kLoop") or loop_fusible(consumer):
            return None
        return Refusal(NO_CASE)

    def fuse(self, producer: Instruction, consumer: Instruction) -> Instruction:
        """Fuse ``producer`` into the kernel of ``consumer``, which is returned (a new fusion if there was none)."""
        kind = "kOutput" if producer.op is hlo.dot and can_be_output_fused(producer, consumer) else "kLoop"
        if consumer.body is None:
            fusion = self.computation.wrap(consumer, kind)
        else:
            fusion, fusion.kind = consumer, kind
        self.reused.fusing(producer, fusion)
        copies = self.copies[fusion]
        readers = copies.take_operand(producer)
        copies.add(fuse_into(fusion, producer), readers)
        return fusion


def loop_fusible(instruction: Instruction) -> bool:
    """XLA's ``CanBeLoopFused``."""
    return instruction.op in CPU_LOOP_FUSIBLE or instruction.is_elementwise


def can_be_output_fused(producer: Instruction, consumer: Instruction) -> bool:
    """Whether a matrix-vector product is finished by an addition that is its only user."""
    return (consumer.op is hlo.add and producer.op is hlo.dot and len(producer.dims) <= 1 and not Dot.of(producer).lhs_batch_dims
            and not _is_complex(producer) and len(producer.users) == 1 and sum(o is producer for o in consumer.operands) == 1)


def inefficient_concatenation(instruction: Instruction, limits: MinorConcatenations | None) -> str:
    """What is too large about a concatenation for a release, in numbers; empty if nothing is."""
    if limits is None or instruction.op is not hlo.concatenate:
        return ""
    if len(instruction.operands) > MAX_CONCATENATED:
        return f"{len(instruction.operands)} pieces > {MAX_CONCATENATED}"
    axis = Concatenate.of(instruction).axis
    if len(instruction.dims) <= 1 or axis != instruction.minor[0] or not isinstance(instruction.type, TensorType):
        return ""
    size, width = instruction.dims[axis], instruction.type.dtype.bits // 8
    if size < limits.elements or size * width < limits.row_bytes or instruction.elements * width < limits.bytes:
        return ""
    if limits.elements:
        return f"minor dimension {size} >= {limits.elements}"
    return f"{size * width} bytes along the minor dimension >= {limits.row_bytes}, {instruction.elements * width} in all >= {limits.bytes}"


def major_reduction(instruction: Instruction) -> str:
    """The reduced dimensions of a reduction that keeps the minor dimension of its operand; empty for anything else."""
    if instruction.op is not hlo.reduce:
        return ""
    reduced, minor = Reduce.of(instruction).dimensions, instruction.operands[0].minor
    return "" if minor and minor[0] in reduced else f"reduces {', '.join(map(str, reduced))}, minor is {minor[0] if minor else 'none'}"


def is_expensive(instruction: Instruction, release: CpuRelease = LATEST) -> bool:
    """XLA's ``CpuInstructionFusion::IsExpensive``. Recent releases have a bug: division tests the dividend for a constant."""
    op = instruction.op
    if op in CPU_CHEAP:
        return False
    if op in CHEAP_WHEN_REAL:
        return _is_complex(instruction)
    if op is hlo.convert:
        return release.narrow_is_expensive and instruction.dtype == "bf16" and instruction.operands[0].dtype == "f32"
    if op in (hlo.divide, hlo.remainder):
        return not _is_integral(instruction) or not _is_scalar_constant(instruction.operands[release.divisor])
    return True


def always_duplicable(instruction: Instruction) -> bool:
    """Whether duplication makes it cheaper: a widening conversion, a broadcast."""
    if instruction.op is hlo.broadcast:
        return True
    return instruction.op is hlo.convert and _bytes(instruction.operands[0]) < _bytes(instruction)


def _is_scalar_constant(instruction: Instruction) -> bool:
    if instruction.op is hlo.broadcast:
        instruction = instruction.operands[0]
    return instruction.op is hlo.constant and instruction.elements == 1


def _bytes(instruction: Instruction) -> int:
    return instruction.type.bytes if isinstance(instruction.type, TensorType) else 0


def _is_complex(instruction: Instruction) -> bool:
    return isinstance(instruction.type, TensorType) and instruction.type.dtype.is_complex


def _is_integral(instruction: Instruction) -> bool:
    return isinstance(instruction.type, TensorType) and instruction.type.dtype.is_integer
