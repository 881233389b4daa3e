"""Type inference: fills in types that follow from others."""
from __future__ import annotations

from irscope.formats.relay.dialect import RELAY
from irscope.formats.relay.filling import fill_types
from irscope.graph import Module
from irscope.passes.base import Pass, rewritten


class InferTypes(Pass):
    """Fill in the types that a Relay module omits: of results, and of weights whose shape follows from attributes.

        def @main(%x: Tensor[(1, 128), float32], %w) {        def @main(%x: Tensor[(1, 128), float32], %w: Tensor[(64, 128), float32]) {
          nn.dense(%x, %w, units=64)                    ->      nn.dense(%x, %w, units=64) /* ty=Tensor[(1, 64), float32] */
        }                                                     }

    HLO declares every type; a module in HLO stays unchanged.
    """

    name = "infer-types"
    dialects = (RELAY,)

    def rewrite(self, module: Module) -> Module:
        made = rewritten(module, lambda builder, node, operands: None)
        fill_types(made)
        return made
