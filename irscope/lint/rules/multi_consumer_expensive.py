"""FUS004: an expensive value with several users is stored, though recomputing it in each user would be faster."""

from __future__ import annotations

from functools import partial

from irscope.analysis.values import size
from irscope.graph import Node
from irscope.lint import Context, Edit, Findings, Fix, Fixture, Note, Rule, Severity, Site, human_bytes
from irscope.lint.unfused import UnfusedEdge, unfused_edges
from irscope.ops import hlo

MOST_READERS = 4
"""With more readers than this, every compiler stores the value once."""


class MultiConsumerExpensive(Rule):
    """An expensive elementwise value is stored for several users, though recomputing it would be faster.

    ## What it does
    Finds exponentials, divisions, square roots and similar operators with two to four users that the policy does not fuse into them
    ("expensive producer would be duplicated"). In a copy of the graph each user gets its own producer; reports the value if the estimate
    for the copy is faster, with the work that is repeated.

    ## Why is this bad?
    A large value goes through memory to save a few operations per element.

    ## Use instead
    Compute it once per user, behind `lax.optimization_barrier`, because CSE would merge the copies again (`jax.checkpoint` does so for
    gradients); or let one user follow the other in the same loop.

    ## Known false positives
    Estimates of transcendental functions differ by a factor of two between machines; on a processor with slow ones, storing is right.
    Measured: forcing such a fusion made one program 1.7 times slower, which is why the rule requires a faster estimate.
    """

    code, name, severity = "FUS004", "multi-consumer-expensive", Severity.WARNING
    fix = Fix.REWRITE
    structural, only_gains = True, True
    policies = ("xla-cpu",)
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[2048,2048]{1,0} parameter(0)
              d = f32[2048,2048]{1,0} sqrt(x)
              a = f32[2048,2048]{1,0} negate(d)
              b = f32[2048,2048]{1,0} reverse(d), dimensions={0}
              ra = f32[2048,2048]{1,0} reverse(a), dimensions={1}
              ROOT t = (f32[2048,2048]{1,0}, f32[2048,2048]{1,0}) tuple(ra, b)
            }
        """,
            "d",
            policy="xla-cpu",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[4096,1024]{1,0} parameter(0)
              d = f32[4096,1024]{1,0} sqrt(x)
              a = f32[4096,1024]{1,0} negate(d)
              b = f32[4096,1024]{1,0} abs(d)
              ROOT t = (f32[4096,1024]{1,0}, f32[4096,1024]{1,0}) tuple(a, b)
            }
        """,
            "d",
            policy="xla-cpu",
        ),
        Fixture.torchscript(
            """
            graph(%x : Float(4096, 1024)):
              %d : Float(4096, 1024) = aten::sqrt(%x)
              %a : Float(4096, 1024) = aten::neg(%d)
              %b : Float(4096, 1024) = aten::abs(%d)
              %r : (Float(4096, 1024), Float(4096, 1024)) = prim::TupleConstruct(%a, %b)
              return (%r)
        """,
            "d",
            policy="xla-cpu",
        ),
    )
    good = (
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[4096,1024]{1,0} parameter(0)
              d = f32[4096,1024]{1,0} abs(x)
              a = f32[4096,1024]{1,0} negate(d)
              b = f32[4096,1024]{1,0} floor(d)
              ROOT t = (f32[4096,1024]{1,0}, f32[4096,1024]{1,0}) tuple(a, b)
            }
        """,
            policy="xla-cpu",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[64,64]{1,0} parameter(0)
              d = f32[64,64]{1,0} tanh(x)
              e1 = f32[64,64]{1,0} tanh(d)
              e2 = f32[64,64]{1,0} tanh(e1)
              a = f32[64,64]{1,0} negate(e2)
              b = f32[64,64]{1,0} abs(e2)
              ROOT t = (f32[64,64]{1,0}, f32[64,64]{1,0}) tuple(a, b)
            }
        """,
            policy="xla-cpu",
        ),
        Fixture.torchscript(
            """
            graph(%x : Float(4096, 1024)):
              %d : Float(4096, 1024) = aten::sqrt(%x)
              %a : Float(4096, 1024) = aten::neg(%d)
              return (%a)
        """,
            policy="xla-cpu",
        ),
    )

    def check(self, context: Context) -> Findings:
        found: dict[Node, list[UnfusedEdge]] = {}
        for edge in unfused_edges(context, ("expensive-twice", "can-not-duplicate")):
            if edge.producer.op.weight > 1:
                found.setdefault(edge.producer, []).append(edge)
        for producer, edges in found.items():
            graph = context.view.graph_of[producer]
            users = context.view.users(producer, graph)
            if not 2 <= len(users) <= MOST_READERS or any(user.op is hlo.tuple for user in users):
                continue
            yield self.finding(
                context, producer,
                f"%{producer.name} ({producer.op.name}, {human_bytes(size(producer))}) is stored for {len(users)} readers: {edges[0].why}",
                notes=tuple(Note(f"%{user.name} ({user.op.name}) reads it", user.loc) for user in users),
                help="recompute it in each user, behind a barrier that prevents CSE",
                saves=Edit({user: partial(_own_copy, user, producer) for user in users}, (producer,), apart=True),
            ).stating(edge.verdict for edge in edges)


def _own_copy(user: Node, producer: Node, site: Site) -> Node:
    """A user with its own copy of the producer."""
    mine = site.copy(producer, *map(site.new, producer.operands))
    return site.copy(user, *(mine if operand is producer else site.new(operand) for operand in user.operands))
