"""At which point of XLA's pipeline a text was written, as far as it shows."""
from __future__ import annotations

from irscope.graph import Graph, Module, Node, TensorType, callees_first

REWRITTEN = frozenset(
    "logistic batch-norm-inference batch-norm-training batch-norm-grad opt-barrier dynamic-reshape call".split())
"""What XLA's passes replace before they fuse."""


CONTROL = frozenset(("while", "conditional", "call", "async-start"))
"""What runs the computations that it calls as they are; everything else applies them to elements, and XLA fuses nothing in there."""


def computations(module: Module) -> list[Graph]:
    """The computations that XLA's fusion passes look at, callees first; the entry is the last."""
    graphs = callees_first(module, module.main())
    applied = {id(body) for graph in graphs for node in graph.nodes if node.op.name not in CONTROL for body in node.bodies}
    return [graph for graph in graphs if id(graph) not in applied and graph.root is not None]


def remarks(module: Module, version: str, dump: str) -> list[str]:
    """What to know of the verdicts on a module: whether it is fused already, or far from what the pass sees."""
    if module.format != "hlo":
        return [f"{version} judges the primitives of this {module.format} graph; XLA would first rewrite and lay them out"]
    nodes = [n for g in module.graphs.values() for n in g.nodes]
    fused = sum(n.op.name == "fusion" and n.attrs.get("kind") in ("kLoop", "kInput", "kOutput") for n in nodes)
    told = []
    if fused:
        told.append(f"the text already holds {fused} fusion{'s' if fused != 1 else ''}: what is inside them is fused; the edges "
                    f"between them are explained by what {version} makes of the text with its kernels taken apart")
    raw = sorted({n.op.name for n in nodes} & REWRITTEN)
    if raw or (nodes and not any(_has_layout(n) for n in nodes)):
        why = f"it has {', '.join(raw)}" if raw else "it has no layouts"
        told.append(f"the text looks like HLO before XLA's own rewriting ({why}): names and edges may change before the fusion pass; "
                    f"exact answers need the dump named {dump} (XLA_FLAGS=--xla_dump_hlo_pass_re=.*)")
    return told


def _has_layout(node: Node) -> bool:
    return isinstance(node.type, TensorType) and node.type.layout is not None
