"""Convolution-ReLU fusion: fuses a convolution and the ReLU after it into one operator."""
from __future__ import annotations

from collections.abc import Sequence

from irscope.formats.torchscript.attributes import Constant
from irscope.graph import Graph, Module, Node, unknown_op
from irscope.ops import get, hlo, lookup
from irscope.ops.sets import relay, torchscript
from irscope.passes.base import Pass
from irscope.passes.pattern import MAX_NAMED
from irscope.passes.torch_effects import CONSTANT, LIST, remove_unused_values, writes_before
from irscope.passes.visitor import GraphMutator

BETWEEN = relay("cast reshape transpose layout_transform nn.bias_add add multiply nn.pad nn.max_pool2d") \
    | torchscript("add add_ batch_norm max_pool2d to mul")
"""Operators that are named when they keep a convolution and a rectifier apart."""

OLD_CONVOLUTION = torchscript("_convolution")
TORCH_CONVOLUTIONS = torchscript("conv2d") | OLD_CONVOLUTION
CONVOLUTIONS = relay("nn.conv2d") | TORCH_CONVOLUTIONS
RECTIFIERS = relay("nn.relu") | torchscript("relu relu_")
TORCH_FUSED = "aten::cudnn_convolution_relu"
"""What torch itself makes of the two when it freezes a model (``torch/csrc/jit/passes/frozen_conv_add_relu_fusion.cpp``)."""


class FuseConvRelu(Pass):
    """Fuse every ``nn.relu`` that is the only user of an ``nn.conv2d`` with it into one ``nn.conv2d_relu``.

        %0 = nn.conv2d(%x, %w, padding=[1, 1]);
        %1 = nn.relu(%0);                        ->      %0 = nn.conv2d_relu(%x, %w, padding=[1, 1]);

    The convolution's attributes stay. A convolution with a second user (a skip connection) stays too: otherwise its plain result would
    have to be recomputed. The pass reports what it does not fuse, with the reason. In TorchScript the fused operator is
    ``aten::cudnn_convolution_relu``, as torch writes it; HLO has no such operator.
    """

    name = "fuse-conv-relu"

    def run(self, module: Module) -> Module:
        if module.dialect.primitive:
            if any(node.op is hlo.convolution for graph in module.graphs.values() for node in graph.nodes):
                self.declined = ["HLO has no operator for a convolution with its rectifier: fuse-patterns makes one computation of the two"]
            return module
        return self.mutated(_Fusing(), module)


class _Fusing(GraphMutator):
    """``before`` maps each step in between to its convolution.

    TorchScript's constants and lists count as effects, so that dead-code elimination keeps those that only a fused convolution read:
    ``_mutated`` removes them.
    """

    def begin(self, graph: Graph) -> None:
        self.before: dict[Node, Node] = {}
        self.gone: set[Node] = set()
        for node in graph.nodes:
            if node.op in BETWEEN and node.operands:
                first = node.operands[0]
                source = first if first.op in CONVOLUTIONS else self.before.get(first)
                if source is not None:
                    self.before[node] = source
        writes = writes_before(graph.nodes) if self.dialect.writes_in_place else []
        for node in graph.nodes:
            if node.op in RECTIFIERS and node.operands and self._may_fuse(node, node.operands[0], writes):
                self.gone.add(node)

    def _mutated(self, graph: Graph, became: dict[Graph, Graph]) -> Graph:
        made = super()._mutated(graph, became)
        if self.dialect.writes_in_place and self.gone:
            remove_unused_values(made)
        return made

    def _may_fuse(self, relu: Node, convolution: Node, writes: list[int]) -> bool:
        if convolution.op not in CONVOLUTIONS:
            self._decline_between(relu, convolution)
            return False
        others = self.needed_elsewhere(convolution, relu)
        if others:
            return self._left(convolution, relu, f"{', '.join(others)} needs the convolution's plain result too")
        if convolution.op in TORCH_CONVOLUTIONS and _operands(convolution) is None:
            return self._left(convolution, relu, "the convolution is transposed, not of images, or pads by a word")
        # Between two TorchScript statements, an operand of the convolution may be written in place.
        if writes and writes[relu.index - 1] > writes[convolution.index]:
            return self._left(convolution, relu, "what stands between them may write what the convolution reads")
        return True

    def visit(self, node: Node, operands: Sequence[Node]) -> Node | None:
        if node not in self.gone:
            return None
        convolution = node.operands[0]
        if convolution.op not in TORCH_CONVOLUTIONS:
            inputs = [self.new(operand) for operand in convolution.operands]
            return self.builder.add(get("nn.conv2d_relu", "relay"), inputs, convolution.attrs, node.type, name=node.name)
        found = _operands(convolution)
        assert found is not None, "looked at in the beginning"
        op = lookup(TORCH_FUSED, "torchscript") or unknown_op(TORCH_FUSED, "torchscript")
        return self.builder.add(op, [self.new(operand) for operand in found], {}, node.type, name=node.name)

    def _decline_between(self, relu: Node, middle: Node) -> None:
        """Report a convolution that is a few steps before the ReLU."""
        source, steps = self.before.get(middle), list[str]()
        if source is None:
            return
        while middle is not source and len(steps) < MAX_NAMED:
            steps.append(middle.op.name)
            middle = middle.operands[0]
        self._left(source, relu, f"{' and '.join(reversed(steps))} {'stands' if len(steps) == 1 else 'stand'} between them")

    def _left(self, convolution: Node, relu: Node, why: str) -> bool:
        self.declined.append(f"left %{convolution.name} and %{relu.name} apart: {why}")
        return False


def _operands(convolution: Node) -> list[Node] | None:
    """Data, weight, bias, stride, padding, dilation and groups of a torch convolution; None if the fused operator cannot express it."""
    given = list(convolution.operands)
    if convolution.op in OLD_CONVOLUTION and len(given) > 8:
        transposed = given[6]
        plain = transposed.op in CONSTANT and Constant.of(transposed).value in (0, False)
        return [*given[:6], given[8]] if plain and _length(given[3]) == 2 else None
    padding = given[4] if len(given) == 7 else None
    return None if padding is None or str(padding.type) == "str" else given


def _length(values: Node) -> int:
    """The length of a list; -1 if the value is not a list in the text."""
    if values.op in LIST:
        return len(values.operands)
    value = Constant.of(values).value if values.op in CONSTANT else None
    return len(value) if isinstance(value, tuple) else -1
