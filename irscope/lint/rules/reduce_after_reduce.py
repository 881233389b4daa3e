"""FUS012: a reduction of a reduction, which one reduction could replace or which needs two kernels."""

from __future__ import annotations

from irscope.analysis.values import body_operator, number, size
from irscope.graph import Graph, Node
from irscope.lint import Context, Findings, Fix, Fixture, Note, Rule, Severity, human_bytes
from irscope.lint.proven.changes.reductions import at_once
from irscope.lint.unfused import proven_help, unfused_edges
from irscope.ops import hlo

NEUTRAL = {hlo.add: 0.0, hlo.multiply: 1.0, hlo.maximum: float("-inf"), hlo.minimum: float("inf"), hlo.or_: 0.0, hlo.and_: 1.0}
"""The neutral element of each operator, with which a reduction begins."""


class ReduceAfterReduce(Rule):
    """The result of a reduction is reduced again, by the same operator or in a second kernel.

    ## What it does
    Finds a sum of a sum (a maximum of a maximum...) with no other user between: one reduction over both sets of axes is equivalent.
    Under `--policy xla-gpu` it also reports significant reductions (16 terms and more) that XLA does not fuse because "both the producer
    and the consumer contain a reduce".

    ## Why is this bad?
    The first result goes through memory, and a second kernel is launched to do little work.

    ## Use instead
    `jnp.sum(x, axis=(1, 2))`; for a variance, `jnp.var`, or the mean of squares less the square of the mean where the mean is small.

    ## Known false positives
    Sums computed in two steps on purpose lose fewer digits; XLA's CPU compiler splits large sums this way (`reduce-window` and `reduce`).
    """

    code, name, severity = "FUS012", "reduce-after-reduce", Severity.WARNING
    fix = Fix.REWRITE
    structural = True
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[64,128,256] parameter(0)
              z = f32[] constant(0)
              s = f32[64,128] reduce(x, z), dimensions={2}, to_apply=sum
              ROOT r = f32[64] reduce(s, z), dimensions={1}, to_apply=sum
            }
        """,
            "r",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[64,128,256]{2,1,0} parameter(0)
              z = f32[] constant(0)
              m = f32[64,128]{1,0} reduce(x, z), dimensions={2}, to_apply=sum
              q = f32[64,128]{1,0} multiply(m, m)
              ROOT r = f32[64]{0} reduce(q, z), dimensions={1}, to_apply=sum
            }
        """,
            "q",
            policy="xla-gpu",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(64, 128, 256), float32]) -> Tensor[(64), float32] {
              %0 = sum(%x, axis=[2]);
              %1 = sum(%0, axis=[1]);
              %1
            }
            """,
            "1",
        ),
    )
    good = (
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[64,128,256] parameter(0)
              z = f32[] constant(0)
              i = f32[] constant(-inf)
              s = f32[64,128] reduce(x, z), dimensions={2}, to_apply=sum
              ROOT r = f32[64] reduce(s, i), dimensions={1}, to_apply=max
            }
        """
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[64,128,256] parameter(0)
              z = f32[] constant(0)
              s = f32[64,128] reduce(x, z), dimensions={2}, to_apply=sum
              r = f32[64] reduce(s, z), dimensions={1}, to_apply=sum
              ROOT t = (f32[64,128], f32[64]) tuple(s, r)
            }
        """
        ),
        Fixture.relay("""
            def @main(%x: Tensor[(64, 128, 256), float32]) -> Tensor[(64), float32] {
              %0 = sum(%x, axis=[2]);
              max(%0, axis=[1])
            }
            """),
    )

    def check(self, context: Context) -> Findings:
        reported = set()
        for node, graph in context.view.primitives(hlo.reduce):
            first = _first(context, graph, node)
            if first is None or graph in context.view.inlined:
                continue
            reported.add(node)
            yield self.finding(
                context, node,
                f"%{node.name} reduces the result of %{first.name} by the same operator: one reduction over both is equivalent",
                notes=(Note(f"%{first.name} is the first, of {first.operands[0].type}", first.loc),),
                help="reduce over both sets of axes at once",
                saves=at_once(first, node),
            )
        if context.settings.compiler == "xla-gpu":
            yield from self._apart(context, reported)

    def _apart(self, context: Context, reported: set[Node]) -> Findings:
        """Reductions that the policy does not fuse into one kernel."""
        for edge in unfused_edges(context, ("reduce-after-reduce",)):
            if edge.consumer in reported:
                continue
            yield self.finding(
                context, edge.consumer,
                f"%{edge.consumer.name} follows %{edge.producer.name} in a separate kernel "
                f"({human_bytes(size(edge.producer))}): {edge.why}",
                notes=(Note(f"%{edge.producer.name} ends the first kernel", edge.producer.loc),),
                help=proven_help(context, edge),
                saves=edge.saves,
            ).stating((edge.verdict,)).with_severity(Severity.INFO)


def _first(context: Context, graph: Graph, node: Node) -> Node | None:
    """The reduction by the same operator that a reduction reads, if it has no other user and both start from the neutral element."""
    operator = body_operator(node)
    if operator is None or operator not in NEUTRAL or len(node.operands) != 2:
        return None
    first = node.operands[0]
    if first.op is not hlo.reduce or len(first.operands) != 2 or body_operator(first) is not operator:
        return None
    begins = [number(one.operands[1]) for one in (node, first)]
    alone = len(context.view.users(first, graph)) == 1 and first is not graph.root
    return first if alone and all(value == NEUTRAL[operator] for value in begins) else None
