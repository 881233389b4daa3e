"""What an operator takes as operands, checked before it is expanded.

    X: float[3+]       a tensor of floats with 3 dimensions or more
    axes?: int[0-1]    a tensor of integers with no or one dimension; may be left out
    inputs*            any number of tensors
    xs: seq            a sequence of tensors
    x: any             a tensor or a sequence
"""
from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from irscope.formats.onnx.types import word_of
from irscope.graph import DType, Node, TensorType
from irscope.graph.dtypes import PRED
from irscope.ops.faults import TypeFault

OPERAND = re.compile(r"(?P<name>\w+)(?P<mark>[?*]?)(?:: *(?P<kind>\w+)?(?:\[(?P<least>\d+)(?P<most>\+|-\d+)?\])?)?$")
ELEMENTS: dict[str, tuple[str, Callable[[DType], bool]]] = {
    "tensor": ("a tensor", lambda d: True), "float": ("a tensor of floats", lambda d: d.is_float),
    "int": ("a tensor of integers", lambda d: d.is_integer), "bool": ("a tensor of booleans", lambda d: d is PRED),
    "number": ("a tensor of numbers", lambda d: d is not PRED), "real": ("a tensor of real numbers", lambda d: d.is_float or d.is_integer),
}
"""The kinds of tensors by their elements."""
KINDS = (*ELEMENTS, "seq", "any")


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand: ``B?`` may be left out, ``inputs*`` stands for any number. ``most`` is None where there may be any more dimensions."""

    name: str
    optional: bool = False
    variadic: bool = False
    kind: str = "tensor"
    least: int = 0
    most: int | None = None

    @staticmethod
    def parse(text: str) -> Operand:
        """The operand that a schema declares. Raises ValueError where the text is none."""
        found = OPERAND.match(text)
        if found is None or (found["kind"] or "tensor") not in KINDS:
            raise ValueError(f"{text!r} is not an operand")
        least, most = int(found["least"] or 0), found["most"]
        bound = None if most == "+" or found["least"] is None else int(most[1:]) if most else least
        return Operand(found["name"], found["mark"] == "?", found["mark"] == "*", found["kind"] or "tensor", least, bound)

    def check(self, value: Any) -> None:
        """Raise TypeFault for a value that is not of this kind, and for a tensor of other elements or another number of dimensions."""
        if self.kind == "any":
            return
        if self.kind == "seq":
            if not isinstance(value, list) or not all(_is_tensor(element) for element in value):
                raise TypeFault(f"the operand {self.name} is a sequence of tensors, not {described(value)}")
            return
        if not _is_tensor(value):
            raise TypeFault(f"the operand {self.name} is a tensor, not {described(value)}")
        what, allowed = ELEMENTS[self.kind]
        type = value.type
        if not allowed(type.dtype) or type.rank < self.least or (self.most is not None and type.rank > self.most):
            raise TypeFault(f"the operand {self.name} is {what}{self.dimensions}, not {described(value)}")

    @property
    def dimensions(self) -> str:
        """`` of 3 or more dimensions``; empty where there may be any number."""
        if self.most is None:
            return f" of {self.least} or more dimensions" if self.least else ""
        return f" of {self.least} dimensions" if self.least == self.most else f" of {self.least} to {self.most} dimensions"


def arranged(operator: str, operands: Sequence[Operand], values: Sequence[Any]) -> list[Any]:
    """The operands with None for those that are left out. Raises TypeFault for too many, for a missing one, and for one of another kind."""
    variadic = bool(operands) and operands[-1].variadic
    if len(values) > len(operands) and not variadic:
        raise TypeFault(f"{operator} takes {len(operands)} operands, got {len(values)}")
    given = [*values, *[None] * (len(operands) - len(values) - variadic)]
    for at, value in enumerate(given):
        operand = operands[min(at, len(operands) - 1)]
        if value is not None:
            operand.check(value)
        elif not operand.optional:
            raise TypeFault(f"{operator} takes the operand {operand.name}, which is missing")
    return given


def described(value: Any) -> str:
    """A value in the words of ONNX: ``float[2,3]``."""
    if isinstance(value, list):
        return "a sequence"
    if not _is_tensor(value):
        return "a string" if isinstance(value, str) else "a value that is no tensor"
    return f"{word_of(value.type.dtype)}[{','.join(map(str, value.type.shape))}]"


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Node) and isinstance(value.type, TensorType)
