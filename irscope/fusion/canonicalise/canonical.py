"""A module as XLA would rewrite it before fusion, and the mapping between its nodes and those of the text."""
from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass, field

from irscope.fusion.canonicalise.computation import HloComputation, HloInstruction
from irscope.fusion.canonicalise.pipeline import run_cpu
from irscope.graph import Graph, Module, Node
from irscope.graph.trace import Trace
from irscope.ops import hlo

Rewrite = Callable[[HloComputation, Container[Node]], None]
"""Rewrites a computation and everything that it calls; the second argument holds the calls that must stay."""


@dataclass(slots=True, eq=False)
class Canonical:
    """The rewritten module; ``trace`` maps each node of the text to the node that replaced it."""

    module: Module
    trace: Trace = field(default_factory=Trace)
    nodes: dict[HloInstruction, Node] = field(default_factory=dict, repr=False)


def is_kept_call(module: Module, node: Node) -> bool:
    """Whether a node is a call that the text forbids to inline, or that runs on a stream of its own (call_inliner.cc)."""
    if node.op is not hlo.call:
        return False
    attributes = str(module.raw(node).get("frontend_attributes", ""))
    return 'inlineable="false"' in attributes or "_xla_stream_annotation" in attributes


def canonicalise(module: Module, rewrite: Rewrite = run_cpu) -> Canonical:
    """The module as XLA's CPU compiler would rewrite it, or as ``rewrite`` does (:mod:`irscope.fusion.canonicalise.pipeline`)."""
    made = module.derived()
    result = Canonical(made)
    rewriter = HloComputation.of(module.main())
    kept = {node for graph in module.graphs.values() for node in graph.nodes if is_kept_call(module, node)}
    rewrite(rewriter, kept)
    taken = {node.name: 0 for graph in module.graphs.values() for node in graph.nodes}
    graphs: dict[HloComputation, Graph] = {}
    for inner in rewriter.computations():
        graph = graphs[inner] = _graph_of(inner, graphs, result, taken)
        graph.name = made.fresh_name(graph.name)
        made.graphs[graph.name] = graph
    made.entry = graphs[rewriter].name
    for inner in rewriter.computations():
        for node, instr in inner.of_node.items():
            final = instr.final()
            if node not in result.trace.became and final in result.nodes:
                result.trace.became[node] = result.nodes[final]
    return result


def _graph_of(rewriter: HloComputation, graphs: dict[HloComputation, Graph], result: Canonical, taken: dict[str, int]) -> Graph:
    """A computation as a graph. Instructions of the text keep their names; others get names that no node of the text has (``taken``)."""
    graph = Graph(rewriter.name, loc=rewriter.loc)
    here = result.nodes
    own: set[str] = set()
    for instr in [*rewriter.params, *rewriter.post_order()]:
        if instr in here:
            continue
        bodies = tuple(graphs[b] for b in instr.calls) if instr.calls else instr.bodies
        name = instr.label if instr.label and instr.label not in own else _fresh(instr.name, taken)
        own.add(name)
        node = Node(instr.op, name, instr.type, tuple(here[o] for o in instr.operands), instr.attrs, bodies,
                    instr.origin[0].loc if instr.origin else -1, origin=instr.origin)
        here[instr] = graph.add(node)
    graph.params = [here[p] for p in rewriter.params]
    graph.root = here[rewriter.root]
    return graph


def _fresh(wanted: str, taken: dict[str, int]) -> str:
    """A name that is not taken yet; marks it as taken."""
    name = wanted
    while name in taken:
        taken[wanted] = taken.get(wanted, 0) + 1
        name = f"{wanted}.{taken[wanted]}"
    taken[name] = 0
    return name
