"""Type errors in an ONNX model: operands that an operator does not accept, and stated types that are not the inferred ones."""
from __future__ import annotations

from collections.abc import Iterator

from irscope.analysis.verify.faults import GraphFault
from irscope.graph import UNKNOWN, Graph, Module, Node, TensorType, Type
from irscope.ops import TypeFault
from irscope.ops.shapes import fits


def faults(module: Module) -> Iterator[tuple[Graph, GraphFault]]:
    """All faults, with their graphs. Nodes that read values of unknown or open types are not checked."""
    for graph in module.graphs.values():
        for node in graph.nodes:
            if not node.op.is_primitive and node.op.infer is not None and all(_closed(o.type) for o in node.operands):
                yield from ((graph, fault) for fault in _node(node))


def _node(node: Node) -> Iterator[GraphFault]:
    assert node.op.infer is not None
    try:
        inferred = node.op.infer(node)
    except TypeFault as fault:
        yield GraphFault(node, fault.message, fault.help, about="type")
        return
    if _closed(inferred) and _closed(node.type) and not fits(node.type, inferred):
        yield GraphFault(node, f"%{node.name} is declared {node.type}, but {node.op.name} gives {inferred}", about="shape")


def _closed(type: Type) -> bool:
    """Whether a type is known in full; one that stands for nothing is."""
    return type is not UNKNOWN and all(not isinstance(leaf, TensorType) or leaf.is_static for leaf in type.leaves())
