"""The users of an instruction, in XLA's order: on removal the last one takes the free place.

That order breaks ties: which user becomes a kernel first, and which of two kernels is fused with a third.
(``HloInstruction::Users``, hlo_instruction.cc)
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

FEW = 8
"""Up to this many users are found by linear search."""
I = TypeVar("I")  # noqa: E741


class Users(Generic[I]):
    """An ordered set."""

    __slots__ = ("order", "places")

    def __init__(self) -> None:
        self.order: list[I] = []
        self.places: dict[I, int] | None = None

    def add(self, user: I) -> None:
        """Append a user, if it is not there yet."""
        if user in self:
            return
        order, places = self.order, self.places
        if places is not None:
            places[user] = len(order)
        order.append(user)
        if places is None and len(order) > FEW:
            self.places = {one: place for place, one in enumerate(order)}

    def discard(self, user: I) -> None:
        """Remove a user, if it is there."""
        order, places = self.order, self.places
        if user not in self:
            return
        place = order.index(user) if places is None else places.pop(user)
        last = order.pop()
        if last is not user:
            order[place] = last
            if places is not None:
                places[last] = place

    def clear(self) -> None:
        """Remove all users."""
        self.order.clear()
        self.places = None

    def __contains__(self, user: I) -> bool:
        return user in (self.order if self.places is None else self.places)

    def __iter__(self) -> Iterator[I]:
        return iter(self.order)

    def __len__(self) -> int:
        return len(self.order)
