"""Changes that write an operator with others that a loop computes with its neighbours."""

from __future__ import annotations

from irscope.analysis.values import body_operator, number
from irscope.graph import Node
from irscope.lint.edits import Edit, Site
from irscope.lint.proven.site import RefusedEdge, has_wide_range, tensor
from irscope.ops import hlo


def multiply_by_reciprocal(edge: RefusedEdge) -> Edit | None:
    """``x / broadcast(s)`` becomes ``x * broadcast(1 / s)``: a multiplication is cheap enough to be computed by each reader."""
    divide = next((node for node in (edge.producer, edge.consumer) if node.op is hlo.divide), None)
    result = tensor(divide) if divide is not None else None
    if divide is None or result is None or not has_wide_range(result.dtype) or divide.operands[1].op is not hlo.broadcast:
        return None
    spread = divide.operands[1]
    small = tensor(spread.operands[0])
    if small is None or small.elements * 2 > result.elements:
        return None

    def make(site: Site) -> Node:
        inverse = site.op(hlo.divide, site.number(1.0, small), site.new(spread.operands[0]), type=small)
        return site.op(hlo.multiply, site.new(divide.operands[0]), site.copy(spread, inverse), type=result)

    return Edit({divide: make}, (divide.operands[0], spread.operands[0]))


def scatter_into(edge: RefusedEdge) -> Edit | None:
    """``scatter-add(zeros, i, u) + y`` becomes ``scatter-add(y, i, u)``."""
    scatter, total = edge.producer, edge.consumer
    if scatter.op is not hlo.scatter or total.op is not hlo.add or len(scatter.operands) != 3 or not edge.is_alone:
        return None
    if body_operator(scatter) is not hlo.add or number(scatter.operands[0]) != 0.0 or total.operands.count(scatter) != 1:
        return None
    other = next(operand for operand in total.operands if operand is not scatter)
    return Edit({total: lambda site: site.copy(scatter, site.new(other), *(site.new(o) for o in scatter.operands[1:]))},
                (other, *scatter.operands[1:]))
