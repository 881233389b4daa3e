"""The arrays that a caller gives for a run."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from irscope.lazy import Array


@dataclass(frozen=True, slots=True)
class Files:
    """The inputs, weights and constants of a run, by name; ``opened`` are files that are open already, by path."""

    inputs: Mapping[str, Array]
    weights: Mapping[str, Array]
    constants: Mapping[str, Array]
    opened: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)


NO_ARRAYS = Files({}, {}, {})


class RecordedArrays(Mapping[str, Any]):
    """Arrays by name; ``read`` are the names of those that were looked at."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self._arrays = arrays
        self.read: dict[str, None] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __contains__(self, name: object) -> bool:
        return name in self._arrays

    def __getitem__(self, name: str) -> Array:
        array: Array = self._arrays[name]
        self.read[name] = None
        return array
