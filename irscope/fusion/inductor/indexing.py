"""Gather and scatter: elements at indices that are read from memory."""
from __future__ import annotations

from irscope.fusion.inductor.forms import Form, coordinates, loaded, number, weighted
from irscope.fusion.inductor.state import State, itemsize_of, whole
from irscope.fusion.inductor.strides import shape_of
from irscope.fusion.inductor.values import Buffer, Expression, Tensor
from irscope.graph import Node
from irscope.ops.attributes import Gather, Scatter


def components(state: State, indices: Node, dimension: int, where: tuple[Form, ...],
               sizes: tuple[int, ...]) -> tuple[list[Form], Expression]:
    """The index for each dimension that ``indices`` addresses, at the batch coordinates ``where``, and the expression that reads them.

    ``dimension`` is that of the index vector; ``sizes`` are those of the indexed dimensions.
    """
    forms: list[Form] = []
    expression = Expression()
    parts = indices.operands if indices in state.program.tuples else (indices,)
    for part in parts:
        tensor = state.tensors[part]
        length = tensor.shape[dimension] if dimension < len(tensor.shape) else 1
        for n in range(length):
            at = list(where)
            if dimension < len(tensor.shape):
                at.insert(dimension, number(n))
            size = sizes[len(forms)]
            if tensor.value is not None:
                forms.append(tensor.viewed(at, ()).value or number(0))
                continue
            read = tensor.read(at)
            expression.take(read)
            forms.append(loaded(tuple((buffer.name, found) for buffer, found in read.loads) or ("step", part.index, n), size) if size > 1
                         else number(0))
    return forms, expression


def gathered(state: State, node: Node) -> Tensor:
    """One element of the table for each element of the result, at coordinates that are read."""
    table, indices = (state.tensors[node.operands[0]], node.operands[1])
    shape = shape_of(node)
    where = coordinates(shape)
    attrs = Gather.of(node)
    offsets, indexed, vector = attrs.offset_dims, attrs.start_index_map, attrs.index_vector_dim
    batch = tuple(form for d, form in enumerate(where) if d not in offsets)
    found, expression = components(state, indices, vector, batch, tuple(table.shape[d] for d in indexed))
    start = dict(zip(indexed, found))
    batching = dict(zip(attrs.operand_batching_dims, attrs.start_indices_batching_dims))
    left_out = {*attrs.collapsed_slice_dims, *batching}
    at: list[Form] = []
    inner = iter(offsets)
    for d in range(len(table.shape)):
        form = start.get(d, number(0))
        if d in batching:
            form = batch[batching[d] - (batching[d] > vector)]
        if d not in left_out:
            form = weighted((form, where[next(inner)]), (1, 1))
        at.append(form)
    expression.take(table.read(at))
    expression.members[node] = None
    return state.computed(node, expression)


def scattered(state: State, node: Node) -> Tensor:
    """Copies the operand and writes the updates into it at the indices: two operations, and nothing fuses across the second."""
    count = (len(node.operands) - 1) // 2
    updates, indices = state.tensors[node.operands[-1]], node.operands[count]
    base = state.tensors[node.operands[0]]
    kept = state.realized(base) if base.storage.buffer is None and base.whole() else state.copied(base, node)
    kept.freeze()
    where = coordinates(updates.shape)
    attrs = Scatter.of(node)
    windows, indexed = attrs.update_window_dims, attrs.scatter_dims_to_operand_dims
    batch = tuple(form for d, form in enumerate(where) if d not in windows)
    found, expression = components(state, indices, attrs.index_vector_dim, batch, tuple(base.shape[d] for d in indexed))
    expression.take(updates.read(where))
    expression.members[node] = None
    start = dict(zip(indexed, found))
    inserted = {*attrs.inserted_window_dims, *attrs.input_batching_dims}
    inner = iter(windows)
    at = [start.get(d, number(0)) if d in inserted else weighted((start.get(d, number(0)), where[next(inner)]), (1, 1))
          for d in range(len(base.shape))]
    buffer = state.add(Buffer("", "scatter", node, base.shape, itemsize_of(node), expression=expression, reads=(kept,), where=tuple(at),
                              mode="atomic_add", members=dict(expression.members)))
    buffer.strides, buffer.iterated = kept.strides, updates.shape
    return whole(buffer)
