"""Values of a running program that are not tensors: functions with what they captured, data of data types, references."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from irscope.expand.values import fold
from irscope.graph import Graph, Node
from irscope.graph.walk import leaves_of
from irscope.source import UserError


@dataclass(slots=True, eq=False)
class Closure:
    """A function as a value; ``captured`` are the outer values that it takes after its own parameters."""

    graph: Graph
    captured: list[Any] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SelfReference:
    """The name of a function inside its own definition."""

    name: str


@dataclass(frozen=True, slots=True)
class Constructor:
    """A constructor as a function: its arguments are the ``fields`` of the data."""

    name: str
    fields: int


@dataclass(slots=True, eq=False)
class Data:
    """A value of a data type: its constructor, which is known at compile time, and its fields."""

    constructor: str
    fields: list[Any]


@dataclass(slots=True, eq=False)
class Reference:
    """A mutable cell; it was created inside ``level`` bodies of choices and loops."""

    value: Any
    level: int = 0


@dataclass(slots=True, eq=False)
class Journal:
    """The old values of the references that a body of a choice or a loop writes. The body is nested in ``level`` others."""

    level: int
    before: dict[Reference, Any] = field(default_factory=dict)

    def undo(self) -> dict[Reference, Any]:
        """Restore the references; returns what the body wrote into outer ones."""
        after = {cell: cell.value for cell in self.before if cell.level <= self.level}
        for cell, value in self.before.items():
            cell.value = value
        return after


def flatten(value: object) -> list[Any]:
    """The values in lists and data, in order."""
    return leaves_of(value, _parts)


def _parts(value: object) -> list[object] | None:
    return value if isinstance(value, list) else value.fields if isinstance(value, Data) else None


def outline(value: object) -> list[str]:
    """The lists and data of a value in order, each by constructor and number of parts; two values of one outline differ only in leaves."""
    out: list[str] = []
    stack = [value]
    while stack:
        top = stack.pop()
        if isinstance(top, list):
            out.append(f"a tuple of {len(top)}")
            stack.extend(reversed(top))
        elif isinstance(top, Data):
            out.append(top.constructor)
            stack.extend(reversed(top.fields))
        else:
            out.append("an array")
    return out


def unlike(a: object, b: object) -> tuple[str, str] | None:
    """The parts of two values at the first place where their structures differ; None where they agree."""
    return next(((x, y) for x, y in zip(outline(a), outline(b), strict=False) if x != y), None)


def rebuilt(shape: object, leaves: list[Any]) -> Any:
    """Put leaves into the lists and data of another value."""
    given = iter(leaves)

    def join(whole: Any, made: list[Any]) -> Any:
        return made if isinstance(whole, list) else Data(whole.constructor, made)
    return fold(shape, _parts, lambda _: next(given), join)


def nodes_of(value: object) -> list[Node]:
    """The leaves of a value that must all be tensors."""
    leaves = flatten(value)
    if not all(isinstance(leaf, Node) for leaf in leaves):
        raise UserError("a function or a reference cannot be chosen by data")
    return leaves


def describe(value: object) -> str:
    """The description of a value for messages."""
    match value:
        case Data():
            return f"{value.constructor}, a value of a data type"
        case Constructor():
            return f"the constructor {value.name}"
        case Closure() | SelfReference():
            return "a function"
        case Reference():
            return "a reference"
        case list():
            return f"a tuple of {len(value)}"
    return "an array"
