"""Group normalisation with weights on a CPU: PyTorch decomposes it into a scale and a shift for each channel of each image.

    (x - mean) * factor * weight + bias      as irscope expands it
    x * scale + shift                        scale = factor * weight, shift = bias - mean * scale

Both are in memory: they are read as (N, C), though computed as (N, groups, channels of a group) (``native_group_norm`` of torch/_refs).
"""
from __future__ import annotations

from irscope.fusion.inductor import operators
from irscope.fusion.inductor.forms import Form, coordinates, number, unflattened, weighted
from irscope.fusion.inductor.program import GroupNorm, Program, seen_through
from irscope.fusion.inductor.state import State, whole
from irscope.fusion.inductor.strides import shape_of
from irscope.fusion.inductor.values import Expression, Tensor
from irscope.fusion.views import row_major
from irscope.graph import Node
from irscope.ops import hlo


def group_norms(program: Program, nodes: list[Node]) -> dict[Node, GroupNorm]:
    """Those of a program, by their results."""
    found = (_group_norm(program, node) for node in nodes if node.op is hlo.multiply and operators.is_of(node, operators.GROUP_NORMS))
    return dict(one for one in found if one is not None)


def _group_norm(program: Program, product: Node) -> tuple[Node, GroupNorm] | None:
    """The one whose product with the weights a node is, and its result."""
    scaled, weight = (seen_through(operand) for operand in product.operands)
    if scaled.op is not hlo.multiply or len(shape_of(weight)) != 1 or shape_of(weight)[0] != shape_of(product)[1]:
        return None
    away, factor = (seen_through(operand) for operand in scaled.operands)
    if away.op is not hlo.subtract or factor.op is not hlo.rsqrt or away.operands[0].op is not hlo.reshape:
        return None
    image = away.operands[0].operands[0]
    users = program.users[product.index]
    result = users[0] if len(users) == 1 and users[0].op is hlo.add and operators.is_of(users[0], operators.GROUP_NORMS) else product
    bias = seen_through(result.operands[1]) if result is not product else None
    if shape_of(image) != shape_of(product) or (bias is not None and shape_of(bias) != shape_of(weight)):
        return None
    return result, GroupNorm(image, seen_through(away.operands[1]), factor, weight, bias, product)


def scaled_and_shifted(state: State, node: Node, norm: GroupNorm) -> Tensor:
    """The result as an expression, after both buffers."""
    images, channels, *_ = shape_of(node)
    groups = shape_of(norm.factor)[1]
    shape = (images, groups, channels // groups)
    where = coordinates(shape)
    channel = weighted(where, (0, shape[2], 1))
    scale = _read(state, norm.factor, where)
    scale.take(state.tensors[norm.weight].read((channel,)))
    scale.steps["scale", where] = None
    scales = whole(state.stored(norm.factor, shape, scale))
    shift = _read(state, norm.mean, where)
    shift.take(scales.read(where))
    shift.steps.update({("negate", where): None, ("shift", where): None})
    if norm.bias is not None:
        shift.take(state.tensors[norm.bias].read((channel,)))
        shift.steps["bias", where] = None
    shifts = whole(state.stored(norm.weighted, shape, shift))
    at = coordinates(shape_of(node))
    made = state.tensors[norm.image].read(at)
    here = unflattened(weighted(at[:2], (channels, 1)), shape)
    for part in (scales, shifts):
        assert part.storage.buffer is not None
        part.storage.buffer.strides = row_major(shape)
        made.take(part.read(here))
    made.steps.update({(norm.weighted, at): None, (node, at): None})
    made.members.update({norm.weighted: None, node: None})
    return state.computed(node, made)


def _read(state: State, node: Node, where: tuple[Form, ...]) -> Expression:
    """One statistic of each group, at the channels of the group."""
    return state.tensors[node].read((*where[:2], *(number(0) for _ in shape_of(node)[2:])))
