"""Why XLA does not fuse a producer into a consumer: its own words, the rule, the numbers, the root cause and the smallest edit."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from irscope.fusion.xla.instructions import Instruction
from irscope.graph import Node
from irscope.ops import hlo


@dataclass(frozen=True, slots=True)
class Rule:
    """A test that can refuse an edge. ``words`` are XLA's, verbatim; in the sentences ``cause`` and ``way_out``,
    ``{producer}``, ``{consumer}``, ``{producer_op}`` and ``{consumer_op}`` stand for the names and opcodes of the edge."""

    name: str
    words: str
    cause: str
    way_out: str = ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The rule that refused one edge, the numbers that it compared, and the refusal that it follows from, if any."""

    rule: Rule
    numbers: str = ""
    because: str = ""

    def words(self, producer: Node, consumer: Node) -> str:
        """XLA's words; in brackets if it decides without a message."""
        return _named(self.rule.words, producer, consumer)

    def cause(self, producer: Node, consumer: Node) -> str:
        """The root cause in a sentence."""
        text = _named(self.rule.cause, producer, consumer)
        if self.because:
            text += f": {self.because}"
        return text + (f" ({self.numbers})" if self.numbers else "")

    def way_out(self, producer: Node, consumer: Node) -> str:
        """The smallest edit that would let this pass fuse the edge; empty if none is known."""
        return _named(self.rule.way_out, producer, consumer)


class Rules(Protocol):
    """The interface between the greedy engine and a compiler: the tests of one fusion pass on one computation.

    ``lasting`` are rules whose refusal holds whatever else is fused into the same kernel, so that they are not tested twice;
    ``may_duplicate``: a producer with several readers may be copied into each.
    """

    lasting: frozenset[Rule]
    may_duplicate: bool

    def refusal(self, consumer: Instruction, producer: Instruction, number: int) -> Refusal | None:
        """Why an operand is not fused into ``consumer``; None if it is. ``number`` is its operand number outside fusions."""

    def fuse(self, producer: Instruction, consumer: Instruction) -> Instruction:
        """Fuse ``producer`` into the kernel of ``consumer``, which is returned (a new fusion if there was none)."""


def _named(text: str, producer: Node, consumer: Node) -> str:
    return text.format(producer="%" + producer.name, consumer="%" + consumer.name, producer_op=_operator(producer),
                       consumer_op=_operator(consumer))


def _operator(node: Node) -> str:
    """The operator of a node; of a fusion that XLA's rewriting made of another operator for a library, that it is a call of one."""
    if node.op is hlo.fusion and node.origin and node.origin[0].op is not hlo.fusion:
        return "library call"
    return node.op.name
