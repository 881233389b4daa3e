"""Extracts some nodes of a graph into a separate module, which can be read, type-checked and run."""
from __future__ import annotations

from collections.abc import Collection

from irscope.graph import Graph, Module, Node
from irscope.graph.builder import Builder
from irscope.graph.walk import callees_first_of
from irscope.ops import hlo


def excerpt(module: Module, graph: Graph, picked: Collection[Node]) -> Module:
    """A module that computes the picked nodes of one graph of primitives.

    Their operands outside become parameters, in the order of their first use; constants are copied. The results are the picked values
    that nothing else among the picked nodes uses, and those that the rest of the graph needs.
    """
    nodes = [node for node in graph.nodes if node in picked]
    # A tuple that also gathers what was not picked, such as the results of the whole module, is not part of the excerpt.
    nodes = [node for node in nodes if node.op is not hlo.tuple or all(operand in picked for operand in node.operands)] or nodes
    made = Graph(graph.name)
    builder = Builder(made)
    became: dict[Node, Node] = {}
    for node in nodes:
        for operand in (*node.operands, *((node,) if node.op is hlo.parameter else ())):
            if operand not in became:
                builder.at = (operand,)
                is_constant = operand.op is hlo.constant
                became[operand] = builder.copy(operand, ()) if is_constant else builder.param(hlo.parameter, operand.type, operand.name)
        if node not in became:
            builder.at = (node,)
            became[node] = builder.copy(node, [became[operand] for operand in node.operands])
    results = [became[node] for node in _results(graph, nodes)]
    made.root = results[0] if len(results) == 1 else builder.add(hlo.tuple, results)
    found = Module(module.name, module.dialect, entry=made.name, source=module.source, provenance=module.provenance)
    found.graphs = {needed.name: needed for needed in callees_first_of([made])}
    return found


def _results(graph: Graph, nodes: list[Node]) -> list[Node]:
    inside = set(nodes)
    users = graph.users()
    found = [node for node in nodes if node is graph.root or not users[node.index] or any(user not in inside for user in users[node.index])]
    return [node for node in found if node.op is not hlo.parameter] or found[-1:]
