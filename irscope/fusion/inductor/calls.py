"""Library calls: matrix products, convolutions, attention, sorts, and all other operators without loops. Realizes their operands."""
from __future__ import annotations

from itertools import pairwise
from math import prod

from irscope.fusion.inductor import operators
from irscope.fusion.inductor.forms import variables_of
from irscope.fusion.inductor.program import Unit, is_number
from irscope.fusion.inductor.state import State, itemsize_of, whole
from irscope.fusion.inductor.strides import CHANNELS_LAST, channels_last, ordered_strides, shape_of, viewed
from irscope.fusion.inductor.units import is_mask, read_in_order
from irscope.fusion.inductor.values import Buffer, Storage, Tensor, strides_of
from irscope.fusion.views import row_major
from irscope.graph import Node, TensorType
from irscope.ops import hlo
from irscope.ops.attributes import Convolution, Dot, Transpose

ONE_RESULT = hlo.named("dot convolution scatter")
"""Calls that write their result directly; of any other call each result is extracted by one more operation."""


def lower_call(state: State, unit: Unit) -> None:
    """Lower one call, with a buffer for each of its used results."""
    inside = set(unit.nodes)
    asked = read_in_order(unit) if unit.attention else [o for node in unit.nodes for o in node.operands]
    operands = list(dict.fromkeys(_given(unit, o) for o in asked if o not in inside))
    convolution = next((n for n in unit.nodes if n.op is hlo.convolution and _on_images(n)), None)
    gradients = operators.is_of(unit.nodes[-1], operators.CONVOLUTION_GRADIENTS)
    dots = [n for n in unit.nodes if n.op is hlo.dot]
    dot = dots[0] if len(dots) == 1 else None
    reads: list[Buffer] = []
    masks: list[Storage] = []
    for operand in operands:
        tensor = state.tensors.get(operand)
        if tensor is None or _is_argument(tensor, operand, unit):
            continue
        if gradients:
            reads.append(_in_traced_layout(state, tensor, operand))
        elif convolution is not None and operand in convolution.operands:
            reads.append(_channels_last(state, tensor, convolution))
        elif dot is not None and operand in dot.operands:
            reads.append(_matrix(state, tensor, operand, dot))
        elif is_mask(unit, operand):
            if all(tensor.storage is not mask for mask in masks):
                masks.append(tensor.storage)
                reads.append(state.copied(_unrepeated(tensor), operand))
        elif unit.attention and (tensor.storage.buffer is None or _is_turned(state, operand, unit)):
            reads.append(_as_traced(state, tensor if operators.is_of(operand, operators.FILLED) else _unrepeated(tensor), operand))
        else:
            reads.append(_in_memory(state, tensor, operand))
    results = [n for n in unit.nodes if isinstance(n.type, TensorType) and _read_outside(state, n, inside)]
    members = dict.fromkeys(unit.nodes)
    one = not gradients and (dots or any(n.op in ONE_RESULT for n in unit.nodes))
    if len(results) == 1 and one and len(dots) < 2:
        node = results[0]
        buffer = state.add(Buffer("", "extern", node, shape_of(node), itemsize_of(node), reads=tuple(reads), members=members))
        last_channels = convolution is not None and not _has_gaps(state.tensors[convolution.operands[0]])
        buffer.strides = ordered_strides(buffer.shape, CHANNELS_LAST) if last_channels else row_major(buffer.shape)
        state.tensors[node] = whole(buffer)
        return
    last = unit.nodes[-1]
    call = state.add(Buffer("", "extern", last, shape_of(last), 1, reads=tuple(reads), strides=row_major(shape_of(last)), members=members))
    for node in results:
        state.tensors[node] = extracted(state, node, call)
    for node in unit.nodes:
        state.tensors.setdefault(node, whole(call))


def extracted(state: State, node: Node, call: Buffer) -> Tensor:
    """One of several results of a call (MultiOutput)."""
    buffer = state.add(Buffer("", "extern", node, shape_of(node), itemsize_of(node), reads=(call,), part=True, members={node: None}))
    buffer.strides = state.program.strides[node.index]
    return whole(buffer)


def _given(unit: Unit, operand: Node) -> Node:
    """The argument of attention that an inner product reads transposed: the argument itself is realized."""
    turned = unit.attention and operand.op is hlo.transpose and Transpose.of(operand).dimensions == (0, 1, 3, 2)
    return operand.operands[0] if turned else operand


def _on_images(node: Node) -> bool:
    """Whether a convolution is over (N, C, H, W)."""
    dims = Convolution.of(node).dim_labels
    return (dims.lhs_batch, dims.lhs_feature, *dims.lhs_spatial) == (0, 1, 2, 3)


def _is_argument(tensor: Tensor, operand: Node, unit: Unit) -> bool:
    """Whether an operand is a number that the call takes directly, or one that only the expansion of the call uses."""
    expression = tensor.storage.expression
    if expression is None or expression.loads:
        return False
    if unit.attention and is_number(operand) and not operators.is_of(operand, operators.FILLED):
        return True
    return not shape_of(operand) or (bool(operand.origin) and operand.origin[0] is unit.nodes[-1].origin[0])


def _read_outside(state: State, node: Node, inside: set[Node]) -> bool:
    program = state.program
    return program.uses[node.index] > 0 and node.op not in (hlo.constant, hlo.iota) and (
        node is program.graph.root or any(user not in inside for user in program.users[node.index]))


def _in_memory(state: State, tensor: Tensor, node: Node) -> Buffer:
    """The realized operand; copies it if it is a view that no strides describe, or a broadcast number."""
    expression = tensor.storage.expression
    if expression is not None and not expression.loads and prod(tensor.storage.shape) == 1 and not tensor.whole():
        return state.copied(tensor, node)
    buffer = _settled(state, tensor)
    return buffer if strides_of(tensor) is not None else state.copied(tensor, node)


def _in_traced_layout(state: State, tensor: Tensor, node: Node) -> Buffer:
    """The realized operand, with the strides of the traced program if its layout is open (``constrain_to_fx_strides``)."""
    buffer = _in_memory(state, tensor, node)
    if buffer.strides is None and tensor.whole():
        buffer.strides = state.program.strides[node.index]
    return buffer


def _settled(state: State, tensor: Tensor) -> Buffer:
    """The buffer of a view. Freezes its layout: channels last if the traced program has that, else row-major
    (``convert_to_reinterpret_view``)."""
    buffer = state.realized(tensor)
    if buffer.strides is None and not tensor.whole():
        last = channels_last(buffer.shape, state.program.strides[buffer.node.index])
        buffer.strides = ordered_strides(buffer.shape, CHANNELS_LAST) if last else row_major(buffer.shape)
    return buffer


def _is_turned(state: State, operand: Node, unit: Unit) -> bool:
    """Whether the summand of the scores is not contiguous along their last dimension."""
    if any(operand in node.operands for node in unit.nodes if node.op is hlo.dot):
        return False
    strides = [s for s, size in zip(state.program.strides[operand.index], shape_of(operand)) if size != 1 and s]
    return bool(strides) and strides[-1] != min(strides)


def _as_traced(state: State, tensor: Tensor, operand: Node) -> Buffer:
    """A copy with the dimension order of the traced program in memory (``require_stride_order``)."""
    copy = state.copied(tensor, operand)
    strides = state.program.strides[operand.index]
    if copy.shape == shape_of(operand) and 0 not in strides:
        copy.strides = ordered_strides(copy.shape, sorted(range(len(strides)), key=lambda d: (strides[d], -d)))
    return copy


def _unrepeated(tensor: Tensor) -> Tensor:
    """The layout that attention requires of it (``sdpa_constraint``): the tensor without broadcasts along its dimensions."""
    used = set().union(*(variables_of(form) for form in tensor.where))
    shape = tuple(size if i in used else 1 for i, size in enumerate(tensor.shape))
    return Tensor(tensor.storage, tensor.where, shape, tensor.value)


def _matrix(state: State, tensor: Tensor, node: Node, dot: Node) -> Buffer:
    """An operand of a product viewed as matrices, or as a batch of them; copied if its memory does not allow that view."""
    rank = len(tensor.shape)
    attrs, side = Dot.of(dot), int(node is not dot.operands[0])
    batch, contracted = attrs.batch_dims[side], attrs.contracting_dims[side]
    sizes: tuple[int, ...] | None = None
    if len(batch) > 1 and batch == tuple(range(len(batch))):
        sizes = (prod(tensor.shape[:len(batch)]), *tensor.shape[len(batch):])
    elif not batch and rank > 2 and contracted == (rank - 1,):
        sizes = (prod(tensor.shape[:-1]), tensor.shape[-1])
    if sizes is not None and viewed(tensor.shape, state.program.strides[node.index], sizes) is None:
        copy = state.copied(tensor, node)
        copy.strides = row_major(copy.shape)  # viewing it as matrices freezes its layout
        return copy
    buffer = _in_memory(state, tensor, node)
    strides = strides_of(tensor) if buffer is tensor.storage.buffer else None
    return state.copied(tensor, node) if strides and 1 not in strides else buffer  # ``require_stride1``


def _has_gaps(tensor: Tensor) -> bool:
    """Whether the convolution reads some channels of an image in place, so that its result is row-major."""
    strides = strides_of(tensor) if tensor.storage.buffer is not None else None
    if strides is None or any(size < 2 for size in tensor.shape[1:]):
        return False
    step, width, height = (strides[d] for d in CHANNELS_LAST[:3])
    return step < width < height and width != step * tensor.shape[1]


def _channels_last(state: State, tensor: Tensor, convolution: Node) -> Buffer:
    """An image or a filter in channels-last layout: assigned if the layout is still open, else copied."""
    buffer = _settled(state, tensor)
    wanted = ordered_strides(tensor.shape, CHANNELS_LAST)
    if buffer.strides is None and buffer.into is None and tensor.whole():
        buffer.strides = wanted
        return buffer
    strides = strides_of(tensor)
    if strides is not None:
        steps = [strides[d] for d in CHANNELS_LAST if tensor.shape[d] != 1]
        if all(a < b for a, b in pairwise(steps)):
            return buffer
    copy = state.copied(tensor, convolution)
    copy.strides = wanted
    return copy


