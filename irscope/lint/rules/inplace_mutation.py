"""FUS009: an in-place operator prevents fusion of its neighbours."""

from __future__ import annotations

from irscope.analysis.values import size
from irscope.formats.torchscript.dialect import TORCHSCRIPT
from irscope.formats.torchscript.names import functional, is_in_place
from irscope.graph import Graph, Node
from irscope.lint import Context, Findings, Fixture, Note, Rule, RuleFinding, Severity, saving
from irscope.lint.torch_nodes import POINTWISE

LISTED = 5
"""Other writes that are named."""


class InplaceMutation(Rule):
    """An in-place operator separates elementwise operators that could fuse.

    ## What it does
    Finds in-place operators (`relu_`, `add_`) with an elementwise operator before or after them; one finding per graph, at the largest. It
    is information: torch's own CPU builds fuse nothing, eager torch saves an allocation by writing in place, and irscope fuses the write.

    ## Why is this bad?
    TorchScript's fuser moves no operator across a write and fuses none that writes: one group ends before it and another begins after it.
    In eager torch a write in place saves an allocation; in a compiled graph it costs a kernel and a pass over memory.

    ## Use instead
    The out-of-place form: `relu(y)`, `nn.ReLU(inplace=False)`, `x = x + y`.

    ## Known false positives
    irscope itself functionalises in-place writes and fuses them; the finding applies to compilers that do not.
    """

    code, name, severity = "FUS009", "inplace-mutation", Severity.INFO
    dialect = TORCHSCRIPT
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

    def check(self, context: Context) -> Findings:
        for graph in context.view.graphs:
            found = []
            for node in graph.shown():
                if is_in_place(node.op) and functional(node.op) in POINTWISE:
                    beside = self._beside(context, graph, node)
                    if beside is not None:
                        found.append((node, beside))
            if found:
                yield self._finding(context, found)

    @staticmethod
    def _beside(context: Context, graph: Graph, node: Node) -> Node | None:
        """An elementwise operator that produces the operand or reads the result."""
        if node.operands and functional(node.operands[0].op) in POINTWISE:
            return node.operands[0]
        return next((user for user in context.view.users(node, graph) if functional(user.op) in POINTWISE), None)

    def _finding(self, context: Context, found: list[tuple[Node, Node]]) -> RuleFinding:
        """One finding for all writes of a graph, at the largest."""
        node, beside = max(found, key=lambda pair: size(pair[0]))
        plain = functional(node.op).name.removeprefix("aten::")
        more = f"; so do {len(found) - 1} more" if len(found) > 1 else ""
        return self.finding(
            context, node,
            f"{node.op.name} writes in place: TorchScript's fuser does not fuse it with %{beside.name} ({beside.op.name}){more}",
            notes=tuple(Note(f"%{n.name} ({n.op.name}) is another", n.loc) for n, _ in found[:LISTED] if n is not node),
            help=f"use {plain} without underscore (inplace=False), if TorchScript fuses on your device",
            saves=saving(bytes=2.0 * sum(size(n) for n, _ in found), kernels=float(len(found))),
        )
