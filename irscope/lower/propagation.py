"""Propagates dimension orders: values that are combined element by element, or concatenated, get the same order.

A convolution constrains its image to channels last; a value added to it, its parts, and values computed from the result should have the
same order.
"""
from __future__ import annotations

from collections.abc import Collection, Sequence

from irscope.fusion import Group
from irscope.fusion.drafts import dims_of
from irscope.fusion.views import VIEWS
from irscope.graph import Node, TensorType
from irscope.lower.orders import Order
from irscope.lower.storage import LayoutConstraint
from irscope.ops import hlo

ROUNDS = 4
"""The most forward and backward sweeps: orders meet in the middle of a graph."""

_PLACES = hlo.named("concatenate pad")


def spread(groups: Sequence[Group], constraints: dict[Node, LayoutConstraint], fixed: Collection[Node]) -> None:
    """Add constraints for values that have none and are not ``fixed``: the orders of the values that they are read with or become."""
    for _ in range(ROUNDS):
        count = len(constraints)
        for group in reversed(groups):
            for output in group.outputs:
                order = _order(constraints, output)
                if order is not None:
                    for node in _alike(group, output):
                        _constrain(constraints, node, order, fixed)
        for group in groups:
            if group.kind != "map" and not _is_place(group):
                continue
            for output in group.outputs:
                orders = {_order(constraints, node) for node in _alike(group, output)} - {None}
                if len(orders) == 1:
                    (order,) = orders
                    assert order is not None
                    _constrain(constraints, output, order, fixed)
        if len(constraints) == count:
            return


def _alike(group: Group, output: Node) -> list[Node]:
    """The inputs that a group traverses in the same way as an output."""
    if not isinstance(output.type, TensorType):
        return []
    if group.kind == "whole":
        return [n for n in group.inputs if _is_place(group) and n.op not in VIEWS and _rank(n) == _rank(output)]
    return [n for n in group.inputs if n.op not in VIEWS and isinstance(n.type, TensorType) and dims_of(n) == dims_of(output)
            and (group.anchor is None or n not in group.anchor.operands)]


def _is_place(group: Group) -> bool:
    return group.kind == "whole" and group.anchor is not None and group.anchor.op in _PLACES


def _rank(node: Node) -> int:
    return len(dims_of(node)) if isinstance(node.type, TensorType) else -1


def _order(constraints: dict[Node, LayoutConstraint], node: Node) -> Order | None:
    """The order that a value is constrained to, where it is not row-major."""
    constraint = constraints.get(node)
    return constraint.order if constraint is not None and constraint.order != tuple(range(len(constraint.order))) else None


def _constrain(constraints: dict[Node, LayoutConstraint], node: Node, order: Order, fixed: Collection[Node]) -> None:
    if node not in constraints and node not in fixed and _rank(node) == len(order):
        constraints[node] = LayoutConstraint.dense(order)
