"""Storage of a value: a slot, and strides into it; data movement without a copy is another Storage of the same slot."""
from __future__ import annotations

from dataclasses import dataclass
from math import prod

from irscope.fusion.views import Chain, Strides, row_major, seen_through
from irscope.graph import DType, Node
from irscope.lower.program import Slot


@dataclass(frozen=True, slots=True)
class Storage:
    """Element ``i`` of the value is element ``offset + sum(i[d] * strides[d])`` of the slot. Stride 0 repeats, a negative one reverses.

    ``room`` is, for each dimension, the number of always-zero elements in the slot before and after the value (empty: none).
    """

    slot: Slot
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0
    room: tuple[tuple[int, int], ...] = ()

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

    @property
    def base(self) -> int:
        """The lowest element accessed."""
        return self.offset + sum((n - 1) * s for n, s in zip(self.shape, self.strides) if s < 0 and n)

    @property
    def span(self) -> int:
        """Elements from the lowest to the highest accessed."""
        return 1 + sum((n - 1) * abs(s) for n, s in zip(self.shape, self.strides)) if self.elements else 0

    def is_same_place(self, other: Storage) -> bool:
        """Whether element i is the same memory in both (dimensions of size 1 may have any stride)."""
        return self.slot is other.slot and self.offset == other.offset and self.shape == other.shape and all(
            a == b or n == 1 for a, b, n in zip(self.strides, other.strides, self.shape))

    @property
    def lead(self) -> int:
        """Elements from the first of the room to element 0; strides of a value with room are positive."""
        return sum(low * s for (low, _), s in zip(self.room, self.strides)) if self.elements else 0

    @property
    def span_with_room(self) -> int:
        """Elements from the first of the room to the last."""
        around = self.room or ((0, 0),) * len(self.shape)
        return 1 + sum((low + n - 1 + high) * abs(s) for n, s, (low, high) in zip(self.shape, self.strides, around)) if self.elements else 0

    def walk(self) -> Strides:
        """Shape, strides and offset alone."""
        return Strides(self.shape, self.strides, self.offset)

    def under(self, strides: Strides) -> Storage:
        """The same slot under other strides."""
        return Storage(self.slot, self.dtype, strides.shape, strides.strides, strides.offset)

    def through(self, node: Node) -> Storage | None:
        """The storage of a view node (reshape, transpose, slice, reverse, broadcast) of it, or None when that needs a copy."""
        found = self.walk().through(node)
        return None if found is None else self.under(found)

    def seen_through(self, chain: Chain | None) -> Storage | None:
        """The storage under the strides of the loops that reach it through ``chain``, or None when that needs a copy."""
        found = seen_through(chain, self.walk())
        return None if found is None else self.under(found)


@dataclass(frozen=True, slots=True)
class LayoutConstraint:
    """The layout that a kernel requests for an input or output.

    ``order`` lists the dimensions from the slowest to the fastest; ``low`` and ``high`` are elements of zeros before and after each
    dimension (a halo: never written, zero at every run); ``pitch`` pads the second fastest dimension's stride to a multiple of it
    (0: no padding).
    """

    order: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    pitch: int = 0

    @staticmethod
    def dense(order: tuple[int, ...]) -> LayoutConstraint:
        """An order of dimensions, without a halo or padding."""
        return LayoutConstraint(order, (0,) * len(order), (0,) * len(order))

    def join(self, other: LayoutConstraint) -> LayoutConstraint | None:
        """The constraint that satisfies both, or None."""
        if self.order != other.order:
            return None
        low, high = tuple(map(max, self.low, other.low)), tuple(map(max, self.high, other.high))
        return LayoutConstraint(self.order, low, high, max(self.pitch, other.pitch))

    @property
    def has_halo(self) -> bool:
        return any(self.low) or any(self.high)

    def layout(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], int, int]:
        """(strides, offset of the first element, elements of the slot) for a value of this shape; one of no elements has no halo."""
        strides = [0] * len(shape)
        if not prod(shape):
            return tuple(strides), 0, 0
        step = 1
        for place, d in enumerate(reversed(self.order)):
            strides[d] = step
            step *= self.low[d] + shape[d] + self.high[d]
            if place == 0 and self.pitch:
                step = -(-step // self.pitch) * self.pitch
        return tuple(strides), sum(self.low[d] * strides[d] for d in range(len(shape))), step

    def storage(self, name: str, dtype: DType, shape: tuple[int, ...], zeroed: bool = False) -> Storage:
        """Fresh memory in this layout. ``zeroed``: it must begin as zeros even without a halo."""
        strides, offset, elements = self.layout(shape)
        slot = Slot(name, dtype, elements, "temp", zeroed=zeroed or self.has_halo)
        return Storage(slot, dtype, shape, strides, offset, tuple(zip(self.low, self.high)))
