"""Operators that only move elements: broadcast, reshape, bitcast, transpose, reverse, copy."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod

from irscope.graph import Dim, Kind, Node, Op, TensorType, Type
from irscope.graph.node import Emitter, Read, Run, Value
from irscope.lazy import Array, np
from irscope.ops.attributes import Broadcast, Reverse, Transpose
from irscope.ops.costs import no_cost
from irscope.ops.faults import TypeFault
from irscope.ops.infer import arity, array, attr, declared_array, dimension, distinct, plain, same
from irscope.ops.numerics import dtype_of_result, reinterpreted
from irscope.ops.registry import declare
from irscope.ops.shapes import elements, merge, same_size


def operand_dims(node: Node, number: int = 0) -> tuple[int, ...]:
    """The sizes of an operand that is known to be an array."""
    t = node.operands[number].type
    assert isinstance(t, TensorType)
    return t.dims()


def result_dims(node: Node) -> tuple[int, ...]:
    """The sizes of the result, which is known to be an array."""
    assert isinstance(node.type, TensorType)
    return node.type.dims()


# ---- broadcast

def _infer_broadcast(node: Node) -> Type:
    arity(node, 1)
    x, result = array(node, 0), declared_array(node)
    dimensions = attr(node, Broadcast.dimensions) if x.rank else Broadcast.of(node).dimensions
    shown = "{" + ",".join(map(str, dimensions)) + "}"
    if x.dtype is not result.dtype:
        raise TypeFault(f"broadcast keeps the element type, but goes from {plain(x)} to {plain(result)}", "convert before or after")
    if len(dimensions) != x.rank:
        raise TypeFault(f"broadcast of {plain(x)} needs {x.rank} dimensions, one for each of the operand's, but has dimensions={shown}")
    distinct(node, dimensions, "dimensions")
    shape = list(result.shape)
    for number, place in enumerate(dimensions):
        dimension(node, place, result.rank, "result dimension")
        if not same_size(x.shape[number], result.shape[place]):
            raise TypeFault(f"broadcast puts dimension {number} of {plain(x)} at dimension {place} of {plain(result)}: the sizes differ",
                            "a dimension of size 1 does not stretch: reshape it away, then broadcast")
        shape[place] = merge(result.shape[place], x.shape[number])
    return TensorType(result.dtype, tuple(shape))


def _broadcast(run: Run, node: Node, x: Array) -> Array:
    x = np.asarray(x)
    places = Broadcast.of(node).dimensions
    dims, shape = list(result_dims(node)), [1] * len(result_dims(node))
    for number, place in enumerate(places):
        shape[place] = dims[place] = x.shape[number]
    order = sorted(range(len(places)), key=lambda i: places[i])
    return np.broadcast_to(x.transpose(order).reshape(shape), dims)


def _broadcast_element(k: Emitter, node: Node, index: Sequence[Value], read: Read) -> Value:
    return read(0, [index[place] for place in Broadcast.of(node).dimensions])


broadcast = declare(Op(
    "broadcast", doc="Dimension i of the operand becomes dimension dimensions[i] of the result; along the others it repeats.",
    kind=Kind.BROADCAST, infer=_infer_broadcast, reference=_broadcast, element=_broadcast_element, cost=no_cost))


# ---- reshape

def _infer_reshape(node: Node) -> Type:
    arity(node, 1)
    x, result = array(node, 0), declared_array(node)
    if x.dtype is not result.dtype:
        raise TypeFault(f"reshape keeps the element type, but goes from {plain(x)} to {plain(result)}", "convert before or after")
    before, after = elements(x.shape), elements(result.shape)
    if before is not None and after is not None and before != after:
        raise TypeFault(f"reshape keeps the number of elements, but goes from {plain(x)} with {before} to {plain(result)} with {after}")
    return plain(result)


def reshaped(x: Array, dims: Sequence[int], declared: Sequence[Dim]) -> Array:
    """``x`` under new sizes; where it is smaller than the declared bound, the dynamic dimension takes the remaining size."""
    if np.size(x) == prod(dims):
        return np.reshape(x, dims)
    return np.reshape(x, [d if isinstance(d, int) else -1 for d in declared])


def _reshape(run: Run, node: Node, x: Array, *sizes: Array) -> Array:
    assert isinstance(node.type, TensorType)
    return reshaped(x, node.type.dims(), node.type.shape)


def _reshape_element(k: Emitter, node: Node, index: Sequence[Value], read: Read) -> Value:
    return read(0, reindexed(k, result_dims(node), operand_dims(node), index))


def reindexed(k: Emitter, to: Sequence[int], source: Sequence[int], index: Sequence[Value]) -> list[Value]:
    """The index into an array of sizes ``source`` of the element that is at ``index`` after a reshape to sizes ``to``.

    Dimensions that the reshape leaves alone pass through, so that loops over them stay loops over consecutive elements:
    from [2,3,4] to [2,12] only the 12 is split. An empty array has no element, so any index will do.
    """
    mine = [i for i in range(len(to)) if to[i] != 1]
    theirs = [j for j in range(len(source)) if source[j] != 1]
    result: list[Value] = [k.index(0)] * len(source)
    if 0 in to:
        return result
    i = j = 0
    while i < len(mine) and j < len(theirs):
        i_end, j_end, left, right = i + 1, j + 1, to[mine[i]], source[theirs[j]]
        while left != right:
            if left < right:
                left *= to[mine[i_end]]
                i_end += 1
            else:
                right *= source[theirs[j_end]]
                j_end += 1
        linear = index[mine[i]]
        for place in mine[i + 1:i_end]:
            linear = linear * to[place] + index[place]
        for place in reversed(theirs[j + 1:j_end]):
            result[place] = linear % source[place]
            linear = linear // source[place]
        result[theirs[j]] = linear
        i, j = i_end, j_end
    return result


reshape = declare(Op(
    "reshape", doc="The same elements, in row-major order, under other sizes.", kind=Kind.INJECTIVE, infer=_infer_reshape,
    reference=_reshape, element=_reshape_element, cost=no_cost))


# ---- bitcast

def _infer_bitcast(node: Node) -> Type:
    arity(node, 1)
    x, result = array(node, 0), declared_array(node)
    before, after = elements(x.shape), elements(result.shape)
    if before is not None and after is not None and before * x.dtype.bits != after * result.dtype.bits:
        raise TypeFault(f"bitcast keeps the memory as it is, but goes from {plain(x)} with {before * x.dtype.bits} bits "
                        f"to {plain(result)} with {after * result.dtype.bits}")
    return plain(result)


def memory_order(t: TensorType) -> tuple[int, ...]:
    """The dimensions from the slowest to the fastest in memory."""
    known = t.layout is not None and len(t.layout.minor_to_major) == t.rank
    return tuple(reversed(t.layout.minor_to_major)) if known and t.layout else tuple(range(t.rank))


def _bitcast(run: Run, node: Node, x: Array) -> Array:
    source, target = array(node, 0), declared_array(node)
    memory = np.asarray(x).transpose(memory_order(source)).reshape(-1)
    if source.dtype is not target.dtype:
        memory = reinterpreted(memory, source.dtype, target.dtype)
    order, dims = memory_order(target), target.dims()
    back = sorted(range(len(order)), key=lambda i: order[i])
    return memory.reshape([dims[d] for d in order]).transpose(back)


def _bitcast_element(k: Emitter, node: Node, index: Sequence[Value], read: Read) -> Value:
    """For equal widths; expansion turns others into a bitcast-convert."""
    source, target = array(node, 0), declared_array(node)
    into, out = memory_order(target), memory_order(source)
    found = reindexed(k, [target.dims()[d] for d in into], [source.dims()[d] for d in out], [index[d] for d in into])
    places = dict(zip(out, found, strict=True))
    return k.bitcast(read(0, [places[d] for d in range(len(out))]), target.dtype)


bitcast = declare(Op(
    "bitcast", work="free", doc="The same memory under another shape and layout: with layouts that differ this moves elements, logically.",
    kind=Kind.INJECTIVE, infer=_infer_bitcast, reference=_bitcast, element=_bitcast_element, cost=no_cost))


# ---- transpose, reverse

def _infer_transpose(node: Node) -> Type:
    arity(node, 1)
    x, permutation = array(node, 0), attr(node, Transpose.dimensions)
    if sorted(permutation) != list(range(x.rank)):
        raise TypeFault(f"transpose of {plain(x)} needs each of its {x.rank} dimensions once, "
                        f"but has dimensions={{{','.join(map(str, permutation))}}}")
    return TensorType(x.dtype, tuple(x.shape[d] for d in permutation))


def _transpose_element(k: Emitter, node: Node, index: Sequence[Value], read: Read) -> Value:
    order = Transpose.of(node).dimensions
    return read(0, [index[order.index(d)] for d in range(len(order))])


transpose = declare(Op(
    "transpose", doc="Dimension i of the result is dimension dimensions[i] of the operand.", kind=Kind.INJECTIVE, infer=_infer_transpose,
    reference=lambda run, node, x: np.transpose(x, Transpose.of(node).dimensions), element=_transpose_element, cost=no_cost))


def _infer_reverse(node: Node) -> Type:
    arity(node, 1)
    x, dimensions = array(node, 0), attr(node, Reverse.dimensions)
    distinct(node, dimensions, "dimensions")
    for d in dimensions:
        dimension(node, d, x.rank, "dimension")
    return plain(x)


def _reverse_element(k: Emitter, node: Node, index: Sequence[Value], read: Read) -> Value:
    dims, turned = result_dims(node), Reverse.of(node).dimensions
    return read(0, [dims[d] - 1 - i if d in turned else i for d, i in enumerate(index)])


reverse = declare(Op(
    "reverse", doc="Backwards along ``dimensions``.", kind=Kind.INJECTIVE, infer=_infer_reverse,
    reference=lambda run, node, x: np.flip(x, Reverse.of(node).dimensions), element=_reverse_element, cost=no_cost,
    traits=frozenset(("involution",))))


# ---- copy

copy = declare(Op(
    "copy", work="movement", doc="The same value in memory of its own; the layout may change.", kind=Kind.ELEMENTWISE,
    infer=same, reference=lambda run, node, x: x, scalar=lambda k, node, x: k.convert(x, dtype_of_result(node)), cost=no_cost))
