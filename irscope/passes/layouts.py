"""Layouts as names of axes: ``NHWC``, and ``NCHW4c``, in which the axis C is split into an outer axis and a part of 4."""
from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from math import prod

from irscope.formats.relay.algebra import layout_axes
from irscope.graph import TensorType, TupleType, Type
from irscope.graph.types import Dim


@dataclass(frozen=True, slots=True, eq=False)
class AxisLayout:
    """The axes in order: a capital letter and 0 for a whole axis, its small letter and the size for a part.

    Created by :func:`layout` and by the methods here, and interned: equal layouts are the same object.
    """

    text: str
    axes: tuple[tuple[str, int], ...]
    wholes: tuple[str, ...]
    is_packed: bool

    def __str__(self) -> str:
        return self.text

    def __len__(self) -> int:
        return len(self.axes)

    def place(self, letter: str) -> int:
        """The position of a whole axis; -1 if there is none of this name."""
        return next((i for i, (name, _) in enumerate(self.axes) if name == letter), -1)

    def parts(self, letter: str) -> tuple[int, ...]:
        """The positions of the parts of an axis; empty if it is not split."""
        return tuple(i for i, (name, _) in enumerate(self.axes) if name == letter.lower())

    def letter(self, place: int) -> str | None:
        """The name of the whole axis at a position; None for a split axis."""
        name, size = self.axes[place]
        return name if not size and not self.parts(name) else None

    def factor(self, letter: str) -> int:
        """The size of the part of a split axis; 1 if it is not split."""
        return prod(size for name, size in self.axes if name == letter.lower())

    def tail(self, count: int) -> AxisLayout:
        """The last ``count`` whole axes with their parts: the layout of a tensor that broadcasts to one of this layout."""
        return self.only(self.wholes[len(self.wholes) - count:])

    def only(self, letters: Collection[str]) -> AxisLayout:
        """Without the axes of other letters."""
        return _made(tuple(axis for axis in self.axes if axis[0].upper() in letters))

    def stretched(self, sizes: dict[str, int]) -> AxisLayout:
        """With other sizes of parts: a tensor that broadcasts along C has a part of 1 where others have one of 4."""
        return _made(tuple((name, sizes.get(name.upper(), size) if size else 0) for name, size in self.axes))

    def preceded(self, letters: Collection[str]) -> AxisLayout:
        """With whole axes prepended."""
        return _made((*((letter, 0) for letter in letters), *self.axes))


@cache
def layout(text: str) -> AxisLayout:
    """The layout of a name. Raises ValueError for an invalid one: a letter twice, a part without its whole axis."""
    return _made(tuple(layout_axes(text)))


@cache
def _made(axes: tuple[tuple[str, int], ...]) -> AxisLayout:
    text = "".join(f"{size or ''}{name}" for name, size in axes)
    wholes = tuple(name for name, size in axes if not size)
    names = [name for name, _ in axes]
    if len(set(names)) != len(names) or any(size and (not name.islower() or name.upper() not in wholes) for name, size in axes) \
            or any(name.islower() for name in wholes):
        raise ValueError(f"`{text}` is no layout")
    return AxisLayout(text, axes, wholes, len(wholes) != len(axes))


def laid(type: Type, old: AxisLayout, new: AxisLayout) -> Type | None:
    """The type of a value of layout ``old`` in layout ``new``. Other types stay; None if the sizes do not fit."""
    if old is new or not isinstance(type, TensorType):
        return type
    return _laid(type, old, new)


@cache
def _laid(type: TensorType, old: AxisLayout, new: AxisLayout) -> TensorType | None:
    if len(old) != type.rank or set(old.wholes) != set(new.wholes):
        return None
    sizes: dict[str, Dim] = {}
    for (name, _), size in zip(old.axes, type.shape, strict=True):
        whole = sizes.get(name.upper())
        if whole is None:
            sizes[name.upper()] = size
        elif isinstance(whole, int) and isinstance(size, int):
            sizes[name.upper()] = whole * size
        else:
            return None
    shape: list[Dim] = []
    for name, part in new.axes:
        size, factor = sizes[name.upper()], new.factor(name)
        if part:
            shape.append(part)
        elif factor == 1:
            shape.append(size)
        elif isinstance(size, int) and size % factor == 0:
            shape.append(size // factor)
        else:
            return None
    return TensorType(type.dtype, tuple(shape))


def types_of(type: Type) -> tuple[Type, ...]:
    """The type of each result."""
    return type.elements if isinstance(type, TupleType) else (type,)
