"""ragged-dot: a dot whose rows, depth or batch form consecutive groups of given sizes."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irscope.graph import Kind, Node, Op, TensorType, Type
from irscope.graph.dtypes import S64
from irscope.graph.node import Emitter, Read, Run, Value
from irscope.lazy import Array, np
from irscope.ops import infer
from irscope.ops.attributes import RaggedDot
from irscope.ops.contraction import (
    DotDims,
    contracted_dtype,
    dot_cost,
    dot_element,
    matmul,
    multiply_add,
    operand_shapes,
    result_dtype,
    sum_type,
)
from irscope.ops.faults import TypeFault
from irscope.ops.nests import as_index, below, both, guard, loops, not_below, zero
from irscope.ops.numerics import convert
from irscope.ops.registry import declare


def _ragged(node: Node) -> tuple[int, str]:
    """The ragged dimension of the left side, and its role: free, contracting or batch."""
    ragged: tuple[int, ...] = infer.attr(node, RaggedDot.lhs_ragged_dims)
    if len(ragged) != 1:
        raise TypeFault(f"ragged-dot needs one ragged dimension, but has {len(ragged)}")
    d = infer.dimension(node, ragged[0], infer.array(node, 0).rank, "lhs ragged dimension")
    dims = DotDims.of(node)
    return d, "contracting" if d in dims.lhs_contracting else "batch" if d in dims.lhs_batch else "free"


def _prefix(node: Node, dims: DotDims) -> tuple[int, ...]:
    """The dimensions of the left side for which the group sizes are given individually: those before the ragged one in its role."""
    d, role = _ragged(node)
    if role == "batch":
        return tuple(b for b in dims.lhs_batch[:dims.lhs_batch.index(d)])
    if role == "contracting":
        return (*dims.lhs_batch, *dims.lhs_contracting[:dims.lhs_contracting.index(d)])
    return (*dims.lhs_batch, *dims.lhs_free[:dims.lhs_free.index(d)])


def _ragged_dims(node: Node) -> DotDims:
    """The dimension numbers; the group dimension of the right side is neither free nor contracted."""
    dims = DotDims.of(node)
    group = RaggedDot.of(node).rhs_group_dims
    return DotDims(dims.lhs_batch, dims.rhs_batch, dims.lhs_contracting, dims.rhs_contracting, dims.lhs_free,
                   tuple(d for d in dims.rhs_free if d not in group))


def _ragged_dot_type(node: Node) -> Type:
    infer.arity(node, 3)
    dims = _ragged_dims(node)
    lhs, rhs, sizes = infer.array(node, 0), infer.array(node, 1), infer.array(node, 2, "the group sizes")
    dims.check(node, lhs, rhs)
    _, role = _ragged(node)
    group = RaggedDot.of(node).rhs_group_dims
    infer.kind_of(node, sizes, ("int", "uint"), "group sizes operand")
    if role == "free":
        if len(group) != 1:
            raise TypeFault(f"ragged-dot with a free ragged dimension needs one group dimension on the right, but has {len(group)}")
        infer.dimension(node, group[0], rhs.rank, "rhs group dimension")
        if group[0] in (*dims.rhs_batch, *dims.rhs_contracting):
            raise TypeFault(f"the group dimension {group[0]} of ragged-dot must be neither a batch nor a contracting dimension of {rhs}")
    elif group:
        raise TypeFault(f"ragged-dot with a {role} ragged dimension takes no group dimension on the right, but has {{{group[0]}}}")
    prefix = _prefix(node, dims)
    if sizes.rank not in (1, len(prefix) + 1):
        raise TypeFault(f"the group sizes of ragged-dot are {sizes}, but must have rank {len(prefix) + 1} (or 1)")
    if sizes.rank > 1:
        for i, d in enumerate(prefix):
            infer.equal_dims(node, sizes.shape[i], lhs.shape[d], f"dimension {i} of the group sizes and dimension {d} of the left side")
    count = sizes.shape[-1]
    if role == "free":
        infer.equal_dims(node, count, rhs.shape[group[0]], "the number of group sizes and the group dimension of the right side")
    shape = dims.result(lhs, rhs)
    return TensorType(contracted_dtype(node, lhs.dtype, rhs.dtype), (count, *shape) if role == "contracting" else shape)


def _ragged_dot_reference(run: Run, node: Node, lhs: Array, rhs: Array, sizes: Array) -> Array:
    dims = _ragged_dims(node)
    d, role = _ragged(node)
    if role == "batch":
        return convert(matmul(node, dims, lhs, rhs), result_dtype(node))
    prefix = _prefix(node, dims)
    count = sizes.shape[-1]
    if not count:
        return np.zeros(infer.declared_array(node).dims(), result_dtype(node).numpy())  # no row is in a group
    given = np.broadcast_to(sizes.astype(np.int64), (*(lhs.shape[p] for p in prefix), count))
    ends = np.cumsum(given, -1)
    grid = [1] * lhs.ndim
    for p in prefix:
        grid[p] = lhs.shape[p]
    rows = np.arange(lhs.shape[d]).reshape([-1 if i == d else 1 for i in range(lhs.ndim)])
    parts = []
    order = sorted(range(len(prefix)), key=lambda i: prefix[i])
    for g in range(count):
        end, start = (a.transpose(order).reshape(grid) for a in (ends[..., g], ends[..., g] - given[..., g]))
        mine = np.where((rows >= start) & (rows < end), lhs, np.zeros((), lhs.dtype))
        theirs = np.take(rhs, g, RaggedDot.of(node).rhs_group_dims[0]) if role == "free" else rhs
        parts.append(matmul(node, _without(dims, RaggedDot.of(node).rhs_group_dims[0]) if role == "free" else dims, mine, theirs))
    total = np.stack(parts) if role == "contracting" else sum(parts[1:], parts[0])
    return convert(total, result_dtype(node))


def _without(dims: DotDims, group: int) -> DotDims:
    """The dimension numbers after removal of the right side's group dimension."""
    def shifted(numbers: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(d - (d > group) for d in numbers)
    return DotDims(dims.lhs_batch, shifted(dims.rhs_batch), dims.lhs_contracting, shifted(dims.rhs_contracting),
                   dims.lhs_free, shifted(dims.rhs_free))


def _ragged_dot_element(k: Emitter, node: Node, index: Sequence[Value], read: Read) -> Value:
    dims = _ragged_dims(node)
    d, role = _ragged(node)
    if role == "batch":
        return dot_element(k, node, index, read)
    shape, _ = operand_shapes(node)
    total = k.reg(sum_type(node), zero(k, sum_type(node)))
    depth = [shape[c] for c in dims.lhs_contracting]
    prefix = _prefix(node, dims)
    sizes = infer.array(node, 2)
    count = sizes.dims()[-1]

    def group_size(place_of: dict[int, Value], group: Value) -> Value:
        return as_index(k, read(2, [*(place_of[p] for p in prefix), group] if sizes.rank > 1 else [group]))

    if role == "free":
        row_place = dict(zip((*dims.lhs_batch, *dims.lhs_free), index, strict=False))
        end = k.reg(S64, k.index(0))
        with k.loop(0, count) as group:
            start = end.get()
            end.set(start + group_size(row_place, group))
            with guard(k, both(k, not_below(k, row_place[d], start), below(k, row_place[d], end.get()))), loops(k, depth) as at:
                left, right = _free_places(node, dims, index, at, group)
                multiply_add(k, total, read(0, left), read(1, right))
        return k.convert(total.get(), result_dtype(node))
    group, rest = index[0], index[1:]

    def bounds(place_of: dict[int, Value]) -> tuple[Value, Value]:
        """The first row of the group, and the end."""
        before = k.reg(S64, k.index(0))
        with k.loop(0, group) as earlier:
            before.set(before.get() + group_size(place_of, earlier))
        return before.get(), before.get() + group_size(place_of, group)

    shared = None if sizes.rank > 1 and set(prefix) & set(dims.lhs_contracting) else bounds(dict(zip(dims.lhs_batch, rest, strict=False)))
    with loops(k, depth) as at:
        left, right = dims.places(rest, at)
        first, behind = shared or bounds(dict(enumerate(left)))
        with guard(k, both(k, not_below(k, left[d], first), below(k, left[d], behind))):
            multiply_add(k, total, read(0, left), read(1, right))
    return k.convert(total.get(), result_dtype(node))


def _free_places(node: Node, dims: DotDims, index: Sequence[object], at: Sequence[object], group: object) -> tuple[list[Any], list[Any]]:
    """The operand indices of both sides when the right one has a group dimension."""
    of_group = RaggedDot.of(node).rhs_group_dims[0]
    left, right = _without(dims, of_group).places(index, at)
    return left, [*right[:of_group], group, *right[of_group:]]


ragged_dot = declare(Op(
    "ragged-dot", kind=Kind.CONTRACTION, infer=_ragged_dot_type, reference=_ragged_dot_reference, element=_ragged_dot_element,
    cost=dot_cost,
    doc="A dot whose rows (or depth, or batch) form consecutive groups of given sizes; each group is multiplied with its own right side."))
