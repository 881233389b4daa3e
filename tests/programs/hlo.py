"""Random HLO: ``program(seed)`` is a module whose results two right engines agree on."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module

from tests.programs.draws import Draws
from tests.programs.maker import Maker, Misfit, Palette, Steps
from tests.programs.numbers import INTEGERS, NARROW, ends, is_complex, rounded
from tests.programs.program import Program, Shape, Statement, Value

STEPS = Steps()

PALETTES: dict[str, dict[str, float]] = {
    "plain": {"f32": 1},
    "framed": {"f32": 5, "bf16": 1, "f16": 1, "f64": 1},
    "narrow": {"bf16": 4, "f16": 2, "s8": 2, "u8": 2, "s16": 2, "u16": 1, "f8e4m3fn": 2, "f8e5m2": 1, "s4": 1, "u4": 0.5, "pred": 1},
    "integer": {"s32": 4, "u32": 1, "s64": 1, "u64": 1, "s8": 1, "u8": 1, "s16": 1, "pred": 1},
    "reduction": {"f32": 6, "f64": 1, "s32": 1},
    "window": {"f32": 4, "s32": 1, "bf16": 1, "f64": 1, "s8": 1},
    "index": {"f32": 3, "s32": 2, "bf16": 1, "u8": 1, "s16": 1, "pred": 0.5},
    "control": {"f32": 3, "s32": 3, "u8": 1, "f64": 1},
    "mixed": {"f32": 3, "f64": 1, "s32": 1, "bf16": 1, "u8": 1, "pred": 1, "c64": 2, "c128": 0.5},
}


def program(seed: int, theme: str = "") -> Program:
    """The program of a seed, whose theme follows from the seed unless it is told."""
    for name in ("pointwise", "movement", "reductions", "contractions", "windows", "indexing", "control", "algebra"):
        import_module(f"tests.programs.hlo_{name}")
    draws = Draws("hlo", seed)
    theme = theme or draws.one(list(PALETTES))
    maker = Hlo(draws, STEPS, Palette(theme, PALETTES[theme], draws.chance(0.03), draws.chance(0.15)))
    for _ in range(draws.between(1, 3)):
        maker.input(maker.dtype(), maker.shape())
    maker.run(draws.one((2, 3, 4, 6, 8, 10, 14)))
    outputs = maker.results()
    return Program("hlo", tuple(maker.inputs), tuple(maker.statements), outputs, text, maker.helpers, maker.palette.special).live()


def text(program: Program) -> str:
    """The module; results of more than one value are a tuple."""
    lines = [f"{v.name} = {type_of(v)} parameter({i})" for i, v in enumerate(program.inputs)]
    lines += [s.text for s in program.statements]
    types = ", ".join(type_of(v) for v in program.outputs)
    lines.append(f"ROOT out = ({types}) tuple({', '.join(v.name for v in program.outputs)})")
    helpers = "".join(helper + "\n" for helper in program.helpers.values())
    return "HloModule random\n\n" + helpers + "ENTRY main {\n  " + "\n  ".join(lines) + "\n}\n"


def type_of(value: Value) -> str:
    return f"{value.dtype}[{commas(value.shape)}]"


def commas(values: Sequence[object]) -> str:
    return ",".join(map(str, values))


def spelled(dtype: str, number: float) -> str:
    """A constant's literal."""
    if dtype == "pred":
        return "true" if number else "false"
    if dtype[0] == "c":
        return f"({number:g}, 0)"
    if dtype in INTEGERS:
        return str(int(number))
    return "inf" if number == float("inf") else "-inf" if number == -float("inf") else f"{number:.10g}"


@dataclass(slots=True)
class Hlo(Maker):
    """An HLO computation that is being made."""

    def add(self, value: Value, text: str) -> Value:
        """Define a value like this one by an instruction; the name is new."""
        made = replace(value, name=self.name())
        if made.dtype in INTEGERS or made.dtype == "pred":
            low, high = ends(made.dtype)
            inside = low <= made.low and made.high <= high
            made = replace(made, grade="exact", grain=1.0, low=made.low if inside else low, high=made.high if inside else high)
        self.statements.append(Statement(f"{made.name} = {type_of(made)} {text}", made))
        self.values.append(made)
        return made

    def constant(self, dtype: str, number: float) -> Value:
        grain = 1.0
        while number % grain and grain > 1e-4:
            grain /= 2
        return self.add(Value("", dtype, (), "exact", number, number, grain), f"constant({spelled(dtype, number)})")

    def spread(self, value: Value, shape: Shape, places: Sequence[int] = ()) -> Value:
        """A broadcast, to these dimensions of the shape."""
        return self.add(replace(value, shape=shape), f"broadcast({value.name}), dimensions={{{commas(places)}}}")

    def filled(self, dtype: str, shape: Shape, number: float) -> Value:
        one = self.constant(dtype, number)
        return self.spread(one, shape) if shape else one

    def alike(self, value: Value, exact: bool = True) -> Value:
        """Another value, or the same, of its type and shape: one that is there, a broadcast, or a new input."""
        there = [v for v in self.values if v.dtype == value.dtype and v.shape == value.shape and (v.grade == "exact" or not exact)]
        if there and self.draws.chance(0.7):
            return self.draws.late(there)
        for small in self.draws.order([v for v in self.values if v.dtype == value.dtype and len(v.shape) < len(value.shape)
                                       and (v.grade == "exact" or not exact)]):
            places = places_in(small.shape, value.shape)
            if places is not None and self.draws.chance(0.6):
                return self.spread(small, value.shape, places)
        if self.draws.chance(0.4):
            return self.filled(value.dtype, value.shape, self.draws.one((0, 1)))
        return self.input(value.dtype, value.shape)

    def reducer(self, dtype: str, op: str) -> str:
        """The name of a computation of two scalars."""
        text = f"{{\n  a = {dtype}[] parameter(0)\n  b = {dtype}[] parameter(1)\n  ROOT r = {dtype}[] {op}(a, b)\n}}"
        if op in ("second", "first"):
            text = text.replace(f"{op}(a, b)", f"copy({'a' if op == 'first' else 'b'})")
        return self.helper(text)

    def helper(self, body: str) -> str:
        """The name of a computation with this body; equal bodies share one."""
        for name, text in self.helpers.items():
            if text == f"{name} {body}":
                return name
        name = f"c{len(self.helpers)}"
        self.helpers[name] = f"{name} {body}"
        return name

    def inner(self, parameters: Sequence[Value]) -> tuple[Hlo, list[Value]]:
        """A computation inside this one, with parameters like these values."""
        made = Hlo(self.draws, self.steps, self.palette, count=1000 * (1 + self.count), helpers=self.helpers)
        values = [replace(v, name=made.name()) for v in parameters]
        made.values = list(values)
        return made, values

    def close(self, inner: Hlo, parameters: Sequence[Value], root: Sequence[Value]) -> str:
        """The name of the computation, whose parameters are these and whose result the root, a tuple where there are several."""
        if inner.inputs:
            raise Misfit  # a computation has no inputs but its parameters
        lines = [f"{v.name} = {type_of(v)} parameter({i})" for i, v in enumerate(parameters)]
        return self.helper("{\n  " + "\n  ".join([*lines, *(s.text for s in inner.statements), root_line(root)]) + "\n}")

    def limited(self, value: Value, low: float, high: float) -> Value:
        """The value held between two numbers."""
        if is_complex(value.dtype):
            raise Misfit
        a, b = self.constant(value.dtype, low), self.constant(value.dtype, high)
        return self.add(replace(value, low=max(low, min(value.low, high)), high=min(high, max(low, value.high)), grain=min(value.grain, 1.0)),
                        f"clamp({a.name}, {value.name}, {b.name})")

    def small(self, value: Value, most: float = 3.0) -> Value:
        """The value, or one that is held within a few, so that what is computed from it stays exact."""
        if value.dtype in INTEGERS or value.dtype == "pred":
            return value
        if value.grade != "exact":
            raise Misfit
        if value.most > most:
            value = self.limited(value, -most, most)
        if value.grain < (0.5 if value.dtype in NARROW else 0.125):
            if is_complex(value.dtype):
                raise Misfit
            value = self.add(rounded(value), f"{self.draws.one(('floor', 'round-nearest-even'))}({value.name})")
        return value


def root_line(root: Sequence[Value]) -> str:
    if len(root) > 1:
        return f"ROOT r = ({', '.join(map(type_of, root))}) tuple({', '.join(v.name for v in root)})"
    return f"ROOT r = {type_of(root[0])} copy({root[0].name})"


def places_in(small: Shape, shape: Shape) -> list[int] | None:
    """Increasing dimensions of a shape that a smaller one fits, or None."""
    places: list[int] = []
    at = 0
    for n in small:
        while at < len(shape) and shape[at] != n:
            at += 1
        if at == len(shape):
            return None
        places.append(at)
        at += 1
    return places
