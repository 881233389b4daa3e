"""Layouts that must agree because no data moves: parts of tuples, asynchronous copies, elementwise operators, bitcasts.

Only layouts in the text are compared, and only where layouts were assigned: before that, XLA prints defaults, and the results of
transposes on them, which are not binding.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from irscope.analysis.verify.faults import GraphFault
from irscope.graph import Graph, Module, Node, TensorType, TupleType, Type
from irscope.ops import hlo
from irscope.ops.attributes import GetTupleElement, Scan
from irscope.ops.infer import plain
from irscope.ops.module_attributes import HloModule

HOST = 5
"""The memory space of the host in XLA's layouts."""

KEEPING = hlo.named(
    "abs add and atan2 ceil clamp count-leading-zeros compare complex concatenate convert cosine divide dynamic-slice dynamic-update-slice "
    "exponential exponential-minus-one floor imag is-finite log log-plus-one logistic map maximum minimum multiply negate not or pad power "
    "real reduce-precision reduce-window remainder reverse round-nearest-afz round-nearest-even rsqrt select shift-left "
    "shift-right-arithmetic shift-right-logical sign sine slice sort sqrt cbrt stochastic-convert subtract tan tanh erf popcnt xor "
    "set-dimension-size")
"""Operators that keep every element in place in the order of dimensions."""


def assigned(module: Module) -> bool:
    """Whether layouts were assigned: the module is scheduled, is fused, moves memory, or has parameters in the caller's layout."""
    if HloModule.of(module).is_scheduled:
        return True
    entry = module.graphs.get(module.entry)
    if entry is not None and any(chosen(p.type) for p in entry.params):
        return True
    return any(n.op in _LATE for g in module.graphs.values() for n in g.nodes)


_COMPILED = hlo.named("fusion copy-start async-start")
_LATE = _COMPILED | {hlo.bitcast}


def chosen(t: Type) -> bool:
    """Whether an array has a non-default layout: another order, tiles, another memory space."""
    if not isinstance(t, TensorType) or t.layout is None:
        return False
    return bool(t.layout.rest) or t.layout.minor_to_major != tuple(reversed(range(t.rank)))


def check(module: Module) -> Iterator[tuple[Graph, GraphFault]]:
    """Layouts that change where nothing moves elements."""
    if not assigned(module):
        return
    early = _is_early(module)
    for graph in module.graphs.values():
        for node in graph.nodes:
            if node.op in KEEPING:
                fault = _kept(node)
            elif node.op in _HANDED:
                fault = _handed(node)
            elif node.op is hlo.bitcast:
                fault = _early_bitcast(node) if early else _bitcast(node)
            elif node.op is hlo.copy:
                fault = _copy(node)
            elif node.op is hlo.scan and HloModule.of(module).is_scheduled:
                fault = _scan(node)
            else:
                continue
            if fault is not None:
                yield graph, fault


def order(t: Type) -> tuple[int, ...] | None:
    """The order of dimensions in memory, or None where the text does not state it."""
    return t.layout.minor_to_major if isinstance(t, TensorType) and t.layout is not None and t.rank > 1 else None


def differ(a: Type, b: Type) -> bool:
    """Whether two types write different orders somewhere."""
    stack = [(a, b)]
    while stack:
        x, y = stack.pop()
        if isinstance(x, TupleType) and isinstance(y, TupleType) and len(x.elements) == len(y.elements):
            stack.extend(zip(x.elements, y.elements, strict=True))
            continue
        mine, theirs = order(x), order(y)
        if mine is not None and theirs is not None and len(mine) == len(theirs) and mine != theirs:
            return True
    return False


def _kept(node: Node) -> GraphFault | None:
    for operand in node.operands:
        for t in node.type.leaves():
            if differ(operand.type, t):
                return GraphFault(node, f"{node.op.name} does not change layouts, but goes from {operand.type} to {t}",
                             "copy changes a layout", about="layout")
    return None


_HANDED = hlo.named("tuple get-tuple-element copy-start copy-done while call conditional opt-barrier fusion async-start async-done "
                    "async-update all-to-all")
_SAME = hlo.named("opt-barrier async-update")


def _handed(node: Node) -> GraphFault | None:
    """Check operators that pass memory on."""
    if node.op is hlo.all_to_all:
        for operand in node.operands[1:]:
            if differ(operand.type, node.operands[0].type):
                return GraphFault(node, f"all-to-all has operands with different layouts: {node.operands[0].type} and {operand.type}",
                             about="layout")
    for mine, theirs, whose in _meetings(node):
        if differ(mine, theirs):
            return GraphFault(node, f"{node.op.name} passes memory on unchanged, but its type {mine} differs from {theirs}, {whose}",
                         "copy changes a layout", about="layout")
    return None


def _meetings(node: Node) -> Iterator[tuple[Type, Type, str]]:
    """Pairs of types of the same memory: at this node and at another place."""
    op, operands = node.op, node.operands
    mine: Sequence[Type] = node.type.elements if isinstance(node.type, TupleType) else ()
    if op is hlo.tuple:
        for t, operand in zip(mine, operands):
            yield t, operand.type, f"%{operand.name}"
    elif op is hlo.get_tuple_element and operands and isinstance(operands[0].type, TupleType):
        parts, index = operands[0].type.elements, GetTupleElement.index.given(node)
        if index is not None and 0 <= index < len(parts):
            yield node.type, parts[index], f"element {index} of %{operands[0].name}"
    elif op is hlo.copy_done and operands and isinstance(operands[0].type, TupleType) and len(operands[0].type.elements) > 1:
        target, source = operands[0].type.elements[:2]
        yield node.type, target, f"element 0 of %{operands[0].name}"
        yield target, source, "the source of the copy"
    elif op is hlo.copy_start and len(mine) > 1 and operands:
        yield mine[1], operands[0].type, f"%{operands[0].name}"
    elif op in _SAME and operands:
        yield node.type, operands[0].type, f"%{operands[0].name}"
    elif op is hlo.async_start and len(mine) > 1 and isinstance(mine[0], TupleType):
        for t, operand in zip(mine[0].elements, operands):
            yield t, operand.type, f"%{operand.name}"
        if node.bodies and node.bodies[0].root is not None:
            for t, parameter in zip(mine[0].elements, node.bodies[0].params):
                yield t, parameter.type, f"parameter %{parameter.name} of {node.bodies[0].name}"
            yield mine[1], node.bodies[0].result().type, f"the result of {node.bodies[0].name}"
    elif op is hlo.async_done and operands and isinstance(operands[0].type, TupleType) and len(operands[0].type.elements) > 1:
        yield node.type, operands[0].type.elements[1], f"element 1 of %{operands[0].name}"
    else:
        results = node.bodies[1:] if op is hlo.while_ else node.bodies
        for graph in results:
            if graph.root is not None:
                yield node.type, graph.root.type, f"the result of {graph.name}"


def _is_early(module: Module) -> bool:
    """Whether bitcasts are the only sign of a compiler: nothing is scheduled or fused, and no array has a layout in the text."""
    nodes = [node for graph in module.graphs.values() for node in graph.nodes]
    return not HloModule.of(module).is_scheduled and not any(
        node.op in _COMPILED or (isinstance(node.type, TensorType) and node.type.layout is not None) for node in nodes)


def _early_bitcast(node: Node) -> GraphFault | None:
    """XLA's layout assignment rejects bitcasts; bitcast-convert is the operator that changes the element type."""
    source = node.operands[0].type if node.operands else None
    if not isinstance(source, TensorType) or not isinstance(node.type, TensorType) or source.dtype is node.type.dtype or not source.rank:
        return None  # a scalar never has a layout in the text
    return GraphFault(node, f"bitcast can not change the element type before layouts are assigned, but goes from {plain(source)} to "
                       f"{plain(node.type)}", "bitcast-convert reads the bits of elements as another type", about="dtype")


def _bitcast(node: Node) -> GraphFault | None:
    """Check that a bitcast stays in its memory space: reinterpretation moves no data."""
    if (found := _host_and_device(node)) is None:
        return None
    source, result, before, after = found
    return GraphFault(node, f"bitcast does not move memory, but goes from {source} to {result}: memory space {before} to {after}",
                 "copy moves between host and device", about="layout")


def _copy(node: Node) -> GraphFault | None:
    """Check that copies between host and device keep element type and layout."""
    if (found := _host_and_device(node)) is None or found[0].dtype is found[1].dtype:
        return None
    return GraphFault(node, f"a copy between host and device keeps the element type, but goes from {found[0]} to {found[1]}",
                 f"convert %{node.operands[0].name}, {plain(found[0])}, on one side", about="dtype")


def _host_and_device(node: Node) -> tuple[TensorType, TensorType, int, int] | None:
    """The types and memory spaces of operand and result, if one of the two is in the host's memory and the other is not; else None."""
    source, result = node.operands[0].type if node.operands else None, node.type
    if not isinstance(source, TensorType) or not isinstance(result, TensorType) or source.layout is None or result.layout is None:
        return None
    before, after = source.layout.memory_space, result.layout.memory_space
    return (source, result, before, after) if before != after and HOST in (before, after) else None


def _scan(node: Node) -> GraphFault | None:
    """XLA's ScanExpander expands all sequential scans to loops before layout assignment; its verifier rejects the rest."""
    if Scan.is_associative.given(node) is not False:
        return None
    return GraphFault(node, "a non-associative scan is left after layout assignment, where nothing expands it",
                 "XLA's ScanExpander turns it into a while before layout assignment")
