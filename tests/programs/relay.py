"""Random Relay: ``program(seed)`` is a module in TVM's text, with functions, branches and recursion."""
from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module

from tests.programs.draws import Draws
from tests.programs.maker import Maker, Palette, Steps
from tests.programs.numbers import INTEGERS, ends
from tests.programs.program import Program, Shape, Statement, Value

STEPS = Steps()

PALETTES: dict[str, dict[str, float]] = {
    "plain": {"f32": 1},
    "framed": {"f32": 5, "f64": 1, "f16": 1},
    "narrow": {"f16": 3, "s8": 2, "u8": 2, "s16": 2, "bf16": 1, "f32": 1},
    "integer": {"s32": 3, "s64": 2, "u8": 1, "s8": 1, "f32": 1},
    "reduction": {"f32": 6, "f64": 1, "s32": 1},
    "index": {"f32": 4, "s32": 1, "s64": 1},
    "control": {"f32": 4, "s32": 1},
}
NAMES = {"f16": "float16", "f32": "float32", "f64": "float64", "bf16": "bfloat16", "pred": "bool", "s8": "int8", "s16": "int16", "s32": "int32",
         "s64": "int64", "u8": "uint8"}


def program(seed: int, theme: str = "", control: bool = True) -> Program:
    """The program of a seed, whose theme follows from the seed unless it is told; ``control`` allows functions and branches."""
    for name in ("pointwise", "layers", "movement", "control"):
        import_module(f"tests.programs.relay_{name}")
    draws = Draws("relay", seed)
    theme = theme or draws.one(list(PALETTES))
    maker = Relay(draws, STEPS, Palette(theme, PALETTES[theme], special=draws.chance(0.12)))
    for _ in range(draws.between(1, 2)):
        maker.input(maker.dtype(), maker.shape())
    maker.run(draws.one((2, 3, 4, 6, 8, 10, 14)), None if control else set(STEPS.rows) - {"branch", "function", "recursion"})
    return Program("relay", tuple(maker.inputs), tuple(maker.statements), maker.results(), text, maker.helpers, maker.palette.special).live()


def text(program: Program) -> str:
    """The module; what statements define gets its number, as TVM prints it."""
    whole = "\n".join([*(s.text for s in program.statements), *program.helpers.values()])
    numbered = set(re.findall(r"%(v\d+) = ", whole))

    def spelled(line: str) -> str:
        return re.sub(r"%v(\d+)\b", lambda m: "%" + m[1] if f"v{m[1]}" in numbered else m[0], line)
    lines = [spelled(f"  {line}") for s in program.statements for line in s.text.split("\n")]
    results = ", ".join(spelled(f"%{v.name}") for v in program.outputs)
    params = ", ".join(f"%{v.name}: {type_of(v)}" for v in program.inputs)
    helpers = "".join(spelled(helper) + "\n" for helper in program.helpers.values())
    result = f"({results})" if len(program.outputs) > 1 else results
    return '#[version = "0.0.5"]\n' + helpers + f"def @main({params}) {{\n" + "".join(line + "\n" for line in lines) + f"  {result}\n}}\n"


def type_of(value: Value) -> str:
    if not value.shape:
        return NAMES[value.dtype]
    return f"Tensor[({', '.join(map(str, value.shape))}{',' if len(value.shape) == 1 else ''}), {NAMES[value.dtype]}]"


def literal(dtype: str, number: float) -> str:
    """A scalar as TVM's text spells it."""
    if dtype in ("s32", "s64", "f32", "f64", "f16"):
        return {"s32": f"{int(number)}", "s64": f"{int(number)}i64", "f32": f"{number:g}f", "f64": f"{number:g}f64", "f16": f"{number:g}f16"}[dtype]
    return f'cast({int(number)}, dtype="{NAMES[dtype]}")'


@dataclass(slots=True)
class Relay(Maker):
    """A Relay function that is being made."""

    def add(self, value: Value, text: str) -> Value:
        """Define a value like this one by an expression; the name is new."""
        made = replace(value, name=self.name())
        if made.dtype in INTEGERS or made.dtype == "pred":
            low, high = ends(made.dtype)
            inside = low <= made.low and made.high <= high
            made = replace(made, grade="exact", grain=1.0, low=made.low if inside else low, high=made.high if inside else high)
        self.statements.append(Statement(f"%{made.name} = {text};", made))
        self.values.append(made)
        return made

    def line(self, text: str) -> str:
        """The name of an expression that is no tensor."""
        name = self.name()
        self.statements.append(Statement(f"%{name} = {text};"))
        return name

    def fit(self, value: Value, shape: Shape) -> Value:
        """An exact value of this type that broadcasts to the shape: one that is there, or a new input."""
        there = [v for v in self.values if v.dtype == value.dtype and v.grade == "exact" and len(v.shape) <= len(shape)
                 and all(a in (1, b) for a, b in zip(v.shape[::-1], shape[::-1]))]
        if there and self.draws.chance(0.75):
            return self.draws.late(there)
        small = tuple(1 if self.draws.chance(0.2) else n for n in shape)[self.draws.between(0, min(1, len(shape))):]
        return self.input(value.dtype, small)

    def helper(self, head: str) -> str:
        """The name of a function; ``head`` is its text with the name left open as ``{}``."""
        name = f"c{len(self.helpers)}"
        self.helpers[name] = head.replace("{}", f"@{name}")
        return name


def listed(values: Sequence[object]) -> str:
    return "[" + ", ".join(map(str, values)) + "]"
