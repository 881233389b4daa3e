"""The point of XLA's pipeline at which a text was printed, as far as it shows."""
from __future__ import annotations

from collections.abc import Iterable, Sequence

from irscope.graph import Graph, Module, Node, Op, TensorType, callees_first
from irscope.ops import hlo
from irscope.ops.attributes import Fusion
from irscope.ops.module_attributes import HloModule

REWRITTEN = hlo.named("logistic batch-norm-inference batch-norm-training batch-norm-grad opt-barrier dynamic-reshape call")
"""Operators that XLA's passes replace before they fuse."""


CONTROL = hlo.named("while conditional call async-start")
"""Operators that run the computations they call; all others apply them to elements, and XLA fuses nothing in there."""


def computations(module: Module) -> list[Graph]:
    """The computations that XLA's fusion passes visit, callees first; the entry is the last."""
    graphs = callees_first(module, module.main())
    applied = {id(body) for graph in graphs for node in graph.nodes if node.op not in CONTROL for body in node.bodies}
    return [graph for graph in graphs if id(graph) not in applied and graph.root is not None]


def names_of(nodes: Iterable[Node], ops: frozenset[Op]) -> list[str]:
    """The operators of these that some nodes have, by name, in order."""
    return sorted(op.name for op in {node.op for node in nodes} & ops)


HOW = "(XLA_FLAGS=--xla_dump_hlo_pass_re=.*)"


def remarks(module: Module, version: str, dump: str, kept: frozenset[Op] = frozenset()) -> list[str]:
    """Remarks on the verdicts on a module that was judged as written: it is fused already, or far from what the pass sees.

    ``kept`` are operators that this compiler does not replace before fusion.

    Each remark says how far the verdicts can be trusted; without a remark they are exact.
    """
    if not module.dialect.primitive:
        return [f"{version} judges the primitives of this {module.format} graph; XLA would first rewrite and lay them out"]
    nodes = [n for g in module.graphs.values() for n in g.nodes]
    fused = sum(n.op is hlo.fusion and Fusion.of(n).kind in ("kLoop", "kInput", "kOutput") for n in nodes)
    found = []
    if fused:
        found.append(f"the text already holds {fused} fusion{'s' if fused != 1 else ''}: what is inside them is fused; the edges "
                    f"between them are explained by the verdicts of {version} on the text with its kernels inlined")
    raw = names_of(nodes, REWRITTEN - kept)
    if raw or (nodes and not any(_has_layout(n) for n in nodes)):
        why = f"it has {', '.join(raw)}" if raw else "it has no layouts"
        found.append(f"the text looks like HLO before XLA's own rewriting ({why}): names and edges may change before the fusion pass; "
                    f"exact answers need the dump named {dump} {HOW}")
    return found


def early_remarks(module: Module, version: str, exact: str, signs: Sequence[str], unfollowed: Sequence[str], near: str) -> list[str]:
    """Remarks on the verdicts on a module that was rewritten first as XLA would.

    ``signs`` show that XLA has not done so yet; ``unfollowed`` are its operators that XLA rewrites in ways not simulated; ``near`` is how
    often the rewriting was right; ``exact`` names the dump that needs none, and further notes.
    """
    found = [f"the text is HLO from before XLA's own rewriting ({', '.join(signs)}): {version} judges it rewritten as XLA would, and "
            f"reports that in its own operators; confidence: near ({near}); exact answers need the dump named {exact}"]
    if unfollowed:
        found.append(f"confidence: low around {', '.join(unfollowed)}, which XLA may expand in ways that are not simulated here")
    if isinstance(parts := HloModule.of(module).num_partitions, int) and parts > 1:
        found.append(f"confidence: low, for XLA divides the program among {parts} devices first, which is not simulated here")
    return found


def _has_layout(node: Node) -> bool:
    return isinstance(node.type, TensorType) and node.type.layout is not None
