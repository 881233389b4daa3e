"""Operators that create tensors: constants, ranges, grids, and those that use only the type of another tensor."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, isfinite
from typing import Any

from irscope.formats.relay.algebra import Relay, steps_of
from irscope.formats.relay.operators import Attributes, operator
from irscope.graph import Kind, Node
from irscope.graph.dtypes import F32, S64
from irscope.ops.faults import TypeFault

E, INJ = Kind.ELEMENTWISE, Kind.INJECTIVE
MOST_WRITTEN = 1 << 16
"""Elements of a range that is a constant; a longer one is counted when the program runs."""


@operator("zeros(; shape!, dtype=None)", kind=E)
def zeros(t: Relay, a: Attributes) -> Node:
    """Zeros."""
    return t.full(sizes(a.shape), 0, t.dtype_word(a.dtype, F32))


@operator("ones(; shape!, dtype=None)", kind=E)
def ones(t: Relay, a: Attributes) -> Node:
    """Ones."""
    return t.full(sizes(a.shape), 1, t.dtype_word(a.dtype, F32))


@operator("full(fill_value; shape!, dtype=None)", kind=E)
def full(t: Relay, a: Attributes, value: Node) -> Node:
    """One value everywhere."""
    return t.broadcast_to(t.reshape(t.convert(value, t.dtype_word(a.dtype, t.dtype(value))), ()), sizes(a.shape))


@operator("zeros_like(data)", kind=E)
def zeros_like(t: Relay, a: Attributes, x: Node) -> Node:
    """Zeros of the same type."""
    return t.like(x, 0)


@operator("ones_like(data)", kind=E)
def ones_like(t: Relay, a: Attributes, x: Node) -> Node:
    """Ones of the same type."""
    return t.like(x, 1)


@operator("full_like(data, fill_value)", kind=E)
def full_like(t: Relay, a: Attributes, x: Node, value: Node) -> Node:
    """One value in the type of another tensor."""
    return t.broadcast_to(t.convert(t.reshape(value, ()), t.dtype(x)), t.shape(x))


def _bound(t: Relay, x: Node, written: object) -> int | float:
    """A bound of a range: the constant operand, or the attribute of the same name once a pass made the operand a parameter."""
    known = t.known(x)
    if known is not None and known.size != 1:
        raise TypeFault("start, stop and step are one number each")
    value = known.item() if known is not None else written
    if not isinstance(value, int | float):
        raise TypeFault("start, stop and step depend on data: irscope compiles programs whose shapes are known")
    return value


@operator("arange(start, stop?, step?; start=None, stop=None, step=None, dtype=None)", values=True)
def arange(t: Relay, a: Attributes, *bounds: Node) -> Node:
    """From start to below stop, in steps. One operand is the stop, as in Python's ``range``."""
    values = [_bound(t, x, written) for x, written in zip(bounds, (a.start, a.stop, a.step), strict=False)]
    first, last, by = (0, values[0], 1) if len(values) == 1 else (*values, 1)[:3]
    if not by or not all(isfinite(v) for v in (first, last, by)):
        raise TypeFault(f"there is no range from {first} to {last} in steps of {by}")
    start = bounds[0]
    dtype = t.dtype_word(a.dtype, t.dtype(start))
    count = (last - first) / by
    if not isfinite(count):
        raise TypeFault(f"a range from {first} to {last} in steps of {by} has no finite length")
    n = max(0, ceil(count))
    if n > MOST_WRITTEN:
        counted = t.convert(t.iota((n,), 0, S64), dtype) if not dtype.is_integer else t.iota((n,), 0, dtype)
        return t.plus(t.scale(counted, by), first)
    return t.array([first + i * by for i in range(n)], dtype)


@operator("meshgrid(data: tuple; indexing='ij')", kind=INJ)
def meshgrid(t: Relay, a: Attributes, xs: list[Node]) -> list[Node]:
    """Each vector broadcast over the grid of all."""
    steps_of(len(xs) ** 2 // 64)  # each of n results has n dimensions
    swap = a.indexing == "xy" and len(xs) > 1
    vectors = [xs[1], xs[0], *xs[2:]] if swap else list(xs)
    shape = tuple(t.shape(v)[0] if t.rank(v) else 1 for v in vectors)
    made = [_over(t, v, i, shape) for i, v in enumerate(vectors)]
    return [made[1], made[0], *made[2:]] if swap else made


def _over(t: Relay, v: Node, d: int, shape: tuple[int, ...]) -> Node:
    return t.broadcast_to(t.reshape(v, tuple(n if i == d else 1 for i, n in enumerate(shape))), shape)


@operator("one_hot(indices: int, on_value, off_value; depth=1, axis=-1, dtype=None)", kind=Kind.CONTRACTION)
def one_hot(t: Relay, a: Attributes, indices: Node, on: Node, off: Node) -> Node:
    """A new axis with ``on_value`` at the index, else ``off_value``."""
    shape = list(t.shape(indices))
    axis = t.axis(len(shape) + 1, a.axis)
    full_shape = (*shape[:axis], int(a.depth), *shape[axis:])
    dtype = t.dtype_word(a.dtype, t.dtype(on))
    wide = t.convert(indices, S64)
    there = t.broadcast_to(t.reshape(wide, (*shape[:axis], 1, *shape[axis:])), full_shape)
    hit = t.compare("EQ", there, t.iota(full_shape, axis, S64))
    return t.select(hit, t.convert(t.reshape(on, ()), dtype), t.convert(t.reshape(off, ()), dtype))


@operator("trilu(data: 2d+, k; upper=True)", kind=E)
def trilu(t: Relay, a: Attributes, x: Node, k: Node) -> Node:
    """The upper or lower triangle; zeros elsewhere."""
    shape, rank = t.shape(x), t.rank(x)
    rows, columns = t.iota(shape, rank - 2, S64), t.iota(shape, rank - 1, S64)
    edge = t.add(rows, t.broadcast_to(within(t, k, shape), shape))
    keep = t.compare("GE" if a.upper else "LE", columns, edge)
    return t.select(keep, x, t.like(x, 0))


def within(t: Relay, diagonal: Node, shape: Sequence[int]) -> Node:
    """A diagonal with the same triangles that lies next to the matrix: rows and diagonals near 2^63 have no sum of 64 bits."""
    wide = t.convert(t.reshape(diagonal, ()), S64)
    return t.minimum(t.maximum(wide, t.like(wide, -shape[-2])), t.like(wide, shape[-1]))


def sizes(shape: Any) -> tuple[int, ...]:
    """A shape attribute: a list of numbers, or one."""
    given = shape if isinstance(shape, list | tuple) else [shape]
    if not all(isinstance(n, int) for n in given):
        raise TypeFault("a size is left open")
    return tuple(int(n) for n in given)
