"""Regions become computations. What they read from outside becomes an operand, as jaxlib does it; constants are copied."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from irscope.formats.stablehlo.building.scope import Inner, Scope, captured, types_of
from irscope.formats.stablehlo.building.work import Unsupported
from irscope.formats.stablehlo.operations import Defined, Operation, Region
from irscope.graph import Node, TupleType
from irscope.ops.faults import TypeFault


class Builder(Protocol):
    """Builds the operations of a block into a scope. ``outside`` has the outer values that the regions read which are built already."""

    outside: dict[Region, list[Defined]]

    def constant_of(self, value: Defined) -> Operation | Node | None:
        """The operation or node that defines a value, where it is a constant."""

    def open(self, operation: Operation, number: int) -> Scope:
        """A scope for a region of an operation."""

    def close(self, scope: Scope, region: Region) -> list[Node]:
        """Build the block of a region into a scope; returns the nodes of what it returns."""

    def constant(self, scope: Scope, operation: Operation | Node) -> None:
        """Append a copy of a constant of an enclosing region to a scope."""

    def region(self, region: Region, operation: Operation) -> None:
        """Check that a region has one block."""


Inside = Callable[[Builder, Operation], Inner]


def scalars(builder: Builder, operation: Operation) -> Inner:
    """Regions that take their block arguments, and can read constants alone from outside. That of a line reads nothing."""
    graphs = []
    for number, region in enumerate(operation.regions):
        builder.region(region, operation)
        scope = builder.open(operation, number)
        if operation.template is None and _sink(builder, scope, captured([region], builder.outside)):
            raise Unsupported(f"the region of '{operation.name}' reads values from outside", "pass them as operands")
        _arguments(scope, region)
        scope.graph.root = scope.together(builder.close(scope, region))
        graphs.append(scope.graph)
    return Inner(tuple(graphs))


def branches(builder: Builder, operation: Operation) -> Inner:
    """Regions without arguments: each takes all that any of them reads from outside, several values as a tuple."""
    regions = operation.regions
    for region in regions:
        builder.region(region, operation)
    outside = captured(regions, builder.outside)
    lifted = tuple(value for value in outside if builder.constant_of(value) is None)
    graphs = []
    for number, region in enumerate(regions):
        scope = builder.open(operation, number)
        _state(scope, lifted)
        _sink(builder, scope, outside)
        scope.graph.root = scope.together(builder.close(scope, region))
        graphs.append(scope.graph)
    return Inner(tuple(graphs), lifted)


def loop(builder: Builder, operation: Operation) -> Inner:
    """The condition and the body of a loop: what they read from outside is carried along unchanged."""
    regions = operation.regions
    if len(regions) != 2:
        raise TypeFault(f"'{operation.name}' op needs two regions, but has {len(regions)}")
    for region in regions:
        builder.region(region, operation)
    outside = captured(regions, builder.outside)
    lifted = tuple(value for value in outside if builder.constant_of(value) is None)
    graphs = []
    for number, region in enumerate(regions):
        scope = builder.open(operation, number)
        arguments = region.body.arguments
        if len(arguments) != len(operation.operands):
            raise TypeFault(f"region {number} of '{operation.name}' takes {len(arguments)} arguments, but the loop has "
                            f"{len(operation.operands)} operands")
        kept = _state(scope, (*arguments, *lifted))
        _sink(builder, scope, outside)
        returned = builder.close(scope, region)
        if number:
            returned += kept[len(arguments):]
        scope.graph.root = scope.together(returned)
        graphs.append(scope.graph)
    return Inner(tuple(graphs), lifted)


def _arguments(scope: Scope, region: Region) -> None:
    for argument in region.body.arguments:
        scope.nodes[argument] = scope.param(argument.type, argument.name, scope.graph.loc)


def _state(scope: Scope, values: Sequence[Defined]) -> list[Node]:
    """One parameter with all values: the one value by itself, or a tuple of them."""
    if len(values) == 1:
        nodes = [scope.param(values[0].type, values[0].name, scope.graph.loc)]
    else:
        whole = scope.param(TupleType(tuple(types_of(values))), "arg_tuple", scope.graph.loc)
        nodes = scope.parts(whole, [value.name for value in values])
    scope.nodes.update(zip(values, nodes, strict=True))
    return nodes


def _sink(builder: Builder, scope: Scope, outside: Sequence[Defined]) -> bool:
    """Copy the constants among the values that a region reads; returns whether there are others."""
    others = False
    for value in outside:
        constant = builder.constant_of(value)
        if constant is None:
            others = True
        else:
            builder.constant(scope, constant)
    return others


INSIDE: dict[str, Inside] = {
    **dict.fromkeys(("stablehlo.while", "mhlo.while"), loop),
    **dict.fromkeys(("stablehlo.case", "mhlo.case", "stablehlo.if", "mhlo.if"), branches),
}
"""How the regions of an operation become graphs; all others are like those of ``reduce``."""
