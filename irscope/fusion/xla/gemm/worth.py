"""Whether an instruction is fused into the kernel of a dot: whether the kernel supports it, and whether XLA expects a gain.

``GetPropagatedDimOrdersAndRequirementsIfProfitablyFusible`` of triton_tiling_propagation.cc, test by test in XLA's order.
"""
from __future__ import annotations

from dataclasses import dataclass

from irscope.fusion.xla.gemm.carry import DotSide, Orders, to_operands, to_result
from irscope.fusion.xla.gemm.orders import Order
from irscope.fusion.xla.gemm.rules import INPUT, INPUT_PRODUCT, INPUT_SHARED, OUTPUT, PAD, POWER, REDUCTION, SEVERAL_INPUTS, TUPLE, No
from irscope.fusion.xla.gemm.splits import combined, split_by
from irscope.fusion.xla.gemm.support import lacking
from irscope.fusion.xla.gpu_device import Device
from irscope.fusion.xla.instructions import Instruction
from irscope.graph.walk import behind
from irscope.ops import hlo

TOLERANCE = 1024
"""The additional bytes that a kernel may read or write for a fused instruction (``kIoToleranceBytes``)."""
SHORT = 1024
"""The longest contracting dimension for which the kernel slices a shared value: found by compiling (1,025 is too long)."""
PASSED_ON = hlo.named("bitcast get-tuple-element")
"""Operators that only pass on a parameter."""
REDUCTIONS = hlo.named("reduce all-reduce all-reduce-start all-reduce-done")


@dataclass(frozen=True, slots=True)
class Carried:
    """The orders on the other side of an instruction, and the split of the rows that they require."""

    orders: Orders
    split: int


def carried(instruction: Instruction, order: Order, side: DotSide, upwards: bool = True) -> Carried | No:
    """Propagate an order through an instruction, as far as a kernel can follow it; does not test for a gain."""
    orders = to_operands(instruction, order, side) if upwards else to_result(instruction, order)
    if isinstance(orders, No):
        return orders
    split = split_by(orders, side)
    return split if isinstance(split, No) else Carried(orders, split)


def within(found: Carried | No, split: int) -> Carried | No:
    """``found`` with the split that it and the rest of the kernel (``split``) require together; or the refusal if the two conflict."""
    if isinstance(found, No):
        return found
    both = combined(split, found.split)
    return both if isinstance(both, No) else Carried(found.orders, both)


def as_input(instruction: Instruction, order: Order, side: DotSide, device: Device) -> Carried | No:
    """The orders that an operand of the kernel propagates if it is fused, or why it is not fused."""
    found = _unfit(instruction, device) or carried(instruction, order, side)
    if isinstance(found, No):
        return found
    if not _repeats(instruction, found.orders, side, device) and not is_worth_reading(instruction, side):
        more = more_bytes(instruction)
        rule = INPUT_SHARED if len(instruction.users) > 1 else INPUT_PRODUCT if instruction.op is hlo.multiply else INPUT
        return No(rule, numbers="" if more is None else f"{more} more bytes > {TOLERANCE}")
    return found


def as_output(instruction: Instruction, source: Instruction, order: Order, side: DotSide, device: Device,
              root: Instruction) -> Carried | No:
    """The same for ``instruction``, the only user of ``source``, which the kernel computes."""
    found = _unfit(instruction, device) or carried(instruction, order, side, upwards=False)
    if isinstance(found, No):
        return found
    where = instruction.operands.index(source)
    for number, operand in enumerate(instruction.operands):
        if number != where and not _is_outside(operand):
            return No(SEVERAL_INPUTS, numbers=f"%{operand.name} is a {operand.op}")
    more = more_bytes(instruction)
    if more is None or (more < -TOLERANCE and not _ends(instruction, root)):
        return No(OUTPUT, numbers="" if more is None else f"{-more} more bytes > {TOLERANCE}")
    return found


def _unfit(instruction: Instruction, device: Device) -> No | None:
    op = instruction.op
    if op in (hlo.tuple, hlo.get_tuple_element):
        return No(TUPLE)
    if op in REDUCTIONS:
        return No(REDUCTION)
    if op is hlo.pad:
        return No(PAD)
    if op is hlo.power and len(instruction.users) > 1:
        return No(POWER)
    return lacking(instruction, device)


def _repeats(instruction: Instruction, orders: Orders, side: DotSide, device: Device) -> bool:
    """Whether one of two operands of an elementwise operation is a broadcast parameter or constant, which costs nothing to read."""
    if not instruction.is_elementwise or len(instruction.operands) != 2:
        return False
    return any(operand.op is hlo.broadcast and operand.operands[0].op in (hlo.parameter, hlo.constant)
               and isinstance(as_input(operand, order, side, device), Carried)
               for operand, order in zip(instruction.operands, orders, strict=True))


def more_bytes(instruction: Instruction) -> int | None:
    """Bytes that an instruction reads beyond those that it writes; None if it reads a tuple."""
    if not all(operand.is_array for operand in instruction.operands):
        return None
    return sum(operand.size for operand in instruction.operands) - instruction.size


def is_worth_reading(instruction: Instruction, side: DotSide) -> bool:
    """XLA's ``IsInputWorthFusing``: whether the kernel reads little more if it computes an instruction, or is its only user."""
    more, operands = more_bytes(instruction), instruction.operands
    if more is None:
        return False
    if more <= TOLERANCE:
        return True
    if len(instruction.users) > 1:
        return False
    if instruction.op is hlo.slice and (operands[0].op in (hlo.parameter, hlo.constant) or _cuts_shared(instruction, side)):
        return True
    return instruction.op is not hlo.multiply and all(o.op in (hlo.parameter, hlo.constant) and len(o.users) <= 1 for o in operands)


def _cuts_shared(cut: Instruction, side: DotSide) -> bool:
    """Whether a slice reads a value, transposed or not, that has other users, and not all of them are slices of the same sizes, which
    another pass joins. Compilations showed that reshapes and bitcasts in between are refused."""
    source = cut.operands[0]
    while source.op is hlo.transpose and len(source.users) == 1:
        source = source.operands[0]
    return side.contracted <= SHORT and len(source.users) > 1 and any(u.op is not hlo.slice or u.dims != cut.dims for u in source.users)


def _is_outside(operand: Instruction) -> bool:
    """Whether an operand is a parameter, or a broadcast one; or a broadcast number, however computed."""
    if operand.op is hlo.broadcast:
        return not operand.operands[0].dims or _is_parameter(operand.operands[0])
    return _is_parameter(operand)


def _is_parameter(instruction: Instruction) -> bool:
    """XLA's ``IsEffectiveParameter``."""
    return behind(instruction, PASSED_ON).op is hlo.parameter


def _ends(instruction: Instruction, root: Instruction) -> bool:
    """Whether no other instruction could take this one in: it is the result, or only an element of it."""
    if instruction is root:
        return True
    return len(instruction.users) == 1 and root.op is hlo.tuple and root in instruction.users
