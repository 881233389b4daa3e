"""What the greedy engine asks of the rules of a compiler."""
from __future__ import annotations

from typing import Protocol

from irscope.fusion.xla.instructions import Instruction
from irscope.fusion.xla.refusal import Refusal, Rule


class Rules(Protocol):
    """The tests of one fusion pass on one computation.

    ``lasting`` are rules that say no again whatever else is fused into the same kernel, so that they need not be asked twice;
    ``may_duplicate``: a producer with several readers may be copied into each.
    """

    lasting: frozenset[Rule]
    may_duplicate: bool

    def refusal(self, consumer: Instruction, producer: Instruction, number: int) -> Refusal | None:
        """Why an operand does not go into ``consumer``; None when it does. ``number`` is its place in anything but a fusion."""

    def fuse(self, producer: Instruction, consumer: Instruction) -> Instruction:
        """Put ``producer`` into the kernel of ``consumer``, which is returned (a new fusion where it was none)."""
