"""Building blocks of operator meanings: nested loops, optional conditions, wide accumulators, clamped indices."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial, reduce
from math import prod

from irscope.graph import DType, Op
from irscope.graph.dtypes import C64, C128, F32, F64, PRED, S64, U64
from irscope.graph.node import Emitter, Index, Value
from irscope.ops.elementwise import add, multiply


@contextmanager
def loops(k: Emitter, sizes: Sequence[int]) -> Iterator[list[Value]]:
    """A loop over every size, the last innermost; yields the indices. A size of 1 needs no loop."""
    with ExitStack() as stack:
        yield [k.index(0) if n == 1 else stack.enter_context(k.loop(0, n)) for n in sizes]


@contextmanager
def independent(k: Emitter, sizes: Sequence[int]) -> Iterator[list[Value]]:
    """:func:`loops` whose iterations are independent of each other, so that they can be divided among threads."""
    with ExitStack() as stack:
        yield [k.index(0) if n == 1 else stack.enter_context(k.par(0, n)) for n in sizes]


def both(k: Emitter, *conditions: Value | None) -> Value | None:
    """The conjunction of the conditions that are not None; None when there are none."""
    held = [condition for condition in conditions if condition is not None]
    return reduce(partial(k.binary, "and"), held) if held else None


def guard(k: Emitter, condition: Value | None) -> AbstractContextManager[None]:
    """``k.when(condition)``, or no guard when the condition is None (always true)."""
    return nullcontext() if condition is None else k.when(condition)


def below(k: Emitter, x: Index, y: Index) -> Value:
    """``x < y`` of indices, each a value or an int."""
    return k.compare("LT", place(k, x), place(k, y))


def not_below(k: Emitter, x: Index, y: Index) -> Value:
    """``x >= y`` of indices, each a value or an int."""
    return k.compare("GE", place(k, x), place(k, y))


def place(k: Emitter, x: Index) -> Value:
    """An index value of an int; values stay as they are."""
    return k.index(x) if isinstance(x, int) else x


def as_index(k: Emitter, x: Value) -> Value:
    """An integer of any type as an index; an unsigned one that is too large for s64 becomes negative."""
    return x if x.dtype is S64 else k.convert(x, S64)


def clamped(k: Emitter, x: Value, high: int) -> Value:
    """``min(max(x, 0), high)`` as an index, of an integer of any type."""
    if x.dtype is U64:
        return k.convert(k.binary("min", x, k.const(high, U64)), S64)
    x = as_index(k, x)
    return k.binary("min", k.binary("max", x, k.index(0)), k.index(high))


def zero(k: Emitter, dtype: DType) -> Value:
    """The zero of an element type (false for pred)."""
    return k.const(False if dtype is PRED else 0, dtype)


def accumulator(result: DType, *operands: DType) -> DType:
    """The element type in which products are accumulated: at least f32 for floats, the result's own for integers and pred.

    Floats with an integer result are summed as floats and truncated once.
    """
    if result.is_complex:
        return C128 if result is C128 or F64 in operands or C128 in operands else C64
    if result.is_float or any(operand.is_float for operand in operands):
        return F64 if result is F64 or F64 in operands else F32
    return result


def widened(dtype: DType) -> DType:
    """The element type in which sums of ``dtype`` are accumulated."""
    return accumulator(dtype)


SUM_BLOCK = 64
"""Terms that are added sequentially in the accumulator's own type; longer sums are accumulated in f64 (c128).

A sequential sum of n equal terms loses up to n/2 units of the last place. 64 terms of 0.1 in f32 lose 6e-7, 2^18 of them 2.5e-3.
"""


def fold_type(dtype: DType, op: Op | None, terms: int) -> DType:
    """The element type in which ``terms`` values of ``dtype`` are folded by ``op`` (None: by any other body).

    Products are accumulated in :func:`widened`, sums of floats of more than ``SUM_BLOCK`` terms in f64 (c128), all else in ``dtype``.
    """
    if op not in (add, multiply):
        return dtype
    wide = widened(dtype)
    if op is multiply or terms <= SUM_BLOCK or not (wide.is_float or wide.is_complex):
        return wide
    return C128 if wide.is_complex else F64


def blocks(k: Emitter, sizes: Sequence[int], limit: int, unit: int = 1) -> Iterator[tuple[list[Value], list[int]]]:
    """A nest tiled into blocks of at most ``limit`` steps, whole inner axes together; the loops over blocks are open while each is emitted.

    Yields the first index and the extents of each block. A step takes ``unit`` elements of the last axis.

        for first, extents in blocks(k, [3, 200], 64):    for i in 0..3:
            write(first, extents)                           for j in 0..192 step 64: write([i, j], [1, 64])
                                                            write([i, 192], [1, 8])
    """
    steps = [*sizes[:-1], -(-sizes[-1] // unit)] if sizes else []
    if prod(steps) <= limit:
        yield [k.index(0) for _ in sizes], list(sizes)
        return
    cut = 0
    while cut < len(steps) - 1 and prod(steps[cut + 1:]) > limit:
        cut += 1
    last = cut == len(steps) - 1
    extent = limit * unit if last else max(1, limit // prod(steps[cut + 1:]))
    whole = sizes[cut] // extent * extent
    rest = [k.index(0) for _ in sizes[cut + 1:]]
    with ExitStack() as stack:
        outer = [stack.enter_context(k.loop(0, n)) for n in sizes[:cut]]
        with k.loop(0, whole, extent) as i:
            yield [*outer, i, *rest], [*(1 for _ in outer), extent, *sizes[cut + 1:]]
        if whole < sizes[cut]:
            yield [*outer, k.index(whole), *rest], [*(1 for _ in outer), sizes[cut] - whole, *sizes[cut + 1:]]


def split(index: Value, sizes: Sequence[int]) -> list[Value]:
    """Split a flat row-major index."""
    parts = []
    for n in reversed(sizes[1:]):
        parts.append(index % n)
        index = index // n
    return [index, *reversed(parts)] if sizes else []


def flat(index: Sequence[Index], sizes: Sequence[int]) -> Index:
    """The flat row-major index of an index."""
    total: Index = 0
    for i, n in zip(index, sizes, strict=True):
        total = total * n + i
    return total
