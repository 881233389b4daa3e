"""The orders that a Triton kernel of a dot can step along, and their requirements on the rest of the kernel.

Each dimension of the dot must be one contiguous run; the rows of a dot without batch may be two, with other
dimensions between, if they are split at the same place everywhere in the kernel (``GetRequirementsIfSupportedOrder``,
``CombineDotRequirements`` of triton_tiling_propagation.cc). Where two dimensions are in the way, XLA names either: it keeps them unordered.
"""
from __future__ import annotations

from collections.abc import Iterable

from irscope.fusion.xla.gemm.carry import DotSide
from irscope.fusion.xla.gemm.orders import Order
from irscope.fusion.xla.gemm.rules import CONFLICT, INNER_SLICE, SECOND_SPLIT, SPLIT, TRANSPOSED, No

NO_SPLIT = 1
"""The size of the major part of split rows if they are not split (``kNoSplitRequirement``)."""


def split_by(orders: Iterable[Order], side: DotSide) -> int | No:
    """The size of the major part of the rows that orders require, or why a kernel cannot step along them."""
    split = NO_SPLIT
    for order in orders:
        asked = _split_by(order, side)
        both = asked if isinstance(asked, No) else combined(split, asked)
        if isinstance(both, No):
            return both
        split = both
    return split


def combined(one: int, other: int) -> int | No:
    """The split that two parts of a kernel require together, or the refusal if they conflict."""
    if one == other or other == NO_SPLIT:
        return one
    return other if one == NO_SPLIT else No(CONFLICT, numbers=f"{one} and {other}")


def _split_by(order: Order, side: DotSide) -> int | No:
    split = NO_SPLIT
    for label, numbers in sorted(order.by_label.items()):
        if any(order.pieces[n].is_sliced for n in numbers[:-1]):
            return No(INNER_SLICE)
        last = -1
        stretches = 0
        at = 0
        while at < len(numbers):
            size = order.pieces[numbers[at]].count
            while at + 1 < len(numbers) and numbers[at + 1] == numbers[at] + 1:
                at += 1
                size *= order.pieces[numbers[at]].count
            if size == 1:
                at += 1
                continue
            if last > numbers[at]:
                return No(TRANSPOSED)
            stretches += 1
            if stretches > 1 and label != side.splittable:
                return No(SPLIT, numbers=f"dimension {label}")
            if stretches > 2:
                return No(SECOND_SPLIT)
            if stretches == 2:
                split = size
            last = numbers[at]
            at += 1
    return split
