"""Random TorchScript: ``program(seed)`` is a graph as torch prints it, spelled like a scripted function or like a trace."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from math import prod

from tests.programs.draws import Draws
from tests.programs.maker import Maker, Misfit, Palette, Steps
from tests.programs.numbers import INTEGERS, ends
from tests.programs.program import Program, Shape, Statement, Value

STEPS = Steps()

PALETTES: dict[str, dict[str, float]] = {
    "alias": {"f32": 6, "s64": 1, "f64": 0.5, "c64": 1},
    "write": {"f32": 6, "s64": 1, "s32": 0.5, "u8": 0.5, "bf16": 0.5, "pred": 0.3},
    "narrow": {"bf16": 3, "f16": 2, "u8": 1, "s8": 1, "s16": 1, "pred": 0.5, "f32": 1},
    "compute": {"f32": 6, "f64": 1, "s64": 1},
    "framed": {"f32": 6, "f64": 1},
    "control": {"f32": 4, "s64": 1},
}
TORCH = {"f32": ("Float", 6), "f64": ("Double", 7), "f16": ("Half", 5), "bf16": ("BFloat16", 15), "s64": ("Long", 4), "s32": ("Int", 3),
         "s16": ("Short", 2), "s8": ("Char", 1), "u8": ("Byte", 0), "pred": ("Bool", 11), "c64": ("ComplexFloat", 9)}
"""Of each element type the word in types and the number in calls (c10/core/ScalarType.h)."""


def program(seed: int) -> Program:
    """The program of a seed."""
    for name in ("views", "writes", "compute", "control"):
        import_module(f"tests.programs.torch_{name}")
    draws = Draws("torchscript", seed)
    theme = draws.one(list(PALETTES))
    maker = Torch(draws, STEPS, Palette(theme, PALETTES[theme], draws.chance(0.02), draws.chance(0.1)), traced=draws.chance(0.4))
    for _ in range(draws.between(1, 2)):
        maker.input(maker.dtype(), maker.shape(draws.one((1, 2, 2, 2, 3, 3, 4))))
    if draws.chance(0.8):
        for value in list(maker.values):
            copied = maker.call(replace(value), "clone", value.name, maker.none(), like=value.name)
            maker.values.remove(value)
            assert copied.shape == value.shape
    maker.run(draws.one((3, 4, 6, 8, 12, 16)))
    # Every alias is read at the end: that is where a write in place shows.
    outputs = tuple(draws.some(maker.values, draws.between(3, 8)))
    return Program("torchscript", tuple(maker.inputs), tuple(maker.statements), outputs, traced_text if maker.traced else text,
                   maker.helpers, maker.palette.special).live()


def text(program: Program, traced: bool = False) -> str:
    """The graph."""
    inputs = ",\n      ".join(f"%{v.name} : {type_of(v, traced)}" for v in program.inputs)
    lines = [*program.helpers.values(), *(line for s in program.statements for line in s.text.split("\n"))]
    types = ", ".join(type_of(v, traced) for v in program.outputs)
    lines.append(f"%out : ({types}) = prim::TupleConstruct({', '.join(f'%{v.name}' for v in program.outputs)})")
    return f"graph({inputs}):\n" + "".join(f"  {line}\n" for line in lines) + "  return (%out)\n"


def traced_text(program: Program) -> str:
    """The graph of a trace, whose types say what they were."""
    return text(program, True)


def type_of(value: Value, traced: bool) -> str:
    if not traced:
        return "Tensor"
    sizes = "".join(f"{n}, " for n in value.shape)
    strides = f"strides=[{', '.join(map(str, dense(value.shape)))}], " if value.shape else ""
    return f"{TORCH[value.dtype][0]}({sizes}{strides}requires_grad=0, device=cpu)"


def dense(shape: Shape) -> tuple[int, ...]:
    """The strides of an array without gaps."""
    return tuple(prod(max(1, n) for n in shape[d + 1:]) for d in range(len(shape)))


@dataclass(slots=True)
class Torch(Maker):
    """A TorchScript graph that is being made.

    ``cells`` gives values that may share memory the same number; what is written through one may be read through any, so their bounds
    are shared. ``strides`` are known or None; ``locked`` values have elements that share a place, which torch refuses to write.
    """

    traced: bool = False
    cells: dict[str, int] = field(default_factory=dict)
    strides: dict[str, tuple[int, ...] | None] = field(default_factory=dict)
    locked: set[str] = field(default_factory=set)
    level: int = 0

    def input(self, dtype: str, shape: Shape, low: float | None = None, high: float | None = None, grain: float = 1.0) -> Value:
        if dtype in INTEGERS and low is None:
            low, high = (0, 9) if dtype == "u8" else (-5, 5)
        value = Maker.input(self, dtype, shape, low, high, grain)
        self.own(value.name, dense(shape))
        return value

    def weights(self, dtype: str, shape: Shape, low: float = -1, high: float = 1) -> Value:
        value = Maker.weights(self, dtype, shape, low, high)
        self.own(value.name, dense(shape))
        return value

    def own(self, name: str, strides: tuple[int, ...] | None) -> None:
        """Give a value memory of its own."""
        self.cells[name] = 1 + max(self.cells.values(), default=0)
        self.strides[name] = strides

    def share(self, name: str, source: str, strides: tuple[int, ...] | None, locked: bool = False) -> None:
        """Say that a value may lie in the memory of another."""
        self.cells[name], self.strides[name] = self.cells[source], strides
        if locked or source in self.locked:
            self.locked.add(name)

    def constant(self, value: object, type: str = "") -> str:
        """The name of a constant; equal ones share it."""
        if isinstance(value, bool):
            type, literal = "bool", f"[value={int(value)}]"
        elif value is None:
            type, literal = "NoneType", ""
        elif isinstance(value, float):
            type, literal = "float", f"[value={value!r}]"
        else:
            type, literal = type or "int", f"[value={value}]"
        line = f" : {type} = prim::Constant{literal}()"
        for name, text in self.helpers.items():
            if text.endswith(line) and text == f"%{name}{line}":
                return name
        name = f"c{len(self.helpers)}"
        self.helpers[name] = f"%{name}{line}"
        return name

    def none(self) -> str:
        return self.constant(None)

    def numbers(self, values: Sequence[int | str]) -> str:
        """The name of a list of integers, numbers or names of such."""
        name = self.name()
        names = [v if isinstance(v, str) else self.constant(v) for v in values]
        self.statements.append(Statement(f"%{name} : int[] = prim::ListConstruct({', '.join('%' + n for n in names)})"))
        return name

    def size(self, value: Value, axis: int) -> str:
        """A size as text asks for it, in the spelling of a script or of a trace."""
        name = self.name()
        self.statements.append(Statement(f"%{name} : int = aten::size(%{value.name}, %{self.constant(axis)})"))
        if not self.traced:
            return name
        tensor, number = self.name(), self.name()
        self.statements.append(Statement(f"%{tensor} : Long(device=cpu) = prim::NumToTensor(%{name})"))
        self.statements.append(Statement(f"%{number} : int = aten::Int(%{tensor})"))
        return number

    def call(self, value: Value, operator: str, *arguments: str, like: str = "", view: str = "", strides: tuple[int, ...] | None = None,
             locked: bool = False) -> Value:
        """Define a value by a call; a ``view`` shares the memory of the value of that name, which is ``locked`` if elements share a place.

        ``like`` names a value without gaps whose layout the new one has.
        """
        made = self.bounded(replace(value, name=self.name()))
        self.statements.append(Statement(f"%{made.name} : {type_of(made, self.traced)} = aten::{operator}({', '.join('%' + a for a in arguments)})", made))
        self.values.append(made)
        if view:
            self.share(made.name, view, strides, locked)
        else:
            known = self.strides.get(like) if like else None
            self.own(made.name, dense(made.shape) if not like or known == dense(made.shape) else None)
        return made

    def write(self, value: Value, bounds: Value, operator: str, *arguments: str) -> Value:
        """A write in place: the new name means the same tensor, and every value of its memory may hold what was written."""
        if value.name in self.locked:
            raise Misfit
        cell = self.cells[value.name]
        made = self.in_memory(value, self.bounded(replace(bounds, dtype=value.dtype)))
        if self.level and not value.low <= made.low <= made.high <= value.high:
            raise Misfit  # a loop repeats what makes numbers larger
        made = replace(made, name=self.name())
        self.statements.append(Statement(f"%{made.name} : {type_of(made, self.traced)} = aten::{operator}({', '.join('%' + a for a in arguments)})",
                                         made, effect=True))
        self.share(made.name, value.name, self.strides[value.name])
        self.values = [replace(v, grade=made.grade, low=made.low, high=made.high, grain=made.grain) if self.cells[v.name] == cell else v
                       for v in self.values]
        self.values.append(made)
        return made

    def in_memory(self, value: Value, written: Value) -> Value:
        """The value as it may be when ``written`` is written to its memory: what any value there may hold, and that."""
        there = [value, written, *(v for v in self.values if self.cells[v.name] == self.cells[value.name])]
        return replace(value, grade=value.grade if len({v.grade for v in there}) == 1 else "rough", low=min(v.low for v in there),
                       high=max(v.high for v in there), grain=min(v.grain for v in there))

    def bounded(self, value: Value) -> Value:
        """Integers wrap: one beyond its type may be any."""
        if value.dtype not in INTEGERS and value.dtype != "pred":
            return value
        low, high = ends(value.dtype)
        inside = low <= value.low and value.high <= high
        return replace(value, grade="exact", grain=1.0, low=value.low if inside else low, high=value.high if inside else high)

    def dense(self, value: Value) -> bool:
        return self.strides[value.name] == dense(value.shape)

    def apart(self, value: Value, other: Value) -> Value:
        """The other value, or a copy of it where both may share memory: torch refuses to read what a write overlaps in part."""
        if self.cells[value.name] != self.cells[other.name] or other.name == value.name:
            return other
        return self.call(other, "clone", other.name, self.none(), like=other.name)

    def fit(self, value: Value, shape: Shape) -> Value:
        """A value of this type that broadcasts to the shape: one that is there, or a new input."""
        there = [v for v in self.values if v.dtype == value.dtype and v.grade == "exact" and broadcasts(v.shape, shape)]
        if there and self.draws.chance(0.75):
            return self.draws.late(there)
        small = tuple(1 if self.draws.chance(0.2) else n for n in shape)[self.draws.between(0, min(1, len(shape))):]
        return self.input(value.dtype, small)


def broadcasts(small: Shape, shape: Shape) -> bool:
    """Whether an array of one shape can stand for one of another."""
    return len(small) <= len(shape) and all(a in (1, b) for a, b in zip(small[::-1], shape[::-1]))
