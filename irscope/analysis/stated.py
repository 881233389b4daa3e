"""What the text of a node states beyond what irscope models: nodes that differ in it do not have the same value.

    a = f32[8] custom-call(x), custom_call_target="scale", backend_config={"by":1}
    b = f32[8] custom-call(x), custom_call_target="scale", backend_config={"by":2}
"""
from __future__ import annotations

from collections.abc import Callable, Hashable

from irscope.formats.hlo.provenance import HloProvenance
from irscope.graph import Module, Node
from irscope.graph.module import SHARDING
from irscope.ops import hlo

ABOUT = frozenset(("metadata", "origin", "original_value", "statistics"))
"""Attributes that say where a node comes from, or what was measured of it."""


def stated(module: Module) -> Callable[[Node], Hashable]:
    """A function that gives what the text states of a node: of a custom call everything, of other nodes the sharding; None if nothing.

    XLA's common-subexpression elimination compares these too.
    """
    provenance = module.provenance
    is_sharded = isinstance(provenance, HloProvenance) and f"{SHARDING}=" in provenance.text

    def of(node: Node) -> Hashable:
        if node.op is hlo.custom_call:
            return tuple(sorted((name, str(text)) for name, text in module.raw(node).items() if name not in ABOUT)) or None
        return module.raw(node).get(SHARDING) if is_sharded else None
    return of
