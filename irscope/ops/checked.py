"""Sizes and lists of numbers as operators read them: an element that is not there is a fault of the program, reported as one."""
from __future__ import annotations

from collections.abc import Iterable
from math import isfinite, prod
from typing import Any, SupportsIndex, TypeVar, overload

from irscope.ops.faults import TypeFault
from irscope.source.budget import require

Number = TypeVar("Number", int, float)
MOST = 1 << 28
"""The most elements of an array that an operator computes from numbers of the text."""
LARGEST = 1.7976931348623157e308
"""The largest finite double: a greater int of a text is not converted to one."""


class Sizes(tuple[int, ...]):
    """The sizes of a tensor. Raises TypeFault for a dimension that the tensor does not have."""

    __slots__ = ()

    @overload
    def __getitem__(self, at: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[int, ...]: ...
    def __getitem__(self, at: Any) -> Any:
        try:
            return super().__getitem__(at)
        except IndexError:
            raise TypeFault(f"it takes a tensor with a dimension {at}, not one of the sizes {list(self)}") from None

    def index(self, size: Any, *bounds: SupportsIndex) -> int:
        if size not in self:
            raise TypeFault(f"it takes a tensor with a dimension of size {size}, not one of the sizes {list(self)}")
        return super().index(size, *bounds)


class Items(list[Any]):
    """The list that an operator takes. Raises TypeFault for an element that it does not have."""

    __slots__ = ()

    def __getitem__(self, at: Any) -> Any:
        try:
            return super().__getitem__(at)
        except IndexError:
            raise TypeFault(f"it takes a list with an element {at}, not one of {len(self)}") from None


def in_step(what: str, *rows: Iterable[Any]) -> zip[tuple[Any, ...]]:
    """The lists, element by element. Raises TypeFault where their lengths differ; ``what`` is their name in the message."""
    lists = [list(row) for row in rows]
    if len({len(row) for row in lists}) > 1:
        raise TypeFault(f"{what} must have equal lengths, not {', '.join(str(len(row)) for row in lists)}")
    return zip(*lists, strict=True)


def nonzero(what: str, value: Any) -> Any:
    """The number. Raises TypeFault for zero, by which an operator divides; ``what`` is its name in the message."""
    if value == 0:
        raise TypeFault(f"{what} must not be 0")
    return value


def at_least(least: float, what: str, value: Number) -> Number:
    """The number. Raises TypeFault where it is less; ``what`` is its name in the message."""
    if value < least:
        raise TypeFault(f"{what} must be at least {least}, not {value}")
    return value


def table(what: str, *sizes: int) -> tuple[int, ...]:
    """The sizes of an array that is computed while a program is read. Raises TypeFault for one of more than MOST elements, and
    BudgetExceeded for one that exceeds the memory limit; ``what`` is its name in the message."""
    if prod(sizes) > MOST:
        raise TypeFault(f"{what} would have more than {MOST:,} elements")
    require(8 * prod(sizes), what)
    return sizes


def real(what: str, *values: Any) -> None:
    """Raise TypeFault for a number that is complex, infinite or NaN, or depends on data; ``what`` is the name of the numbers."""
    for value in values:
        if not isinstance(value, int | float) or (isinstance(value, float) and not isfinite(value)):
            shown = value if isinstance(value, int | float | complex) else "one that depends on data"
            raise TypeFault(f"{what} must be finite real numbers, not {shown}")
        if abs(value) > LARGEST:
            raise TypeFault(f"{what} must be at most {LARGEST:.3g}")
