"""Small matrix products that PyTorch decomposes into multiplications and a sum (Inductor's decomposition.py, on a CPU)."""
from __future__ import annotations

from math import prod

from irscope.fusion.inductor.forms import Form, coordinates, number, variable
from irscope.fusion.inductor.program import Unit
from irscope.fusion.inductor.rules import elementwise, view
from irscope.fusion.inductor.state import State, whole
from irscope.fusion.inductor.strides import shape_of
from irscope.fusion.inductor.values import Expression, Tensor
from irscope.fusion.views import VIEWS, row_major
from irscope.graph import Node
from irscope.ops import hlo
from irscope.ops.attributes import Dot

SMALL_ROW = 16
"""A row times a matrix with at most this many rows and columns becomes a sum (``addmm``)."""
FEW = 32
"""A column times a row of this many elements together becomes a multiplication (``mm``)."""


def taken_apart(state: State, unit: Unit) -> bool:
    """Lower a unit of one small product; False if it stays a library call."""
    dots = [node for node in unit.nodes if node.op is hlo.dot]
    if len(dots) != 1 or len(Dot.of(dots[0]).lhs_contracting_dims) != 1:
        return False
    dot = dots[0]
    batch, rows, length, columns = _sizes(dot)
    added = any(node.op is hlo.add for node in unit.nodes)
    if Dot.of(dot).lhs_batch_dims:
        small = 1 in (rows, columns, length)  # the lowering of bmm (tuned_bmm of kernel/bmm.py)
    elif added:
        small = rows == 1 and (columns == 1 or max(length, columns) <= SMALL_ROW)
    else:
        small = rows == columns == 1 or (length == 1 and 1 not in (rows, columns) and rows + columns <= FEW)
    if not small or batch * rows * columns == 0:
        return False
    for node in unit.nodes:
        if node is dot:
            state.tensors[node] = _summed(state, node, length)
        elif node.op in VIEWS:
            state.tensors[node] = view(node, state.tensors[node.operands[0]])
        elif node.op is not hlo.constant:
            state.tensors[node] = elementwise(state, node)
    return True


def _sizes(dot: Node) -> tuple[int, int, int, int]:
    """Batch, rows, length and columns of a product."""
    left, right = shape_of(dot.operands[0]), shape_of(dot.operands[1])
    batch = prod(left[d] for d in Dot.of(dot).lhs_batch_dims)
    length = left[Dot.of(dot).lhs_contracting_dims[0]]
    return batch, prod(left) // max(1, batch * length), length, prod(right) // max(1, batch * length)


def _summed(state: State, dot: Node, length: int) -> Tensor:
    """The products, summed where there is more than one."""
    shape = shape_of(dot)
    where = coordinates(shape)
    along = variable(len(shape), length)
    expression = Expression({}, {}, {dot: None})
    attrs = Dot.of(dot)
    at = len(attrs.lhs_batch_dims)
    for operand, batch, contracted in zip(dot.operands, attrs.batch_dims, attrs.contracting_dims, strict=True):
        tensor = state.tensors[operand]
        here: list[Form] = [number(0)] * len(tensor.shape)
        for i, d in enumerate(batch):
            here[d] = where[i]
        here[contracted[0]] = along
        for d in range(len(tensor.shape)):
            if d not in batch and d not in contracted:
                here[d] = where[at]
                at += 1
        expression.take(tensor.read(here))
    expression.steps[dot, where] = None
    if length == 1:
        return state.computed(dot, expression)
    if length < state.limits.unrolled and prod(shape) != 1:
        made = Expression({}, {}, {dot: None})
        for n in range(length):
            made.take(expression.at((*where, number(n))))
            made.steps[f"combine{n}", where] = None
        return state.computed(dot, made)
    buffer = state.stored(dot, shape, expression, (length,))
    if len(attrs.lhs_batch_dims) > 1:
        buffer.strides = row_major(shape)  # PyTorch makes one batch of them, and views its result
    return whole(buffer)
