"""CTL004: a call to a part of the program that TorchScript could not capture."""

from __future__ import annotations

from irscope.formats.torchscript.dialect import TORCHSCRIPT
from irscope.formats.torchscript.names import is_python
from irscope.graph import Node, Op
from irscope.lint import Context, Findings, Fixture, Note, Rule, Severity
from irscope.ops.sets import torchscript

CALLS = torchscript("prim::CallFunction prim::CallMethod")
FALLBACKS = torchscript("prim::FallbackGraph prim::fallback_function prim::BailOut prim::BailoutTemplate")
LISTED = 3


class GraphBreakRemnant(Rule):
    """The graph calls Python, a function whose body is not in the text, or a fallback to the interpreter.

    ## What it does
    Finds Python functions in a graph (`^Name(...)`, which `torch.autograd.Function` leaves in a trace, `prim::PythonOp`): a warning each.
    Calls to methods and functions whose bodies the text omits, and fallback graphs of TorchScript's profiling executor, are information,
    one finding per graph.

    ## Why is this bad?
    With a Python function the graph cannot be saved or run without Python, and nothing fuses across the call. If the body of a call is not
    in the text, its cost and its findings are unknown.

    ## Use instead
    Write the function with torch operators, or register it (`torch.library.custom_op`); print `inlined_graph` instead of `graph`.

    ## Known false positives
    A `graph` printed to show the module structure calls methods on purpose.
    """

    code, name, severity = "CTL004", "graph-break-remnant", Severity.INFO
    timed = False
    dialect = TORCHSCRIPT
    bad = (
        Fixture.torchscript(
            """
            graph(%x : Float(2)):
              %3 : Float(2) = ^G[inplace=0, module="__main__"](3)(%x)
              %4 : Float(2) = aten::relu(%3)
              return (%4)
        """,
            "3",
        ),
        Fixture.torchscript(
            """
            graph(%self : __torch__.Net, %x : Float(2)):
              %layer : __torch__.Layer = prim::GetAttr[name="layer"](%self)
              %4 : Tensor = prim::CallMethod[name="forward"](%layer, %x)
              %5 : Tensor = prim::CallMethod[name="forward"](%layer, %4)
              return (%5)
        """,
            "4",
        ),
    )
    good = (
        Fixture.torchscript("""
            graph(%x : Float(2)):
              %4 : Float(2) = aten::relu(%x)
              return (%4)
        """),
        Fixture.torchscript("""
            graph(%self : __torch__.Net, %x : Float(2)):
              %weight : Tensor = prim::GetAttr[name="weight"](%self)
              %4 : Tensor = aten::mul(%x, %weight)
              return (%4)
        """),
    )

    def check(self, context: Context) -> Findings:
        for graph in context.view.graphs:
            calls: dict[Op, list[Node]] = {}
            for node in graph.shown():
                if is_python(node.op):
                    yield self.finding(
                        context, node,
                        f"{node.op.name.removeprefix('^')} is a Python function: the graph cannot be saved, and nothing fuses across it",
                        help="write it with operators of torch, or register it with torch.library.custom_op",
                    )
                elif node.op in CALLS or node.op in FALLBACKS:
                    calls.setdefault(node.op, []).append(node)
            for op, nodes in calls.items():
                what = "falls back to the interpreter" if op in FALLBACKS else "calls a function that is not in this text"
                more = f", and so do {len(nodes) - 1} others" if len(nodes) > 1 else ""
                yield self.finding(
                    context, nodes[0],
                    f"{op.name} {what}{more}: its cost and its findings are unknown",
                    notes=tuple(Note(f"%{node.name} is another", node.loc) for node in nodes[1:LISTED]),
                    help="" if op in FALLBACKS else "print inlined_graph instead of graph",
                )
