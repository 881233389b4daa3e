"""The operation tree of an MLIR text: what the parser makes of every spelling, and what the graph is built from.

The pretty form and the generic form of an operation give the same tree: properties and attributes are one dictionary with the names of the
generic form, types are those of the values, and regions that a pretty form implies are written out. ``stablehlo.reduce(%x init: %c)
applies stablehlo.add across dimensions = [0]`` has attribute ``dimensions`` and a region with a ``stablehlo.add`` and a
``stablehlo.return``, which has the offset of the ``applies``.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from irscope.formats.stablehlo.attributes import Attribute
from irscope.formats.stablehlo.building.direct import Link
from irscope.graph import Node, Op, TensorType, Type

UNREADABLE = "?"
"""The name of an operation that stands in for one with a fault: it has the results that the text names, of unknown types."""


@dataclass(slots=True, eq=False)
class Value:
    """A result of an operation or an argument of a block; ``name`` is without ``%``, and with ``#1`` for one of several results."""

    name: str
    type: Type

    def __repr__(self) -> str:
        return f"%{self.name}: {self.type}"


class Plan(NamedTuple):
    """The node of a line: its operator, attributes and type, the types of its operands, and what few have besides.

    ``more`` has the nodes before it, and the operator of its body with the distance of its name from the end of the line.
    """

    op: Op
    attrs: Mapping[str, Any]
    type: Type
    operands: tuple[Type, ...]
    more: tuple[tuple[Link, ...], tuple[Op, int] | None] | None


@dataclass(slots=True, eq=False)
class Template:
    """What lines with the same text between their names have in common. Never changed in place.

    ``types`` are those of the operands; ``lead`` is the number of characters before the name of the operation that are not the name of
    its result; ``applied`` the operation that a reduction applies, with its distance from the end of the line; ``plan`` the node that
    it becomes as its line is read, if these types are such.
    """

    name: str
    is_named: bool
    types: list[Type]
    results: tuple[Type, ...]
    attributes: Mapping[str, Attribute]
    lead: int
    applied: tuple[str, int] | None = None
    plan: Plan | None = None

    @property
    def is_single(self) -> bool:
        """Whether it has one result, which is named."""
        return self.is_named and len(self.results) == 1


Defined: TypeAlias = Value | Node
"""What a name stands for: a value, or the node of an operation that became one as its line was read."""


@dataclass(slots=True, eq=False)
class Operation:
    """One operation. ``name`` is in full: ``stablehlo.add``, ``func.return``.

    ``attributes`` may be shared between operations and is never changed in place.
    ``begin`` is the offset of its first result or, without results, of its name; ``at`` of its name; ``end`` the offset behind it.
    ``location`` is the offset of its trailing ``loc(``, -1 where it has none; ``template`` is that of its line, if it has one.
    """

    name: str
    operands: tuple[Defined, ...]
    results: tuple[Value, ...]
    attributes: Mapping[str, Attribute]
    regions: tuple[Region, ...]
    begin: int
    at: int
    end: int
    location: int = -1
    template: Template | None = None

    def __repr__(self) -> str:
        return f"{', '.join('%' + r.name for r in self.results)} = {self.name}({', '.join('%' + o.name for o in self.operands)})"


@dataclass(slots=True, eq=False)
class Block:
    """Operations in order, the last one a terminator; ``arguments`` are visible to all of them and to regions inside them.

    In a function that becomes a graph, operations of common forms are nodes already, which no graph has yet.
    """

    arguments: tuple[Value, ...]
    operations: list[Operation | Node]
    label: str = ""


@dataclass(slots=True, eq=False)
class Region:
    """The blocks of a region; those of StableHLO have one."""

    blocks: list[Block]

    @property
    def body(self) -> Block:
        """The first block. Raises IndexError where the region is empty."""
        return self.blocks[0]


@dataclass(slots=True, eq=False)
class Function:
    """A ``func.func``. ``body`` is None for a declaration; there is one dictionary of attributes for each argument."""

    name: str
    visibility: str
    arguments: tuple[Value, ...]
    results: tuple[Type, ...]
    body: Block | None
    operation: Operation
    argument_attributes: tuple[Mapping[str, Attribute], ...] = ()


@dataclass(slots=True, eq=False)
class ParsedModule:
    """One ``module``, or the text of one without its header.

    ``operations`` are those of its body (functions, ``sdy.mesh``); ``functions`` by name, in the order of the text; ``begin`` its offset.
    ``aliases`` are the offsets of what aliases stand for, by ``#name`` and ``!name``.
    ``is_complete`` is False where the text ends early or has a fault that hides a part of it.
    """

    name: str
    attributes: Mapping[str, Attribute]
    operations: list[Operation]
    functions: dict[str, Function] = field(default_factory=dict)
    begin: int = 0
    is_complete: bool = True
    aliases: Mapping[str, int] = field(default_factory=dict)


def operations_of(items: Sequence[Operation | Node]) -> list[Operation]:
    """The items that are operations, not nodes."""
    return [item for item in items if isinstance(item, Operation)]


def nested(operations: Sequence[Operation | Node]) -> Iterator[list[Operation]]:
    """The operations, and those of each block in their regions, in no particular order, but for those that are nodes already."""
    todo = [operations]
    while todo:
        block = operations_of(todo.pop())
        yield block
        todo += [inner.operations for operation in block if operation.regions for region in operation.regions for inner in region.blocks]


def applied(name: str, type: Type, at: int) -> Region:
    """The region that ``applies`` stands for: one operation on two scalars, and a return."""
    template = _on_scalars(name, type.with_shape(()) if isinstance(type, TensorType) else type)
    scalar = template.results[0]
    lhs, rhs, result = Value("arg0", scalar), Value("arg1", scalar), Value("0", scalar)
    end = at + len(name)
    inner = Operation(name, (lhs, rhs), (result,), {}, (), at, at, end, -1, template)
    back = Operation(name.partition(".")[0] + ".return", (result,), (), {}, (), at, at, end)
    return Region([Block((lhs, rhs), [inner, back])])


@lru_cache(256)
def _on_scalars(name: str, scalar: Type) -> Template:
    """The template of an operation on two scalars."""
    return Template(name, True, [scalar, scalar], (scalar,), {}, 0)
