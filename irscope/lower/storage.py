"""Where the elements of a value lie: a slot, and strides into it; movement that needs no copying is another Storage of the same slot."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from irscope.graph import DType
from irscope.lower.program import Slot


@dataclass(frozen=True, slots=True)
class Storage:
    """Element ``i`` of the value is element ``offset + sum(i[d] * strides[d])`` of the slot. A stride of 0 repeats, a negative one runs back."""

    slot: Slot
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @staticmethod
    def plain(slot: Slot, dtype: DType, shape: tuple[int, ...], offset: int = 0) -> Storage:
        """Row-major, without gaps."""
        return Storage(slot, dtype, shape, row_major(shape), offset)

    @property
    def elements(self) -> int:
        return prod(self.shape)

    @property
    def is_plain(self) -> bool:
        """Whether it is row-major without gaps (dimensions of size 1 may have any stride)."""
        return all(s == w or n == 1 for n, s, w in zip(self.shape, self.strides, row_major(self.shape)))

    def transposed(self, order: Sequence[int]) -> Storage:
        """Result dimension i is dimension ``order[i]``."""
        return Storage(self.slot, self.dtype, tuple(self.shape[d] for d in order), tuple(self.strides[d] for d in order), self.offset)

    def sliced(self, parts: Sequence[tuple[int, int, int]]) -> Storage:
        """HLO's slice: (start, limit, stride) a dimension."""
        shape = tuple(max(0, -(-(limit - start) // step)) for start, limit, step in parts)
        offset = self.offset + sum(start * s for (start, _, _), s in zip(parts, self.strides) if shape)
        return Storage(self.slot, self.dtype, shape, tuple(s * step for (_, _, step), s in zip(parts, self.strides)), offset)

    def reversed(self, dimensions: Sequence[int]) -> Storage:
        """Counting from the end along these dimensions."""
        strides, offset = list(self.strides), self.offset
        for d in dimensions:
            offset += (self.shape[d] - 1) * strides[d]
            strides[d] = -strides[d]
        return Storage(self.slot, self.dtype, self.shape, tuple(strides), offset)

    def broadcast(self, dimensions: Sequence[int], shape: tuple[int, ...]) -> Storage:
        """HLO's broadcast: dimension d becomes ``dimensions[d]`` of the result, the others repeat."""
        strides = [0] * len(shape)
        for d, s in zip(dimensions, self.strides):
            strides[d] = s
        return Storage(self.slot, self.dtype, shape, tuple(strides), self.offset)

    def reshaped(self, shape: tuple[int, ...]) -> Storage | None:
        """The same elements in row-major order under another shape, or None when no strides say that."""
        strides = reshape_strides(self.shape, self.strides, shape)
        return None if strides is None else Storage(self.slot, self.dtype, shape, strides, self.offset)


@dataclass(frozen=True, slots=True)
class Wish:
    """How a kernel would like to find (or to leave) a value.

    ``order`` lists the dimensions from the slowest to the fastest; ``low`` and ``high`` are elements of zeros before and after each
    dimension (a halo: never written, zero at every run); ``pitch`` pads the second fastest dimension's stride to a multiple of it
    (0: no padding).
    """

    order: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    pitch: int = 0

    def join(self, other: Wish) -> Wish | None:
        """A wish that grants both, or None."""
        if self.order != other.order:
            return None
        return Wish(self.order, tuple(map(max, self.low, other.low)), tuple(map(max, self.high, other.high)), max(self.pitch, other.pitch))

    def layout(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], int, int]:
        """(strides, offset of the first element, elements of the slot) for a value of this shape."""
        strides = [0] * len(shape)
        step = 1
        for place, d in enumerate(reversed(self.order)):
            strides[d] = step
            step *= self.low[d] + shape[d] + self.high[d]
            if place == 0 and self.pitch:
                step = -(-step // self.pitch) * self.pitch
        return tuple(strides), sum(self.low[d] * strides[d] for d in range(len(shape))), step


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of an array without gaps."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def reshape_strides(old: Sequence[int], strides: Sequence[int], new: Sequence[int]) -> tuple[int, ...] | None:
    """The strides under which ``new`` walks the elements of (``old``, ``strides``) in row-major order, or None where there are none."""
    if prod(old) == 0:
        return row_major(new)
    runs: list[tuple[int, int]] = []  # (size, stride of its fastest step), slowest first; neighbours that are one run are joined
    for n, s in zip(old, strides):
        if n == 1:
            continue
        if runs and runs[-1][1] == n * s:
            runs[-1] = (runs[-1][0] * n, s)
        else:
            runs.append((n, s))
    made = [0] * len(new)
    left, step = 1, 1
    for d in range(len(new) - 1, -1, -1):
        if new[d] == 1:
            made[d] = step
            continue
        if left == 1:
            if not runs:
                return None
            left, step = runs.pop()
        if left % new[d]:
            return None
        made[d] = step
        step *= new[d]
        left //= new[d]
    return tuple(made)
