"""ALG016: small values that are computed from constants alone."""

from __future__ import annotations

from irscope.analysis.values import size, written
from irscope.graph import Graph, Kind, Node
from irscope.lint import Context, Findings, Fixture, Note, Rule, RuleFinding, Severity, human_bytes, plural, saving
from irscope.lint.rules.constant_subgraph import ConstantSubgraph
from irscope.lint.view import ModuleView

LISTED = 5
"""Operators that are named."""
WORK = (Kind.ELEMENTWISE, Kind.REDUCTION, Kind.CONTRACTION)
CASTS = frozenset(("convert", "bitcast-convert"))
"""Conversions do not count: frameworks write a number of another type as a converted literal."""


class ConstantArithmetic(Rule):
    """Small values are computed from constants alone: the text is not constant-folded.

    ## What it does
    Counts the operators that compute and depend on constants alone, and are too small for constant-subgraph. Reports one fact for a module,
    at the first, unless the text is optimised.

    ## Why is this bad?
    Compilers fold them, so that they cost nothing at run time. They show that no constant folding has run yet, and they may hide a number
    that was meant to be an input.

    ## Use instead
    Compute the number in Python, or run `irscope opt --passes fold-constants`.

    ## Known false positives
    Most programs before optimisation: the rule reports a fact, not a fault.
    """

    code, name, severity = "ALG016", "constant-arithmetic", Severity.INFO
    passes = ("fold-constants",)
    structural = inside = True
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[8] parameter(0)
              a = f32[] constant(2)
              b = f32[] constant(3)
              m = f32[] multiply(a, b)
              k = f32[8] broadcast(m), dimensions={}
              ROOT r = f32[8] multiply(x, k)
            }
        """,
            "m",
        ),
        Fixture.relay("""
            def @main(%x: Tensor[(8), float32]) {
              %0 = multiply(2f, 3f);
              multiply(%x, %0)
            }
        """, "0"),
        Fixture.torchscript("""
            graph(%x : Float(8)):
              %n : int = prim::Constant[value=8]()
              %six : int = prim::Constant[value=6]()
              %none : NoneType = prim::Constant()
              %r : Float(8) = aten::arange(%n, %six, %none, %none, %none)
              %e : Float(8) = aten::exp(%r)
              %y : Float(8) = aten::mul(%x, %e)
              return (%y)
        """),
    )
    good = (
        Fixture.hlo("""
            ENTRY e {
              x = f32[8] parameter(0)
              a = f64[] constant(2)
              c = f32[] convert(a)
              k = f32[8] broadcast(c), dimensions={}
              ROOT r = f32[8] multiply(x, k)
            }
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(8), float32]) {
              multiply(%x, 6f)
            }
        """),
        Fixture.torchscript("""
            graph(%x : Float(8)):
              %y : Float(8) = aten::mul(%x, %x)
              return (%y)
        """),
    )

    def check(self, context: Context) -> Findings:
        if context.view.optimised:
            return
        reported = {found.at[1] for found in ConstantSubgraph.found_in(context) if isinstance(found, RuleFinding) and found.at}
        places = [node for graph in context.view.array_graphs if graph not in context.view.inlined
                  for node in _computed(context.view, graph) if node not in reported]
        if not places:
            return
        yield self.finding(
            context, places[0],
            f"{plural(len(places), 'operator')} {'computes' if len(places) == 1 else 'compute'} from constants alone, "
            f"{human_bytes(sum(map(size, places)))}: compilers fold them",
            notes=tuple(Note(f"%{node.name} is {node.op.name}, {node.type}", node.loc) for node in places[:LISTED]),
            saves=saving(),
        )


def _computed(view: ModuleView, graph: Graph) -> list[Node]:
    """The operators of a graph that compute on constants, and are not the steps of one operator of the text."""
    known = view.known_early(graph)
    found = [node for node in graph.nodes
             if known[node.index] and node.op.kind in WORK and node.op.name not in CASTS and node.operands]
    return [node for node in found if not node.origin or all(known[o.index] for o in node.operands if written(o) is not written(node))]
