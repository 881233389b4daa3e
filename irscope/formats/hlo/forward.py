"""Computations that a text defines after their callers, or not at all.

Compilers print callees first, and XLA's parser wants them so; tests and texts edited by hand have them in any order. A caller gets an empty
graph, which the definition fills. What is never defined stays empty.
"""
from __future__ import annotations

from collections.abc import Iterator

from irscope.formats.hlo.assembly import Assembly, Awaited
from irscope.formats.hlo.faults import MISSING_COMPUTATION, Span
from irscope.graph import Graph, Node, callees_first
from irscope.source import did_you_mean
from irscope.source.budget import tick


def awaited(assembly: Assembly, name: str, at: int, length: int) -> Graph:
    """The graph of a computation that the text has not defined before this place."""
    known = assembly.awaited.get(name)
    if known is None:
        known = assembly.awaited[name] = Awaited(_missing(name), Span(at, length, graph=assembly.scope.graph.name))
    return known.graph


def finish_awaited(assembly: Assembly) -> None:
    """Report the computations that are not defined, and put the others before their callers."""
    module = assembly.module
    for name, (graph, span) in assembly.awaited.items():
        if graph.notes.get("missing"):
            near = did_you_mean(name, module.graphs)
            assembly.faults.add(MISSING_COMPUTATION, f"there is no computation {name} in the text", span, near)
    if any(not graph.notes.get("missing") for graph, _ in assembly.awaited.values()):
        _end_recursion(assembly)
        module.graphs = {graph.name: graph for graph in callees_first(module) if module.graphs.get(graph.name) is graph}


def _missing(name: str) -> Graph:
    return Graph(name, notes={"missing": True})


def _end_recursion(assembly: Assembly) -> None:
    """Make each call that closes a cycle one of a missing computation, with a finding: HLO has no recursion."""
    done: set[Graph] = set()
    for start in assembly.module.graphs.values():
        path = {start}
        stack = [(start, _calls(start))] if start not in done else []
        while stack:
            graph, calls = stack[-1]
            for node, body in calls:
                tick()
                if body in path:
                    node.bodies = tuple(_missing(each.name) if each is body else each for each in node.bodies)
                    message = f"%{node.name} calls {body.name}, which calls {graph.name}: HLO has no recursion"
                    assembly.faults.add(MISSING_COMPUTATION, message, Span(node.loc, len(node.name), node.name, graph.name))
                elif body not in done:
                    path.add(body)
                    stack.append((body, _calls(body)))
                    break
            else:
                stack.pop()
                path.discard(graph)
                done.add(graph)


def _calls(graph: Graph) -> Iterator[tuple[Node, Graph]]:
    return ((node, body) for node in graph.nodes for body in node.bodies)
