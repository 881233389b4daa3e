"""Search: everything that can be reached from some values."""
from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def closure(starts: Iterable[T], steps: Callable[[T], Iterable[T]]) -> Iterator[T]:
    """Yield the starts and everything that ``steps`` reaches from them, each once; the value found last comes next.

    ``steps(value)`` is called only after ``value`` has been yielded, so the caller may stop the search at any value.
    """
    stack = list(dict.fromkeys(starts))
    seen = set(stack)
    while stack:
        current = stack.pop()
        yield current
        for each in steps(current):
            if each not in seen:
                seen.add(each)
                stack.append(each)
