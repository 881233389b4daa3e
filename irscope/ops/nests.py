"""Patterns that the meanings of operators share: nested loops, conditions that may be none, wide accumulators, indices that clamp."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

from irscope.graph import DType
from irscope.graph.dtypes import C64, C128, F32, F64, PRED, S64, U64
from irscope.ops.meaning import Emitter


@contextmanager
def loops(k: Emitter, sizes: Sequence[int]) -> Iterator[list[Any]]:
    """A loop over every size, the last innermost; gives the indices. A size of 1 needs no loop."""
    with ExitStack() as stack:
        yield [k.index(0) if n == 1 else stack.enter_context(k.loop(0, n)) for n in sizes]


@contextmanager
def independent(k: Emitter, sizes: Sequence[int]) -> Iterator[list[Any]]:
    """:func:`loops` whose iterations are independent of each other, so that threads can share them."""
    with ExitStack() as stack:
        yield [k.index(0) if n == 1 else stack.enter_context(k.par(0, n)) for n in sizes]


def both(k: Emitter, *conditions: Any) -> Any:
    """The conditions that are not None, joined by and; None when there are none."""
    joined = None
    for condition in conditions:
        if condition is not None:
            joined = condition if joined is None else k.binary("and", joined, condition)
    return joined


def guard(k: Emitter, condition: Any) -> AbstractContextManager[None]:
    """``k.when(condition)``, or nothing at all when the condition is None (always true)."""
    return nullcontext() if condition is None else k.when(condition)


def below(k: Emitter, x: Any, y: Any) -> Any:
    """``x < y`` of indices, each a value or an int."""
    return k.compare("LT", place(k, x), place(k, y))


def not_below(k: Emitter, x: Any, y: Any) -> Any:
    """``x >= y`` of indices, each a value or an int."""
    return k.compare("GE", place(k, x), place(k, y))


def place(k: Emitter, x: Any) -> Any:
    """An index value of an int; values stay as they are."""
    return k.index(x) if isinstance(x, int) else x


def as_index(k: Emitter, x: Any) -> Any:
    """An integer of any type as an index; an unsigned one that is too large for s64 comes out negative."""
    return x if x.dtype is S64 else k.convert(x, S64)


def clamped(k: Emitter, x: Any, high: int) -> Any:
    """``min(max(x, 0), high)`` as an index, of an integer of any type."""
    if x.dtype is U64:
        return k.convert(k.binary("min", x, k.const(high, U64)), S64)
    x = as_index(k, x)
    return k.binary("min", k.binary("max", x, k.index(0)), k.index(high))


def zero(k: Emitter, dtype: DType) -> Any:
    """The 0 of an element type (false of pred)."""
    return k.const(False if dtype is PRED else 0, dtype)


def accumulator(result: DType, *operands: DType) -> DType:
    """The element type that products are summed in: at least f32 for floats, the result's own for integers and pred.

    Floats that give an integer are summed as floats and truncated once.
    """
    if result.is_complex:
        return C128 if result is C128 or F64 in operands or C128 in operands else C64
    if result.is_float or any(operand.is_float for operand in operands):
        return F64 if result is F64 or F64 in operands else F32
    return result


def widened(dtype: DType) -> DType:
    """The element type that sums of ``dtype`` are kept in."""
    return accumulator(dtype)


def split(index: Any, sizes: Sequence[int]) -> list[Any]:
    """A flat row-major index taken apart."""
    parts = []
    for n in reversed(sizes[1:]):
        parts.append(index % n)
        index = index // n
    return [index, *reversed(parts)] if sizes else []


def flat(index: Sequence[Any], sizes: Sequence[int]) -> Any:
    """The flat row-major index of an index."""
    total: Any = 0
    for i, n in zip(index, sizes, strict=True):
        total = total * n + i
    return total
