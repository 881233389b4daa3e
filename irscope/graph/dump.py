"""irscope's own text of a graph: for debugging, tests and messages; every format has its own printer."""
from __future__ import annotations

from collections.abc import Iterator

from irscope.graph.module import Module
from irscope.graph.node import Graph, Node

MAX_ATTR_CHARACTERS = 200


def dump(thing: Module | Graph) -> str:
    """A module or graph as text, a node a line.

        graph main(%x: f32[2]) -> %y
          %y = f32[2] negate(%x)
    """
    graphs = list(thing.graphs.values()) if isinstance(thing, Module) else [thing]
    return "\n".join(line for graph in graphs for line in _graph_lines(graph)) + "\n"


def dump_node(node: Node) -> str:
    """One node as text."""
    attrs = "".join(f", {key}={_short(value)}" for key, value in node.attrs.items())
    bodies = f" [{', '.join(b.name for b in node.bodies)}]" if node.bodies else ""
    return f"%{node.name} = {node.type} {node.op.name}({', '.join('%' + o.name for o in node.operands)}){attrs}{bodies}"


def _graph_lines(graph: Graph) -> Iterator[str]:
    params = ", ".join(f"%{p.name}: {p.type}" for p in graph.params)
    yield f"graph {graph.name}({params}) -> {'%' + graph.root.name if graph.root else '?'}"
    own = {p.index for p in graph.params}
    for node in graph.nodes:
        if node.index not in own:
            yield "  " + dump_node(node)


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= MAX_ATTR_CHARACTERS else text[:MAX_ATTR_CHARACTERS] + "..."
