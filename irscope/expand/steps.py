"""Computations as generators: each yields the computations that it needs, so that calls and loops may nest to any depth."""
from __future__ import annotations

from collections.abc import Generator
from typing import Any

Steps = Generator["Steps", Any, Any]
"""A computation in progress: it yields other computations, is sent their results, and returns its own."""


def drive(first: Steps) -> Any:
    """Run a computation and all computations that it yields, without recursion, and return its result."""
    stack, result = [first], None
    while stack:
        try:
            stack.append(stack[-1].send(result))
            result = None
        except StopIteration as end:
            stack.pop()
            result = end.value
    return result
