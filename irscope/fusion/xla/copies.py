"""How often a fusion would emit the code of each instruction: XLA's ``FusionNodeIndexingEvaluation``.

XLA recomputes an operand for every index at which it is read. Elementwise users share an index, movement makes a new one; so the
number of copies of an instruction is the sum over those of its users that have different indices.
"""
from __future__ import annotations

from irscope.fusion.xla.instructions import Instruction
from irscope.fusion.xla.opcodes import EMITTED_AGAIN
from irscope.ops import hlo

MAX_COPIES = 15
"""XLA's ``kAllowedCodeDuplication``."""


class Copies:
    """The copies that one fusion emits, updated while instructions are fused into it."""

    __slots__ = ("body", "fusion", "times", "users")

    def __init__(self, fusion: Instruction) -> None:
        self.fusion, self.body = fusion, fusion.fused_body
        self.users: dict[Instruction, dict[Instruction, None]] = {self.body.root: {fusion: None}}
        self.times: dict[Instruction, int] = {fusion: 1}
        for instruction in reversed(self.body.post_order()):
            if instruction.op is not hlo.parameter:
                self._count(instruction)

    def emitted(self, producer: Instruction) -> int:
        """How often the fusion would contain the code of an operand."""
        return sum(self.times[user] for user in self.users.get(producer, ()))

    def too_many(self, producer: Instruction) -> str:
        """Why an operand would be emitted too often, in numbers; empty if it would not be."""
        if producer.op is hlo.broadcast:
            return ""
        emitted = self.emitted(producer)
        if emitted > MAX_COPIES:
            return f"emitted {emitted} > {MAX_COPIES}"
        if producer.op not in EMITTED_AGAIN:
            return ""
        if emitted > 1:
            return f"{producer.op} emitted {emitted} > 1"
        users = reader_count(producer)
        return f"{producer.op} read {users} > 1 times" if users > 1 else ""

    def take_operand(self, operand: Instruction) -> dict[Instruction, None]:
        """Remove an operand that is about to be fused; returns its users."""
        return self.users.pop(operand, {})

    def add(self, copy: Instruction, users: dict[Instruction, None]) -> None:
        """Count a fused instruction: ``users`` is the result of :meth:`take_operand` for the original."""
        self.users[copy] = users
        self._count(copy)

    def _count(self, instruction: Instruction) -> None:
        mine = self.users.setdefault(instruction, {})
        self.times[instruction] = sum(self.times[user] for user in mine)
        for operand in instruction.operands:
            outer = operand
            if operand.op is hlo.parameter:
                outer = operand.outside if operand.outside is not None else self.fusion.operands[self.body.params.index(operand)]
            readers = self.users.setdefault(outer, {})
            if instruction.op is hlo.transpose or operand.same_dims_and_layout(instruction):
                readers.update(mine)
            else:
                readers[instruction] = None


def reader_count(instruction: Instruction) -> int:
    """The number of users of an instruction, those inside fusions counted one by one."""
    return sum(len(user.body.params[user.operands.index(instruction)].users) if user.body is not None else 1 for user in instruction.users)
