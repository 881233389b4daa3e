"""Side effects: an instruction that has any is never computed inside another kernel, nor twice."""
from __future__ import annotations

from irscope.fusion.xla.opcodes import COLLECTIVES, SIDE_EFFECTS
from irscope.graph import Graph, Op
from irscope.graph.attributes import HasAttrs
from irscope.graph.walk import callees_first_of
from irscope.ops import hlo
from irscope.ops.attributes import Collective, CustomCall


def is_effect(op: Op, node: HasAttrs) -> bool:
    """Whether an instruction with operator ``op`` has side effects by itself."""
    if op in SIDE_EFFECTS or op is hlo.rng or op is hlo.rng_get_and_update_state:
        return True
    if op in COLLECTIVES:
        attrs = Collective.of(node)
        return attrs.constrain_layout or (attrs.channel_id is not None and not attrs.use_global_device_ids)
    return op is hlo.custom_call and CustomCall.of(node).custom_call_has_side_effect


def graph_has_side_effect(graph: Graph) -> bool:
    """Whether any instruction of a graph, or of the graphs that it calls, has side effects."""
    return any(is_effect(node.op, node) for each in callees_first_of([graph]) for node in each.nodes)
