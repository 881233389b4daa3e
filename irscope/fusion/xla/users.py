"""Who reads an instruction, in XLA's order: the last one takes the place of one that reads no more.

That order decides between equals: which reader becomes a kernel first, and which of two kernels is joined with a third.
(``HloInstruction::Users``, hlo_instruction.cc)
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from irscope.fusion.xla.instructions import Instruction

FEW = 8
"""Up to so many are found by looking through all."""


class Users:
    """An ordered set."""

    __slots__ = ("order", "places")

    def __init__(self) -> None:
        self.order: list[Instruction] = []
        self.places: dict[Instruction, int] | None = None

    def add(self, user: Instruction) -> None:
        """Put one at the end that is not there yet."""
        if user in self:
            return
        order, places = self.order, self.places
        if places is not None:
            places[user] = len(order)
        order.append(user)
        if places is None and len(order) > FEW:
            self.places = {one: place for place, one in enumerate(order)}

    def discard(self, user: Instruction) -> None:
        """Take one out, if it is there."""
        order, places = self.order, self.places
        if user not in self:
            return
        place = order.index(user) if places is None else places.pop(user)
        last = order.pop()
        if last is not user:
            order[place] = last
            if places is not None:
                places[last] = place

    def __contains__(self, user: Instruction) -> bool:
        return user in (self.order if self.places is None else self.places)

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self.order)

    def __len__(self) -> int:
        return len(self.order)
