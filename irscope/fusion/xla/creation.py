"""The order in which XLA made the instructions of a text, from their names: of producers with equal gain it fuses the youngest.

A dump does not print the numbers that XLA gives instructions (``unique_id``). What it prints was compared with these numbers in the protos
of the same passes (jaxlib 0.10.2 and 0.12.0.1): the instructions of the program are the oldest, in the order of the program. Then come
those of functions that were inlined, those that simplification made, those of layout assignment, and kernels. XLA numbers the instructions
of one stem (``mul.3``, ``mul.4``) as it makes them; a name that is made later takes the lowest free number.
"""
from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum
from itertools import pairwise
from typing import TypeAlias

from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.graph.walk import post_order
from irscope.ops import hlo

REVERSED_NUMBERS = re.compile(r"(?:\d++\.)*+")
LONGEST = 4_000
"""The number of digits that Python converts under any setting; no compiler counts that far."""
CALLED = re.compile(r"\bjit\(")
KERNELS = ("gemm_fusion", "triton_softmax")
MOVEMENT = frozenset((hlo.bitcast, hlo.transpose, hlo.copy, hlo.pad, hlo.slice, hlo.reduce))
"""Operators that layout assignment and the passes after it create."""
GAP, SMALL = 1.5, 4
"""A pass has replaced instructions if, with ``SMALL`` added, the next number of the program is at least ``GAP`` times theirs."""
Stem: TypeAlias = tuple[str, int]
"""A name without its numbers, and how many there are."""
Name: TypeAlias = tuple[Stem, tuple[int, ...]]
"""A stem and its numbers."""
STEMS = 64
"""The number of stems that are searched for free numbers: those with the most instructions."""


class CreationStage(IntEnum):
    """What made an instruction, the earliest first."""

    PROGRAM = 0
    INLINED = 1
    SIMPLIFIED = 2
    LAID_OUT = 3
    KERNEL = 4


def by_age(computation: Computation, order: Sequence[Instruction]) -> list[Instruction]:
    """The instructions of a post-order, the oldest first: by stage; within one, operands and lower numbers of the same stem come first."""
    names = {instruction: _split(instruction.name) for instruction in order}
    scopes = {instruction: computation.scope(instruction.node) for instruction in order}
    stages = {instruction: CreationStage.LAID_OUT if _is_canonical_reduction(instruction, scopes)
              else _stage(instruction, names[instruction][0][0], scopes[instruction]) for instruction in order}
    for late in _numbered_later(order, names, stages):
        stages[late] = CreationStage.SIMPLIFIED
    before = _next_lower(order, names, stages)

    def older(one: Instruction) -> list[Instruction]:
        """The instructions of the same stage that come before ``one``: the next lower number of its stem, then its operands."""
        lower = [before[one]] if one in before else []
        return lower + [operand for operand in one.operands if stages.get(operand) is stages[one]]

    return [one for stage in CreationStage for one in post_order((i for i in order if stages[i] is stage), older)]


def _split(name: str) -> Name:
    # From the end: from the front, each number of a name such as x.1.1.1.1y would begin another attempt.
    found = REVERSED_NUMBERS.match(name[::-1])
    stem = name[:len(name) - (found.end() if found is not None else 0)]
    numbers = tuple(int(n[-LONGEST:]) for n in name[len(stem):].split(".")[1:])
    return (stem, len(numbers)), numbers


def _stage(instruction: Instruction, stem: str, scope: str) -> CreationStage:
    """What made an instruction, by its name and scope: passes name it after its opcode, jax after the primitive that ends the scope."""
    if stem.startswith(KERNELS) or instruction.op in (hlo.fusion, hlo.custom_call):
        return CreationStage.KERNEL
    if instruction.op is hlo.bitcast:
        return CreationStage.LAID_OUT
    if scope and stem.replace("_", "-") == instruction.op.name and scope.rpartition("/")[2] != stem:
        return CreationStage.LAID_OUT if instruction.op in MOVEMENT else CreationStage.SIMPLIFIED
    return CreationStage.INLINED if len(CALLED.findall(scope)) > 1 else CreationStage.PROGRAM


def _is_canonical_reduction(instruction: Instruction, scopes: dict[Instruction, str]) -> bool:
    """Whether a pass behind layout assignment has replaced a reduction of the program, which keeps its name.

    ``ReductionLayoutNormalizer`` and ``ReductionDimensionGrouper`` (reduction_*.cc) reduce a bitcast of the operand, ``ReductionSplitter``
    and ``TreeReductionRewriter`` the result of another reduction of the same place in the program.
    """
    if instruction.op is not hlo.reduce:
        return False
    operand = instruction.operands[0]
    return operand.op is hlo.bitcast or (operand.op is hlo.reduce and scopes[operand] == scopes[instruction])


def _numbered_later(order: Sequence[Instruction], names: dict[Instruction, Name],
                    stages: dict[Instruction, CreationStage]) -> list[Instruction]:
    """Instructions of the program that a pass has replaced and given a free number below all that the program has.

    They have a gap behind them, and some a lower number than what they are computed from.
    """
    stems: dict[Stem, list[Instruction]] = {}
    for instruction in order:
        if stages[instruction] is CreationStage.PROGRAM and names[instruction][1]:
            stems.setdefault(names[instruction][0], []).append(instruction)
    low: dict[Stem, list[Instruction]] = {}
    for stem, members in sorted(stems.items(), key=lambda item: -len(item[1]))[:STEMS]:
        members.sort(key=lambda one: names[one][1])
        firsts = [names[one][1][0] + SMALL for one in members]
        factor, place = max(((b / a, k + 1) for k, (a, b) in enumerate(pairwise(firsts))), default=(0.0, 0))
        if factor >= GAP:
            low[stem] = members[:place]
    falling = _falling(order, {one: names[one] for stem in low for one in stems[stem]})
    return [one for members in low.values() if not falling.isdisjoint(members) for one in members]


def _falling(order: Sequence[Instruction], names: dict[Instruction, Name]) -> set[Instruction]:
    """The instructions in ``names`` that are computed from one of the same stem with a higher number."""
    above: dict[Instruction, dict[Stem, tuple[int, ...]]] = {}
    found: set[Instruction] = set()
    for instruction in order:
        highest: dict[Stem, tuple[int, ...]] = {}
        for operand in instruction.operands:
            for stem, numbers in above.get(operand, {}).items():
                highest[stem] = max(highest.get(stem, ()), numbers)
        if instruction in names:
            stem, numbers = names[instruction]
            if highest.get(stem, ()) > numbers:
                found.add(instruction)
            highest[stem] = max(highest.get(stem, ()), numbers)
        above[instruction] = highest
    return found


def _next_lower(order: Sequence[Instruction], names: dict[Instruction, Name],
                stages: dict[Instruction, CreationStage]) -> dict[Instruction, Instruction]:
    """For each instruction the one of the same stage and stem with the next lower number, if there is one."""
    chains: dict[tuple[CreationStage, Stem], list[Instruction]] = {}
    for instruction in order:
        chains.setdefault((stages[instruction], names[instruction][0]), []).append(instruction)
    found: dict[Instruction, Instruction] = {}
    for chain in chains.values():
        chain.sort(key=lambda one: names[one][1])
        found.update(zip(chain[1:], chain, strict=False))
    return found
