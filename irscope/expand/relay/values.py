"""Values of a running program that are no tensors: functions with what they captured, and references."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from irscope.graph import Graph, Node


@dataclass(slots=True, eq=False)
class Function:
    """A function as a value; ``captured`` are the values around it that it takes behind its own parameters."""

    graph: Graph
    captured: list[Any] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Itself:
    """The name of a function that is about to be made, inside it."""

    name: str


@dataclass(slots=True, eq=False)
class Reference:
    """A cell that holds a value."""

    value: Any


def flatten(value: Any) -> list[Any]:
    """The values that are no lists, in order."""
    out: list[Any] = []
    stack = [value]
    while stack:
        top = stack.pop()
        if isinstance(top, list):
            stack.extend(reversed(top))
        else:
            out.append(top)
    return out


def rebuilt(shape: Any, leaves: list[Any]) -> Any:
    """Leaves in the lists of another value."""
    given = iter(leaves)

    def build(like: Any) -> Any:
        return [build(item) for item in like] if isinstance(like, list) else next(given)

    return build(shape)


def nodes_of(value: Any) -> list[Node]:
    """The leaves of a value that must all be tensors."""
    leaves = flatten(value)
    if not all(isinstance(leaf, Node) for leaf in leaves):
        raise ValueError("a function or a reference cannot be chosen by data")
    return leaves
