"""CTL006: a branch or loop whose condition depends on data."""

from __future__ import annotations

from irscope.formats.torchscript.dialect import TORCHSCRIPT
from irscope.lint import Context, Findings, Fixture, Rule, Severity
from irscope.lint.torch_nodes import READS
from irscope.ops.sets import torchscript

IF = torchscript("prim::If")
BRANCHES = IF | torchscript("prim::Loop")


class BranchOnData(Rule):
    """A branch or loop waits for the value of a tensor, and nothing fuses across it.

    ## What it does
    Reports `prim::If` and `prim::Loop` whose condition is read from a tensor, as in scripted graphs, which keep both branches.

    ## Why is this bad?
    It is correct, and what scripting is for. But operators before and after it never fuse, and on an accelerator the host waits.

    ## Use instead
    `torch.where`, if both branches are cheap and have the same shape.

    ## Known false positives
    Branches of different cost, of which the expensive one is rarely taken.
    """

    code, name, severity = "CTL006", "branch-on-data", Severity.INFO
    dialect = TORCHSCRIPT
    bad = (
        Fixture.torchscript(
            """
            graph(%x.1 : Tensor):
              %5 : bool = aten::Bool(%x.1) # f.py:4:20
              %15 : Tensor = prim::If(%5) # f.py:4:11
                block0():
                  -> (%x.1)
                block1():
                  %6 : Tensor = aten::neg(%x.1)
                  -> (%6)
              return (%15)
        """,
            "15",
        ),
        Fixture.torchscript(
            """
            graph(%x.1 : Tensor, %n : int):
              %5 : bool = aten::is_nonzero(%x.1)
              %15 : Tensor = prim::Loop(%n, %5, %x.1)
                block0(%i : int, %y : Tensor):
                  %6 : Tensor = aten::neg(%y)
                  -> (%5, %6)
              return (%15)
        """,
            "15",
        ),
    )
    good = (
        Fixture.torchscript("""
            graph(%x.1 : Tensor, %training : bool):
              %15 : Tensor = prim::If(%training)
                block0():
                  -> (%x.1)
                block1():
                  %6 : Tensor = aten::neg(%x.1)
                  -> (%6)
              return (%15)
        """),
        Fixture.torchscript("""
            graph(%x : Float(4)):
              %1 : Float(4) = aten::neg(%x)
              return (%1)
        """),
    )

    def check(self, context: Context) -> Findings:
        for graph in context.view.graphs:
            for node in context.view.with_op(BRANCHES, graph):
                at = 0 if node.op in IF else 1
                if len(node.operands) <= at or node.operands[at].op not in READS:
                    continue
                what = "both branches are in the graph" if at == 0 else "its end depends on data"
                yield self.finding(
                    context, node,
                    f"this graph is scripted, not traced: {node.op.name} waits for %{node.operands[at].name}, {what}, and nothing fuses "
                    "across it",
                    help="torch.where, if both branches are cheap" if at == 0 else "",
                )
