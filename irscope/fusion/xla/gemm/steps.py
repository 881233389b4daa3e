"""How the kernel of a dot steps over each array that it reads: XLA's ``TritonFusionAnalysis`` of a finished kernel.

For each operand of the dot, propagates the orders up to the parameters; for the result down to the root and from there up to the
other operands. XLA runs it on kernels that read 4-bit integers, and on every kernel in the end.
"""
from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from irscope.fusion.xla.gemm.carry import DotSide
from irscope.fusion.xla.gemm.grow import side_of
from irscope.fusion.xla.gemm.orders import Order, Strides, order_of, strides_of
from irscope.fusion.xla.gemm.rules import READERS, No
from irscope.fusion.xla.gemm.splits import NO_SPLIT
from irscope.fusion.xla.gemm.worth import carried, within
from irscope.fusion.xla.instructions import Instruction
from irscope.ops import hlo
from irscope.ops.attributes import Dot


@dataclass(slots=True)
class SteppedScope:
    """One operand of the dot with all its producers, or its result: strides by instruction, and the arrays that are read."""

    strides: dict[Instruction, Strides] = field(default_factory=dict)
    parameters: list[Instruction] = field(default_factory=list)
    split: int = NO_SPLIT


def operand_steps(dot: Instruction, number: int) -> SteppedScope | No:
    """How a kernel steps over the producers of a dot's operand, up to the parameters of the computation; or why it cannot."""
    operand = dot.operands[number]
    return _stepped(operand, {operand: order_of(operand)}, side_of(dot, number), NO_SPLIT, dot)


def _stepped(origin: Instruction, orders: dict[Instruction, Order], side: DotSide, split: int, dot: Instruction) -> SteppedScope | No:
    scope = SteppedScope(split=split)
    queue, seen = deque((origin,)), {origin}
    while queue:
        instruction = queue.popleft()
        if instruction.op is hlo.parameter:
            scope.parameters.append(instruction)
        found = within(carried(instruction, orders[instruction], side), scope.split)
        if isinstance(found, No):
            return found
        scope.split = found.split
        scope.strides[instruction] = strides_of(orders[instruction])
        for operand, order in zip(instruction.operands, found.orders, strict=False):
            orders.setdefault(operand, order)
            if operand not in seen and operand is not dot:
                seen.add(operand)
                queue.append(operand)
    return scope


def steps(dot: Instruction, root: Instruction) -> list[SteppedScope] | No:
    """How a kernel with the result ``root`` steps over each operand of a dot, then over its result and its other operands; or why
    it cannot. XLA also runs it on a dot that is in no kernel yet."""
    scopes: list[SteppedScope] = []
    for number in range(len(dot.operands)):
        scope = operand_steps(dot, number)
        if isinstance(scope, No):
            return scope
        scopes.append(scope)
    side = DotSide(-1, 0 if scopes[0].split > NO_SPLIT else -1, side_of(dot, 0).contracted)
    output, split = dot, scopes[0].split
    orders = {dot: order_of(dot)}
    while output is not root:
        if len(output.users) != 1:
            return No(READERS, numbers=f"{len(output.users)} readers")
        user = next(iter(output.users))
        found = within(carried(user, orders[output], side, upwards=False), split)
        if isinstance(found, No):
            return found
        split, orders[user] = found.split, found.orders[0]
        output = user
    result = SteppedScope({output: strides_of(orders[output])}, split=split)
    if output is not dot:
        above = _stepped(output, orders, side, split, dot)
        if isinstance(above, No):
            return above
        result = above
    return [*scopes, result]


def reads_batch_first(dot: Instruction, root: Instruction) -> bool:
    """Whether a 4-bit array that a dot reads has the batch dimension as its minor one: a byte then contains elements of two
    batches. If XLA cannot determine the steps of the dot, it does not test this."""
    batches = Dot.of(dot).batch_dims
    scopes = steps(dot, root) if all(batches) else No(READERS)
    if isinstance(scopes, No):
        return False
    return any(stretches[0].stride == 1 for scope, batch in zip(scopes, batches, strict=False)
               for parameter in scope.parameters if parameter.dtype == "s4"
               for stretches in (scope.strides[parameter].get(batch[0]),) if stretches)
