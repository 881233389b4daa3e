"""Contractions as loops over affine operands: one form for matrix products, batched or transposed, and for convolutions.

``result[batch, rows, columns] = sum over sums of lhs[batch, rows, sums] * rhs[batch, sums, columns]``, where every axis has a stride in
each operand that it walks. A convolution over an image with room for its padding is of this form: its row axes (batch, y, x) and its
sum axes (window y, window x, channel) walk the same image, with strides that overlap.

    dot f32[128,768] x f32[768,3072]             row 128 (768), column 3072 (1), sum 768 (1, 3072)
    3x3 convolution, stride 2, NHWC 58x58x64     rows 28 (2*58*64), 28 (2*64), column 128, sums 3 (58*64), 192 (1)
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from irscope.graph import DType
from irscope.graph.node import Index
from irscope.lower.build import KernelBuilder
from irscope.lower.tile import Expr
from irscope.lower.view import Address

Finish = Callable[[Expr, list[Index], Expr | None], None]
"""``finish(value, index, mask)`` applies the epilogue to a result at a logical index, and stores it. Lanes are along the vector axis."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One loop. ``role`` is ``batch``, ``row``, ``column`` or ``sum``; ``lhs`` and ``rhs`` are strides in elements (0: not walked).

    ``out`` is the dimension of the result that the axis walks (-1: none), ``step`` how far one iteration goes along it.
    """

    role: str
    size: int
    lhs: int
    rhs: int
    out: int = -1
    step: int = 1

    def walk(self, index: list[Index], i: Index) -> list[Index]:
        """An index into the result after ``i`` steps along the axis."""
        return [x + i * self.step if d == self.out else x for d, x in enumerate(index)]


@dataclass(slots=True)
class Affine:
    """Axes of a contraction, outermost first within a role, and the strides of each view that the epilogue reads or writes.

    ``views`` holds a tuple of strides, one per result dimension, for each of these views: two axes merge only where all agree.
    """

    axes: list[Axis]
    views: list[tuple[int, ...]] = field(default_factory=list)

    def of(self, role: str) -> list[Axis]:
        """The axes of a role."""
        return [a for a in self.axes if a.role == role]

    def size(self, role: str) -> int:
        """Product of the sizes of a role's axes."""
        return prod(a.size for a in self.axes if a.role == role)

    @property
    def flops(self) -> float:
        """Multiplications and additions."""
        return 2.0 * prod(a.size for a in self.axes)


@dataclass(slots=True)
class AffineNest:
    """The loops of a contraction. ``lhs`` and ``rhs`` are the addresses of the operands' first elements, to which the strides in ``affine``
    apply; ``rank`` is the number of dimensions of the result."""

    k: KernelBuilder
    affine: Affine
    lhs: Address
    rhs: Address
    dtype: DType
    lanes: int
    rank: int
    finish: Finish


def merged(affine: Affine) -> Affine:
    """The same contraction with as few axes as possible: drops axes of size 1, and merges neighbours that are contiguous.

    An axis merged from dimensions d0, d1 of the result counts along the inner one alone; index (0, i) then addresses the same element as
    (i // n, i % n), because the strides of all views are in that proportion.
    """
    axes = [a for a in affine.axes if a.size != 1]
    changed = True
    while changed:
        changed = False
        for outer in axes:
            inner = next((a for a in axes if a is not outer and _adjoin(outer, a, affine.views)), None)
            if inner is not None:
                axes[axes.index(inner)] = replace(inner, size=inner.size * outer.size)
                axes.remove(outer)
                changed = True
                break
    return Affine(axes, affine.views)


def _adjoin(outer: Axis, inner: Axis, views: Sequence[tuple[int, ...]]) -> bool:
    """Whether one step of ``outer`` equals a whole run of ``inner``, in every operand and view."""
    if outer.role != inner.role or outer.lhs != inner.lhs * inner.size or outer.rhs != inner.rhs * inner.size:
        return False
    if (outer.out < 0) != (inner.out < 0):
        return False
    return outer.out < 0 or all(view[outer.out] * outer.step == view[inner.out] * inner.step * inner.size for view in views)


def swapped(affine: Affine) -> Affine:
    """The same contraction with the operands' parts exchanged: columns become rows."""
    other = {"row": "column", "column": "row"}
    return Affine([replace(a, role=other.get(a.role, a.role), lhs=a.rhs, rhs=a.lhs) for a in affine.axes], affine.views)
