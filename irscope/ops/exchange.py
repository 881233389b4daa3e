"""Operators that send values from device to device. ``expand`` gives each its meaning on a single partition:

    collective-permute(x) -> x when device 0 sends to itself, else zeros
    collective-broadcast(x) -> x
"""
from __future__ import annotations

from collections.abc import Sequence

from irscope.graph import Builder, Node, Op, TensorType, TupleType, Type
from irscope.graph.dtypes import U32
from irscope.graph.node import ArrayView, Emitter, Run
from irscope.lazy import Array, np
from irscope.ops.asynchronous import blank
from irscope.ops.attributes import Collective
from irscope.ops.building import full, type_of
from irscope.ops.collective import as_one, done_op, identity, some, together
from irscope.ops.costs import no_cost
from irscope.ops.faults import TypeFault
from irscope.ops.infer import arity, arrays, attr, plain
from irscope.ops.nests import as_index, clamped, loops
from irscope.ops.registry import declare
from irscope.ops.shapes import fits, same_dtype, same_sizes


def _infer_ragged(node: Node) -> Type:
    arity(node, 6)
    types = arrays(node)
    given, result = types[0], types[1]
    if given.dtype is not result.dtype:
        raise TypeFault(f"ragged-all-to-all: input and output disagree on dtype: {plain(given)} and {plain(result)}")
    if not given.rank or not result.rank or not same_sizes(given.shape[1:], result.shape[1:]):
        raise TypeFault(f"ragged-all-to-all moves rows of the input into the output, but they are {plain(given)} and {plain(result)}",
                        "both have the same dimensions, apart from the first")
    for number, t in enumerate(types[2:], 2):
        if not t.dtype.is_integer or not same_dtype(t.dtype, types[2].dtype) or not same_sizes(t.shape, types[2].shape):
            raise TypeFault(f"ragged-all-to-all: offsets and sizes are integer arrays of one type, but operand {number} is {plain(t)} "
                            f"and operand 2 is {plain(types[2])}")
    return plain(result)


def _ragged(run: Run, node: Node, given: Array, result: Array, *offsets_and_sizes: Array) -> Array:
    """The rows that this device sends to itself: the first of offsets and sizes. Rows outside of an array are clamped to its edge, as in
    :func:`_ragged_nest`; XLA leaves their values open."""
    result = np.array(result)
    per_device = max(1, np.size(offsets_and_sizes[0]))
    for start, length, target in zip(*(np.reshape(v, -1)[:per_device].tolist() for v in offsets_and_sizes[:3]), strict=True):
        if not given.size or not result.size:
            break
        for row in range(min(max(length, 0), len(given))):
            result[min(max(target + row, 0), len(result) - 1)] = given[min(max(start + row, 0), len(given) - 1)]
    return result


def _ragged_nest(k: Emitter, node: Node, ins: Sequence[ArrayView], outs: Sequence[ArrayView]) -> None:
    given, result, starts, lengths, targets = ins[:5]
    out = outs[0]
    with loops(k, out.shape) as at:
        out.store(at, result.load(at))
    if 0 in given.shape or 0 in out.shape:
        return
    with loops(k, starts.shape) as which:
        start, length, target = (as_index(k, v.load(which)) for v in (starts, lengths, targets))
        with k.loop(0, clamped(k, length, given.shape[0])) as row, loops(k, given.shape[1:]) as rest:
            source, into = (k.binary("max", k.binary("min", at + row, k.index(rows - 1)), k.index(0))
                            for at, rows in ((start, given.shape[0]), (target, out.shape[0])))
            out.store([into, *rest], given.load([source, *rest]))


ragged_all_to_all = declare(Op(
    "ragged-all-to-all", work="collective", doc="Rows of the input, as offsets and sizes say, into rows of the other devices' outputs.",
    infer=_infer_ragged, reference=_ragged, nest=_ragged_nest, cost=no_cost))


# ---- collective-permute, collective-broadcast

def moves_slices(node: Node) -> bool:
    """The form (input, output, input offset, output offset) that moves slices within given buffers."""
    return len(node.operands) == 4 and Collective.slice_sizes.given(node) is not None


def _check_offsets(node: Node, buffer: Type, offset: Type, what: str) -> None:
    if isinstance(buffer, TupleType):
        if not isinstance(offset, TupleType) or len(offset.elements) != len(buffer.elements):
            raise TypeFault(f"{node.op.name}: unmatching {what} buffers and {what} offset: {plain(buffer)} and {plain(offset)}")
        for b, o in zip(buffer.elements, offset.elements, strict=True):
            _check_offset(node, b, o, what)
    else:
        _check_offset(node, buffer, offset, what)


def _check_offset(node: Node, buffer: Type, offset: Type, what: str) -> None:
    """Check an index for each dimension, or several such indices."""
    if not isinstance(buffer, TensorType) or not isinstance(offset, TupleType):
        raise TypeFault(f"{node.op.name}: the {what} offset of {plain(buffer)} must be a tuple, but is {plain(offset)}")
    indices = offset.elements if all(isinstance(e, TupleType) for e in offset.elements) else (offset,)
    for index in indices:
        parts = index.elements if isinstance(index, TupleType) else (index,)
        if len(parts) != buffer.rank or not all(isinstance(p, TensorType) for p in parts):
            raise TypeFault(f"{node.op.name}: the {what} offset of {plain(buffer)} needs {buffer.rank} numbers, but is {plain(offset)}")


def _checked_permute(node: Node) -> None:
    if not node.operands:
        raise TypeFault(f"{node.op.name} needs an operand")
    attr(node, Collective.source_target_pairs)
    if moves_slices(node):
        given, result, given_at, result_at = (o.type for o in node.operands)
        tuples = isinstance(given, TupleType) and isinstance(result, TupleType)
        if isinstance(given, TupleType) != isinstance(result, TupleType) or (
                tuples and len(given.elements) != len(result.elements)):  # type: ignore[attr-defined]
            raise TypeFault(f"{node.op.name}: unmatching input and output buffers: {plain(given)} and {plain(result)}")
        _check_offsets(node, given, given_at, "input")
        _check_offsets(node, result, result_at, "output")
    else:
        arrays(node)  # as in XLA, only buffers that are given may be tuples


def _infer_permute(node: Node) -> Type:
    _checked_permute(node)
    return plain(node.operands[1].type) if moves_slices(node) else together([o.type for o in node.operands])


def _infer_permute_start(node: Node) -> Type:
    _checked_permute(node)
    context: tuple[Type, ...] = ()
    if isinstance(node.type, TupleType):
        context = tuple(plain(t) for t in node.type.elements[2:])
        if not all(fits(t, TensorType(U32, ())) for t in context):
            raise TypeFault(f"{node.op.name} gives (operand, result, u32[]...), but is declared {plain(node.type)}")
    if moves_slices(node):
        return TupleType((plain(node.operands[0].type), plain(node.operands[1].type), *context))
    both = together([o.type for o in node.operands])
    return TupleType((both, both, *context))


def _stays(node: Node) -> bool:
    """Whether device 0 sends to itself."""
    return any(tuple(pair) == (0, 0) for pair in Collective.of(node).source_target_pairs)


def _permuted(node: Node, operands: Sequence[object]) -> object:
    if moves_slices(node):
        return operands[1]
    values = operands if _stays(node) else [np.zeros_like(x) for x in operands]
    return values[0] if len(values) == 1 else tuple(values)


def _expand_permuted(builder: Builder, node: Node, operands: Sequence[Node]) -> Node:
    if moves_slices(node):
        return operands[1]
    return as_one(builder, [x if _stays(node) else full(builder, 0, type_of(x)) for x in operands])


def _permute_start(run: Run, node: Node, *operands: Array) -> object:
    first = operands[0] if moves_slices(node) else identity(run, node, *operands)
    context = node.type.elements[2:] if isinstance(node.type, TupleType) else ()
    return (first, _permuted(node, operands), *map(blank, context))


collective_permute = declare(Op(
    "collective-permute", work="collective", doc="Each source sends its value to its target; a device without a source gets zeros.",
    infer=_infer_permute, reference=lambda run, node, *operands: _permuted(node, operands),
    expand=lambda builder, node, operands, raw: _expand_permuted(builder, node, operands), cost=no_cost))
collective_permute_start = declare(Op(
    "collective-permute-start", work="collective", doc="Begins a collective-permute: (operand, result, context...).",
    infer=_infer_permute_start, reference=_permute_start, cost=no_cost))
collective_permute_done = done_op("collective-permute-done", "a collective-permute")


def _infer_collective_broadcast(node: Node) -> Type:
    types = some(node)
    return together(types[:1] if Collective.of(node).has_dynamic_root else types)


collective_broadcast = declare(Op(
    "collective-broadcast", work="collective", doc="The value of the first device of each group, in all of it.",
    infer=_infer_collective_broadcast,
    reference=lambda run, node, *operands: operands[0] if Collective.of(node).has_dynamic_root else identity(run, node, *operands),
    expand=lambda builder, node, operands, raw: operands[0] if Collective.of(node).has_dynamic_root else as_one(builder, operands),
    cost=no_cost))
