"""Dead-code elimination (DCE): removes nodes that neither the result nor a side effect uses."""
from __future__ import annotations

from irscope.graph import Module, callees_first
from irscope.passes.base import Pass, rewritten


class RemoveDead(Pass):
    """Remove nodes that neither the result nor a side effect uses, and graphs that nothing calls.

        ENTRY main {                                    ENTRY main {
          x = f32[2] parameter(0)                         x = f32[2] parameter(0)
          d = f32[2] exponential(x)            ->         ROOT r = f32[2] negate(x)
          ROOT r = f32[2] negate(x)                     }
        }

    Parameters stay, because they are part of the signature.
    """

    name = "remove-dead"

    def run(self, module: Module) -> Module:
        made = rewritten(module, lambda builder, node, operands: None)
        called = {id(graph) for graph in callees_first(made, made.main())}
        made.graphs = {name: graph for name, graph in made.graphs.items() if id(graph) in called}
        return made
