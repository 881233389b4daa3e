"""Builds the kernel of a dot, starting from it: towards the operands, breadth first, then towards the users, one after the other.

XLA's ``FuseTowardOperands`` and ``FuseTowardUsers`` (gemm_fusion.cc). The producers of an operand are copied for that operand:
a value that both sides read is read twice. Every tested instruction is recorded with the decision.
"""
from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from irscope.fusion.xla.gemm.carry import DotSide
from irscope.fusion.xla.gemm.orders import Order, frozen, order_of, strides_of
from irscope.fusion.xla.gemm.rules import DYNAMIC_SLICE, PARAMETERS, READERS, No
from irscope.fusion.xla.gemm.splits import NO_SPLIT
from irscope.fusion.xla.gemm.worth import Carried, as_input, as_output, carried, within
from irscope.fusion.xla.gpu_device import Device
from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.graph.walk import post_order
from irscope.ops import hlo
from irscope.ops.attributes import Dot

LIMIT = 4
"""The most arrays that one operand of a dot may read inside the kernel (``TritonFusionAnalysis::kMaxParameterPerDotOperand``)."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One edge next to a dot: whether ``producer`` and ``consumer`` are both in the kernel, and if not, why.

    ``behind`` says that the kernel grew towards ``consumer``; otherwise it grew towards ``producer``.
    """

    producer: Instruction
    consumer: Instruction
    no: No | None
    behind: bool = False


@dataclass(slots=True)
class Kernel:
    """A kernel under construction: its ``body``, its operands, what it replaces (``output``), and the tested edges (``asked``)."""

    dot: Instruction
    body: Computation
    inputs: list[Instruction] = field(default_factory=list)
    output: Instruction | None = None
    asked: list[Asked] = field(default_factory=list)

    def copy(self, instruction: Instruction, operands: Sequence[Instruction]) -> Instruction:
        """Copy an instruction of the text into the kernel."""
        made = Instruction(instruction.op, instruction.type, operands, instruction.node, instruction.attrs)
        made.kind, made.body, made.bodies = instruction.kind, instruction.body, instruction.bodies
        return self.body.add(made)

    def read(self, instruction: Instruction) -> Instruction:
        """Create a parameter for an instruction outside, even if there is one already."""
        made = self.body.add(instruction.clone(hlo.parameter))
        self.body.params.append(made)
        self.inputs.append(instruction)
        return made


def side_of(dot: Instruction, number: int) -> DotSide:
    """The properties of an operand of a dot; of a scaled dot the third and fourth are the scales."""
    operand, attrs, side = dot.operands[number], Dot.of(dot), min(number, 1)
    batch, contracted = attrs.batch_dims[side], attrs.contracting_dims[side]
    kept = [d for d in range(len(operand.dims)) if d not in contracted and d not in batch]
    only = kept[0] if len(kept) == 1 else -1
    return DotSide(only, only if number == 0 and not batch else -1, prod(operand.dims[d] for d in contracted))


def grown(dot: Instruction, device: Device, root: Instruction) -> Kernel:
    """The kernel of a dot that Triton supports. ``root`` is the result of its computation."""
    kernel = Kernel(dot, Computation(f"gemm_fusion_{dot.name}_computation"))
    split = NO_SPLIT
    operands = []
    for number, operand in enumerate(dot.operands):
        side = side_of(dot, number)
        nodes, needed = _tree(_Node(operand, order_of(operand), dot), LIMIT, side, NO_SPLIT, device, kernel.asked)
        operands.append(_copied(nodes, kernel))
        split = needed if number == 0 else split
    kernel.body.root = kernel.copy(dot, operands)
    _grow_down(kernel, split, device, root)
    return kernel


@dataclass(slots=True)
class _Node:
    instruction: Instruction
    order: Order
    reader: Instruction
    fused: bool = False
    operands: list[int] = field(default_factory=list)


def _tree(top: _Node, limit: int | None, side: DotSide, split: int, device: Device, asked: list[Asked]) -> tuple[list[_Node], int]:
    """The instructions to compute in the kernel for an operand, breadth first, and the split of the rows that they require.

    One that would make the kernel read too many arrays waits until others have reduced their number.
    """
    nodes = [top]
    known: dict[object, int] = {(top.instruction, frozen(strides_of(top.order))): 0}
    edge = {0}
    queue = deque((0,))
    waited = 0
    while len(queue) > waited:
        number = queue.popleft()
        node = nodes[number]
        if limit is not None and len(edge) + _more_arrays(node.instruction) > limit:
            queue.append(number)
            waited += 1
            continue
        waited = 0
        if node.instruction.op is hlo.parameter:
            continue
        found: Carried | No = No(DYNAMIC_SLICE) if node.instruction.op is hlo.dynamic_slice else \
            as_input(node.instruction, node.order, side, device)
        found = within(found, split)
        asked.append(Asked(node.instruction, node.reader, found if isinstance(found, No) else None))
        if isinstance(found, No):
            continue
        split = found.split
        edge.discard(number)
        for operand, below in zip(node.instruction.operands, found.orders, strict=False):
            key = operand, frozen(strides_of(below))
            place = known.get(key)
            if place is None:
                place = known[key] = len(nodes)
                nodes.append(_Node(operand, below, node.instruction))
                edge.add(place)
                queue.append(place)
            node.operands.append(place)
        node.fused = True
    for number in queue:
        if nodes[number].instruction.op is not hlo.parameter:
            asked.append(Asked(nodes[number].instruction, nodes[number].reader, No(PARAMETERS, numbers=str(limit))))
    return nodes, split


def _more_arrays(instruction: Instruction) -> int:
    """The additional arrays that the kernel reads if it computes an instruction."""
    if instruction.op is hlo.parameter or (instruction.op is hlo.constant and instruction.dims):
        return 0
    return len(instruction.operands) - 1


def _copied(nodes: list[_Node], kernel: Kernel) -> Instruction:
    """Copy the chosen instructions into the kernel, operands first; returns the top one."""
    made: dict[int, Instruction] = {}
    for number in post_order([0], lambda number: nodes[number].operands if nodes[number].fused else ()):
        node = nodes[number]
        made[number] = kernel.copy(node.instruction, [made[n] for n in node.operands]) if node.fused else kernel.read(node.instruction)
    return made[0]


def _grow_down(kernel: Kernel, split: int, device: Device, root: Instruction) -> None:
    """Fuse the user of the dot, as long as there is only one, with the other operands that it reads."""
    dot = kernel.dot
    side = DotSide(-1, 0 if split > NO_SPLIT else -1, side_of(dot, 0).contracted)
    last, order = dot, order_of(dot)
    while True:
        kernel.output = last
        user = next(iter(last.users), None)
        if user is None or len(last.users) != 1:
            kernel.asked += [Asked(last, reader, No(READERS, numbers=f"{len(last.users)} readers"), True) for reader in last.users]
            return
        found = within(as_output(user, last, order, side, device, root), split)
        above = found
        if isinstance(found, Carried) and len(user.operands) > 1:
            above = within(carried(user, found.orders[0], side), found.split)
        kernel.asked.append(Asked(last, user, above if isinstance(above, No) else None, True))
        if isinstance(found, No) or isinstance(above, No):
            return
        split = above.split
        operands = []
        for number, operand in enumerate(user.operands):
            if operand is last:
                operands.append(kernel.body.root)
                continue
            nodes, split = _tree(_Node(operand, above.orders[number], user), None, side, split, device, kernel.asked)
            operands.append(_copied(nodes, kernel))
        kernel.body.root = kernel.copy(user, operands)
        last, order = user, found.orders[0]
