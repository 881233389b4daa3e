"""Concatenation: each piece is computed in its part of the result, so that the concatenation itself does nothing (``ConcatKernel``)."""
from __future__ import annotations

from irscope.fusion.inductor.forms import coordinates, digit_of
from irscope.fusion.inductor.state import State, itemsize_of, whole
from irscope.fusion.inductor.strides import CHANNELS_LAST, channels_last, ordered_strides, shape_of
from irscope.fusion.inductor.values import Buffer, Tensor, strides_of
from irscope.fusion.views import row_major
from irscope.graph import Node
from irscope.ops.attributes import Concatenate


def joined(state: State, node: Node) -> Tensor:
    """The pieces, written into the result: computed there unless a buffer holds them already, else copied.

    A piece that occurs many times is a repetition, which loops express (the decomposition of ``aten.cat``).
    """
    shape = shape_of(node)
    dimension = Concatenate.of(node).axis
    first = node.operands[0]
    if all(operand is first for operand in node.operands):
        at = list(coordinates(shape))
        at[dimension] = digit_of(at[dimension], 1, shape_of(first)[dimension])
        expression = state.tensors[first].read(at)
        expression.members[node] = None
        return state.computed(node, expression)
    strides = row_major(shape)
    tensors = [state.tensors[o] for o in node.operands]
    held = [(t.shape, strides_of(t)) for t in tensors if t.storage.buffer is not None and t.storage.buffer.strides]
    if all(t.storage.buffer is None for t in tensors):
        held = [(t.shape, state.program.strides[o.index]) for t, o in zip(tensors, node.operands)]
    if any(row is not None and channels_last(sizes, row) for sizes, row in held):
        strides = ordered_strides(shape, CHANNELS_LAST)
    result = Buffer("", "nop", node, shape, itemsize_of(node), strides=strides, members={node: None})
    parts: list[Buffer] = []
    offset = 0
    for operand in node.operands:
        tensor = state.tensors[operand]
        buffer = state.realized(tensor) if tensor.whole() else None
        if buffer is None or buffer.kind not in ("pointwise", "reduction") or buffer.strides is not None or buffer.into is not None:
            buffer = state.copied(tensor, node)
        buffer.members[node] = None
        buffer.into = (result, offset * strides[dimension])
        buffer.strides = strides
        parts.append(buffer)
        offset += tensor.shape[dimension]
    result.reads = tuple(parts)
    return whole(state.add(result))
