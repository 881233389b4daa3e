"""A batch normalisation behind a convolution or a dense layer is part of its weights."""
from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from irscope.graph import Module, Node, TensorType
from irscope.passes.base import Pass
from irscope.passes.simplify_inference import bound, scale_and_shift
from irscope.passes.visitor import GraphMutator


class FoldBatchNorm(Pass):
    """Multiply the weights by a batch normalisation's scale, and add its shift as a bias.

        %0 = nn.conv2d(%x, %w);                              %0 = multiply(%w, reshape(scale));
        %1 = nn.batch_norm(%0, %g, %b, %m, %v);       ->     %1 = nn.conv2d(%x, %0);
        nn.relu(%1.0)                                        nn.relu(nn.bias_add(%1, shift))

    Only where nobody else needs the convolution's plain result. The arithmetic that is added works on weights and statistics.
    """

    name: ClassVar[str] = "fold-batch-norm"
    requires = ("infer-types",)
    opt_level: ClassVar[int] = 3

    def run(self, module: Module) -> Module:
        folding = _Folding()
        made = folding.run(module) if module.format == "relay" else module
        self.declined = folding.declined
        return made


class _Folding(GraphMutator):
    def __init__(self) -> None:
        self.declined: list[str] = []

    def visit_get_tuple_element(self, node: Node, operands: Sequence[Node]) -> Node | None:
        norm = node.operands[0]
        if norm.op.name != "nn.batch_norm" or int(node.attrs["index"]) != 0:
            return None
        layer = norm.operands[0]
        if layer.op.name not in ("nn.conv2d", "nn.dense"):
            return None
        others = self.needed_elsewhere(layer, norm)
        channel = _output_channel(layer)
        if others or channel is None or channel[0] != int(bound(norm)["axis"]) % layer.type.rank:  # type: ignore[attr-defined]
            why = f"{', '.join(others)} needs its plain result" if others else f"%{norm.name} normalises along another axis"
            self.declined.append(f"left %{layer.name} and %{norm.name} apart: {why}")
            return None
        data, weight = (self.new(o) for o in layer.operands)
        rest = [self.new(o) for o in norm.operands[1:]]
        axis, place = channel
        scale, shift = scale_and_shift(self, norm, [data, *rest])
        assert isinstance(weight.type, TensorType), "its channels are known"
        shape = [-1 if d == place else 1 for d in range(weight.type.rank)]
        scaled = self.add("multiply", [weight, self.add("reshape", [scale], newshape=shape)])
        made = self.add(layer.op.name, [data, scaled], **layer.attrs)
        return self.add("nn.bias_add", [made, shift], axis=axis)


def _output_channel(layer: Node) -> tuple[int, int] | None:
    """The axis of the result's channels, and that of the weight which runs over them; None where no single one does."""
    result, weight = layer.type, layer.operands[1].type
    if not isinstance(result, TensorType) or not isinstance(weight, TensorType):
        return None
    if layer.op.name == "nn.dense":
        return result.rank - 1, 0
    given = bound(layer)
    layouts = str(given["out_layout"] or given["data_layout"]), str(given["kernel_layout"])
    if any(c.isdigit() for text in layouts for c in text):
        return None
    axis, place = layouts[0].index("C"), layouts[1].index("O")
    # A depthwise kernel has its channels on two axes.
    return (axis, place) if weight.shape[place] == result.shape[axis] else None
