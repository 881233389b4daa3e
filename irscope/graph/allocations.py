"""A compiler's own assignment of buffers: read from a report beside a text, or from a file that holds both."""
from __future__ import annotations

from dataclasses import dataclass, field


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
        """The bytes of all allocations of a sort."""
        return sum(a.size for a in self.allocations if a.sort == sort)

    @property
    def total(self) -> int:
        """The bytes of all allocations."""
        return sum(a.size for a in self.allocations)

    def largest(self, n: int) -> list[tuple[str, int, str]]:
        """The largest values outside of parameters: name, bytes, sort of their allocation."""
        found = [(name, size, a.sort) for a in self.allocations if a.sort != "parameter" for name, size in a.values]
        return sorted(found, key=lambda v: -v[1])[:n]
