"""The pass fuse-conv-relu: a convolution whose one user is a rectifier becomes one operator.

    %0 = nn.conv2d(%x, %w, padding=[1, 1]);
    %1 = nn.relu(%0);                        ->      %0 = nn.conv2d_relu(%x, %w, padding=[1, 1]);

A convolution with a second user (a skip connection) is left alone: its plain result is needed, and would have to be computed again.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from irscope.graph import Builder, Graph, Module, Node
from irscope.graph.rewrite import rewrite
from irscope.ops import get, lookup
from irscope.passes.base import Pass, per_graph


@dataclass(frozen=True, slots=True)
class Declined:
    """A pair that looks alike and was left alone, and why."""

    convolution: str
    follower: str
    why: str


class FuseConvRelu(Pass):
    """No ``nn.relu`` follows an ``nn.conv2d`` that nobody else uses; the two are ``nn.conv2d_relu``, with the convolution's attributes."""

    name: ClassVar[str] = "fuse-conv-relu"

    def __init__(self) -> None:
        self.declined: list[Declined] = []

    def run(self, module: Module) -> Module:
        self.declined = []
        return per_graph(module, self._graph)

    def _graph(self, graph: Graph, became: dict[Graph, Graph]) -> Graph:
        users = graph.users()
        fused = {node: node.operands[0] for node in graph.nodes if self._fits(graph, users, node)}
        gone = set(fused.values())

        def rule(builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
            if node in gone:
                return operands[0]
            convolution = fused.get(node)
            if convolution is None:
                return None
            inputs = [new[o] for o in convolution.operands]
            return builder.add(get("nn.conv2d_relu", "relay"), inputs, convolution.attrs, node.type, name=node.name)

        new: dict[Node, Node] = {}

        def remembering(builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
            new.update(zip(node.operands, operands, strict=True))
            return rule(builder, node, operands)
        return rewrite(graph, remembering, became)

    def _fits(self, graph: Graph, users: list[list[Node]], node: Node) -> bool:
        if node.op.name != "nn.relu" or lookup("nn.conv2d_relu", "relay") is None:
            return False
        convolution = node.operands[0]
        if convolution.op.name in ("cast", "reshape") and convolution.operands[0].op.name == "nn.conv2d":
            self.declined.append(Declined(convolution.operands[0].name, node.name, f"a {convolution.op.name} stands between them"))
            return False
        if convolution.op.name != "nn.conv2d":
            return False
        others = [u.name for u in users[convolution.index] if u is not node]
        if others or convolution is graph.root:
            who = ", ".join(f"%{name}" for name in others) or "the result of the function"
            self.declined.append(Declined(convolution.name, node.name, f"{who} needs the convolution's plain result too"))
            return False
        return True
