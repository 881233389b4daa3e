"""The table of ONNX's operators, and their types and costs, which follow from their expansions.

An open dimension (``?``, a name) is tried with two sizes: result dimensions that agree are known, the others stay open.
"""
from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from irscope.formats.onnx.algebra import Onnx
from irscope.formats.onnx.attributes import Ref
from irscope.formats.onnx.declarations import Operator
from irscope.formats.onnx.types import ABSENT
from irscope.formats.relay.inference import TRIED, closed, flops_of, merged, open_dimensions, trial_sizes
from irscope.graph import UNKNOWN, Builder, Graph, Module, Node, TensorType, TupleType, Type
from irscope.ops import hlo
from irscope.ops.attributes import Constant
from irscope.ops.faults import TypeFault
from irscope.source.errors import UserError

NEWEST = 99
"""The version of operators where a graph states none."""
MAX_ELEMENTS = 1 << 28
"""Operators on more elements than this are not expanded to find a type: a constant of that size could come of it."""

table: dict[str, Operator] = {}


def enter(made: Operator) -> None:
    """Put an operator into the table. Raises ValueError where its name is taken."""
    if made.name in table:
        raise ValueError(f"the ONNX operator {made.name} is declared twice")
    table[made.name] = made


def declared(name: str) -> Operator | None:
    """The declaration of an operator, or None."""
    import_module("irscope.formats.onnx.operators").load()
    return table.get(name)


def infer_node(node: Node) -> Type:
    """The type of a node; the one it has where it does not follow from types alone. Raises TypeFault where the operands do not fit."""
    operator = declared(node.op.name)
    if operator is None or operator.build is None or any(isinstance(v, Ref) for v in node.attrs.values()):
        return node.type
    opened = open_dimensions(o.type for o in node.operands)
    if not all(isinstance(o.type, TensorType) or o.type is ABSENT for o in node.operands):
        return node.type
    try:
        if not opened:
            return _tried(operator, node, {})
        sizes = [trial_sizes(opened, base) for base in TRIED]
        a, b = (_tried(operator, node, size) for size in sizes)
    except UserError:
        return node.type
    except TypeFault as fault:
        if opened or "depends on data" in fault.message:
            return node.type
        raise
    return merged(a, b, sizes)


def _tried(operator: Operator, node: Node, sizes: Any) -> Type:
    made = _expanded(operator, node, sizes)[1]
    if not isinstance(node.type, TupleType):
        return made[0].type if made and isinstance(made[0], Node) else node.type
    wanted = node.type.elements
    if len(made) < len(wanted) or not all(isinstance(m, Node) for m in made):
        return node.type
    return TupleType(tuple(old if old is ABSENT else new.type for old, new in zip(wanted, made, strict=False)))


def _expanded(operator: Operator, node: Node, sizes: Any) -> tuple[Graph, list[Any]]:
    """The expansion of a node in a graph of its own."""
    graph = Graph("probe")
    t = Onnx(Builder(graph))
    values = [None if o.type is ABSENT else _operand(t, closed(o.type, sizes), o) for o in node.operands]
    results = len(node.type.elements) if isinstance(node.type, TupleType) else 1
    return graph, built(operator, t, node.attrs, values, (int(node.attrs.get("opset", NEWEST)), results))


def built(operator: Operator, t: Onnx, attrs: Any, values: Sequence[Any], form: tuple[int, int]) -> list[Any]:
    """The results of an operator; ``form`` is the version and the number of results. Raises TypeFault where the operands do not fit."""
    assert operator.build is not None
    try:
        made = operator.build(t, operator.bound(attrs, *form), *operator.arranged(values))
    except TypeFault as fault:
        raise TypeFault(fault.message if operator.name in fault.message else f"{operator.name}: {fault.message}", fault.help) from None
    return list(made) if isinstance(made, tuple) else [made]


def _operand(t: Onnx, type: Type, node: Node) -> Node:
    if isinstance(type, TensorType) and type.elements > MAX_ELEMENTS:
        raise UserError("too large to expand")
    if node.op is hlo.constant and isinstance(type, TensorType) and type.rank < 2:
        return t.builder.add(hlo.constant, (), {"literal": Constant.of(node).literal}, type)
    return t.builder.add(hlo.parameter, (), {"number": 0}, type)


def cost_of(node: Node) -> float:
    """FLOPs of a node: those of its expansion, with open dimensions as 1; an element each for what the standard defines by a function."""
    operator = declared(node.op.name)
    elements = float(sum(leaf.elements for leaf in node.type.leaves() if isinstance(leaf, TensorType)))
    if operator is None or operator.build is None or any(isinstance(v, Ref) for v in node.attrs.values()):
        return elements
    sizes = dict.fromkeys(open_dimensions(o.type for o in node.operands), 1)
    if not all(isinstance(o.type, TensorType) or o.type is ABSENT for o in node.operands):
        return elements
    try:
        graph, _ = _expanded(operator, node, sizes)
    except (TypeFault, UserError):
        return elements
    return sum(flops_of(made) for made in graph.nodes)


def fill_types(module: Module) -> None:
    """Infer the types that neither the model states nor ONNX's shape inference finds, in place; and those that it gets wrong."""
    for graph in module.graphs.values():
        corrected: set[Node] = set()
        for node in graph.nodes:
            again = not corrected.isdisjoint(node.operands)
            before = node.type
            if node.op is hlo.get_tuple_element and (node.type is UNKNOWN or again):
                whole = node.operands[0].type
                if isinstance(whole, TupleType):
                    node.type = whole.elements[node.attrs["index"]]
            elif not node.op.is_primitive and node.op.infer is not None and (again or _open(node.type) or _is_miscounted(node)):
                try:
                    node.type = node.op.infer(node)
                except TypeFault:
                    continue
            if node.type != before and not _open(before):
                corrected.add(node)


def _is_miscounted(node: Node) -> bool:
    """Whether ONNX's shape inference may find too many windows: with ``ceil_mode`` it counts those that begin in the padding at the end,
    which ONNX's reference and runtimes leave out. Models that were saved with its types state them.
    """
    return bool(node.attrs.get("ceil_mode"))


def _open(type: Type) -> bool:
    return type is UNKNOWN or (isinstance(type, TupleType) and UNKNOWN in type.elements)
