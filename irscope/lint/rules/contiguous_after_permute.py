"""LAY004: a turned view is copied into order."""

from __future__ import annotations

from collections.abc import Iterator

from irscope.graph import TensorType
from irscope.lint.context import Context
from irscope.lint.findings import RuleFinding
from irscope.lint.rule import Fixture, Rule
from irscope.lint.savings import human_bytes, saving
from irscope.lint.torch_nodes import TURNS, whole_graphs, written
from irscope.source import Note, Severity


class ContiguousAfterPermute(Rule):
    """A transposed view is copied so that its elements stand in order.

    ## What it does
    Finds `.contiguous()` and `.clone()` of the result of `permute`, `transpose` or `t`.

    ## Why is this bad?
    The copy reads and writes the whole tensor, with strides that caches dislike. Products take their operands in any order.

    ## Example
    ```
    %2 : Tensor = aten::transpose(%x, %one, %two)
    %3 : Tensor = aten::contiguous(%2, %zero)
    ```

    ## Use instead
    `matmul` and `einsum` of the view; `reshape`, which copies only where it must.

    ## Known false positives
    Where `view` follows, the elements have to be in order, and one copy is needed: such cases are told as information.
    """

    code, name, severity = "LAY004", "contiguous-after-permute", Severity.WARNING
    bad = (
        Fixture.torchscript(
            """
            graph(%x : Float(4, 8, 16), %w : Float(4, 8, 8), %one : int, %two : int, %zero : int):
              %2 : Float(4, 16, 8) = aten::transpose(%x, %one, %two)
              %3 : Float(4, 16, 8) = aten::contiguous(%2, %zero)
              %4 : Float(4, 16, 8) = aten::matmul(%3, %w)
              return (%4)
        """,
            "3",
        ),
        Fixture.torchscript(
            """
            graph(%x : Float(8, 16), %none : NoneType):
              %2 : Float(16, 8) = aten::t(%x)
              %3 : Float(16, 8) = aten::clone(%2, %none)
              return (%3)
        """,
            "3",
        ),
    )
    good = (
        Fixture.torchscript("""
            graph(%x : Float(4, 8, 16), %zero : int):
              %3 : Float(4, 8, 16) = aten::contiguous(%x, %zero)
              return (%3)
        """),
        Fixture.torchscript("""
            graph(%x : Float(4, 8, 16), %w : Float(4, 8, 8), %one : int, %two : int):
              %2 : Float(4, 16, 8) = aten::transpose(%x, %one, %two)
              %4 : Float(4, 16, 8) = aten::matmul(%2, %w)
              return (%4)
        """),
    )

    def check(self, context: Context) -> Iterator[RuleFinding]:
        for graph in whole_graphs(context):
            for node in written(graph):
                if node.op.name not in ("aten::contiguous", "aten::clone") or node.operands[0].op.name not in TURNS:
                    continue
                size = node.type.bytes if isinstance(node.type, TensorType) and node.type.is_static else 0
                needed = any(user.op.name == "aten::view" for user in context.users(node, graph))
                turned = node.operands[0]
                yield context.finding(
                    self,
                    node,
                    graph,
                    f"{turned.op.name} is copied into order" + (f" ({human_bytes(size)} read and written)" if size else ""),
                    severity=Severity.INFO if needed else Severity.WARNING,
                    notes=(Note(f"it is turned by %{turned.name}", turned.loc),),
                    help="view wants elements in order; reshape copies only where it must" if needed else f"use %{turned.name} as it is",
                    saves=None if needed else saving(bytes=2.0 * size, kernels=1.0),
                )
