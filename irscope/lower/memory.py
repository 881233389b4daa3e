"""Memory: the arena, in which values whose live ranges do not overlap share addresses, and arrays at aligned addresses."""
from __future__ import annotations

import ctypes
from typing import Any

from irscope.lazy import Array, np
from irscope.lower.program import Slot

LINE = 64
STAGGER = 17 * LINE
"""Offset added between buffers of a page or more, because addresses equal modulo 4096 make loads wait for stores."""
PAGE = 4096


class ArenaLayout:
    """The live range of each temporary slot, in steps of the program in text order; :meth:`place` assigns the addresses."""

    def __init__(self) -> None:
        self.time = 0
        self._first: dict[Slot, int] = {}
        self._last: dict[Slot, int] = {}

    def tick(self) -> int:
        """Begin a new step."""
        self.time += 1
        return self.time

    def touch(self, slot: Slot) -> None:
        """Extend the slot's live range to the current step, which reads or writes it."""
        if slot.scope == "temp":
            self._first.setdefault(slot, self.time)
            self._last[slot] = self.time

    def close_loop(self, begin: int) -> None:
        """End a loop that began at ``begin``: slots that exist before it and are used in it must live until its last iteration."""
        for slot, first in self._first.items():
            if first < begin <= self._last[slot]:
                self._last[slot] = self.time

    def slots(self) -> list[Slot]:
        """The slots in order of first use."""
        return list(self._first)

    def place(self) -> int:
        """Assign every slot its offset, first fit in order of first use; returns the bytes of the arena."""
        active: list[tuple[int, int, int]] = []  # (offset, end, last use)
        total = 0
        kept = [s for s in self._first if s.zeroed]
        for slot in kept:
            slot.offset = total
            total = _above(total + slot.bytes)
        base = total
        for slot in sorted((s for s in self._first if not s.zeroed), key=lambda s: self._first[s]):
            now = self._first[slot]
            active = [block for block in active if block[2] >= now]
            size = -(-max(slot.bytes, 1) // LINE) * LINE + (STAGGER if slot.bytes >= PAGE else 0)
            at = base
            place = len(active)
            for number, (offset, end, _) in enumerate(active):
                if at + size <= offset:
                    place = number
                    break
                at = end
            slot.offset = at
            active.insert(place, (at, at + size, self._last[slot]))
            total = max(total, at + size)
        return total

    def place_apart(self, apart: int) -> int:
        """Assign every slot separate memory with at least ``apart`` unused bytes before and after it; returns the bytes of the arena."""
        end = 0
        for slot in self._first:
            slot.offset = -(-(end + apart) // LINE) * LINE
            end = slot.offset + slot.bytes
        return end + apart


def _above(offset: int) -> int:
    return -(-offset // LINE) * LINE + STAGGER


def address(array: Array) -> int:
    """The address of an array's first element."""
    try:
        return int(ctypes.addressof(_first_byte(array)))  # four times faster than the interface, which builds a dictionary
    except (TypeError, ValueError):  # it is read-only or empty, or its element type is not numpy's own
        place: int = array.__array_interface__["data"][0]
        return place


_first_byte: Any = ctypes.c_char.from_buffer


def aligned_bytes(count: int, zero: bool = False) -> Array:
    """A byte array, aligned to 64 bytes: zeros, or uninitialised."""
    memory = (np.zeros if zero else np.empty)(count + 64, dtype=np.uint8)
    start = -address(memory) % 64
    return memory[start:start + count]
