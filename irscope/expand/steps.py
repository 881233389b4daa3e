"""Computations that yield those that they need, so that calls and loops may nest to any depth."""
from __future__ import annotations

from collections.abc import Generator
from typing import Any

Steps = Generator["Steps", Any, Any]
"""A computation under way: it yields others, is sent their results, and returns its own."""


def drive(first: Steps) -> Any:
    """The result of a computation, and of all that it yields."""
    stack, result = [first], None
    while stack:
        try:
            stack.append(stack[-1].send(result))
            result = None
        except StopIteration as end:
            stack.pop()
            result = end.value
    return result
