"""The costs of a TorchScript program's operators: those of the primitives that they become when it is run over its shapes."""
from __future__ import annotations

from collections import defaultdict

from irscope.analysis.calls import Calls
from irscope.analysis.cost import Known, ModuleCosts
from irscope.expand import expand
from irscope.expand.torchscript import Given, run_counted
from irscope.formats.torchscript import structure as torch
from irscope.graph import Module, Node, Type
from irscope.ops import hlo
from irscope.ops.faults import TypeFault
from irscope.source import UserError

GROWTH, LEAST = 20, 20_000
"""The growth limit when loops are unrolled to find their costs: this factor, but at least this many operators."""


def known_of(module: Module) -> Known:
    """FLOPs and types by node of the text; neither, and the reason, where the text does not state enough to run it."""
    size = sum(len(graph.nodes) for graph in module.graphs.values())
    try:
        made, runs = run_counted(module, Given(limit=max(LEAST, GROWTH * size)))
        made.attrs["primitive"] = True
        primitives = expand(made)
    except (UserError, TypeFault) as fault:
        return Known({}, {}, fault.message if isinstance(fault, UserError) else str(fault))
    calls = Calls(primitives)
    costs = ModuleCosts(calls)
    flops: defaultdict[Node, float] = defaultdict(float)
    types: dict[Node, Type] = {}
    for graph in calls.order:
        if not calls.runs_alone(graph):
            continue
        for node, own in zip(graph.nodes, costs.graphs[graph].flops, strict=True):
            first = node
            while first.origin and first not in runs:
                first = first.origin[0]
            if own:
                flops[first] += own
            if node.op is hlo.parameter and first.op is torch.GET_ATTR:
                types[first] = node.type
    return Known({node: total / max(runs[node], 1) for node, total in flops.items()}, types)
