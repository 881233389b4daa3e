"""XLA's own report of memory: the buffer-assignment file next to a dump."""
from __future__ import annotations

import re
from dataclasses import dataclass, field

_ALLOCATION = re.compile(r"^allocation (\d+):(?: 0x[0-9a-f]+,)? size (\d+), (.*)$", re.MULTILINE)
_VALUE = re.compile(r"^ value: <\d+ (\S+?)(?:\{[\d,]*\})? @\d+> \(size=(\d+),offset=(\d+)\): (.*)$", re.MULTILINE)

_SPACE = re.compile(r"^Memory Space: (.+?) \(color=\d+\)\s*\nTotal bytes: (\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Allocation:
    """A buffer of the compiled program: ``sort`` is ``parameter``, ``output``, ``temporary``, ``constant`` or ``thread-local``;
    ``values`` are the instructions whose results it contains, with their bytes, largest first."""

    number: int
    size: int
    sort: str
    values: tuple[tuple[str, int], ...] = ()


@dataclass(slots=True)
class BufferAssignment:
    """All allocations of a module."""

    allocations: list[Allocation] = field(default_factory=list)

    def bytes_of(self, sort: str) -> int:
        return sum(a.size for a in self.allocations if a.sort == sort)

    @property
    def total(self) -> int:
        return sum(a.size for a in self.allocations)

    def largest(self, n: int) -> list[tuple[str, int, str]]:
        """The largest values outside of parameters: name, bytes, sort of their allocation."""
        found = [(name, size, a.sort) for a in self.allocations if a.sort != "parameter" for name, size in a.values]
        return sorted(found, key=lambda v: -v[1])[:n]


def parse_buffer_assignment(text: str) -> BufferAssignment:
    """Read a ``*-buffer-assignment.txt``; lines that it does not know are passed over.

    >>> parse_buffer_assignment("BufferAssignment:\\nallocation 0: size 8, parameter 0, shape |f32[2]|:\\n").total
    8
    """
    found: list[Allocation] = []
    starts = list(_ALLOCATION.finditer(text))
    for i, start in enumerate(starts):
        end = starts[i + 1].start() if i + 1 < len(starts) else len(text)
        values = sorted(((v[1], int(v[2])) for v in _VALUE.finditer(text, start.end(), end)), key=lambda v: -v[1])
        found.append(Allocation(int(start[1]), int(start[2]), _sort(start[3]), tuple(values)))
    return BufferAssignment(found)


def parse_memory_usage(text: str) -> dict[str, int]:
    """Read a ``*-memory-usage-report.txt``: bytes by memory space.

    >>> parse_memory_usage("Memory Space: default (color=0)\\nTotal bytes: 112680 (110.0KiB)\\n")
    {'default': 112680}
    """
    return {m[1]: int(m[2]) for m in _SPACE.finditer(text)}


def _sort(words: str) -> str:
    if words.startswith("parameter"):
        return "parameter"
    if "thread-local" in words:
        return "thread-local"
    if "preallocated-temp" in words:
        return "temporary"
    if "constant" in words:
        return "constant"
    return "output" if "output" in words or "maybe-live-out" in words else "temporary"
