"""A random program as statements, whichever format it is written in: what the tests run, and what the minimiser takes apart."""
from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor and what is known of its numbers.

    ``grade`` says how two right engines may differ: ``exact`` not at all, since every sum and product on the way fits the type
    (multiples of ``grain``); ``positive`` and ``signed`` by a relative error of each element; ``rough`` by one of the largest element.
    Only exact values are compared, sorted, rounded or turned into integers, and only values that cannot cancel are added:
    the comparison then needs no tolerance of its own. Numbers lie between ``low`` and ``high``; those of integers may wrap.
    ``plain`` inputs hold no special numbers in any program.
    """

    name: str
    dtype: str
    shape: Shape
    grade: str = "exact"
    low: float = 0.0
    high: float = 0.0
    grain: float = 1.0
    plain: bool = False

    @property
    def most(self) -> float:
        return max(abs(self.low), abs(self.high))

    def size_one(self) -> bool:
        """Whether it holds no more than one element."""
        return all(n == 1 for n in self.shape)


@dataclass(frozen=True, slots=True)
class Statement:
    """One line, or a block of lines, that defines values. ``write`` is the text; values are read by their names in it."""

    text: str
    value: Value | None = None
    effect: bool = False

    @property
    def name(self) -> str:
        return self.value.name if self.value is not None else ""


NAMES = re.compile(r"\b[vc]\d+\b")
"""Names of values (``v``) and of helper computations (``c``) in every format."""


@dataclass(frozen=True, slots=True)
class Program:
    """Inputs, statements in order, and which values are the results. ``helpers`` are computations or functions beside the entry.

    ``special`` programs are run on NaN, infinities, zeros of both signs and denormals too.
    """

    format: str
    inputs: tuple[Value, ...]
    statements: tuple[Statement, ...]
    outputs: tuple[Value, ...]
    write: Callable[[Program], str]
    helpers: Mapping[str, str]
    special: bool = False

    def text(self) -> str:
        return self.write(self)

    def live(self) -> Program:
        """Without the statements, helpers and inputs that no result depends on; what is written in place counts as read."""
        wanted = {value.name for value in self.outputs}
        kept: list[Statement] = []
        for statement in reversed(self.statements):
            if statement.effect or wanted & set(defined(statement)):
                kept.append(statement)
                wanted |= set(NAMES.findall(statement.text))
        helpers = {}
        todo = [name for name in wanted if name in self.helpers]
        while todo:
            name = todo.pop()
            if name not in helpers:
                helpers[name] = self.helpers[name]
                todo += [n for n in NAMES.findall(self.helpers[name]) if n in self.helpers]
        return replace(self, statements=tuple(reversed(kept)), inputs=tuple(v for v in self.inputs if v.name in wanted),
                       helpers={name: text for name, text in self.helpers.items() if name in helpers})


def defined(statement: Statement) -> list[str]:
    """The names that a statement gives values to: those before its first equals sign."""
    return NAMES.findall(statement.text.partition(" = ")[0])
