"""Operations that become one node as their line is read, where a comparison of the types in the line shows that they fit.

A family declares such a rule beside the function that builds the operation. What the rule does not take is built by that function, which
checks the same, and reports what does not fit.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from irscope.formats.stablehlo.attributes import Attribute
from irscope.formats.stablehlo.building.fields import Fields
from irscope.graph import NO_ATTRS, DType, Graph, Node, Op, TensorType, Type
from irscope.ops import hlo
from irscope.ops.attrs import Literal
from irscope.ops.faults import TypeFault
from irscope.ops.registry import get

Fits = Callable[[Sequence[TensorType], TensorType], bool]
"""Whether an operation takes operands of these types and gives the result; all sizes are known, and equal types are one object."""
Attrs = Callable[[Fields], Mapping[str, Any]]
"""The attributes of a node, from those of its operation."""


class Link(NamedTuple):
    """A node that the text does not write, before the one of the operation. It reads the one before it, or the first operand."""

    op: Op
    type: Type
    attrs: Mapping[str, Any]


class Made(NamedTuple):
    """The node of an operation; ``combiner`` is the operator that a reduction applies, as its body, ``chain`` are nodes before it.

    The last node of a chain is the first operand.
    """

    op: Op
    attrs: Mapping[str, Any]
    combiner: Op | None = None
    chain: tuple[Link, ...] = ()


class Direct(NamedTuple):
    """What an operation becomes where its types pass ``fits``; ``other`` says what it becomes over other types."""

    made: Made
    fits: Fits
    other: Callable[[Sequence[TensorType], TensorType], Made | None] | None = None

    def over(self, types: Sequence[TensorType], result: TensorType) -> Made | None:
        """What it becomes over operands of these types; None where its builder decides."""
        if self.fits(types, result):
            return self.made
        return self.other(types, result) if self.other is not None else None


class _Rule(NamedTuple):
    fields: frozenset[str]
    read: Callable[[Fields, str], Direct | None]


_RULES: dict[str, _Rule] = {}


def directly_alone(names: str, op: Op, fits: Fits) -> None:
    """Declare that operations without attributes are one node of an operator, where ``fits`` accepts their types."""
    found = alone(op, NO_ATTRS, fits)
    directly(names, "", lambda fields, applied: found)


def directly_inferred(names: str, fields: str, op: Op, attrs: Attrs | None) -> None:
    """Declare that operations with no attributes but ``fields`` are one node, where the operator's own inference accepts their types."""
    def read(given: Fields, applied: str) -> Direct:
        made = attrs(given) if attrs is not None else NO_ATTRS
        return alone(op, made, inferred(op, made))
    directly(names, fields, read)


def directly(names: str, fields: str, read: Callable[[Fields, str], Direct | None]) -> None:
    """Declare a rule for operations of these names (see :func:`full_names`) that have no attributes but ``fields``.

    ``read`` also takes the name of the operation that a reduction applies; what it raises as a TypeFault is left to the builder.
    """
    _RULES.update(dict.fromkeys(full_names(names), _Rule(frozenset(fields.split()), read)))


def full_names(names: str) -> list[str]:
    """The full names of operations, from names between blanks. A name without a dialect stands for those of ``stablehlo`` and ``mhlo``."""
    return [full for name in names.split() for full in ((name,) if "." in name else (f"stablehlo.{name}", f"mhlo.{name}"))]


def direct(name: str, attributes: Mapping[str, Attribute], applied: str) -> Direct | None:
    """What an operation with these attributes becomes; None where its builder decides."""
    rule = _RULES.get(name)
    if rule is None or not rule.fields >= attributes.keys():
        return None
    try:
        return rule.read(Fields(name, attributes), applied)
    except TypeFault:
        return None


def alone(op: Op, attrs: Mapping[str, Any], fits: Fits) -> Direct:
    """An operation that is one node."""
    return Direct(Made(op, attrs), fits)


def constant(literal: Literal) -> tuple[Op, Mapping[str, Any]]:
    """The operator and the attributes of a constant."""
    return hlo.constant, {"literal": literal}


def all_of_one_type(op: Op, count: int) -> Fits:
    """Whether the operands and the result have one type, which the operator takes."""
    def fits(types: Sequence[TensorType], result: TensorType) -> bool:
        return len(types) == count and types[0] is result and types[-1] is result and takes(op, result.dtype, count)
    return fits


def inferred(op: Op, attrs: Mapping[str, Any]) -> Fits:
    """Whether the operator's own inference accepts the operands and gives the result."""
    infer = op.infer
    assert infer is not None

    def fits(types: Sequence[TensorType], result: TensorType) -> bool:
        try:
            return infer(Node(op, "", result, tuple([Node(op, "", type) for type in types]), attrs)) == result
        except TypeFault:
            return False
    return fits


@cache
def takes(op: Op, dtype: DType, count: int) -> bool:
    """Whether an elementwise operator takes, and gives, this element type."""
    scalar = TensorType(dtype, ())
    return inferred(op, NO_ATTRS)((scalar,) * count, scalar)


def combining(op: Op, scalar: TensorType, begin: int, at: int) -> Graph:
    """The computation of a reduction at ``begin`` that applies an operator, whose name is at ``at``."""
    lhs, rhs = (Node(hlo.parameter, name, scalar, (), attrs, (), begin, number, synthetic=True)
                for number, (name, attrs) in enumerate(_PARAMETERS))
    combined = Node(op, "0", scalar, (lhs, rhs), NO_ATTRS, (), at, 2)
    return Graph("", [lhs, rhs, combined], [lhs, rhs], combined, begin)


_PARAMETERS: tuple[tuple[str, Mapping[str, Any]], ...] = (("arg0", {"number": 0}), ("arg1", {"number": 1}))


def operator(name: str) -> Op:
    """The operator of HLO that an elementwise operation is."""
    return get(name.rpartition(".")[2].replace("_", "-"))
