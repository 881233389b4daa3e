"""HLO text written an instruction at a time, by programs that know the shapes of what they write."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from irscope.graph import DTYPES, DType

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Value:
    """An instruction that is written already."""

    name: str
    dtype: str
    shape: Shape

    @property
    def type(self) -> str:
        return spelled(self.dtype, self.shape)

    @property
    def kind(self) -> DType:
        return DTYPES[self.dtype]


@dataclass(frozen=True, slots=True)
class Drawn:
    """How the array of a parameter is drawn: integers of ``low`` to ``high`` where given; ``fixed`` before the program is compiled."""

    dtype: str
    shape: Shape
    low: int | None = None
    high: int | None = None
    fixed: bool = False
    square: bool = False


def spelled(dtype: str, shape: Sequence[int]) -> str:
    """A type as HLO writes it."""
    return f"{dtype}[{commas(shape)}]"


def commas(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


class Text:
    """A module of one entry computation, and the bodies that it calls."""

    def __init__(self) -> None:
        self.parameters: list[Drawn] = []
        self._lines: list[str] = []
        self._bodies: dict[str, str] = {}

    def parameter(self, dtype: str, shape: Shape, low: int | None = None, high: int | None = None, fixed: bool = False,
                  square: bool = False) -> Value:
        """A new parameter. ``square`` draws well-conditioned matrices: a multiple of the unit matrix is added."""
        self.parameters.append(Drawn(dtype, shape, low, high, fixed, square))
        return self.op("parameter", dtype, shape, str(len(self.parameters) - 1))

    def op(self, opcode: str, dtype: str, shape: Shape, *operands: Value | str, attrs: str = "") -> Value:
        """Any instruction that gives one array; ``attrs`` is what stands behind the operands."""
        return self._write(spelled(dtype, shape), opcode, operands, attrs, Value("", dtype, shape))

    def several(self, opcode: str, types: Sequence[tuple[str, Shape]], *operands: Value | str, attrs: str = "") -> list[Value]:
        """An instruction that gives a tuple: its parts."""
        whole = self._write("(" + ", ".join(spelled(*t) for t in types) + ")", opcode, operands, attrs, Value("", "tuple", ()))
        return [self.op("get-tuple-element", dtype, shape, whole, attrs=f"index={i}") for i, (dtype, shape) in enumerate(types)]

    def tuple_of(self, *parts: Value) -> Value:
        """A tuple, for what takes one."""
        return self._write("(" + ", ".join(part.type for part in parts) + ")", "tuple", parts, "", Value("", "tuple", ()))

    def _write(self, type: str, opcode: str, operands: Sequence[Value | str], attrs: str, value: Value) -> Value:
        name = f"v{len(self._lines)}"
        told = ", ".join(o if isinstance(o, str) else o.name for o in operands)
        self._lines.append(f"{name} = {type} {opcode}({told}){', ' + attrs if attrs else ''}")
        return Value(name, value.dtype, value.shape)

    def body(self, name: str, text: str) -> str:
        """A computation for others to call, written once; gives its name."""
        self._bodies.setdefault(name, f"{name} {{\n{text}\n}}\n")
        return name

    def combiner(self, opcode: str, dtype: str) -> str:
        """A computation of two scalars."""
        return self.body(f"{opcode}_{dtype}", f"  a = {dtype}[] parameter(0)\n  b = {dtype}[] parameter(1)\n  ROOT r = {dtype}[] {opcode}(a, b)")

    def written(self, results: Sequence[Value]) -> str:
        """The module, which gives one result as it is and several as a tuple."""
        lines = list(self._lines)
        if len(results) == 1:
            lines.append(f"ROOT out = {results[0].type} copy({results[0].name})")
        else:
            lines.append(f"ROOT out = ({', '.join(r.type for r in results)}) tuple({', '.join(r.name for r in results)})")
        entry = "\n".join("  " + line for line in lines)
        return f"HloModule grid\n\n{''.join(self._bodies.values())}ENTRY main {{\n{entry}\n}}\n"

    # ---- what many programs are made of

    def constant(self, dtype: str, value: str = "0") -> Value:
        """A scalar."""
        kind = DTYPES[dtype]
        if dtype == "s1" and value == "1":
            value = "-1"  # the one bit that is set
        spelling = {"pred": {"0": "false"}.get(value, "true"), "complex": f"({value}, 0)"}.get(kind.kind, value)
        return self.op("constant", dtype, (), spelling)

    def like(self, opcode: str, *operands: Value, attrs: str = "") -> Value:
        """An instruction whose result is of the type of its first operand."""
        return self.op(opcode, operands[0].dtype, operands[0].shape, *operands, attrs=attrs)

    def reshape(self, value: Value, shape: Shape) -> Value:
        return value if shape == value.shape else self.op("reshape", value.dtype, shape, value)

    def transpose(self, value: Value, order: Sequence[int]) -> Value:
        return self.op("transpose", value.dtype, tuple(value.shape[d] for d in order), value, attrs=f"dimensions={{{commas(order)}}}")

    def broadcast(self, value: Value, shape: Shape, dimensions: Sequence[int] = ()) -> Value:
        return self.op("broadcast", value.dtype, shape, value, attrs=f"dimensions={{{commas(dimensions)}}}")

    def slice(self, value: Value, parts: Sequence[tuple[int, int, int]]) -> Value:
        """``parts`` are (begin, end, step)."""
        shape = tuple(max(0, -(-(end - begin) // step)) for begin, end, step in parts)
        told = ", ".join(f"[{begin}:{end}:{step}]" for begin, end, step in parts)
        return self.op("slice", value.dtype, shape, value, attrs=f"slice={{{told}}}")

    def reduce(self, value: Value, dimensions: Sequence[int], opcode: str = "add", init: str = "0") -> Value:
        shape = tuple(n for d, n in enumerate(value.shape) if d not in dimensions)
        return self.op("reduce", value.dtype, shape, value, self.constant(value.dtype, init),
                       attrs=f"dimensions={{{commas(dimensions)}}}, to_apply={self.combiner(opcode, value.dtype)}")

    def compare(self, left: Value, right: Value, direction: str) -> Value:
        return self.op("compare", "pred", left.shape, left, right, attrs=f"direction={direction}")

    def sum(self, left: Value, right: Value) -> Value:
        """Two values of a type added; two truth values are different or not."""
        return self.like("xor" if left.dtype == "pred" else "add", left, right)

    def changed(self, value: Value) -> Value:
        """The value after a pointwise instruction, which makes a place of its own for it where others read it whole."""
        return self.like("not" if value.dtype == "pred" else "negate", value)


def size_of(shape: Sequence[int]) -> int:
    return prod(shape)
