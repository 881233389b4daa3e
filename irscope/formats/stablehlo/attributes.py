"""Values of attributes, as the parser makes them from every spelling.

| text | value |
|---|---|
| ``true``, ``false`` | bool |
| ``3 : i32``, ``3`` (i64), ``2.5 : f32``, ``2.5`` (f64), ``0x7F800000 : f32`` | :class:`Number` |
| ``"text"`` | str |
| ``unit``, or a name without a value | ``UNIT`` |
| ``@main``, ``@a::@b`` | :class:`Symbol` |
| ``[a, b]`` | tuple |
| ``{a = 1 : i32, b}`` | dict |
| ``array<i64: 1, 2>``; ``dims = [1, 2]`` of a pretty form | :class:`Array` |
| ``dense<...> : T``, ``dense_resource<name> : T`` | :class:`~irscope.ops.attrs.Literal`; ``elided`` where the text has no value |
| ``tensor<2xf32>``, ``(T) -> T`` | Type; FunctionType, whose result is a TupleType of the results |
| ``#stablehlo<comparison_direction LT>``, ``LT`` of a pretty form | :class:`Word` |
| ``#stablehlo.dot<lhs_contracting_dimensions = [1], ...>`` | :class:`Record` |
| any other ``#dialect.name<...>``, ``#sdy.sharding<...>``, ``affine_map<...>`` | :class:`Text` |
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from irscope.graph import DType, Type
from irscope.ops.attrs import Literal


class Unit(Enum):
    """The value of an attribute that says all by its presence."""

    UNIT = "unit"


UNIT = Unit.UNIT


@dataclass(frozen=True, slots=True)
class Number:
    """An integer or a float with its type; ``index`` is a NamedType."""

    value: int | float
    type: Type


@dataclass(frozen=True, slots=True)
class Symbol:
    """A reference to a symbol, with ``::`` between nested names."""

    name: str


@dataclass(frozen=True, slots=True)
class Array:
    """A dense array of integers, floats or booleans."""

    dtype: DType
    values: tuple[int, ...] | tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Word:
    """A word of an enumeration: ``kind`` is ``comparison_direction``, ``precision``, ``fft_type``..."""

    dialect: str
    kind: str
    word: str


@dataclass(frozen=True, slots=True)
class Record:
    """An attribute of a dialect with named fields: ``name`` is ``dot``, ``gather``, ``scatter``, ``channel_handle``, ``dot_algorithm``...

    ``conv`` has the fields ``input``, ``kernel`` and ``output``, tuples of strings: ``("b", "0", "1", "f")``.
    Values are attributes again; lists of integers are of class Array, records without a name are dicts.
    """

    dialect: str
    name: str
    fields: Mapping[str, Attribute]


@dataclass(frozen=True, slots=True)
class Text:
    """An attribute that is kept as it is written, with aliases in it."""

    text: str


Attribute: TypeAlias = (bool | str | Unit | Number | Symbol | Array | Word | Record | Text | Literal | Type
                        | tuple["Attribute", ...] | Mapping[str, "Attribute"])
