"""Parts of an array at computed indices: dynamic-slice reads one, dynamic-update-slice replaces one."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod

from irscope.graph import Kind, Node, Op, TensorType, Type
from irscope.graph.node import Emitter, Read, Run, Value
from irscope.lazy import Array, np
from irscope.ops import infer
from irscope.ops.attributes import DynamicSlice
from irscope.ops.costs import no_cost
from irscope.ops.faults import TypeFault
from irscope.ops.nests import below, both, clamped, not_below
from irscope.ops.registry import declare
from irscope.ops.shapes import same_dtype, size


def clamp_starts(start: Array, high: int) -> Array:
    """Start indices of any integer type, clamped so that a slice fits."""
    start = np.asarray(start)
    if start.dtype == np.uint64:
        return np.asarray(np.minimum(start, np.uint64(high)).astype(np.int64))
    return np.clip(start.astype(np.int64), 0, high)


def _check_starts(node: Node, first: int, operand: TensorType) -> None:
    """The start indices: one scalar per dimension, or (in old texts) one vector."""
    starts = [infer.array(node, i, "the start index") for i in range(first, len(node.operands))]
    for t in starts:
        infer.kind_of(node, t, ("int", "uint"), "start index")
    if len(starts) == 1 and starts[0].rank == 1:
        infer.equal_dims(node, starts[0].shape[0], operand.rank, f"the length of the start indices and the rank of {infer.plain(operand)}")
        return
    if len(starts) != operand.rank:
        raise TypeFault(f"{node.op.name} has {len(starts)} start indices, but its operand {infer.plain(operand)} has rank {operand.rank}")
    for t in starts:
        if t.rank:
            raise TypeFault(f"the start indices of {node.op.name} must be scalars, but one is {infer.plain(t)}")
        if t.dtype is not starts[0].dtype:
            raise TypeFault(f"the start indices of {node.op.name} must have one type, but are {starts[0].dtype} and {t.dtype}")


def _starts(k: Emitter, node: Node, first: int, read: Read, limits: Sequence[int]) -> list[Value]:
    """The clamped start indices as values."""
    if len(node.operands) == first + 1 and infer.array(node, first).rank == 1:
        return [clamped(k, read(first, [k.index(d)]), limit) for d, limit in enumerate(limits)]
    return [clamped(k, read(first + d, ()), limit) for d, limit in enumerate(limits)]


def _start_slices(arrays: Sequence[Array], shape: Sequence[int], sizes: Sequence[int]) -> tuple[slice, ...]:
    starts = list(arrays[0]) if len(arrays) == 1 and np.ndim(arrays[0]) == 1 else list(arrays)
    clamp = [int(clamp_starts(s, whole - n)) for s, whole, n in zip(starts, shape, sizes, strict=True)]
    return tuple(slice(s, s + n) for s, n in zip(clamp, sizes, strict=True))


def _dynamic_slice_type(node: Node) -> Type:
    operand = infer.array(node, 0, "the operand")
    _check_starts(node, 1, operand)
    sizes: tuple[int, ...] = infer.attr(node, DynamicSlice.dynamic_slice_sizes)
    if len(sizes) != operand.rank:
        raise TypeFault(f"dynamic-slice has {len(sizes)} sizes, but its operand {infer.plain(operand)} has rank {operand.rank}")
    for d, (n, whole) in enumerate(zip(sizes, operand.shape, strict=True)):
        if n < 0 or ((limit := size(whole)) is not None and n > limit):
            raise TypeFault(f"slice size {n} of dynamic-slice does not fit dimension {d} of {infer.plain(operand)}")
    return TensorType(operand.dtype, sizes)


def _dynamic_slice_element(k: Emitter, node: Node, index: Sequence[Value], read: Read) -> Value:
    sizes = DynamicSlice.of(node).dynamic_slice_sizes
    limits = [whole - n for whole, n in zip(infer.array(node, 0).dims(), sizes, strict=True)]
    return read(0, [start + i for start, i in zip(_starts(k, node, 1, read, limits), index, strict=True)])


def _dynamic_slice_reference(run: Run, node: Node, operand: Array, *starts: Array) -> Array:
    return operand[_start_slices(starts, operand.shape, DynamicSlice.of(node).dynamic_slice_sizes)].copy() if operand.ndim else operand


dynamic_slice = declare(Op(
    "dynamic-slice", kind=Kind.INJECTIVE, infer=_dynamic_slice_type, reference=_dynamic_slice_reference, element=_dynamic_slice_element,
    cost=no_cost, doc="A part of the operand, of fixed sizes, at start indices that are operands. Starts are clamped so that "
                      "the part fits."))


def _dynamic_update_slice_type(node: Node) -> Type:
    operand, update = infer.array(node, 0, "the operand"), infer.array(node, 1, "the update")
    _check_starts(node, 2, operand)
    if update.rank != operand.rank:
        raise TypeFault(f"the update of dynamic-update-slice is {infer.plain(update)}, but must have the rank of {infer.plain(operand)}")
    if not same_dtype(operand.dtype, update.dtype, any_precision=True):
        raise TypeFault(f"operands of dynamic-update-slice disagree on dtype: {infer.plain(operand)} and {infer.plain(update)}")
    shape = list(operand.shape)
    for d, (mine, whole) in enumerate(zip(update.shape, operand.shape, strict=True)):
        n, limit = size(mine), size(whole)
        if n is not None and limit is not None and n > limit:
            raise TypeFault(f"the update {infer.plain(update)} of dynamic-update-slice exceeds dimension {d} of {infer.plain(operand)}")
        if n == limit and not isinstance(mine, int):
            shape[d] = mine
    return TensorType(operand.dtype, tuple(shape))


def _dynamic_update_slice_element(k: Emitter, node: Node, index: Sequence[Value], read: Read) -> Value:
    update = infer.array(node, 1)
    sizes = update.dims()
    if prod(sizes) == 0:
        return read(0, index)
    limits = [whole - n for whole, n in zip(infer.array(node, 0).dims(), sizes, strict=True)]
    inside: Value | None = None
    whence = []
    for d, start in enumerate(_starts(k, node, 2, read, limits)):
        i = index[d] - start
        if limits[d]:
            inside = both(k, inside, not_below(k, i, 0), below(k, i, sizes[d]))
        whence.append(clamped(k, i, sizes[d] - 1))
    new = k.convert(read(1, whence), infer.array(node, 0).dtype)
    return new if inside is None else k.select(inside, new, read(0, index))


def _dynamic_update_slice_reference(run: Run, node: Node, operand: Array, update: Array, *starts: Array) -> Array:
    result = np.array(operand)  # a copy; of a number of numpy too, which has no elements to assign
    result[_start_slices(starts, operand.shape, update.shape)] = update
    return result


dynamic_update_slice = declare(Op(
    "dynamic-update-slice", kind=Kind.INJECTIVE, infer=_dynamic_update_slice_type, reference=_dynamic_update_slice_reference,
    element=_dynamic_update_slice_element, cost=no_cost,
    doc="The operand with a part replaced, at start indices that are operands. Starts are clamped so that the part fits."))
