"""The operands that a maximum of theirs is subtracted from under an exponential, as in a softmax: XLA's CPU compiler stores them.

``CpuInstructionFusion::ComputeGloballyUnfusible`` and ``IsCoupledReductionShiftExpProducer`` (cpu_instruction_fusion.cc, in jaxlib 0.11.2
and later): a copy of such a value may be rounded differently from the one that the maximum was taken of.
"""
from __future__ import annotations

from collections.abc import Iterable

from irscope.fusion.xla.instructions import Instruction
from irscope.graph import Op
from irscope.ops import hlo


def shifted_by_their_maximum(instructions: Iterable[Instruction]) -> list[Instruction]:
    """Those ``x`` among some instructions of which a program computes ``exp(x - max(x))``: elementwise ones with such users."""
    return [i for i in instructions if len(i.users) > 1 and i.op is not hlo.fusion and i.is_elementwise and _is_shifted(i)]


def _is_shifted(value: Instruction) -> bool:
    """Whether the first maximum over a value is subtracted from it, and an exponential reads the difference."""
    maxima = (user for user in value.users if user.op is hlo.reduce and user.operands[0] is value and _reducer(user) is hlo.maximum)
    maximum = next(maxima, None)
    return maximum is not None and any(
        user.op is hlo.subtract and _reads(user, value) and any(_is_broadcast_of(operand, maximum) for operand in user.operands)
        and any(reader.op is hlo.exponential for reader in user.users) for user in value.users)


def _reads(difference: Instruction, value: Instruction) -> bool:
    return any(operand is value or _is_broadcast_of(operand, value) for operand in difference.operands)


def _is_broadcast_of(instruction: Instruction, value: Instruction) -> bool:
    return instruction.op is hlo.broadcast and instruction.operands[0] is value


def _reducer(reduce: Instruction) -> Op | None:
    """The operator of the last instruction of a reduction's computation, whatever that reads."""
    root = reduce.bodies[0].root if reduce.bodies else None
    return root.op if root is not None else None
