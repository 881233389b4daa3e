"""Structural invariants of a graph, on which every traversal relies and which a plug-in pass may break."""
from __future__ import annotations

from irscope.graph import Graph, Module, callees_first


def unsound(module: object) -> str | None:
    """The fault in a pass's result, as text; None if it is a module with valid graphs."""
    if not isinstance(module, Module):
        return f"it gives {type(module).__name__}, not a module"
    if module.entry not in module.graphs:
        return f"the module has no graph {module.entry!r}, which is its entry"
    return next((fault for graph in callees_first(module) if (fault := _fault(graph)) is not None), None)


def _fault(graph: Graph) -> str | None:
    nodes = graph.nodes
    for index, node in enumerate(nodes):
        if node.index != index:
            return f"%{node.name} stands at place {index} of {graph.name} and has the index {node.index}: Graph.add numbers nodes"
        for operand in node.operands:
            at = operand.index
            if at >= index or at < 0 or nodes[at] is not operand:
                return (f"%{node.name} takes %{operand.name}, which does not stand before it in {graph.name}: "
                        "operands are the new graph's, as a mutator's methods get them, or self.new(old)")
    for node in (*graph.params, *([graph.root] if graph.root is not None else [])):
        if not 0 <= node.index < len(nodes) or nodes[node.index] is not node:
            return f"%{node.name}, {'the result' if node is graph.root else 'a parameter'} of {graph.name}, is not among its nodes"
    return None
