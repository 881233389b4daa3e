"""The table of Relay's operators: their declarations by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from irscope.formats.relay.signature import DeclaredAttribute, DeclaredOperand, bind_attributes, check_attributes, check_operands
from irscope.graph import Kind, Type

SCHEMA = re.compile(r"(?P<name>[\w.]+)\((?P<operands>[^;]*?)(?:;(?P<attributes>.*))?\)$")
COMMA = re.compile(r",(?![^(\[]*[)\]])")
"""A comma outside brackets."""
Attributes = SimpleNamespace

_table: dict[str, RelayOperator] = {}


@dataclass(frozen=True, slots=True, eq=False)
class RelayOperator:
    """An operator as in Relay's registry, with its expansion (None where irscope cannot compute it).

    ``values`` marks operators whose result type depends on the values of constant operands; ``infer`` computes the type of the result where
    the expansion does not determine it, or where dimensions are open.
    """

    name: str
    takes: tuple[DeclaredOperand, ...]
    attributes: tuple[DeclaredAttribute, ...]
    kind: Kind
    build: Callable[..., Any] | None
    values: bool = False
    infer: Callable[..., Any] | None = None

    @property
    def operands(self) -> tuple[str, ...]:
        """The names of its operands."""
        return tuple(o.name for o in self.takes)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its attributes, in the order in which they are printed."""
        return tuple(a.name for a in self.attributes)

    def bound(self, given: Mapping[str, object]) -> Attributes:
        """The attributes of a call, with defaults; a string without a name is the next attribute that takes a word."""
        return Attributes(**bind_attributes(self.attributes, given))

    def checked(self, types: Sequence[Type], given: Mapping[str, object]) -> Attributes:
        """The attributes of a call whose operands have these types, with defaults. Raises TypeFault for a mismatch."""
        check_operands(self.name, self.takes, types)
        values = bind_attributes(self.attributes, given)
        check_attributes(self.name, self.attributes, values)
        return Attributes(**values)


def split_schema(text: str) -> tuple[str, list[str], list[str]]:
    """The name of a schema, and the texts of its operands and attributes. Raises ValueError for an invalid schema."""
    found = SCHEMA.match(text)
    if found is None:
        raise ValueError(f"{text!r} is not a schema")
    operands, attributes = ([part.strip() for part in COMMA.split(found[group] or "") if part.strip()]
                            for group in ("operands", "attributes"))
    return found["name"], operands, attributes


def parse_schema(text: str, default: str) -> tuple[str, tuple[DeclaredOperand, ...], tuple[DeclaredAttribute, ...]]:
    """Name, operands and attributes of a schema; ``default`` is the class of operands that state none. Raises ValueError."""
    name, operands, attributes = split_schema(text)
    return name, tuple(DeclaredOperand.of(part, default) for part in operands), tuple(DeclaredAttribute.of(part) for part in attributes)


def enter(operator: RelayOperator) -> None:
    """Put an operator into the table."""
    _table[operator.name] = operator


def load() -> None:
    """Import the package of the operators, which register themselves."""
    import_module("irscope.formats.relay.operators").load()


def declared(name: str) -> RelayOperator | None:
    """The declaration of an operator, or None."""
    load()
    return _table.get(name)


def names() -> list[str]:
    """Every declared operator, in order."""
    load()
    return sorted(_table)
