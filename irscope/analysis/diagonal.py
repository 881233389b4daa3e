"""Diagonal matrices, as programs write them: a select or product with the comparison of two iotas."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irscope.analysis.values import COPIES, SPREADS, dims, number, other
from irscope.graph import Node
from irscope.graph.walk import behind
from irscope.ops import hlo
from irscope.ops.attributes import Compare, Iota

Uniform = Sequence[frozenset[int]]
"""For each node of a graph, by index, the axes along which it is uniform (``uniform_axes``)."""


@dataclass(frozen=True, slots=True)
class Diagonal:
    """A square matrix that is zero off its diagonal: ``values`` are the diagonal, spread to its shape; None for ones (an identity)."""

    matrix: Node
    values: Node | None


def diagonal(node: Node, uniform: Uniform) -> Diagonal | None:
    """The diagonal matrix that a node is, or None."""
    at = behind(node, COPIES)
    if len(dims(at)) != 2 or dims(at)[0] != dims(at)[1] or dims(at)[0] == 1:
        return None
    if is_identity(at, uniform):
        return Diagonal(at, None)
    if at.op is hlo.select and number(at.operands[2]) == 0.0 and _is_on_diagonal(at.operands[0], uniform):
        return Diagonal(at, at.operands[1])
    if at.op is hlo.multiply:
        mask = next((one for one in at.operands if is_identity(one, uniform)), None)
        return Diagonal(at, other(at, mask)) if mask is not None else None
    return None


def is_identity(node: Node, uniform: Uniform) -> bool:
    """Whether a node is an identity matrix: the comparison of two iotas, also converted to numbers."""
    at = behind(node, COPIES)
    if at.op is hlo.select and (number(at.operands[1]), number(at.operands[2])) == (1.0, 0.0):
        at = at.operands[0]
    return _is_on_diagonal(at, uniform)


def _is_on_diagonal(node: Node, uniform: Uniform) -> bool:
    """Whether a node compares two iotas, one along each axis, or their difference with zero."""
    at = behind(node, COPIES)
    if at.op is not hlo.compare or Compare.of(at).direction != "EQ":
        return False
    one, two = at.operands
    if one.op is hlo.subtract and number(two) == 0.0:
        one, two = one.operands
    return {_counts_along(one, uniform), _counts_along(two, uniform)} == {0, 1}


def _counts_along(node: Node, uniform: Uniform) -> int | None:
    """The axis along which a matrix counts from zero and along whose other axis it is uniform; None for anything else."""
    at = behind(node, COPIES)
    if at.op is hlo.add and number(at.operands[1]) == 0.0:
        at = behind(at.operands[0], COPIES)
    if at.op is hlo.iota:
        return Iota.of(at).iota_dimension
    if behind(at, SPREADS).op is not hlo.iota or len(uniform[at.index]) != 1:
        return None
    (along,) = {0, 1} - uniform[at.index]
    return along
