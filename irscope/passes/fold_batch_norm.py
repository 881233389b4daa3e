"""Batch-norm folding: folds a batch normalisation into the weights of the convolution or dense layer before it."""
from __future__ import annotations

from collections.abc import Sequence

from irscope.graph import Module, Node, TensorType
from irscope.ops.attributes import GetTupleElement
from irscope.passes.algebra.simplifier import of
from irscope.passes.base import RelayPass
from irscope.passes.fold_scale_axes import BIAS, CONTRACTIONS, channels
from irscope.passes.simplify_inference import BATCH_NORM, bound, has_root, scale_and_shift
from irscope.passes.visitor import GraphMutator


class FoldBatchNorm(RelayPass):
    """Multiply the weights by a batch normalisation's scale, and add its shift as a bias.

        %0 = nn.conv2d(%x, %w);                              %0 = multiply(%w, reshape(scale));
        %1 = nn.batch_norm(%0, %g, %b, %m, %v);       ->     %1 = nn.conv2d(%x, %0);
        nn.relu(%1.0)                                        nn.relu(nn.bias_add(%1, shift))

    Scales a bias in between and adds it to the shift. Applies only if the layer's result has no other user. The added arithmetic works on
    weights and statistics only.
    """

    name = "fold-batch-norm"
    opt_level = 3

    def rewrite(self, module: Module) -> Module:
        return self.mutated(_Folding(), module)


class _Folding(GraphMutator):
    def visit_get_tuple_element(self, node: Node, operands: Sequence[Node]) -> Node | None:
        norm = node.operands[0]
        if norm.op not in BATCH_NORM or GetTupleElement.of(node).index != 0:
            return None
        biased = norm.operands[0] if norm.operands[0].op in BIAS else None
        layer = biased.operands[0] if biased is not None else norm.operands[0]
        if layer.op not in CONTRACTIONS:
            return None
        why = self._kept_apart(layer, biased, norm)
        if why:
            self.declined.append(f"left %{layer.name} and %{norm.name} apart: {why}")
            return None
        found = channels(layer)
        assert found is not None, "looked at above"
        data, weight = (self.new(o) for o in layer.operands)
        scale, shift = scale_and_shift(self, norm, [data, *(self.new(o) for o in norm.operands[1:])])
        shape = [-1 if d in found.made else 1 for d in range(of(layer.operands[1]).rank)]
        scaled = self.add("multiply", [weight, self.add("reshape", [scale], newshape=shape)])
        if biased is not None:
            shift = self.add("add", [self.add("multiply", [self.new(biased.operands[1]), scale]), shift])
        made = self.builder.add(layer.op, [data, scaled], layer.attrs, layer.type, name=self._name)
        return self.add("nn.bias_add", [made, shift], node.type, axis=found.result[0])

    def _kept_apart(self, layer: Node, biased: Node | None, norm: Node) -> str:
        """Why a normalisation cannot be folded into the weights; empty if it can."""
        others = self.needed_elsewhere(layer, biased or norm) + (self.needed_elsewhere(biased, norm) if biased is not None else [])
        if others:
            return f"{', '.join(others)} needs its plain result"
        if not all(isinstance(part.type, TensorType) for part in (layer, *layer.operands)):
            return "the text does not state all its types"
        if not has_root(norm.operands[4]):
            return "its variance is no tensor of floats"
        found = channels(layer)
        if found is None or len(found.made) != 1:
            return "its channels are not on one axis of its weight, or its types are no floats, or differ"
        rank = of(layer).rank
        if found.result[0] != int(bound(norm)["axis"]) % rank:
            return f"%{norm.name} normalises along another axis"
        if biased is not None and found.result[0] != int(bound(biased)["axis"]) % rank:
            return f"the bias %{biased.name} runs along another axis"
        return ""
