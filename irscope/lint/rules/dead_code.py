"""ALG003: work whose result nobody uses."""

from __future__ import annotations

from collections.abc import Iterator

from irscope.graph import Graph, Node, TensorType, bytes_of, live, reachable
from irscope.lint.context import Context
from irscope.lint.findings import RuleFinding
from irscope.lint.rule import Fixture, Rule
from irscope.lint.savings import saving
from irscope.source import Severity


class DeadCode(Rule):
    """A value is computed that neither the result nor an effect needs.

    ## What it does
    Names each computation that ends in nothing, with the number of nodes that are kept for it alone.
    Unused parameters are told as information.

    ## Why is this bad?
    The work is wasted where no later pass removes it, and it often shows a mistake: an output that was forgotten, a branch cut off.

    ## Example
    ```
    %norm = f32[8] multiply(%x, %x)
    ROOT %r = f32[8] negate(%x)
    ```

    ## Use instead
    Return the value, or delete what computes it.

    ## Known false positives
    Text from before optimisation carries dead code that the compiler removes for free.
    """

    code, name, severity = "ALG003", "dead-code", Severity.WARNING
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              p = f32[8] parameter(0)
              a = f32[8] negate(p)
              d = f32[8] exponential(a)
              ROOT r = f32[8] abs(p)
            }
        """,
            "d",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              p = f32[8] parameter(0)
              q = f32[8] parameter(1)
              ROOT r = f32[8] abs(p)
            }
        """,
            "q",
        ),
    )
    good = (
        Fixture.hlo("""
            ENTRY e {
              p = f32[8] parameter(0)
              a = f32[8] negate(p)
              ROOT r = f32[8] abs(a)
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              p = f32[8] parameter(0)
              t = token[] after-all()
              o = token[] outfeed(p, t)
              ROOT r = f32[8] abs(p)
            }
        """),
    )

    def check(self, context: Context) -> Iterator[RuleFinding]:
        entry = context.module.main()
        for graph in context.graphs:
            alive = live(graph)
            dead = [n for n in graph.nodes if not alive[n.index] and n.op.name != "after-all"]
            ends = [n for n in dead if not context.users(n, graph)]
            for node in ends:
                kept = _kept_for(graph, node, dead)
                written = sum(bytes_of(n.type) for n in kept)
                more = f", with {len(kept) - 1} more nodes that are kept for it" if len(kept) > 1 else ""
                cheap = all(n.op.name in ("constant", "iota", "tuple", "get-tuple-element", "broadcast") for n in kept)
                yield context.finding(
                    self,
                    node,
                    graph,
                    f"nobody uses %{node.name}{more}",
                    severity=Severity.INFO if cheap else Severity.WARNING,
                    help="return it, or delete it in the model",
                    saves=saving(bytes=float(written), kernels=0.0 if cheap else 1.0),
                )
            if graph is entry:
                for param in graph.params:
                    if not context.users(param, graph) and param is not graph.root and isinstance(param.type, TensorType):
                        yield context.finding(
                            self,
                            param,
                            graph,
                            f"parameter {param.attrs.get('number', '')} is not used".replace("  ", " "),
                            severity=Severity.INFO,
                        )


def _kept_for(graph: Graph, end: Node, dead: list[Node]) -> list[Node]:
    """The dead nodes that ``end`` needs, itself among them."""
    needed = reachable(graph, [end])
    return [n for n in dead if needed[n.index]]
