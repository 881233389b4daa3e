"""Which operands an instruction reads more than once an element: XLA's ``ReusesOperandElements``."""
from __future__ import annotations

from irscope.fusion.closure import closure
from irscope.fusion.memo import Memo
from irscope.fusion.xla.instructions import Instruction
from irscope.graph.walk import post_order
from irscope.ops import hlo

Read = tuple[Instruction, int]
"""An instruction, and the number of the operand that it reads."""
ONCE = hlo.named("bitcast concatenate reshape reverse slice transpose gather")


def reuses(instruction: Instruction, number: int) -> bool:
    """Whether an element of operand ``number`` may be read for several elements of the result."""
    op = instruction.op
    if op in ONCE:
        return False
    if op is hlo.pad:
        return number > 0
    if op is hlo.reduce:
        return number >= len(instruction.operands) // 2
    if op is hlo.dynamic_update_slice:
        return number > 1
    if op is hlo.dot and len(instruction.dims) <= 1:
        return len(instruction.operands[1 - number].dims) > 1
    if op is hlo.fusion and instruction.body is not None:
        return fusion_reuses(instruction, number)
    return not instruction.is_elementwise


def fusion_reuses(fusion: Instruction, number: int) -> bool:
    """Whether some path from a parameter of a fusion to its root reads elements again.

    Fusions inside it are asked first, not by recursion: text may nest thousands.
    """
    reads: dict[Read, list[Read]] = {}

    def inner(read: Read) -> list[Read]:
        found = reads[read] = reads[read] if read in reads else _reads(*read)
        return [each for each in found if each[0].op is hlo.fusion and each[0].body is not None]

    known: dict[Read, bool] = {}
    for read in post_order([(fusion, number)], inner):
        known[read] = any(known[each] if each in known else reuses(*each) for each in reads[read])
    return known[fusion, number]


def _reads(fusion: Instruction, number: int) -> list[Read]:
    """The reads inside a fusion on paths from a parameter to the root."""
    body = fusion.fused_body
    needed = set(closure([body.root], lambda i: i.operands))
    found: list[Read] = []
    for current in closure([body.params[number]], lambda i: needed.intersection(i.users)):
        found += ((user, i) for user in current.users if user in needed for i, o in enumerate(user.operands) if o is current)
    return found


class ReusedOperands(Memo[Instruction, set[Instruction]]):
    """The operands that each instruction reuses, stored as instructions because parameter numbers change."""

    def __init__(self) -> None:
        super().__init__(lambda instruction: {o for i, o in enumerate(instruction.operands) if reuses(instruction, i)})

    def fusing(self, producer: Instruction, fusion: Instruction) -> None:
        """Keep the set of a fusion that is about to take ``producer``."""
        mine = self[fusion]
        if producer in mine:
            mine.discard(producer)
            mine.update(producer.operands)
        else:
            mine.update(self[producer])
