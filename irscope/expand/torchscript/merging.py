"""Merges the values of two ways of a program where data decides which is taken, and those that a loop on data passes between iterations.

    [a, b] and [c, d]   a list of two, each selected by the way taken
    None and a          an Optional with a flag
    [a] and [a, b]      refused: compiled code has no lists of a length that depends on data
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from irscope.expand.torchscript.structure import describe, flatten, parts_in, with_parts
from irscope.expand.values import fold
from irscope.formats.torchscript.abstract import UNINITIALIZED, Maybe, Scalar, Tensor, Uninitialized
from irscope.ops.faults import TypeFault

MISSING: Any = object()
"""A way has no value here: any value of the other way's type will do."""


@dataclass(frozen=True, slots=True, eq=False)
class MergedLeaf:
    """A leaf with different values on the ways."""

    first: Any
    second: Any


def unified(a: object, b: object) -> Any:
    """A value with a :class:`MergedLeaf` wherever the two differ. Raises TypeFault where they cannot be unified."""
    if a is b or (isinstance(a, Tensor) and isinstance(b, Tensor) and a.region is b.region):
        return a  # tensors: one from outside, perhaps written on both ways
    if isinstance(a, Uninitialized) or isinstance(b, Uninitialized):
        return _one_sided(b, True) if isinstance(a, Uninitialized) else _one_sided(a, False)
    if a is None or b is None or isinstance(a, Maybe) or isinstance(b, Maybe):
        return _optional(a, b)
    if isinstance(a, list | tuple) and type(a) is type(b):
        if len(a) != len(b):
            raise TypeFault(f"one way has {_counted(a)}, the other {_counted(b)}, and data decides which is taken")
        return type(a)([unified(x, y) for x, y in zip(a, b, strict=True)])
    if isinstance(a, dict) and isinstance(b, dict):
        if list(a) != list(b):
            raise TypeFault(f"one way has a dict with the keys {list(a)}, the other {list(b)}, and data decides which is taken")
        return {key: unified(a[key], b[key]) for key in a}
    if _is_number(a) and _is_number(b):
        return a if not isinstance(a, Tensor | Scalar) and type(a) is type(b) and a == b else MergedLeaf(a, b)
    if type(a) is type(b) and a == b:
        return a
    raise TypeFault(f"one way returns {describe(a)}, the other {describe(b)}, and data decides which is taken")


def _is_number(value: object) -> bool:
    return isinstance(value, Tensor | Scalar | bool | int | float | complex)


def _counted(value: Any) -> str:
    return f"a {type(value).__name__} of {len(value)}"


def _one_sided(value: object, on_second: bool) -> object:
    """A value that only one of the ways sets, and that is used only after it."""
    def leaf(part: object) -> object:
        if not isinstance(part, Tensor | Scalar):
            return part
        return MergedLeaf(MISSING, part) if on_second else MergedLeaf(part, MISSING)
    return fold(value, parts_in, leaf, with_parts)


def _optional(a: object, b: object) -> Maybe:
    """A value that is None on one of the ways, or on an earlier one."""
    (first, x), (second, y) = _parts(a), _parts(b)
    value = _one_sided(y, True) if x is UNINITIALIZED else _one_sided(x, False) if y is UNINITIALIZED else unified(x, y)
    return Maybe(unified(first, second), value)


def _parts(value: object) -> tuple[object, object]:
    """Whether the value is present, and the value."""
    if isinstance(value, Maybe):
        return value.present, value.value
    return (False, UNINITIALIZED) if value is None else (True, value)


def slots(value: object) -> list[MergedLeaf]:
    """The slots of a value, in order."""
    return [leaf for leaf in flatten(value) if isinstance(leaf, MergedLeaf)]


def filled(value: object, given: Sequence[object]) -> Any:
    """The value with its slots filled, in order. A part without slots stays the same object."""
    return _filled(value, iter(given))


def _filled(value: object, given: Iterator[object]) -> object:
    if isinstance(value, MergedLeaf):
        return next(given)
    return with_parts(value, [_filled(part, given) for part in parts_in(value) or ()]) if slots(value) else value
