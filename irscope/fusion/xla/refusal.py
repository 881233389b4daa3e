"""Why XLA keeps a producer and a consumer apart: its own words, the rule, the numbers, the root cause and the way out."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from irscope.fusion.xla.instructions import Instruction
from irscope.graph import Node


@dataclass(frozen=True, slots=True)
class Rule:
    """One test that says no. ``words`` are XLA's, verbatim; ``cause`` and ``way_out`` are sentences in which
    ``{producer}``, ``{consumer}``, ``{producer_op}`` and ``{consumer_op}`` stand for the names and opcodes of the edge."""

    name: str
    words: str
    cause: str
    way_out: str = ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A rule that said no to one edge, the numbers it saw, and the refusal that it follows from, if it follows from another."""

    rule: Rule
    numbers: str = ""
    because: str = ""

    def words(self, producer: Node, consumer: Node) -> str:
        """XLA's words; in brackets where it decides without a word."""
        return _named(self.rule.words, producer, consumer)

    def cause(self, producer: Node, consumer: Node) -> str:
        """The root cause in a sentence."""
        text = _named(self.rule.cause, producer, consumer)
        if self.because:
            text += f": {self.because}"
        return text + (f" ({self.numbers})" if self.numbers else "")

    def way_out(self, producer: Node, consumer: Node) -> str:
        """The smallest edit that would let this pass fuse the edge; empty where none is known."""
        return _named(self.rule.way_out, producer, consumer)


class Rules(Protocol):
    """What the greedy engine asks of a compiler: the tests of one fusion pass on one computation.

    ``lasting`` are rules that say no again whatever else is fused into the same kernel, so that they need not be asked twice;
    ``may_duplicate``: a producer with several readers may be copied into each.
    """

    lasting: frozenset[Rule]
    may_duplicate: bool

    def refusal(self, consumer: Instruction, producer: Instruction, number: int) -> Refusal | None:
        """Why an operand does not go into ``consumer``; None when it does. ``number`` is its place in anything but a fusion."""

    def fuse(self, producer: Instruction, consumer: Instruction) -> Instruction:
        """Put ``producer`` into the kernel of ``consumer``, which is returned (a new fusion where it was none)."""


def _named(text: str, producer: Node, consumer: Node) -> str:
    return text.format(producer="%" + producer.name, consumer="%" + consumer.name, producer_op=producer.op.name,
                       consumer_op=consumer.op.name)
