"""FUS009: a write in place between operators that would be one kernel."""

from __future__ import annotations

from collections.abc import Iterator

from irscope.graph import Graph, Node, TensorType
from irscope.lint.context import Context
from irscope.lint.findings import RuleFinding
from irscope.lint.rule import Fixture, Rule
from irscope.lint.savings import saving
from irscope.lint.torch_nodes import POINTWISE, in_place, plain_name, whole_graphs, written
from irscope.source import Severity


class InplaceMutation(Rule):
    """An operator writes in place between operators that could be one kernel.

    ## What it does
    Finds `relu_`, `add_` and their like with an elementwise operator before or behind them.

    ## Why is this bad?
    TorchScript's fuser moves no operator across a write, and takes none that writes: the group ends before and begins behind it. In eager
    torch a write in place saves an allocation; in a compiled graph it costs a kernel and a pass over memory.

    ## Example
    ```
    %y : Tensor = aten::add(%a, %b, %one)
    %z : Tensor = aten::relu_(%y)
    ```

    ## Use instead
    The form without underscore: `relu(y)`, `nn.ReLU(inplace=False)`, `x = x + y`.

    ## Known false positives
    irscope itself runs writes in place as values and fuses them; the finding is for the compilers that do not.
    """

    code, name, severity = "FUS009", "inplace-mutation", Severity.WARNING
    bad = (
        Fixture.torchscript(
            """
            graph(%a : Float(4), %b : Float(4), %one : int):
              %2 : Float(4) = aten::add(%a, %b, %one)
              %3 : Float(4) = aten::relu_(%2)
              return (%3)
        """,
            "3",
        ),
        Fixture.torchscript(
            """
            graph(%a : Float(4), %b : Float(4)):
              %2 : Float(4) = aten::mul_(%a, %b)
              %3 : Float(4) = aten::sigmoid(%2)
              return (%3)
        """,
            "2",
        ),
    )
    good = (
        Fixture.torchscript("""
            graph(%a : Float(4), %b : Float(4), %one : int):
              %2 : Float(4) = aten::add(%a, %b, %one)
              %3 : Float(4) = aten::relu(%2)
              return (%3)
        """),
        Fixture.torchscript("""
            graph(%a : Float(4, 4), %b : Float(4, 4)):
              %2 : Float(4, 4) = aten::matmul(%a, %b)
              %3 : Float(4, 4) = aten::relu_(%2)
              return (%3)
        """),
    )

    def check(self, context: Context) -> Iterator[RuleFinding]:
        for graph in whole_graphs(context):
            for node in written(graph):
                if in_place(node) and plain_name(node) in POINTWISE:
                    beside = self._beside(context, graph, node)
                    if beside is not None:
                        yield self._finding(context, graph, node, beside)

    @staticmethod
    def _beside(context: Context, graph: Graph, node: Node) -> Node | None:
        """An elementwise operator that gives the operand or takes the result."""
        if node.operands and plain_name(node.operands[0]) in POINTWISE:
            return node.operands[0]
        return next((user for user in context.users(node, graph) if plain_name(user) in POINTWISE), None)

    def _finding(self, context: Context, graph: Graph, node: Node, beside: Node) -> RuleFinding:
        size = node.type.bytes if isinstance(node.type, TensorType) and node.type.is_static else 0
        return context.finding(
            self,
            node,
            graph,
            f"{node.op.name} writes in place: TorchScript's fuser does not join it with %{beside.name} ({beside.op.name})",
            help=f"use {plain_name(node).removeprefix('aten::')} without underscore (inplace=False)",
            saves=saving(bytes=2.0 * size, kernels=1.0),
        )
