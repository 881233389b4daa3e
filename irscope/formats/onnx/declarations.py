"""Declarations of ONNX's operators: operands, attributes with their defaults, and what computes them."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from irscope.formats.onnx.attributes import Sparse
from irscope.formats.onnx.operands import Operand, arranged
from irscope.formats.relay.declarations import split_schema
from irscope.ops.attrs import Literal
from irscope.ops.faults import TypeFault
from irscope.source.data_text import python_literal

Attributes = SimpleNamespace
"""The attributes of a node with all defaults; ``version`` of the operators of its domain, ``results`` that the node has."""
KINDS: dict[str, Callable[[Any], bool]] = {
    "int": lambda v: isinstance(v, int), "float": lambda v: isinstance(v, int | float), "str": lambda v: isinstance(v, str),
    "tensor": lambda v: isinstance(v, Literal), "sparse": lambda v: isinstance(v, Sparse), "type": lambda v: False,
    "ints": lambda v: isinstance(v, list) and all(isinstance(e, int) for e in v),
    "floats": lambda v: isinstance(v, list) and all(isinstance(e, int | float) for e in v),
    "strs": lambda v: isinstance(v, list) and all(isinstance(e, str) for e in v),
}
"""The types of attributes."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute: ``axis=-1``, ``pads: ints=None``, ``to: int!`` (required)."""

    name: str
    kind: str
    default: Any = None
    required: bool = False

    def allows(self, value: Any) -> bool:
        """Whether a value is of this kind, or of one of these (``int|str``)."""
        return any(KINDS[kind](value) for kind in self.kind.split("|"))


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    """An operator of the table. ``build`` expands it; None where the standard defines it by a function (``is_function``) or irscope does
    not compute it, for the ``reason``.
    """

    name: str
    operands: tuple[Operand, ...]
    attributes: tuple[Attribute, ...]
    build: Callable[..., Any] | None
    is_function: bool = False
    reason: str = ""

    def bound(self, given: Mapping[str, Any], version: int, results: int) -> Attributes:
        """The attributes of a node, with defaults. Raises TypeFault for one that is missing or of another type."""
        values: dict[str, Any] = {}
        for attribute in self.attributes:
            value = given.get(attribute.name)
            if value is None:
                if attribute.required:
                    raise TypeFault(f"{self.name} takes the attribute {attribute.name}, which is missing")
                value = attribute.default
            elif not attribute.allows(value):
                raise TypeFault(f"{self.name}: the attribute {attribute.name} is {attribute.kind}, got {str(value)[:60]!r}")
            values[attribute.name] = value
        return Attributes(version=version, results=results, **values)

    def arranged(self, operands: Sequence[Any]) -> list[Any]:
        """The operands with None for those that are left out. Raises TypeFault for too many, a missing one, or one of another kind."""
        return arranged(self.name, self.operands, operands)


def parse_schema(text: str) -> tuple[str, tuple[Operand, ...], tuple[Attribute, ...]]:
    """Name, operands and attributes of a schema. Raises ValueError where it is no schema."""
    name, operands, attributes = split_schema(text)
    return name, tuple(Operand.parse(o) for o in operands), tuple(_attribute(a) for a in attributes)


def _attribute(text: str) -> Attribute:
    head, equals, default = text.partition("=")
    required = head.endswith("!")
    name, _, kind = head.rstrip("!").partition(":")
    value = python_literal(default) if equals else None
    return Attribute(name.strip(), kind.strip() or type(value).__name__, value, required)
