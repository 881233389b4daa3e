"""Infers the types of Relay operators from their expansions, cached by operand types and attributes.

An open dimension (``?``, a name) is tried with two sizes: result dimensions that agree are known, the others stay open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from irscope.formats.relay.algebra import Relay
from irscope.formats.relay.declarations import RelayOperator, declared
from irscope.graph import UNKNOWN, Builder, DynamicDim, Graph, Kind, Node, TensorType, TupleType, Type
from irscope.graph.types import Dim
from irscope.ops import hlo
from irscope.ops.faults import TypeFault
from irscope.ops.registry import get

TRIED = (5040, 10080)
"""Trial sizes of an open dimension: most numbers divide them, and no model has exactly these two."""
MAX_LEVELS = 200
"""Levels of tuples in an operand, as many as brackets of the text may have: the values of a trial nest as the operand does."""
TOO_DEEP = f"an operand is a tuple of more than {MAX_LEVELS} levels"

_cache: dict[Any, Type | TypeFault] = {}
_costs: dict[object, float] = {}


def infer_node(node: Node) -> Type:
    """The type of a call; UNKNOWN where it cannot be inferred. Raises TypeFault when the operands do not fit."""
    operator = declared(node.op.name)
    if operator is None:
        return UNKNOWN
    types = tuple(o.type for o in node.operands)
    if not _are_shallow(types):
        raise TypeFault(f"{operator.name}: {TOO_DEEP}")
    if operator.values:
        return _inferred(operator, types, node.attrs, node.operands)
    key = (operator.name, types, repr(node.attrs) if node.attrs else "")
    found = _cache.get(key)
    if found is None:
        try:
            found = _inferred(operator, types, node.attrs, node.operands)
        except TypeFault as fault:
            found = fault
        if len(_cache) > 100_000:
            _cache.clear()
        _cache[key] = found
    if isinstance(found, TypeFault):
        raise TypeFault(found.message, found.help)
    return found


def _inferred(operator: RelayOperator, types: tuple[Type, ...], attrs: Mapping[str, object], operands: Sequence[Node]) -> Type:
    bound = operator.checked(types, attrs)
    if operator.infer is not None:
        try:
            made = operator.infer(bound, *types)
        except TypeFault as fault:
            raise _named(operator.name, fault) from None
        if made is not None:
            return made  # type: ignore[no-any-return]
    if operator.build is None or not all(_tensors(t) for t in types):
        return UNKNOWN
    opened = open_dimensions(types)
    if not opened:
        return _tried(operator, types, attrs, operands)
    sizes = [trial_sizes(opened, base) for base in TRIED]
    try:
        a, b = (_tried(operator, tuple(closed(t, s) for t in types), attrs, operands) for s in sizes)
    except TypeFault:
        return UNKNOWN  # it may fit for the actual sizes
    return merged(a, b, sizes)


def cost_of(node: Node) -> float:
    """FLOPs of a call: those of its expansion, with open dimensions as 1."""
    operator = declared(node.op.name)
    types = tuple(o.type for o in node.operands)
    if operator is None or operator.build is None or not _are_shallow(types) or not all(map(_tensors, types)):
        return 0.0
    key = (operator.name, types, repr(node.attrs) if node.attrs else "", "cost")
    found = _costs.get(key)
    if found is None:
        graph = Graph("probe")
        t = Relay(Builder(graph))
        sizes = dict.fromkeys(open_dimensions(types), 1)
        values = [_operand(t, closed(o.type, sizes), o) for o in node.operands]
        try:
            built(operator, t, node.attrs, values)
        except TypeFault:
            return 0.0
        found = _costs[key] = sum(flops_of(made) for made in graph.nodes)
    return found


def flops_of(node: Node) -> float:
    """FLOPs of a primitive; of a loop those of all its trips, where their number is known, else of one."""
    if node.op is hlo.while_:
        body = node.bodies[1]
        return int(body.notes.get("trips", 1)) * sum(flops_of(inner) for inner in body.nodes)
    if node.op.cost is not None:
        return float(node.op.cost(node))
    if node.op.kind is Kind.ELEMENTWISE and isinstance(node.type, TensorType):
        return float(node.type.elements)
    if node.op.kind is Kind.REDUCTION and isinstance(node.operands[0].type, TensorType):
        return float(node.operands[0].type.elements)
    return 0.0


def _are_shallow(types: Iterable[Type]) -> bool:
    """Whether tuples in these types have at most :data:`MAX_LEVELS` levels."""
    return not any(isinstance(type, TupleType) and type.depth > MAX_LEVELS for type in types)


def _tensors(type: Type) -> bool:
    return all(isinstance(leaf, TensorType) for leaf in type.leaves())


def open_dimensions(types: Iterable[Type]) -> list[Dim]:
    """The open dimensions of all tensors in the types, with repeats."""
    return [d for t in types for leaf in t.leaves() if isinstance(leaf, TensorType) for d in leaf.shape if not isinstance(d, int)]


def trial_sizes(opened: Sequence[Dim], base: int) -> dict[Dim, int]:
    """Another multiple for each name; every ``?`` may be the same."""
    return {d: base * (i + 1) for i, d in enumerate(dict.fromkeys(opened))}


def closed(type: Type, sizes: Mapping[Dim, int]) -> Type:
    """The type with sizes for its open dimensions."""
    if isinstance(type, TupleType):
        return TupleType(tuple(closed(e, sizes) for e in type.elements))
    assert isinstance(type, TensorType)
    return TensorType(type.dtype, tuple(sizes.get(d, d) for d in type.shape))


def _tried(operator: RelayOperator, types: tuple[Type, ...], attrs: Mapping[str, object], operands: Sequence[Node]) -> Type:
    """The type of the expansion, built into a scratch graph."""
    builder = Builder(Graph("probe"))
    t = Relay(builder)
    values = [_operand(t, type, node) for type, node in zip(types, operands, strict=True)]
    return type_of(built(operator, t, attrs, values))


def built(operator: RelayOperator, t: Relay, attrs: Mapping[str, object], values: Sequence[object]) -> object:
    """The expansion of a call. Raises TypeFault, which names the operator, for operands and attributes that do not fit."""
    assert operator.build is not None
    try:
        return operator.build(t, operator.checked([type_of(v) for v in values], attrs), *values)
    except TypeFault as fault:
        raise _named(operator.name, fault) from None


def _named(name: str, fault: TypeFault) -> TypeFault:
    """The fault with the name of the operator."""
    return fault if name in fault.message else TypeFault(f"{name}: {fault.message}", fault.help)


def _operand(t: Relay, type: Type, node: Node) -> object:
    if isinstance(type, TupleType):
        return [_operand(t, e, node) for e in type.elements]
    if node.op.name == "constant" and not node.attrs["literal"].elided and isinstance(type, TensorType) and type.rank < 2:
        return t.builder.add(get("constant"), (), {"literal": node.attrs["literal"]}, type)
    return t.builder.add(get("parameter"), (), {"number": 0}, type)


def type_of(value: Any, level: int = 0) -> Type:
    """The type of a node, or of a list of values. Raises TypeFault for lists of more than :data:`MAX_LEVELS` levels."""
    if isinstance(value, Node):
        return value.type
    if level == MAX_LEVELS:
        raise TypeFault(TOO_DEEP)
    return TupleType(tuple(type_of(v, level + 1) for v in value))


def merged(a: Type, b: Type, sizes: Sequence[Mapping[Dim, int]]) -> Type:
    """The dimensions on which two trials agree; an open dimension that is passed through keeps its name."""
    if isinstance(a, TupleType) and isinstance(b, TupleType):
        if len(a.elements) != len(b.elements):
            return UNKNOWN
        return TupleType(tuple(merged(x, y, sizes) for x, y in zip(a.elements, b.elements, strict=True)))
    if not (isinstance(a, TensorType) and isinstance(b, TensorType)) or a.rank != b.rank:
        return UNKNOWN
    dims: list[Dim] = []
    for m, n in zip(a.shape, b.shape, strict=True):
        if m == n:
            dims.append(m)
            continue
        same = [d for d in sizes[0] if sizes[0][d] == m and sizes[1][d] == n]
        dims.append(same[0] if same else DynamicDim())
    return TensorType(a.dtype, tuple(dims))
