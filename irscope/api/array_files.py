"""The arrays that a caller gives for a run."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from irscope.lazy import Array
from irscope.source.arrays import NamedArrays


@dataclass(frozen=True, slots=True)
class Files:
    """The inputs, weights and constants of a run, by name; ``opened`` has the arrays of files that are already open, by path."""

    inputs: Mapping[str, Array]
    weights: Mapping[str, Array]
    constants: Mapping[str, Array]
    opened: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)


NO_ARRAYS = Files({}, {}, {})


class RecordedArrays(NamedArrays):
    """Arrays by name; ``read`` has the names of those that were accessed, in the order of the first access."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self.names = self._arrays = arrays
        self.read: dict[str, None] = {}

    def __getitem__(self, name: str) -> Array:
        array: Array = self._arrays[name]
        self.read[name] = None
        return array
