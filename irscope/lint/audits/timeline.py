"""Live bytes along the schedule, as data and as a chart of block characters."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irscope.analysis.memory_timeline import highest, parts
from irscope.lint.savings import human_bytes

WIDTH, HEIGHT = 60, 6
BLOCKS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True)
class Timeline:
    """The most live bytes in each part of a schedule of ``steps`` nodes, and the node at which they live."""

    steps: int
    live: tuple[int, ...]
    at: tuple[str, ...]

    @classmethod
    def of(cls, live: Sequence[int], names: Sequence[str]) -> Timeline:
        """The timeline of a schedule, by the live bytes at each node and the nodes' names."""
        most = highest(live)
        return cls(len(live), tuple(live[i] for i in most), tuple(names[i] for i in most))

    def chart(self) -> list[str]:
        """Rows of blocks, the highest first, each with the bytes of its upper edge; below them the numbers of the first and last node.

        >>> print("\\n".join(Timeline(4, (0, 512, 1024, 256), ("a", "b", "c", "d")).chart()))
        1 KiB │  █
        853 B │  █
        683 B │  █
        512 B │ ██
        341 B │ ██▄
        171 B │ ███
                0..3
        """
        most = max(self.live, default=0)
        if not most:
            return []
        columns = [max(self.live[i] for i in part) for part in parts(len(self.live), WIDTH)]
        steps = [round(value / most * HEIGHT * (len(BLOCKS) - 1)) for value in columns]
        labels = [human_bytes(most * (row + 1) / HEIGHT) for row in reversed(range(HEIGHT))]
        width = max(map(len, labels))
        rows = []
        for row, label in zip(reversed(range(HEIGHT)), labels, strict=True):
            filled = (min(max(step - row * (len(BLOCKS) - 1), 0), len(BLOCKS) - 1) for step in steps)
            rows.append(f"{label.rjust(width)} │{''.join(BLOCKS[n] for n in filled)}".rstrip())
        return [*rows, f"{' ' * (width + 3)}0..{self.steps - 1}"]
