"""What the operators of a TorchScript program cost: as much as the primitives that they become when it is run over its shapes."""
from __future__ import annotations

from collections import defaultdict

from irscope.analysis.calls import Calls
from irscope.analysis.cost import Costs, Known
from irscope.expand import expand
from irscope.expand.torchscript import Given, run_counted
from irscope.formats.torchscript import structure as torch
from irscope.graph import Module, Node, Type
from irscope.ops import hlo
from irscope.source import UserError

GROWTH, LEAST = 20, 20_000
"""A program may grow by this factor, and to this many operators in any case, when its loops are unrolled to see what they cost."""


def known_of(module: Module) -> Known:
    """FLOPs and types by node of the text; none of either, and the reason, where the text does not say enough to run it."""
    size = sum(len(graph.nodes) for graph in module.graphs.values())
    try:
        made, runs = run_counted(module, Given(limit=max(LEAST, GROWTH * size)))
        made.attrs["primitive"] = True
        primitives = expand(made)
    except (UserError, ValueError) as fault:
        return Known({}, {}, fault.message if isinstance(fault, UserError) else str(fault))
    calls = Calls(primitives)
    costs = Costs(calls)
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
