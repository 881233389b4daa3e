"""Operator canonicalisation: rewrites operators as simpler ones."""
from __future__ import annotations

from collections.abc import Sequence

from irscope.graph import Module, Node, TensorType
from irscope.ops import get
from irscope.passes.base import RelayPass
from irscope.passes.simplify_inference import along, bound
from irscope.passes.visitor import GraphMutator


class CanonicalizeOps(RelayPass):
    """Rewrite ``nn.bias_add`` as a broadcast addition, as TVM's CanonicalizeOps does.

        nn.bias_add(%x, %b)         ->         %0 = expand_dims(%b, axis=1, num_newaxis=2);
                                               add(%x, %0)

    Passes that handle additions, and layouts with split channels, then need no rule for biases.
    """

    name = "canonicalize-ops"
    opt_level = 3

    def rewrite(self, module: Module) -> Module:
        return _Writing().run(module)


class _Writing(GraphMutator):
    def visit_nn_bias_add(self, node: Node, operands: Sequence[Node]) -> Node | None:
        data = node.operands[0].type
        if not isinstance(data, TensorType):
            return None
        axis = int(bound(node)["axis"]) % data.rank
        bias = along(self, operands[1], data.rank, axis)
        return self.builder.add(get("add", "relay"), [operands[0], bias], {}, node.type, name=node.name)
