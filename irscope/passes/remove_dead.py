"""Dead-code elimination: nodes that neither the result nor an effect needs are removed."""
from __future__ import annotations

from irscope.graph import Module, callees_first
from irscope.passes.base import Pass, rewritten


class RemoveDead(Pass):
    """Leave out nodes whose values nobody reads, and graphs that nobody calls.

        ENTRY main {                                    ENTRY main {
          x = f32[2] parameter(0)                         x = f32[2] parameter(0)
          d = f32[2] exponential(x)            ->         ROOT r = f32[2] negate(x)
          ROOT r = f32[2] negate(x)                     }
        }

    Parameters stay, because the caller counts them.
    """

    name = "remove-dead"

    def run(self, module: Module) -> Module:
        made = rewritten(module, lambda builder, node, operands: None)
        called = {id(graph) for graph in callees_first(made, made.main())}
        made.graphs = {name: graph for name, graph in made.graphs.items() if id(graph) in called}
        return made
