"""A module as XLA would have rewritten it before fusing, and the way between its nodes and those of the text."""
from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass, field

from irscope.fusion.canonicalise.pipeline import run_cpu
from irscope.fusion.canonicalise.terms import Body, Term
from irscope.graph import Graph, Module, Node
from irscope.graph.trace import Trace
from irscope.ops import hlo

Rewrite = Callable[[Body, Container[Node]], None]
"""What rewrites a body and all that it runs; the second argument holds the calls that stay."""


@dataclass(slots=True, eq=False)
class Canonical:
    """The rewritten module; ``trace`` says for each node of the text what stands for it."""

    module: Module
    trace: Trace = field(default_factory=Trace)
    nodes: dict[Term, Node] = field(default_factory=dict, repr=False)


def is_kept_call(module: Module, node: Node) -> bool:
    """Whether a node is a call that the text forbids to write out."""
    return node.op is hlo.call and 'inlineable="false"' in str(module.raw(node).get("frontend_attributes", ""))


def canonicalise(module: Module, rewrite: Rewrite = run_cpu) -> Canonical:
    """The module as XLA's CPU compiler would have rewritten it, or as ``rewrite`` does (:mod:`irscope.fusion.canonicalise.pipeline`)."""
    made = module.derived()
    result = Canonical(made)
    body = Body.of(module.main())
    kept = {node for graph in module.graphs.values() for node in graph.nodes if is_kept_call(module, node)}
    rewrite(body, kept)
    taken = {node.name: 0 for graph in module.graphs.values() for node in graph.nodes}
    graphs: dict[Body, Graph] = {}
    for inner in body.computations():
        graph = graphs[inner] = _graph_of(inner, graphs, result, taken)
        graph.name = made.fresh_name(graph.name)
        made.graphs[graph.name] = graph
    made.entry = graphs[body].name
    for inner in body.computations():
        for node, term in inner.of_node.items():
            final = term.final()
            if node not in result.trace.became and final in result.nodes:
                result.trace.became[node] = result.nodes[final]
    return result


def _graph_of(body: Body, graphs: dict[Body, Graph], result: Canonical, taken: dict[str, int]) -> Graph:
    """A body as a graph. Terms of the text keep their names; others get one that no node of the text has (``taken``)."""
    graph = Graph(body.name, loc=body.loc)
    here = result.nodes
    own: set[str] = set()
    for term in [*body.params, *body.post_order()]:
        if term in here:
            continue
        bodies = tuple(graphs[b] for b in term.calls) if term.calls else term.bodies
        name = term.label if term.label and term.label not in own else _fresh(term.name, taken)
        own.add(name)
        node = Node(term.op, name, term.type, tuple(here[o] for o in term.operands), term.attrs, bodies,
                    term.origin[0].loc if term.origin else -1, origin=term.origin)
        here[term] = graph.add(node)
    graph.params = [here[p] for p in body.params]
    graph.root = here[body.root]
    return graph


def _fresh(wanted: str, taken: dict[str, int]) -> str:
    """A name that is not taken yet."""
    name = wanted
    while name in taken:
        taken[wanted] = taken.get(wanted, 0) + 1
        name = f"{wanted}.{taken[wanted]}"
    taken[name] = 0
    return name
