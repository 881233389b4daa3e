"""The instructions that XLA duplicates into no user: ``InstructionFusion::ComputeGloballyUnfusible``."""
from __future__ import annotations

from math import prod

from irscope.fusion.xla.instructions import Instruction
from irscope.fusion.xla.refusal import Rules
from irscope.graph import TensorType
from irscope.ops import hlo


class Ways:
    """The paths from one instruction to another, searched on demand."""

    def __init__(self, source: Instruction) -> None:
        self.source = source
        self.known: dict[Instruction, bool] = {source: True}

    def reach(self, target: Instruction) -> bool:
        """Whether ``target`` depends on the source. Only instructions between the two are visited."""
        known, limit = self.known, self.source.order
        stack = [target]
        while stack:
            current = stack[-1]
            if current in known:
                stack.pop()
                continue
            todo = []
            found = False
            for operand in current.operands:
                answer = known.get(operand)
                if answer:
                    found = True
                    break
                if answer is None:
                    if operand.order > limit:
                        todo.append(operand)
                    else:
                        known[operand] = False
            if found or not todo:
                known[current] = found
                stack.pop()
            else:
                stack += todo
        return known[target]


def globally_unfusible(post_order: list[Instruction], rules: Rules) -> dict[Instruction, str]:
    """The instructions that must not be duplicated, each with the path that is not fused."""
    for place, instruction in enumerate(post_order):
        instruction.order = place
    refused: dict[Instruction, str] = {}
    for producer in reversed(post_order):
        if at_most_unary(producer) or not reads_more_than_it_gives(producer):
            continue
        closed = f"%{producer.name} is a {producer.op}, which is never fused" if not producer.is_fusible \
            else _closed_way(producer, rules, refused)
        if closed:
            refused[producer] = closed
    return refused


def at_most_unary(instruction: Instruction) -> bool:
    """Whether it reads at most one large operand: duplicating it then reads no more memory."""
    rank = max((_true_rank(leaf) for leaf in instruction.type.leaves() if isinstance(leaf, TensorType)), default=0)
    large = 0
    for operand in instruction.operands:
        if operand.op in (hlo.broadcast, hlo.iota) or (operand.op is hlo.constant and prod(operand.dims) == 1):
            continue
        if not isinstance(operand.type, TensorType):
            large += rank <= 0
        else:
            large += _true_rank(operand.type) >= rank
    return large <= 1


def reads_more_than_it_gives(instruction: Instruction) -> bool:
    """Whether the operands, each counted once, have more elements than the result."""
    return sum(o.elements for o in dict.fromkeys(instruction.operands)) > instruction.elements


def _closed_way(producer: Instruction, rules: Rules, refused: dict[Instruction, str]) -> str:
    """The first unfused edge on a path from ``producer`` to one of its users; empty if all paths are fused."""
    ways = Ways(producer)
    seen: set[Instruction] = set()
    stack = list(producer.users)
    while stack:
        consumer = stack.pop()
        if consumer in seen or consumer is producer:
            continue
        seen.add(consumer)
        if not consumer.is_fusible:
            return f"it is read by %{consumer.name}, a {consumer.op}, into which nothing is fused"
        # The direct edge first: the result is the same, and it mostly avoids the search for paths.
        for number in sorted(range(len(consumer.operands)), key=lambda i: consumer.operands[i] is not producer):
            operand = consumer.operands[number]
            if operand is not producer and not ways.reach(operand):
                continue
            if operand in refused:
                return f"%{operand.name} on the path to %{consumer.name} is itself fused into nothing: {refused[operand]}"
            if (refusal := rules.refusal(consumer, operand, number)) is not None:
                return f"%{operand.name} does not go into %{consumer.name}: {refusal.rule.words}" \
                    + (f" ({refusal.numbers})" if refusal.numbers else "")
            stack.append(operand)
    return ""


def _true_rank(type: TensorType) -> int:
    return sum(d != 1 for d in type.shape)
