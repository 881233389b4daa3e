"""ALG002: the same value is computed twice."""

from __future__ import annotations

from collections import Counter

from irscope.analysis.values import written
from irscope.graph import Graph, Kind, Node, bytes_of
from irscope.lint import Context, Edit, Findings, Fix, Fixture, Note, Rule, Severity, human_bytes
from irscope.ops import hlo

WORTH_BYTES = 64 * 1024
"""Below this size computing a value twice is often cheaper than keeping it, so that a finding is information only."""


class DuplicateSubexpression(Rule):
    """The same operator is applied to the same operands twice (a common subexpression).

    ## What it does
    Compares operator, operands (recursively), attributes, called computations and type of all pure nodes of a graph.
    Reports only the last node of a duplicated chain.

    ## Why is this bad?
    The work is done twice, and the two copies keep their operands alive.

    ## Use instead
    Compute it once and use it twice.

    ## Known false positives
    XLA's CSE merges such nodes itself, so in text from before optimisation the finding is information unless the work is heavy.
    A value may be recomputed on purpose, to free memory in between (rematerialisation).
    """

    code, name, severity = "ALG002", "duplicate-subexpression", Severity.WARNING
    fix = Fix.REWRITE
    passes = ("share-equal",)
    structural = True
    tidied = True
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              p = f32[128,1024] parameter(0)
              a = f32[128,1024] exponential(p)
              b = f32[128,1024] exponential(p)
              ROOT r = f32[128,1024] multiply(a, b)
            }
        """,
            "b",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              p = f32[8] parameter(0)
              a = f32[8] tanh(p)
              c = f32[8] negate(a)
              b = f32[8] tanh(p)
              d = f32[8] negate(b)
              ROOT r = f32[8] add(c, d)
            }
        """,
            "d",
        ),
        Fixture.torchscript(
            """
            graph(%x : Float(256, 256)):
              %a : Float(256, 256) = aten::tanh(%x)
              %b : Float(256, 256) = aten::tanh(%x)
              %y : Float(256, 256) = aten::mul(%a, %b)
              return (%y)
        """,
            "b",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(256, 256), float32]) {
              %0 = tanh(%x);
              %1 = tanh(%x);
              %2 = multiply(%0, %1);
              %2
            }
        """,
            "1",
        ),
    )
    good = (
        Fixture.hlo("""
            ENTRY e {
              p = f32[8] parameter(0)
              a = f32[8] exponential(p)
              b = f32[8] negate(p)
              ROOT r = f32[8] multiply(a, b)
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              p = f32[8,8] parameter(0)
              a = f32[4,8] slice(p), slice={[0:4], [0:8]}
              b = f32[4,8] slice(p), slice={[4:8], [0:8]}
              ROOT r = f32[4,8] multiply(a, b)
            }
        """),
        Fixture.torchscript("""
            graph(%x : Float(256, 256), %z : Float(256, 256)):
              %a : Float(256, 256) = aten::tanh(%x)
              %b : Float(256, 256) = aten::tanh(%z)
              %y : Float(256, 256) = aten::mul(%a, %b)
              return (%y)
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(256, 256), float32]) {
              %0 = tanh(%x);
              %1 = sinh(%x);
              multiply(%0, %1)
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        for graph in context.view.array_graphs:
            twins = _twins(graph, context.view.values(graph))
            copies = Counter(map(id, twins))
            for node in graph.nodes:
                first = twins[node.index]
                if first is node or node.op.kind in (Kind.LEAF, Kind.TUPLE, Kind.BROADCAST) or node.op is hlo.iota:
                    continue
                users = context.view.users(node, graph)
                if users and all(copies[id(twins[u.index])] > 1 for u in users):
                    continue  # its users are duplicates themselves, and are reported
                if written(first) is written(node):
                    continue  # one line of a function that is called twice, or one operator of the text: it would name itself
                size = bytes_of(node.type)
                heavy = size >= WORTH_BYTES or node.op.kind == Kind.CONTRACTION
                yield self.finding(
                    context, node,
                    f"%{node.name} recomputes %{first.name}: {node.op.name}, {human_bytes(size)}",
                    notes=(Note(f"%{first.name} is here", first.loc),),
                    help=f"use %{first.name}",
                    saves=Edit.use(node, first),
                ).with_severity(self.severity if heavy else Severity.INFO)


def _twins(graph: Graph, numbers: list[int]) -> list[Node]:
    """For each node, by index, the first node of the graph with the same value."""
    first: dict[int, Node] = {}
    return [first.setdefault(number, node) for number, node in zip(numbers, graph.nodes, strict=True)]
