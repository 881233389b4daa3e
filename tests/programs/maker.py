"""What the three generators share: values to choose from, inputs on demand, themes, steps by weight."""
from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, TypeVar

from tests.programs.draws import Draws
from tests.programs.numbers import DIGITS, NARROW, is_complex, is_float
from tests.programs.program import NAMES, Shape, Statement, Value

WIDTHS = (1, 15, 16, 17, 33, 49, 2, 3, 5, 8, 7, 32, 31)
"""Sizes of the last axis: a lane less and more than a vector holds, odd ones, one modulo the lanes."""
SIZES = (1, 2, 3, 4, 5, 8)
MOST = 2500
"""Elements of a value: programs are to take milliseconds."""


class Misfit(Exception):
    """A step finds no operands that it could take."""


M = TypeVar("M", bound="Maker")


class Steps:
    """The steps of a format: what each is called, how likely it is, and the themes that make it likelier."""

    def __init__(self) -> None:
        self.rows: dict[str, tuple[float, frozenset[str], Callable[[Any], None]]] = {}

    def __call__(self, weight: float, *themes: str) -> Callable[[Callable[[M], None]], Callable[[M], None]]:
        def add(function: Callable[[M], None]) -> Callable[[M], None]:
            assert function.__name__ not in self.rows, f"two steps are called {function.__name__}"
            self.rows[function.__name__] = weight, frozenset(themes), function
            return function
        return add

    def weights(self, theme: str, only: Collection[str] | None = None) -> dict[str, float]:
        """The likelihood of each step under a theme, whose own steps come six times as often; in an order that no import changes."""
        return {name: weight * (6 if theme in themes else 1) for name, (weight, themes, _) in sorted(self.rows.items())
                if only is None or name in only}


@dataclass(slots=True)
class Palette:
    """What one program is made of. ``special`` programs are run on NaN and infinities too, which have no place in an order."""

    theme: str
    dtypes: Mapping[str, float]
    empty: bool = False
    special: bool = False


@dataclass(slots=True)
class Maker:
    """A program that is being made. ``statement`` is how the format writes the definition of a value."""

    draws: Draws
    steps: Steps
    palette: Palette
    inputs: list[Value] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    helpers: dict[str, str] = field(default_factory=dict)
    count: int = 0

    def run(self, steps: int, only: Collection[str] | None = None) -> None:
        """Take so many steps that fit."""
        weights, taken, tried = self.steps.weights(self.palette.theme, only), 0, 0
        while taken < steps and tried < 8 * steps:
            tried += 1
            before = len(self.values), len(self.statements)
            try:
                self.steps.rows[self.draws.weighted(weights)][2](self)
            except Misfit:
                # What a step wrote before it found that nothing fits is dead, and stays as such.
                continue
            taken += before != (len(self.values), len(self.statements))

    def results(self) -> tuple[Value, ...]:
        """What a program gives: most of the values that nothing reads, and sometimes one that is read."""
        made = [v for v in self.values if v not in self.inputs] or self.values
        read = {name for s in self.statements for name in NAMES.findall(s.text.partition(" = ")[2])}
        ends = [v for v in made if v.name not in read]
        outputs = self.draws.some(ends, self.draws.between(1, 6))
        extra = self.draws.late(made)
        return tuple(outputs if extra in outputs or (outputs and self.draws.chance(0.6)) else [*outputs, extra])

    # ------------------------------------------------------------------ values

    def name(self) -> str:
        self.count += 1
        return f"v{self.count - 1}"

    def width(self) -> int:
        return 0 if self.palette.empty and self.draws.chance(0.15) else self.draws.one(WIDTHS)

    def shape(self, rank: int | None = None) -> Shape:
        """A shape, often wide along its last axis."""
        rank = self.draws.one((0, 1, 1, 2, 2, 2, 3, 3, 4)) if rank is None else rank
        if not rank:
            return ()
        made = (*(self.draws.one(SIZES) for _ in range(rank - 1)), self.width())
        if self.draws.chance(0.2):
            made = made[::-1]
        while prod(made) > MOST // 4:
            made = tuple(max(1, n // 2) for n in made)
        return made

    def input(self, dtype: str, shape: Shape, low: float | None = None, high: float | None = None, grain: float = 1.0) -> Value:
        """A new input. Floats are small multiples of ``grain``, so that sums are exact; integers are any unless told."""
        if prod(shape) > MOST:
            raise Misfit
        if low is None or high is None:
            low, high = (-1, 1) if dtype in NARROW else (-3, 3) if dtype in DIGITS else (0, 1) if dtype == "pred" else \
                (-7, 7) if dtype == "s4" else (-100, 100) if dtype[0] == "s" else (0, 15 if dtype == "u4" else 200)
        value = Value(self.name(), dtype, shape, "exact", low, high, grain)
        self.inputs.append(value)
        self.values.append(value)
        return value

    def weights(self, dtype: str, shape: Shape, low: float = -1, high: float = 1) -> Value:
        """A new input that holds no special numbers, for kernels: what lies outside of an array is not multiplied by the definition,
        and by zero in many engines, which makes NaN of an infinity."""
        value = self.input(dtype, shape, low, high)
        self.inputs[-1] = self.values[-1] = plain = replace(value, plain=True)
        return plain

    def dtype(self) -> str:
        return self.draws.weighted(self.palette.dtypes)

    def pick(self, fits: Callable[[Value], bool] = lambda value: True, fresh: float = 0.0) -> Value:
        """A value that fits, rather a late one; ``fresh`` is the chance of a new input instead, whatever it is."""
        fitting = [v for v in self.values if fits(v)]
        if not fitting or self.draws.chance(fresh):
            made = self.input(self.dtype(), self.shape())
            if not fits(made):
                raise Misfit
            return made
        return self.draws.late(fitting)


def keep(value: Value | None) -> Value:
    """The value, unless it may not be formed."""
    if value is None:
        raise Misfit
    return value


def exact(value: Value) -> bool:
    return value.grade == "exact"


def real(value: Value) -> bool:
    return is_float(value.dtype)


def arithmetic(value: Value) -> bool:
    """Of a type that adds and multiplies."""
    return value.dtype not in ("pred", "s4", "u4")


def ordered(value: Value) -> bool:
    return not is_complex(value.dtype)


def within(value: Value, **changes: Any) -> Value:
    """``replace`` that holds sizes small."""
    made = replace(value, **changes)
    if prod(made.shape) > MOST:
        raise Misfit
    return made
