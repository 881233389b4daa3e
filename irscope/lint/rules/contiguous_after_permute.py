"""LAY004: a transposed view is copied into contiguous memory."""

from __future__ import annotations

from irscope.graph import TensorType
from irscope.lint import Context, Findings, Fixture, Note, Rule, Severity, human_bytes, saving
from irscope.lint.torch_nodes import TURNS
from irscope.ops import sets

ORDERED = sets.torchscript("view reshape _unsafe_view flatten view_as reshape_as")
"""Operators that may merge transposed axes: they need the elements in order, so that the copy is made in any case."""
RETURNS = sets.hlo("tuple") | sets.torchscript("prim::TupleConstruct prim::ListConstruct")
COPIES = sets.torchscript("contiguous clone")


def _graph(turn: str, copy: str, last: str) -> str:
    return f"""
        class GraphModule(torch.nn.Module):
            def forward(self, x: "f32[4, 8, 16]", w: "f32[4, 8, 8]"):
                turned: "f32[4, 16, 8]" = torch.ops.aten.{turn}
                copied: "f32[4, 16, 8]" = torch.ops.aten.{copy}
                out: "f32[4, 16, 8]" = torch.ops.aten.{last}
                return (out,)
    """


class ContiguousAfterPermute(Rule):
    """A transposed view is copied to make it contiguous.

    ## What it does
    Finds `.contiguous()` and `.clone()` of the result of `permute`, `transpose` or `t`. Reports nothing if `view` or `reshape` follows:
    `view` needs the copy, and `reshape` would make it. It is information if the copy is returned to the caller.

    ## Why is this bad?
    The copy reads and writes the whole tensor, with strides that use caches badly. Matrix products read operands in any order of axes.

    ## Use instead
    `matmul`, `einsum` and elementwise operators on the view.

    ## Known false positives
    A value that is read many times, always in the new order: then one copy pays off.
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
        Fixture.fx(_graph("permute.default(x, [0, 2, 1])", "clone.default(turned, memory_format = torch.contiguous_format)",
                          "bmm.default(copied, w)"), "copied"),
        Fixture.fx(_graph("transpose.int(x, 1, 2)", "contiguous.default(turned)", "relu.default(copied)"), "copied"),
    )
    good = (
        Fixture.fx(_graph("permute.default(x, [0, 2, 1])", "relu.default(turned)", "bmm.default(copied, w)")),
        Fixture.fx(_graph("permute.default(x, [0, 2, 1])", "clone.default(turned, memory_format = torch.contiguous_format)",
                          "reshape.default(copied, [4, 16, 8])")),
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
        Fixture.torchscript("""
            graph(%x : Float(2, 4, 6, 8), %one : int, %two : int, %zero : int, %shape : int[]):
              %2 : Float(2, 6, 4, 8) = aten::transpose(%x, %one, %two)
              %3 : Float(2, 6, 4, 8) = aten::contiguous(%2, %zero)
              %4 : Float(2, 6, 32) = aten::reshape(%3, %shape)
              return (%4)
        """),
    )

    def check(self, context: Context) -> Findings:
        for graph in context.view.graphs:
            for node in context.view.with_op(COPIES, graph):
                if node.operands[0].op not in TURNS:
                    continue
                users = context.view.users(node, graph)
                if any(user.op in ORDERED for user in users):
                    continue
                size = node.type.bytes if isinstance(node.type, TensorType) and node.type.is_static else 0
                given = not users or node is graph.root or any(user.op in RETURNS for user in users)
                turned = node.operands[0]
                yield self.finding(
                    context, node,
                    f"{turned.op.name} is copied to make it contiguous" + (f" ({human_bytes(size)} read and written)" if size else ""),
                    notes=(Note(f"%{turned.name} transposes it", turned.loc),),
                    help=f"use %{turned.name} as it is",
                    saves=saving(bytes=2.0 * size, kernels=1.0),
                ).with_severity(Severity.INFO if given else None)
