"""ALG008: dropout or batch normalisation as in training."""

from __future__ import annotations

from collections.abc import Iterator

from irscope.lint.context import Context
from irscope.lint.findings import RuleFinding
from irscope.lint.rule import Fix, Fixture, Rule
from irscope.lint.torch_nodes import constant, whole_graphs, written
from irscope.source import Severity

FLAGS = {
    "aten::dropout": 2, "aten::dropout_": 2, "aten::feature_dropout": 2, "aten::alpha_dropout": 2, "aten::feature_alpha_dropout": 2,
    "aten::batch_norm": 5, "aten::native_batch_norm": 5, "aten::native_dropout": 2,
}
"""Operators that do something else in training, and which operand says so."""


class TrainingMode(Rule):
    """Dropout draws, or batch normalisation takes the statistics of the batch, as in training.

    ## What it does
    Finds `dropout` and `batch_norm` whose flag for training is a constant true.

    ## Why is this bad?
    The outputs are random, or depend on the other examples of the batch; and neither operator disappears into its neighbours.

    ## Example
    ```
    %train : bool = prim::Constant[value=1]()
    %y : Tensor = aten::dropout(%x, %p, %train)
    ```

    ## Use instead
    `model.eval()` before the model is traced, scripted or exported.

    ## Known false positives
    Graphs of a training step, and dropout that is meant to draw (Monte Carlo dropout).
    """

    code, name, severity = "ALG008", "training-mode", Severity.WARNING
    fix = Fix.NONE
    timed = False
    bad = (
        Fixture.torchscript(
            """
            graph(%x : Float(4)):
              %p : float = prim::Constant[value=0.10000000000000001]()
              %train : bool = prim::Constant[value=1]()
              %y : Float(4) = aten::dropout(%x, %p, %train)
              return (%y)
        """,
            "y",
        ),
        Fixture.torchscript(
            """
            graph(%x : Float(4, 3), %w : Float(3), %b : Float(3), %m : Float(3), %v : Float(3)):
              %on : bool = prim::Constant[value=1]()
              %p : float = prim::Constant[value=0.10000000000000001]()
              %y : Float(4, 3) = aten::batch_norm(%x, %w, %b, %m, %v, %on, %p, %p, %on)
              return (%y)
        """,
            "y",
        ),
    )
    good = (
        Fixture.torchscript("""
            graph(%x : Float(4)):
              %p : float = prim::Constant[value=0.10000000000000001]()
              %train : bool = prim::Constant[value=0]()
              %y : Float(4) = aten::dropout(%x, %p, %train)
              return (%y)
        """),
        Fixture.torchscript("""
            graph(%x : Float(4)):
              %p : float = prim::Constant[value=0.]()
              %train : bool = prim::Constant[value=1]()
              %y : Float(4) = aten::dropout(%x, %p, %train)
              return (%y)
        """),
    )

    def check(self, context: Context) -> Iterator[RuleFinding]:
        for graph in whole_graphs(context):
            for node in written(graph):
                at = FLAGS.get(node.op.name)
                if at is None or at >= len(node.operands) or constant(node.operands[at]) not in (1, True):
                    continue
                if "dropout" in node.op.name and constant(node.operands[1]) == 0:
                    continue  # nothing is dropped
                what = "draws" if "dropout" in node.op.name else "takes the statistics of the batch"
                message = f"{node.op.name} {what}, as in training"
                yield context.finding(self, node, graph, message, help="model.eval() before the graph is made")
