"""A graph in the order in which TVM's FuseOps visits it: depth first from the result, with the kind of every node and edge."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from irscope.fusion.tvm_kinds import TvmKind, tvm_kind
from irscope.graph import Graph, NamedType, Node, TensorType, TupleType, Type, reachable
from irscope.graph.walk import LASTING, post_order
from irscope.ops import hlo
from irscope.ops.sets import hlo as hlo_set
from irscope.ops.sets import relay

SIMPLE_CONSTANTS = frozenset(("s32", "s64", "f32", "f64", "pred"))
"""Element types whose scalars are inlined into the kernel as immediates."""

NEEDED = relay("fn if match ref ref_read ref_write constructor field")
"""Nodes that need their operands as values: nothing fuses into them."""

CALLS = hlo_set("call") | relay("call")
"""Nodes whose first operand is a function."""

DYNAMIC = relay("dyn.broadcast_to dyn.expand_dims dyn.full dyn.image.resize2d dyn.nn.pad dyn.nn.upsampling dyn.nn.upsampling3d dyn.one_hot "
                "dyn.ones dyn.reshape dyn.squeeze dyn.strided_slice dyn.tile dyn.zeros")
"""Operators whose result shape is computed at run time."""


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """The nodes in visiting order; everything else is indexed by position in it.

    ``outputs`` are the consumers with the kind of each edge; ``extern`` says whether something outside of fusion uses the value;
    ``place`` maps a node's index in the graph to its position (-1: the result does not depend on it).
    """

    graph: Graph
    nodes: list[Node]
    kinds: list[TvmKind]
    outputs: list[list[tuple[int, TvmKind]]]
    extern: list[bool]
    place: list[int]

    def of(self, node: Node) -> int:
        """The position of a node."""
        return self.place[node.index]


def walk(graph: Graph) -> Walk:
    """Visit a graph in TVM's order."""
    nodes = depth_first(graph)
    place = [-1] * len(graph.nodes)
    for at, node in enumerate(nodes):
        place[node.index] = at
    kinds = [_kind(node) for node in nodes]
    extern = [node.op is hlo.parameter for node in nodes]
    outputs: list[list[tuple[int, TvmKind]]] = [[] for _ in nodes]
    for at, node in enumerate(nodes):
        for operand, kind in _edges(node, kinds[at]):
            source = place[operand.index]
            if kind is None:
                extern[source] = True
            else:
                outputs[source].append((at, kind))
    needed = graph.notes.get("lets", ())
    for node in needed if graph.root is None else (*needed, graph.root):
        if place[node.index] >= 0:
            extern[place[node.index]] = True
    return Walk(graph, nodes, kinds, outputs, extern, place)


def depth_first(graph: Graph) -> list[Node]:
    """Operands before users, depth first from the result; parameters first, and unused nodes with side effects before the result."""
    if graph.root is None:
        return list(graph.params)
    read = reachable(graph, [graph.root])
    acting = [n for n in graph.nodes if n.op.effect in LASTING and not read[n.index]]
    return post_order((*graph.params, *acting, graph.root), lambda node: node.operands)


def _kind(node: Node) -> TvmKind:
    op = node.op
    if op is hlo.constant:
        type = node.type
        simple = isinstance(type, TensorType) and not type.shape and type.dtype.name in SIMPLE_CONSTANTS
        return TvmKind.ELEMWISE if simple else TvmKind.OPAQUE
    if op is hlo.tuple:
        return TvmKind.TUPLE
    if op is hlo.get_tuple_element:
        return TvmKind.INJECTIVE if _all_tensors(node.operands[0]) else TvmKind.OPAQUE
    return TvmKind.OPAQUE if op in DYNAMIC and _is_dynamic(node.type) else tvm_kind(op)


def _edges(node: Node, kind: TvmKind) -> Iterable[tuple[Node, TvmKind | None]]:
    """The operands with the kind of each edge; None: the value is used outside of fusion."""
    op = node.op
    if op in NEEDED:
        return [(operand, None) for operand in node.operands]
    if op is hlo.tuple:
        return [(o, TvmKind.INJECTIVE if not isinstance(o.type, TupleType | NamedType) else None) for o in node.operands]
    if op is hlo.get_tuple_element:
        return [(node.operands[0], TvmKind.INJECTIVE if kind is TvmKind.INJECTIVE else None)]
    if op in CALLS and node.operands:
        return [(node.operands[0], None), *((o, TvmKind.OPAQUE) for o in node.operands[1:])]
    if kind is TvmKind.BROADCAST:
        return [(o, _edge_of_broadcast(node.type, o.type)) for o in node.operands]
    return [(o, kind) for o in node.operands]


def _edge_of_broadcast(result: Type, operand: Type) -> TvmKind:
    """The kind of an operand's edge to a broadcast: elementwise if the broadcast leaves that operand's shape as it is."""
    same = isinstance(result, TensorType) and isinstance(operand, TensorType) and result.shape == operand.shape
    return TvmKind.ELEMWISE if same else TvmKind.BROADCAST


def _all_tensors(node: Node) -> bool:
    return not isinstance(node.type, TupleType) or not any(isinstance(e, TupleType) for e in node.type.elements)


def _is_dynamic(type: Type) -> bool:
    return isinstance(type, TensorType) and not type.is_static
