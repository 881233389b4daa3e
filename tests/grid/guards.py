"""Memory with pages around it that nobody may touch, and arenas whose gaps hold a pattern: stray loads and stores end in a fault."""
from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np

from irscope.lower.program import Program, Slot

Array = np.ndarray[Any, Any]
PAGE = mmap.PAGESIZE
CANARY = 0xA5
POISON = 0xFF
"""Not a number in every float type, -1 in every signed integer."""
ALIGNED = 64
_NONE = 0  # PROT_NONE of <sys/mman.h>

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class Guarded:
    """One region between two pages that may be neither read nor written."""

    def __init__(self, size: int) -> None:
        self.size = -(-max(size, 1) // PAGE) * PAGE
        self._map = mmap.mmap(-1, self.size + 2 * PAGE)
        self._bytes = np.frombuffer(self._map, np.uint8)
        begin = int(self._bytes.ctypes.data)
        for page in (begin, begin + PAGE + self.size):
            if _libc.mprotect(page, PAGE, _NONE):
                raise OSError(ctypes.get_errno(), "mprotect")
        self.inside = self._bytes[PAGE:PAGE + self.size]

    def array(self, dtype: Any, shape: Sequence[int], at_end: bool, aligned: int) -> Placed:
        """An uninitialised array at the end of the region (as near as a multiple of ``aligned`` bytes is), or at its begin."""
        count = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        first = (self.size - count) // aligned * aligned if at_end else 0
        self.inside[:] = CANARY
        self.inside[first:first + count] = POISON
        return Placed(self.inside, first, count, self.inside[first:first + count].view(dtype).reshape(shape))


class Placed:
    """An array in a guarded region; what lies around it must stay as it is."""

    def __init__(self, region: Array, first: int, count: int, array: Array) -> None:
        self._before, self._behind, self.array = region[:first], region[first + count:], array

    def strays(self) -> str:
        """Where bytes around the array have changed; empty where none has."""
        for where, around in (("before", self._before[::-1]), ("behind", self._behind)):
            changed = np.flatnonzero(around != CANARY)
            if changed.size:
                return f"{changed.size} bytes changed {where} it, the nearest {int(changed[0])} bytes away"
        return ""


class Regions:
    """Guarded regions that are used again and again, one for each array of a run."""

    def __init__(self) -> None:
        self._regions: list[Guarded] = []

    def arrays(self, types: Sequence[tuple[Any, Sequence[int]]], at_end: bool, aligned: int, skip: int = 0) -> list[Placed]:
        """Arrays in the regions from number ``skip`` on; ``aligned`` 0 stands for the size of an element."""
        found = []
        for number, (dtype, shape) in enumerate(types, skip):
            count = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
            if number == len(self._regions):
                self._regions.append(Guarded(count))
            elif self._regions[number].size < count:
                self._regions[number] = Guarded(count)
            found.append(self._regions[number].array(dtype, shape, at_end, aligned or dtype.itemsize))
        return found


class Arena:
    """The arena of a program: full of poison before a run, and, where slots lie apart, of a pattern between them that is looked at behind it."""

    def __init__(self, program: Program, memory: Array, apart: bool) -> None:
        self._memory = memory
        self._zeroed = [s for s in program.temps if s.zeroed]
        self._slots = sorted((s for s in program.temps if s.bytes), key=lambda s: s.offset)
        ends = [0, *(s.offset + s.bytes for s in self._slots)]
        begins = [*(s.offset for s in self._slots), memory.size]
        self._gaps = [memory[end:begin] for end, begin in zip(ends, begins)] if apart else []

    def fill(self) -> None:
        """Poison in all that a run must write before it reads it, the pattern between."""
        kept = [(s, self._of(s).copy()) for s in self._zeroed]
        self._memory[:] = POISON
        for slot, content in kept:
            self._of(slot)[:] = content
        for gap in self._gaps:
            gap[:] = CANARY

    def strays(self) -> str:
        """Beside which slot the pattern has changed; empty where nowhere."""
        for number, gap in enumerate(self._gaps):
            changed = np.flatnonzero(gap != CANARY)
            if changed.size:
                before = self._slots[number - 1].name if number else "the begin"
                behind = self._slots[number].name if number < len(self._slots) else "the end"
                return f"{changed.size} bytes changed between {before} and {behind}, the first {int(changed[0])} bytes behind {before}"
        return ""

    def _of(self, slot: Slot) -> Array:
        return self._memory[slot.offset:slot.offset + slot.bytes]
