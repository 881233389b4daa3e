"""What the operation of a line became: those of all lines with its template become the same, over their own operands."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from irscope.formats.stablehlo.building.scope import Scope
from irscope.formats.stablehlo.operations import Operation
from irscope.graph import Graph, Node, Op, Type


class Step(NamedTuple):
    """A node before the one of the operation. ``operands`` are places among the operation's operands and, behind them, earlier steps."""

    op: Op
    type: Type
    attrs: Mapping[str, Any]
    operands: tuple[int, ...]


class Alike(NamedTuple):
    """The node of an operation, and the steps before it; ``operands`` as in a step. ``bodies`` are those that it calls by their names."""

    op: Op
    attrs: Mapping[str, Any]
    operands: tuple[int, ...]
    steps: tuple[Step, ...]
    bodies: tuple[Graph, ...] = ()

    def prepare(self, scope: Scope, operation: Operation, operands: tuple[Node, ...]) -> tuple[Node, ...]:
        """Append the steps for an operation to its graph; returns the operands of its node."""
        scope.operation = operation
        made = [*operands]
        for step in self.steps:
            made.append(scope.step(step.op, [made[i] for i in step.operands], step.type, step.attrs))
        return tuple([made[i] for i in self.operands])


def alike(operation: Operation, operands: Sequence[Node], nodes: Sequence[Node], bodies: tuple[Graph, ...]) -> Alike | None:
    """What an operation with one result became, in nodes that were appended for it; None where that depends on more than its template."""
    *before, node = nodes or (None,)
    if node is None or len(operation.results) != 1 or node.synthetic or node.type is not operation.results[0].type:
        return None
    if not before and node.operands == tuple(operands) and not operation.regions:
        return Alike(node.op, node.attrs, tuple(range(len(operands))), (), node.bodies)
    if node.bodies != bodies:
        return None
    places = {given: i for i, given in enumerate((*operands, *before))}
    first = operation.results[0].name + "."
    if len(places) < len(operands) + len(before) or not all(
            each.synthetic and not each.bodies and each.name.startswith(first + each.op.name) for each in before):
        return None
    if not all(operand in places for each in nodes for operand in each.operands):
        return None
    steps = [Step(each.op, each.type, each.attrs, tuple([places[operand] for operand in each.operands])) for each in before]
    return Alike(node.op, node.attrs, tuple([places[operand] for operand in node.operands]), tuple(steps))
