"""Computations run on the thread of their caller, except those that an async-start calls."""
from __future__ import annotations

from collections.abc import Iterator

from irscope.analysis.verify.faults import GraphFault
from irscope.graph import Graph, Module
from irscope.ops import hlo
from irscope.ops.attributes import Transfer

MAIN = "main"


def check(module: Module) -> Iterator[tuple[Graph, GraphFault]]:
    """Calls to another ``execution_thread`` other than by async-start."""
    if not any("execution_thread" in g.notes for g in module.graphs.values()):
        return
    # The computation that the text omits around the operation of an asynchronous start is on the thread of the start.
    handed = {id(n.bodies[0]): Transfer.of(n).async_execution_thread or MAIN for g in module.graphs.values() for n in g.nodes
              if n.op is hlo.async_start and n.bodies and n.bodies[0].notes.get("implicit")}
    for graph in module.graphs.values():
        for node in graph.nodes:
            for called in node.bodies:
                mine, theirs = handed.get(id(graph), thread(graph)), handed.get(id(called), thread(called))
                if node.op is hlo.async_start:
                    mine = Transfer.of(node).async_execution_thread or mine
                if mine != theirs:
                    yield graph, GraphFault(node, f"{node.op.name} on the thread {mine} calls {called.name}, which runs on the thread "
                                                  f"{theirs}",
                                       "called computations run on the thread of their caller")


def thread(graph: Graph) -> str:
    """The execution thread of a computation."""
    return str(graph.notes.get("execution_thread", MAIN))
