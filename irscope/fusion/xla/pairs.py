"""Whether a producer may be fused into a consumer at all, in XLA's passes before priority fusion (``IsProducerConsumerFusible``).

As of jaxlib 0.4.35 (gpu_fusible.cc); priority fusion took over the same tests and separated them.
"""
from __future__ import annotations

from irscope.fusion.xla.gpu_kinds import heroes_of, is_input_fusible, is_real_reduction, members
from irscope.fusion.xla.gpu_outputs import has_outputs, is_input_reduction
from irscope.fusion.xla.gpu_rules import IN_PLACE, scatter_refusal
from irscope.fusion.xla.inplace import conflict
from irscope.fusion.xla.instructions import Instruction
from irscope.fusion.xla.loops import for_reader, with_producer
from irscope.fusion.xla.refusal import Refusal, Rule
from irscope.fusion.xla.shapes import is_race_free
from irscope.fusion.xla.transposes import tiled_transpose, transpose_is_bitcast
from irscope.ops import hlo

NOT_IN_LOOPS = Rule(
    "not-loop-fusible", "the producer is not loop-fusible",
    "XLA's GPU loops compute no {producer_op} for what reads it; {producer} is a separate kernel or call")
NOT_RACE_FREE = Rule(
    "reduce-epilogue", "Reduction output fusion only works for race free reductions",
    "{producer} is added up by several blocks, so that its result is complete only when all of them are done")
EPILOGUE = Rule(
    "reduce-epilogue", "Reductions from/to continuous dims epilogue not fusible",
    "XLA finishes a reduction only by steps that read nothing else, and {consumer}'s kernel has another")
ONE_READER = Rule(
    "reduce-shared", "reduction output fusion only works for single user",
    "{producer} is a reduction with several readers; XLA finishes a reduction inside its kernel for one of them alone")
NOT_A_CONSUMER = Rule(
    "consumer-not-fusible", "the consumer is not input-fusible and not loop-fusible",
    "XLA's GPU loops compute nothing inside a {consumer_op}: {consumer} reads {producer} from memory")
SEVERAL_RESULTS = Rule(
    "several-results", "the producer is not fusible as it is a multi-output fusion",
    "{producer} has several results, and XLA fuses a kernel with several results into no other")
CONSTANT = Rule(
    "constant", "not fusing constant",
    "a constant is fused only if it has one element, and only into an existing kernel: {consumer} alone would gain nothing")


def pair_refusal(producer: Instruction, consumer: Instruction) -> Refusal | None:
    """Why a producer is not fused into a consumer; None if it may be."""
    if not for_reader(producer) and tiled_transpose(producer) is None:
        return Refusal(NOT_IN_LOOPS)
    if is_input_reduction(producer):
        if not is_race_free(_reduction(producer)):
            return Refusal(NOT_RACE_FREE)
        if not all(finishes(member) for member in members(consumer)):
            return Refusal(EPILOGUE)
        if len(producer.users) > 1:
            return Refusal(ONE_READER, f"{len(producer.users)} readers")
    if refusal := scatter_refusal(producer, consumer):
        return refusal
    if not is_input_fusible(consumer) and not with_producer(consumer):
        return Refusal(NOT_A_CONSUMER)
    if has_outputs(producer):
        return Refusal(SEVERAL_RESULTS)
    if producer.op is hlo.constant and (consumer.op is not hlo.fusion or any(d != 1 for d in producer.dims)):
        return Refusal(CONSTANT)
    if words := conflict(producer, consumer):
        return Refusal(IN_PLACE[words])
    return None


def _reduction(kernel: Instruction) -> Instruction:
    """The reduction that decides a kernel's emitter."""
    return next(hero for root, hero in heroes_of(kernel) if is_real_reduction(root, hero))


def finishes(step: Instruction) -> bool:
    """Whether a step of a consumer can run at the end of a reduction: it reads nothing else, and moves nothing (``IsIntermediate``)."""
    if step.op is hlo.parameter:
        return True
    if len(step.operands) != 1:
        return False
    if step.op is hlo.copy:
        return step.same_dims_and_layout(step.operands[0])
    return step.is_elementwise or step.op in (hlo.bitcast, hlo.reshape) or (step.op is hlo.transpose and transpose_is_bitcast(step))
