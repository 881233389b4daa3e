"""What can be said of a module whose text was cut off: its complete computations, each with what it calls as a module of its own."""
from __future__ import annotations

from collections.abc import Collection

from irscope.graph import Graph, Module, bodies_of, callees_first


def parts(module: Module, without: Collection[str] = ()) -> list[Module]:
    """The complete computations of a cut module that no other complete one calls, each as the entry of a module.

    Computations named in ``without``, and those that call them, are left out.

        %f {...}  %g {... calls=f}  %h {... cut off    ->    one module: the entry g, and f
    """
    if module.cut is None:
        return []
    good: list[Graph] = []
    known: set[str] = set()
    for graph in callees_first(module):
        inside = "inline" in graph.notes or graph.name in module.cut.complete
        if inside and graph.name not in without and graph.root is not None and all(body.name in known for body in bodies_of(graph)):
            good.append(graph)
            known.add(graph.name)
    called = {body.name for graph in good for body in bodies_of(graph)}
    return [part(module, graph) for graph in good if graph.name not in called]


def part(module: Module, graph: Graph) -> Module:
    """A computation and what it calls as a module. The module's own attributes are about its entry, and left out."""
    made = module.derived()
    made.entry, made.attrs = graph.name, {}
    made.graphs = {each.name: each for each in callees_first(module, graph)}
    return made
