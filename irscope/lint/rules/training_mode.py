"""ALG008: dropout or batch normalisation in training mode."""

from __future__ import annotations

from irscope.formats.torchscript.dialect import TORCHSCRIPT
from irscope.formats.torchscript.names import functional
from irscope.lint import Context, Findings, Fix, Fixture, Rule, Severity
from irscope.lint.torch_nodes import constant
from irscope.ops.sets import torchscript

DROPOUTS = torchscript("dropout feature_dropout alpha_dropout feature_alpha_dropout native_dropout")
NORMS = torchscript("batch_norm native_batch_norm")
"""Operators that do something else in training: operand 2 or 5 says so."""


class TrainingMode(Rule):
    """Dropout or batch normalisation runs in training mode.

    ## What it does
    Finds `dropout` and `batch_norm` whose training flag is the constant true.

    ## Why is this bad?
    The outputs are random, or depend on the other examples of the batch; and neither operator folds into its neighbours.

    ## Use instead
    `model.eval()` before the model is traced, scripted or exported.

    ## Known false positives
    Graphs of a training step, and dropout that is meant to draw (Monte Carlo dropout).
    """

    code, name, severity = "ALG008", "training-mode", Severity.WARNING
    fix = Fix.NONE
    timed = False
    dialect = TORCHSCRIPT
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

    def check(self, context: Context) -> Findings:
        for graph in context.view.graphs:
            for node in graph.shown():
                drops = functional(node.op) in DROPOUTS
                at = 2 if drops else 5
                if not (drops or node.op in NORMS) or at >= len(node.operands) or constant(node.operands[at]) not in (1, True):
                    continue
                if drops and constant(node.operands[1]) == 0:
                    continue  # a probability of 0 drops nothing
                what = "draws" if drops else "uses the statistics of the batch"
                message = f"{node.op.name} {what}, as in training"
                yield self.finding(context, node, message, help="model.eval() before the graph is made")
