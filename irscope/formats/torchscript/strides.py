"""Strides as torch computes them: the shapes that are views of given memory, and the layout of new memory.

    (4, 6) strides (6, 1)  --t-->  (6, 4) strides (1, 6)  --view(24)-->  none: the elements are not in one line, so reshape copies

Sources: aten/src/ATen/TensorUtils.cpp (computeStride), TensorIterator.cpp (reorder_dimensions, compute_fast_setup_type),
ExpandUtils.cpp (infer_dense_strides), c10/core/MemoryFormat.h (channels last).
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

Sizes = tuple[int, ...]

CONTIGUOUS_FORMAT, PRESERVE_FORMAT, CHANNELS_LAST, CHANNELS_LAST_3D = range(4)
"""torch's numbers for memory formats (c10/core/MemoryFormat.h), as in a text."""
LAST_ORDER = {CHANNELS_LAST: (1, 3, 2, 0), CHANNELS_LAST_3D: (1, 4, 3, 2, 0)}
"""The dimensions of images and volumes in channels-last order, the innermost first."""


@dataclass(frozen=True, slots=True)
class Strided:
    """The layout of a tensor in its storage, in elements; ``offset`` is None where it depends on data.

    ``conjugated`` and ``negated``: torch's flags that memory has the conjugates, or the negatives, of the tensor's numbers.
    """

    sizes: Sizes
    strides: Sizes
    offset: int | None = 0
    conjugated: bool = False
    negated: bool = False

    @property
    def rank(self) -> int:
        return len(self.sizes)

    @property
    def elements(self) -> int:
        return prod(self.sizes)

    def with_dims(self, dims: Sequence[int]) -> Strided:
        """The dimensions in another order, or some of them."""
        return replace(self, sizes=tuple(self.sizes[d] for d in dims), strides=tuple(self.strides[d] for d in dims))

    def with_dim(self, d: int, size: int, stride: int, at: int | None = 0) -> Strided:
        """Another size and stride of a dimension; the first element is ``at`` elements further."""
        return replace(self, sizes=(*self.sizes[:d], size, *self.sizes[d + 1:]), strides=(*self.strides[:d], stride, *self.strides[d + 1:]),
                       offset=None if at is None or self.offset is None else self.offset + at)

    def without_dim(self, d: int) -> Strided:
        return self.with_dims([i for i in range(self.rank) if i != d])

    def is_contiguous(self, memory_format: int = CONTIGUOUS_FORMAT) -> bool:
        """``Tensor.is_contiguous``: dimensions of size 1 may have any stride, and an empty tensor is contiguous."""
        if memory_format in LAST_ORDER:
            order = LAST_ORDER[memory_format]
            if self.rank != len(order):
                return False
        elif not self.elements:
            return True
        else:
            order = tuple(reversed(range(self.rank)))
        expected = 1
        for d in order:
            if self.sizes[d] != 1:
                if self.strides[d] != expected:
                    return False
                expected *= self.sizes[d]
        return True

    def is_dense(self) -> bool:
        """Whether the elements fill one piece of memory, each once (``is_non_overlapping_and_dense``)."""
        if not self.elements:
            return True
        expected = 1
        for stride, size in sorted((stride, size) for stride, size in zip(self.strides, self.sizes, strict=True) if size != 1):
            if stride != expected:
                return False
            expected *= size
        return True

    def has_overlap(self) -> bool:
        """Whether two elements may share an address. True for certain overlaps of strided windows and for strides of 0."""
        reach = 0
        if not self.elements:
            return False
        for stride, size in sorted((stride, size) for stride, size in zip(self.strides, self.sizes, strict=True) if size != 1):
            if stride <= reach:
                return True
            reach += stride * (size - 1)
        return False

    def suggested_format(self) -> int:
        """``Tensor.suggest_memory_format``: channels last where the strides are in that order, else contiguous."""
        return next((f for f in (CHANNELS_LAST, CHANNELS_LAST_3D) if _is_channels_last(self, f)), CONTIGUOUS_FORMAT)

    def viewed(self, sizes: Sizes) -> Strided | None:
        """The layout of ``view(sizes)``, or None where only a copy has these sizes."""
        strides = view_strides(self.sizes, self.strides, sizes)
        return None if strides is None else replace(self, sizes=sizes, strides=strides)

    def expanded(self, sizes: Sizes) -> Strided:
        """Sizes of 1, and new dimensions in front, repeated with stride 0."""
        lead = len(sizes) - self.rank
        strides: list[int] = []
        for i in reversed(range(len(sizes))):
            at = i - lead
            if at < 0:
                # A new dimension of size 1 has the stride that a dimension before the next one would have.
                strides.append(strides[-1] * sizes[i + 1] if sizes[i] == 1 and self.rank else 0)
            else:
                strides.append(self.strides[at] if self.sizes[at] == sizes[i] else 0)
        return replace(self, sizes=sizes, strides=tuple(reversed(strides)))


def contiguous(sizes: Sizes, memory_format: int = CONTIGUOUS_FORMAT) -> Strided:
    """The layout that torch allocates in a memory format, whose rank must be the tensor's."""
    order = LAST_ORDER.get(memory_format, ())
    if len(order) != len(sizes):
        order = tuple(reversed(range(len(sizes))))
    return packed(sizes, order)


def packed(sizes: Sizes, order: Sequence[int]) -> Strided:
    """Dense memory in which dimension ``order[0]`` is the innermost. Empty dimensions count as 1."""
    strides, step = [0] * len(sizes), 1
    for d in order:
        strides[d] = step
        step *= max(sizes[d], 1)
    return Strided(sizes, tuple(strides))


def preserved(layout: Strided) -> Strided:
    """``empty_like`` and ``clone``: the strides of a dense tensor, else dense ones in the same order."""
    if layout.is_dense():
        return Strided(layout.sizes, layout.strides)
    order = sorted_dims(layout.sizes, [layout.strides])
    strides, step = [0] * layout.rank, 1
    for d in order:
        strides[d] = step
        step *= layout.sizes[d] if layout.sizes[d] > 1 else 1
    return Strided(layout.sizes, tuple(strides))


def pointwise(sizes: Sizes, operands: Sequence[Strided]) -> Strided:
    """The result of an elementwise operator (TensorIterator): its dimension order follows the operands, the first one with priority."""
    if all(o.sizes == sizes for o in operands):
        for memory_format in (CONTIGUOUS_FORMAT, CHANNELS_LAST):
            if all(o.is_contiguous(memory_format) for o in operands):
                return contiguous(sizes, memory_format)
        if operands and all(o.is_dense() and o.strides == operands[0].strides for o in operands):
            return Strided(sizes, operands[0].strides)
    steps = []
    for o in operands:
        lead = len(sizes) - o.rank
        steps.append([0 if i < lead or (o.sizes[i - lead] == 1 and sizes[i] != 1) else o.strides[i - lead] for i in range(len(sizes))])
    order = sorted_dims(sizes, steps)
    return contiguous(sizes) if order == list(reversed(range(len(sizes)))) else packed(sizes, order)


def sorted_dims(sizes: Sizes, steps: Sequence[Sequence[int]]) -> list[int]:
    """The dimensions, innermost first, by the strides of operands: an insertion sort in which strides of 0 defer to the next operand."""
    order = list(reversed(range(len(sizes))))

    def compare(a: int, b: int) -> int:
        for strides in steps:
            if strides[a] == 0 or strides[b] == 0:
                continue
            if strides[a] != strides[b]:
                return -1 if strides[a] < strides[b] else 1
            if sizes[a] > sizes[b]:
                return 1
        return 0
    for i in range(1, len(order)):
        later = i
        for earlier in range(i - 1, -1, -1):
            found = compare(order[earlier], order[later])
            if found < 0:
                break
            if found > 0:
                order[earlier], order[later] = order[later], order[earlier]
                later = earlier
    return order


def view_strides(old: Sizes, strides: Sizes, new: Sizes) -> Sizes | None:
    """The strides of a view of other sizes, or None where only a copy has these sizes (computeStride)."""
    if prod(old) == 0:
        if old == new:
            return strides
        made = [1] * len(new)
        for d in reversed(range(len(new) - 1)):
            made[d] = max(new[d + 1], 1) * made[d + 1]
        return tuple(made)
    if not old:
        return (1,) * len(new)
    made, at = [0] * len(new), len(new) - 1
    step, in_old, in_new = strides[-1], 1, 1
    for d in reversed(range(len(old))):
        in_old *= old[d]
        if d and (old[d - 1] == 1 or strides[d - 1] == in_old * step):
            continue
        while at >= 0 and (in_new < in_old or new[at] == 1):
            made[at] = in_new * step
            in_new *= new[at]
            at -= 1
        if in_new != in_old:
            return None
        if d:
            step, in_old, in_new = strides[d - 1], 1, 1
    return tuple(made) if at == -1 else None


def is_view_of_any(old: Sizes, new: Sizes) -> bool:
    """Whether sizes are a view of the old ones for all strides: dimensions are split, or those of size 1 are added or removed."""
    strides, step = [], 1
    for size in reversed(old):
        step = step * max(size, 1) + 1  # never the stride that a join with the next dimension needs
        strides.append(step)
    return view_strides(old, tuple(reversed(strides)), new) is not None


def _is_channels_last(layout: Strided, memory_format: int) -> bool:
    """``is_channels_last_strides_2d`` and ``_3d``: by the strides alone, which may leave gaps."""
    order = LAST_ORDER[memory_format]
    if layout.rank != len(order) or layout.strides[1] == 0:
        return False
    least = 0
    for d in order:
        if layout.sizes[d] == 0 or layout.strides[d] < least:
            return False
        # A tensor of N111 is contiguous; so is one in which only the rows have elements.
        if d == 0 and least == layout.strides[1]:
            return False
        least = layout.strides[d] * (layout.sizes[d] if layout.sizes[d] > 1 else 1)
    return True


Place = Callable[[Strided], "Strided | None"]
"""The layout of a view from that of its base; None where only the text can state it."""
