"""Sorts a proto into the order of HLO text: operands before users, callees before callers. XLA's protos are sorted; others may not be."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from irscope.formats.hlo_pb.record import Record
from irscope.graph.walk import post_order
from irscope.source.budget import tick


def operands_first(instructions: Sequence[Record], known: Callable[[int], int]) -> list[Record]:
    """The instructions, each after its operands and control predecessors; sorted lists stay as they are. Cycles are broken."""
    after = {one.number("id"): [known(number) for number in (*one.numbers("operand_ids"), *one.numbers("control_predecessor_ids"))]
             for one in instructions}
    return _sorted({one.number("id"): one for one in instructions}, after)


def callees_first(computations: Sequence[Record]) -> list[Record]:
    """The computations, each after those that it calls."""
    calls = {one.number("id"): [number for inside in one.records("instructions") for number in inside.numbers("called_computation_ids")]
             for one in computations}
    return _sorted({one.number("id"): one for one in computations}, calls)


def _sorted(things: Mapping[int, Record], after: Mapping[int, Sequence[int]]) -> list[Record]:
    def before(number: int) -> list[int]:
        tick()
        return [each for each in after[number] if each in things]
    return [things[number] for number in post_order(things, before)]
