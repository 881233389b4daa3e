"""What one loop of XLA's GPU compiler can compute, alone, for a user, or with a producer fused (gpu_fusible.cc)."""
from __future__ import annotations

from irscope.fusion.xla.gpu_kinds import is_input_fusible
from irscope.fusion.xla.instructions import Instruction
from irscope.fusion.xla.transposes import tiled_transpose
from irscope.ops import hlo

LOOPS = hlo.named("bitcast broadcast concatenate dynamic-slice dynamic-update-slice gather pad reduce-window reshape reverse slice "
                  "transpose")
"""Besides elementwise instructions, what a loop computes at either end of an edge (``IsUniversallyLoopFusible``)."""


def in_any_loop(instruction: Instruction) -> bool:
    """``IsUniversallyLoopFusible``: whether a loop can compute it as producer or consumer."""
    if instruction.op is hlo.copy:
        return tiled_transpose(instruction) is None
    if instruction.op is hlo.fusion and instruction.kind == "kLoop":
        return True
    return instruction.op in LOOPS or (instruction.is_elementwise and bool(instruction.operands))


def for_reader(producer: Instruction) -> bool:
    """``IsLoopFusibleAsProducer``: whether a loop can compute it for a user."""
    if producer.op in (hlo.iota, hlo.constant):
        return True
    if producer.op is hlo.reduce:
        return producer.is_array
    return producer.is_fusible and in_any_loop(producer)


def with_producer(consumer: Instruction) -> bool:
    """``IsLoopFusibleAsConsumer``: whether a loop can compute it with a producer fused."""
    if not consumer.is_fusible or consumer.op is hlo.bitcast:
        return False
    if consumer.op is hlo.reduce or (consumer.kind == "kInput" and not is_input_fusible(consumer)):
        return True
    return in_any_loop(consumer)
