"""Operators in which all devices of a group take part. ``expand`` gives each its meaning on a single partition:

    all-reduce(x) -> x                        all-gather(x) -> x, as often as the group has members
    reduce-scatter(x) -> the first shard      all-to-all(x) -> x
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from irscope.graph import Builder, Kind, Node, Op, TensorType, TupleType, Type
from irscope.graph.node import Run
from irscope.lazy import Array, np
from irscope.ops.attributes import Collective
from irscope.ops.building import apply
from irscope.ops.costs import no_cost, operand_elements
from irscope.ops.faults import TypeFault
from irscope.ops.infer import arity, arrays, body, dimension, one_dimension, plain, same, takes
from irscope.ops.registry import declare, get
from irscope.ops.shapes import fits, resized, size

Raw = Mapping[str, str]


def replica_groups(node: Node) -> tuple[tuple[int, ...], ...]:
    """The groups of devices that communicate; none where all do."""
    written = Collective.of(node).replica_groups
    try:
        return tuple(written.groups()) if hasattr(written, "groups") else tuple(written)
    except ValueError as fault:
        raise TypeFault(f"the replica groups of {node.op.name}: {fault}") from None


def together(types: Sequence[Type]) -> Type:
    """One type by itself, several as a tuple: the result type of collectives with several operands."""
    return plain(types[0]) if len(types) == 1 else TupleType(tuple(map(plain, types)))


def as_one(builder: Builder, nodes: Sequence[Node]) -> Node:
    """One node by itself, several as a tuple."""
    return nodes[0] if len(nodes) == 1 else apply(builder, "tuple", *nodes)


def some(node: Node) -> list[TensorType]:
    types = arrays(node)
    if not types:
        raise TypeFault(f"{node.op.name} needs an operand")
    return types


def _along(node: Node, types: Sequence[TensorType]) -> int:
    along = one_dimension(node, Collective.dimensions, "goes along")
    for t in types:
        dimension(node, along, t.rank, "dimension")
    return along


def _declared(node: Node, started: bool = False) -> list[TensorType]:
    """The declared result for each operand; ``started``: of an operator that returns (operands, results)."""
    t: Type = node.type
    if started:
        if not isinstance(t, TupleType) or len(t.elements) < 2:
            raise TypeFault(f"{node.op.name} gives (operand, result), but is declared {plain(t)}")
        t = t.elements[1]
    wanted = len(node.operands)
    parts = t.elements if wanted > 1 and isinstance(t, TupleType) else (t,)
    arrays_only = [p for p in parts if isinstance(p, TensorType)]
    if len(arrays_only) != wanted or len(parts) != wanted:
        what = "an array" if wanted == 1 else f"a tuple of {wanted} arrays"
        raise TypeFault(f"{node.op.name} of {wanted} operand{'s' * (wanted != 1)} gives {what}, but is declared {plain(node.type)}")
    return arrays_only


# ---- all-reduce

def _infer_all_reduce(node: Node) -> Type:
    types = some(node)
    takes(node, body(node, 0, "to_apply"), 2)
    return together(types)


def _same(builder: Builder, node: Node, operands: Sequence[Node], raw: Raw) -> Node:
    return as_one(builder, operands)


def identity(run: Run, node: Node, *operands: Array) -> object:
    return operands[0] if len(operands) == 1 else tuple(operands)


all_reduce = declare(Op(
    "all-reduce", work="collective", doc="The values of all devices combined by ``to_apply``, everywhere.", infer=_infer_all_reduce,
    reference=identity, expand=_same, cost=operand_elements))
all_reduce_start = declare(Op(
    "all-reduce-start", work="collective", doc="Begins an all-reduce.", infer=_infer_all_reduce, reference=identity,
    cost=operand_elements))
all_reduce_done = declare(Op(
    "all-reduce-done", work="collective", doc="The value of an all-reduce that was begun.", kind=Kind.TUPLE, infer=same,
    reference=identity, cost=no_cost))


def _shards(node: Node, given: TensorType, made: TensorType, whole: int | None, part: int | None) -> int:
    """The number of parts in the whole. Raises TypeFault when the groups have another number of members."""
    count = -(-whole // part) if whole and part else 1
    groups = replica_groups(node)
    if groups and not Collective.of(node).channel_id and len(groups[0]) not in (1, count):
        raise TypeFault(f"{node.op.name} makes {plain(made)} of {plain(given)}, {count} shards, "
                        f"but its groups have {len(groups[0])} members")
    return count


# ---- all-gather

def gathered(node: Node, started: bool) -> list[TensorType]:
    """The results of an all-gather, whose declared type determines the number of devices."""
    types = some(node)
    declared = _declared(node, started)
    along = _along(node, [*types, *declared])
    count = _shards(node, types[0], declared[0], size(declared[0].shape[along]), size(types[0].shape[along]))
    return [_with_length(t, along, None if (n := size(t.shape[along])) is None else n * count) for t in types]


def _with_length(t: TensorType, along: int, length: int | None) -> TensorType:
    """The type with another length of a dimension, without a layout; a length of None leaves the dimension as it is."""
    dim = t.shape[along]
    return TensorType(t.dtype, (*t.shape[:along], dim if length is None else resized(dim, length), *t.shape[along + 1:]))


def _infer_all_gather(node: Node) -> Type:
    return together(gathered(node, started=False))


def _infer_all_gather_start(node: Node) -> Type:
    return TupleType((together(some(node)), together(gathered(node, started=True))))


MANY = 64
"""From this many copies on, a broadcast replaces a concatenation, which has an operand for each copy."""


def _tiles(node: Node, results: Sequence[TensorType]) -> list[int]:
    along = Collective.of(node).dimensions[0]
    return [r.dims()[along] // max(1, t.dims()[along]) for r, t in zip(results, arrays(node), strict=True)]


def _all_gather(run: Run, node: Node, *operands: Array) -> object:
    along = Collective.of(node).dimensions[0]
    counts = _tiles(node, gathered(node, started=False))
    return identity(run, node, *(np.concatenate([x] * n, axis=along) if n > 1 else x for x, n in zip(operands, counts, strict=True)))


def _all_gather_start(run: Run, node: Node, *operands: Array) -> object:
    along = Collective.of(node).dimensions[0]
    counts = _tiles(node, gathered(node, started=True))
    done = [np.concatenate([x] * n, axis=along) if n > 1 else x for x, n in zip(operands, counts, strict=True)]
    return identity(run, node, *operands), identity(run, node, *done)


def _repeated(builder: Builder, node: Node, operands: Sequence[Node], results: Sequence[TensorType]) -> Node:
    made = []
    for x, n in zip(operands, _tiles(node, results), strict=True):
        if n > MANY:
            made.append(_side_by_side(builder, x, n, Collective.of(node).dimensions[0]))
        else:
            made.append(x if n == 1 else builder.add(get("concatenate"), (x,) * n, {"dimensions": Collective.of(node).dimensions}))
    return as_one(builder, made)


def _side_by_side(builder: Builder, x: Node, n: int, along: int) -> Node:
    """Repeat an array ``n`` times: broadcast along a new dimension before one that it is then merged with."""
    assert isinstance(x.type, TensorType)
    dims = x.type.dims()
    apart = TensorType(x.type.dtype, (*dims[:along], n, *dims[along:]))
    whole = TensorType(x.type.dtype, (*dims[:along], n * dims[along], *dims[along + 1:]))
    kept = tuple(i + (i >= along) for i in range(len(dims)))
    return builder.add(get("reshape"), (builder.add(get("broadcast"), (x,), {"dimensions": kept}, apart),), {}, whole)


all_gather = declare(Op(
    "all-gather", work="collective", doc="The values of all devices, one after the other along a dimension.", infer=_infer_all_gather,
    reference=_all_gather,
    expand=lambda builder, node, operands, raw: _repeated(builder, node, operands, gathered(node, started=False)), cost=no_cost))
all_gather_start = declare(Op(
    "all-gather-start", work="collective", doc="Begins an all-gather: (operand, result).", infer=_infer_all_gather_start,
    reference=_all_gather_start, cost=no_cost))


def _infer_second(node: Node) -> Type:
    arity(node, 1)
    begun = node.operands[0].type
    if not isinstance(begun, TupleType) or len(begun.elements) < 2:
        raise TypeFault(f"{node.op.name} takes (operand, result), but %{node.operands[0].name} is {plain(begun)}")
    return plain(begun.elements[1])


def _second(builder: Builder, node: Node, operands: Sequence[Node], raw: Raw) -> Node:
    return builder.add(get("get-tuple-element"), operands, {"index": 1})


def done_op(name: str, what: str) -> Op:
    return declare(Op(name, doc=f"The value of {what} that was begun.", kind=Kind.TUPLE, work="collective", infer=_infer_second,
                      reference=lambda run, node, x: x[1], expand=_second, cost=no_cost))


all_gather_done = done_op("all-gather-done", "an all-gather")


# ---- reduce-scatter

def _infer_reduce_scatter(node: Node) -> Type:
    types = some(node)
    declared = _declared(node)
    along = _along(node, [*types, *declared])
    takes(node, body(node, 0, "to_apply"), 2)
    count = _shards(node, types[0], declared[0], size(types[0].shape[along]), size(declared[0].shape[along]))
    results = []
    for t in types:
        length = size(t.shape[along])
        if length is not None and length % count:
            raise TypeFault(f"{node.op.name}: dimension {along} of {plain(t)} does not fall into {count} equal shards")
        results.append(_with_length(t, along, None if length is None else length // count))
    return together(results)


def _result_list(node: Node) -> list[TensorType]:
    return [t for t in node.type.leaves() if isinstance(t, TensorType)]


def _reduce_scatter(run: Run, node: Node, *operands: Array) -> object:
    along = Collective.of(node).dimensions[0]
    return identity(run, node, *(np.take(x, range(t.dims()[along]), axis=along) for x, t in zip(operands, _result_list(node), strict=True)))


def _expand_reduce_scatter(builder: Builder, node: Node, operands: Sequence[Node], raw: Raw) -> Node:
    made = []
    for x, t in zip(operands, _result_list(node), strict=True):
        ranges = tuple((0, d, 1) for d in t.dims())
        made.append(builder.add(get("slice"), (x,), {"slice": ranges}))
    return as_one(builder, made)


reduce_scatter = declare(Op(
    "reduce-scatter", work="collective", doc="The values of all devices combined by ``to_apply``, a shard for each.",
    infer=_infer_reduce_scatter, reference=_reduce_scatter, expand=_expand_reduce_scatter, cost=operand_elements))


# ---- all-to-all

def _infer_all_to_all(node: Node) -> Type:
    types = some(node)
    groups = replica_groups(node)
    if Collective.dimensions.given(node) is not None:
        arity(node, 1)
        along = _along(node, types)
        length = size(types[0].shape[along])
        count = len(groups[0]) if groups else 1
        if length is not None and count and length % count:
            raise TypeFault(f"all-to-all: dimension {along} of {plain(types[0])} does not fall into {count} equal parts")
        return plain(types[0])
    for t in types[1:]:
        if not fits(t, types[0]):
            raise TypeFault(f"all-to-all has operands with different types: {plain(types[0])} and {plain(t)}")
    if groups and len(groups[0]) != len(types):
        raise TypeFault(f"all-to-all sends one operand to each device of a group, but has {len(types)} operands for "
                        f"{len(groups[0])} devices")
    return TupleType(tuple(map(plain, types)))


def _all_to_all(run: Run, node: Node, *operands: Array) -> object:
    return operands[0] if Collective.dimensions.given(node) is not None else tuple(operands)


def _expand_all_to_all(builder: Builder, node: Node, operands: Sequence[Node], raw: Raw) -> Node:
    return operands[0] if Collective.dimensions.given(node) is not None else apply(builder, "tuple", *operands)


all_to_all = declare(Op(
    "all-to-all", work="collective", doc="Part i goes to device i, part i comes from device i.", infer=_infer_all_to_all,
    reference=_all_to_all, expand=_expand_all_to_all, cost=no_cost))
