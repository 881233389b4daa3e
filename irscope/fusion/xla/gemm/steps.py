"""How a kernel of a product steps over each array that it reads: XLA's ``TritonFusionAnalysis`` of a finished kernel.

For each operand of the product the orders are carried up to the parameters; for the result down to the root and from there up to what
else is read. XLA asks it of a kernel that reads integers of four bits, and of each kernel that it writes in the end.
"""
from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from irscope.fusion.xla.gemm.carry import Side
from irscope.fusion.xla.gemm.grow import side_of
from irscope.fusion.xla.gemm.orders import Order, Strides, order_of, strides_of
from irscope.fusion.xla.gemm.rules import No
from irscope.fusion.xla.gemm.splits import NO_SPLIT, combined
from irscope.fusion.xla.gemm.worth import carried
from irscope.fusion.xla.instructions import Instruction


@dataclass(slots=True)
class Scope:
    """One operand of the product with all that it is made of, or its result: strides by instruction, and the arrays that are read."""

    strides: dict[Instruction, Strides] = field(default_factory=dict)
    parameters: list[Instruction] = field(default_factory=list)
    split: int = NO_SPLIT


def operand_steps(dot: Instruction, number: int) -> Scope | No:
    """How a kernel steps over what an operand of a product is made of, up to the parameters of the computation; or why it cannot."""
    operand = dot.operands[number]
    return _stepped(operand, {operand: order_of(operand)}, side_of(dot, number), NO_SPLIT, dot)


def _stepped(origin: Instruction, orders: dict[Instruction, Order], side: Side, split: int, dot: Instruction) -> Scope | No:
    scope = Scope(split=split)
    queue, seen = deque((origin,)), {origin}
    while queue:
        instruction = queue.popleft()
        if instruction.op == "parameter":
            scope.parameters.append(instruction)
        found = carried(instruction, orders[instruction], side)
        if isinstance(found, No):
            return found
        both = combined(scope.split, found.split)
        if isinstance(both, No):
            return both
        scope.split = both
        scope.strides[instruction] = strides_of(orders[instruction])
        for operand, order in zip(instruction.operands, found.orders, strict=False):
            orders.setdefault(operand, order)
            if operand not in seen and operand is not dot:
                seen.add(operand)
                queue.append(operand)
    return scope


def reads_batch_first(dot: Instruction, number: int) -> bool:
    """Whether an array of four bits that an operand is made of has the product's batch dimension as its fastest: a byte then holds
    elements of two batches."""
    batch = tuple(dot.attrs.get(f"{'lhs' if number == 0 else 'rhs'}_batch_dims", ()))
    scope = operand_steps(dot, number) if batch else None
    if not isinstance(scope, Scope):
        return False
    return any(stretches[0].stride == 1 for parameter in scope.parameters if parameter.dtype == "s4"
               for stretches in (scope.strides[parameter].get(batch[0]),) if stretches)
