"""FUS017: a barrier prevents fusion."""

from __future__ import annotations

from functools import partial

from irscope.graph import Node, bytes_of
from irscope.lint import Context, Edit, Findings, Fix, Fixture, Note, Rule, Severity, Site, human_bytes, saving
from irscope.ops import hlo, sets

LISTED = 5
CLONE, DETACH = sets.torchscript("clone"), sets.torchscript("detach")
BARRIERS = sets.hlo("opt-barrier") | sets.relay("annotation.stop_fusion") | CLONE
"""In torch a copy that only leaves the gradient behind."""


class OptimizationBarrier(Rule):
    """Values go through an optimization barrier.

    ## What it does
    Finds `opt-barrier` in HLO, `detach().clone()` in TorchScript and `annotation.stop_fusion` in Relay; one finding per graph, with the
    number of barriers and the bytes that go through them.

    ## Why is this bad?
    The compiler does not move, merge or fuse operations across a barrier: it stores the values that go through.

    ## Use instead
    Remove `jax.lax.optimization_barrier`; set `prevent_cse=False` in `jax.checkpoint` inside a scan.

    ## Known false positives
    `jax.checkpoint` inserts barriers on purpose, so that CSE does not undo the rematerialisation. XLA's CPU compiler removes them at the
    end.
    """

    code, name, severity = "FUS017", "optimization-barrier", Severity.INFO
    fix = Fix.REWRITE
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[1024] parameter(0)
              y = f32[1024] tanh(x)
              b = f32[1024] opt-barrier(y)
              ROOT r = f32[1024] negate(b)
            }
        """,
            "b",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[8] parameter(0)
              t = (f32[8]) tuple(x)
              b = (f32[8]) opt-barrier(t)
              c = (f32[8]) opt-barrier(b)
              ROOT r = f32[8] get-tuple-element(c), index=0
            }
        """,
            "b",
        ),
        Fixture.torchscript(
            """
            graph(%x : Float(1024)):
              %none : NoneType = prim::Constant()
              %f : bool = prim::Constant[value=0]()
              %t : bool = prim::Constant[value=1]()
              %y : Float(1024) = aten::tanh(%x)
              %d : Float(1024) = aten::detach(%y)
              %c : Float(1024) = aten::clone(%d, %none)
              %z : Float(1024) = aten::neg(%c)
              return (%z)
        """,
            "c",
        ),
    )
    good = (
        Fixture.hlo("""
            ENTRY e {
              x = f32[1024] parameter(0)
              ROOT y = f32[1024] tanh(x)
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              x = f32[8] parameter(0)
              t = (f32[8]) tuple(x)
              ROOT r = f32[8] get-tuple-element(t), index=0
            }
        """),
        Fixture.torchscript("""
            graph(%x : Float(1024)):
              %y : Float(1024) = aten::tanh(%x)
              %d : Float(1024) = aten::detach(%y)
              %z : Float(1024) = aten::neg(%d)
              return (%z)
        """),
    )

    def check(self, context: Context) -> Findings:
        for graph in context.view.array_graphs:
            barriers = [node for node in context.view.with_op(BARRIERS, graph) if node.op not in CLONE or node.operands[0].op in DETACH]
            if barriers:
                through = sum(bytes_of(n.type) for n in barriers)
                removable = context.module.dialect.primitive
                yield self.finding(
                    context, barriers[0],
                    f"{human_bytes(through)} go through {len(barriers)} barrier{'s' if len(barriers) > 1 else ''} ({barriers[0].op.name})",
                    notes=tuple(Note(f"%{n.name} is another", n.loc) for n in barriers[1:LISTED]),
                    help="remove it, unless it protects a rematerialisation" if removable else "use the value as it is",
                    saves=Edit({n: partial(_opened, n) for n in barriers}) if removable
                    else saving(bytes=2.0 * through, kernels=float(len(barriers))),
                )


def _opened(barrier: Node, site: Site) -> Node:
    """The operand of the barrier itself, in place of its result."""
    given = [site.new(operand) for operand in barrier.operands]
    return given[0] if len(given) == 1 else site.op(hlo.tuple, *given, type=barrier.type)
