"""Putting nodes of a graph before others that will need them."""
from __future__ import annotations

from collections.abc import Mapping

from irscope.graph import Builder, Graph, Node, see_through
from irscope.graph.rewrite import copy_node


def in_order(graph: Graph, wanted: Mapping[int, Node]) -> Graph:
    """A copy of a graph in which ``wanted[index]`` stands before the node of that index; the order stays as far as it can.

    Nothing may depend on itself that way: the caller knows that what a node wants does not come from it.
    """
    made = Graph(graph.name, loc=graph.loc, notes=dict(graph.notes))
    builder = Builder(made)
    new: dict[Node, Node] = {}
    for start in graph.nodes:
        stack = [start]
        while stack:
            node = stack[-1]
            if node in new:
                stack.pop()
                continue
            first = wanted.get(node.index)
            waiting = [o for o in (*node.operands, *((first,) if first is not None else ())) if o not in new]
            if waiting:
                stack.extend(reversed(waiting))
                continue
            new[stack.pop()] = copy_node(builder, node, [new[o] for o in node.operands])
    made.params = [new[p] for p in graph.params]
    made.root = new[graph.root] if graph.root is not None else None
    return see_through(made, graph)
