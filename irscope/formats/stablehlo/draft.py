"""An operation while it is read."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from irscope.formats.stablehlo.attributes import Attribute
from irscope.formats.stablehlo.lexer import Cursor
from irscope.formats.stablehlo.operations import Region
from irscope.formats.stablehlo.values import Values
from irscope.graph import Type


@dataclass(slots=True, eq=False)
class Draft:
    """What is known of an operation; ``operands`` are names with their offsets, and ``types`` theirs in the same order.

    ``at`` is the offset of the name of the operation, ``bound`` the number of results that the text names,
    ``applied`` the operation that a reduction applies, with its offset.
    """

    name: str
    at: int
    operands: list[tuple[str, int]] = field(default_factory=list)
    types: tuple[Type, ...] = ()
    results: tuple[Type, ...] = ()
    attributes: dict[str, Attribute] = field(default_factory=dict)
    regions: list[Region] = field(default_factory=list)
    bound: int = 0
    applied: tuple[str, int] | None = None


Step = Callable[[Values, Cursor, Draft], None]
"""Reads a part of an operation into its draft."""
