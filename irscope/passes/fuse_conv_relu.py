"""A convolution and the rectifier behind it are one operator."""
from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from irscope.graph import Module, Node
from irscope.ops import get
from irscope.passes.base import Pass
from irscope.passes.visitor import GraphMutator

BETWEEN = frozenset(("cast", "reshape", "transpose", "layout_transform", "nn.bias_add", "add", "multiply", "nn.pad", "nn.max_pool2d"))
"""Operators that are told when they keep a convolution and a rectifier apart."""


class FuseConvRelu(Pass):
    """Let every ``nn.relu`` that follows an ``nn.conv2d`` of which nobody else needs the result be one ``nn.conv2d_relu``.

        %0 = nn.conv2d(%x, %w, padding=[1, 1]);
        %1 = nn.relu(%0);                        ->      %0 = nn.conv2d_relu(%x, %w, padding=[1, 1]);

    The convolution's attributes stay. A convolution with a second user (a skip connection) is left alone: its plain result is needed,
    and would have to be computed again. What is left alone is told with the reason.
    """

    name: ClassVar[str] = "fuse-conv-relu"

    def run(self, module: Module) -> Module:
        mutator = _Fusing()
        made = mutator.run(module) if module.format == "relay" else module
        self.declined = mutator.declined
        return made


class _Fusing(GraphMutator):
    def __init__(self) -> None:
        self.declined: list[str] = []

    def visit_nn_relu(self, node: Node, operands: Sequence[Node]) -> Node | None:
        convolution = node.operands[0]
        if convolution.op.name != "nn.conv2d":
            self._between(node, convolution)
            return None
        others = self.needed_elsewhere(convolution, node)
        if others:
            self._left(convolution, node, f"{', '.join(others)} needs the convolution's plain result too")
            return None
        inputs = [self.new(operand) for operand in convolution.operands]
        return self.builder.add(get("nn.conv2d_relu", "relay"), inputs, convolution.attrs, node.type, name=node.name)

    def _between(self, relu: Node, middle: Node) -> None:
        """Tell of a convolution that stands a few steps before the rectifier."""
        steps: list[str] = []
        while middle.op.name in BETWEEN:
            steps.append(middle.op.name)
            middle = middle.operands[0]
        if steps and middle.op.name == "nn.conv2d":
            self._left(middle, relu, f"{' and '.join(reversed(steps))} {'stands' if len(steps) == 1 else 'stand'} between them")

    def _left(self, convolution: Node, relu: Node, why: str) -> None:
        self.declined.append(f"left %{convolution.name} and %{relu.name} apart: {why}")
