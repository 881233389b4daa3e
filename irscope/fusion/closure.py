"""Everything that some values lead to, step by step."""
from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def closure(starts: Iterable[T], steps: Callable[[T], Iterable[T]]) -> Iterator[T]:
    """The starts and all that ``steps`` leads to from them, each once, one after the other: a search may stop at any of them."""
    stack = list(dict.fromkeys(starts))
    seen = set(stack)
    while stack:
        current = stack.pop()
        yield current
        for each in steps(current):
            if each not in seen:
                seen.add(each)
                stack.append(each)
