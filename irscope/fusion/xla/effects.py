"""What has side effects, so that it is never computed inside another kernel, nor twice."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from irscope.fusion.xla.opcodes import COLLECTIVES, SIDE_EFFECTS
from irscope.graph import Graph, Op
from irscope.ops import hlo


def is_effect(op: Op, attrs: Mapping[str, Any]) -> bool:
    """Whether an operation has side effects by itself."""
    if op in SIDE_EFFECTS or op is hlo.rng or op is hlo.rng_get_and_update_state:
        return True
    if op in COLLECTIVES:
        return bool(attrs.get("constrain_layout")) or (attrs.get("channel_id") is not None and not attrs.get("use_global_device_ids"))
    return op is hlo.custom_call and bool(attrs.get("custom_call_has_side_effect"))


def graph_has_side_effect(graph: Graph) -> bool:
    """Whether any instruction of a graph, or of the graphs that it calls, has side effects."""
    pending, seen = [graph], {id(graph)}
    while pending:
        for node in pending.pop().nodes:
            if is_effect(node.op, node.attrs):
                return True
            for body in node.bodies:
                if id(body) not in seen:
                    seen.add(id(body))
                    pending.append(body)
    return False
