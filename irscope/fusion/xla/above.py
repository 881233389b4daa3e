"""Reachability between kernels that are joined, so that no join closes a cycle."""
from __future__ import annotations

from irscope.fusion.xla.instructions import Computation, Instruction


class Above:
    """For each instruction the set of instructions that it depends on, directly or not, as a bit set.

    Only users that share a producer, and such producers, have a bit: no other pair is ever queried or joined.
    """

    def __init__(self, computation: Computation) -> None:
        order = computation.post_order()
        sharing = {one for i in order if len(i.users) > 1 for one in (i, *i.users)}
        self.bits = {instruction: 1 << number for number, instruction in enumerate(i for i in order if i in sharing)}
        self.needs: dict[Instruction, int] = {}
        for instruction in order:
            needed = 0
            for operand in instruction.operands:
                needed |= self.needs[operand] | self.bits.get(operand, 0)
            self.needs[instruction] = needed

    def are_connected(self, first: Instruction, second: Instruction) -> bool:
        """Whether one of two users of a value depends on the other."""
        return bool(self.needs[first] & self.bits[second] or self.needs[second] & self.bits[first])

    def has_detour(self, producer: Instruction, consumer: Instruction) -> bool:
        """Whether a user of ``producer`` also depends on it through another user."""
        needed = self.needs[consumer]
        return any(user is not consumer and needed & self.bits.get(user, 0) for user in producer.users)

    def join(self, kept: Instruction, other: Instruction, fusion: Instruction) -> None:
        """Replace both by one fusion. Its users have the bit of one of them already; its dependences are propagated to them."""
        bits = self.bits.pop(kept, 0) | self.bits.pop(other, 0)
        self.bits[fusion] = bits
        needed = self.needs[fusion] = (self.needs.pop(kept) | self.needs.pop(other)) & ~bits
        stack = [(fusion, needed)]
        while stack:
            top, needed = stack.pop()
            for user in top.users:
                known = self.needs.get(user)
                if known is None or known | needed != known:
                    self.needs[user] = needed | (known or 0)
                    stack.append((user, needed))
