"""What a scheduler node reads and writes: ``MemoryDep('buf0', c0, {c0: 64})``, ``StarDep(name='buf1', mode=None)``, ``WeakDep(...)``."""
from __future__ import annotations

import re
from dataclasses import dataclass

_ACCESS = re.compile(r"(MemoryDep|StarDep|WeakDep)\((?:name=)?'([^'\n]{0,400})'(?:, ([^{}\n]{0,4000}?), \{([^}\n]{0,4000})\})?"
                     r"([^()\n]{0,400})\)")
_MODE = re.compile(r"(?:mode=)?'?(atomic_add|[a-z_]+)'?")


@dataclass(frozen=True, slots=True)
class Dependency:
    """An access to a buffer. ``index`` and ``ranges`` are those of a MemoryDep; a StarDep means the whole buffer, a WeakDep only order."""

    kind: str
    buffer: str
    index: str = ""
    ranges: str = ""
    mode: str = ""

    @property
    def is_order_only(self) -> bool:
        """Whether no data is read: the node must merely run after the write."""
        return self.kind == "WeakDep"

    def __str__(self) -> str:
        return f"{self.buffer}[{self.index} | {self.ranges}]" if self.index else self.buffer


def parse_dependencies(text: str) -> tuple[Dependency, ...]:
    """The dependencies in a printed list, which may span lines."""
    found = []
    for kind, buffer, index, ranges, rest in _ACCESS.findall(text):
        mode = _MODE.search(rest.strip(", ")) if rest.strip(", ") else None
        word = mode[1] if mode is not None and kind == "MemoryDep" else ""
        found.append(Dependency(kind, buffer, index, " ".join(ranges.split()), "" if word == "None" else word))
    return tuple(found)
