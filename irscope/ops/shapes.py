"""Sizes of dimensions: equality, products and merging where some are bounded (``<=8``) or open (``?``)."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod

from irscope.graph import Dim, DType, DynamicDim, Type
from irscope.graph.types import agree


def size(dim: Dim) -> int | None:
    """The size of a dimension: the bound of a bounded one, None of an open one."""
    return dim if isinstance(dim, int) else dim.bound


def same_size(a: Dim, b: Dim) -> bool:
    """Equal sizes; bounded dimensions count as their bound, open ones match any size."""
    x, y = size(a), size(b)
    return x is None or y is None or x == y


def same_sizes(a: Sequence[Dim], b: Sequence[Dim]) -> bool:
    """:func:`same_size` for whole shapes; the ranks must be equal, too."""
    return len(a) == len(b) and all(map(same_size, a, b))


def resized(dim: Dim, new_size: int) -> Dim:
    """A dimension of another size, dynamic if ``dim`` is."""
    return new_size if isinstance(dim, int) else DynamicDim("", new_size) if dim.bound is not None else dim


def merge(a: Dim, b: Dim) -> Dim:
    """The dimension of an elementwise result: dynamic when either is, and the tighter of an open and a known one."""
    if isinstance(a, int):
        return b if not isinstance(b, int) and b.bound is not None else a
    return a if a.bound is not None or size(b) is None else b


def elements(dims: Sequence[Dim]) -> int | None:
    """The product of the sizes, or None where a dimension is open."""
    sizes = [size(d) for d in dims]
    return None if None in sizes else prod(s for s in sizes if s is not None)


def fits(a: Type, b: Type, any_precision: bool = False) -> bool:
    """Whether two types are "Compatible" in XLA's sense: layouts and dynamism do not count.

    With ``any_precision`` all float element types count as one.
    """
    return agree(a, b, lambda x, y: same_sizes(x.shape, y.shape) and same_dtype(x.dtype, y.dtype, any_precision))


def same_dtype(a: DType, b: DType, any_precision: bool = False) -> bool:
    """Equal element types, or both floats when precision does not count."""
    return a is b or (any_precision and a.is_float and b.is_float)


def higher_precision(a: DType, b: DType) -> DType:
    """The wider of two float types (the one with the wider exponent among equals); the first of all others."""
    if a is b or not (a.is_float and b.is_float):
        return a
    if a.bits != b.bits:
        return a if a.bits > b.bits else b
    return a if a.name in _WIDE_EXPONENT or b.name not in _WIDE_EXPONENT else b


_WIDE_EXPONENT = frozenset(("bf16", "f8e5m2", "f8e5m2fnuz"))
