"""KRN002: a memory-bound kernel takes a large part of the time."""

from __future__ import annotations

from irscope.lint import Context, Findings, Fix, Fixture, Rule, Severity, human_bytes, human_us
from irscope.lint.estimate import Works

SHARE = 0.1
"""Of the module's estimated time."""
FEWEST_US = 5.0


class LowIntensityHotKernel(Rule):
    """A memory-bound kernel takes more than a tenth of the estimated time.

    ## What it does
    Plans the module by the chosen policy, and reports each kernel of the entry computation that takes more than 10 % of the estimated time
    (and 5 us) and is bound by memory, with its place on the roofline of the chosen machine.

    ## Why is this bad?
    Only moving fewer bytes makes it faster; faster instructions or other tile sizes do not.

    ## Use instead
    A narrower type, a fusion with its neighbours (`--why-not-fused`), or work on blocks that stay in the caches.

    ## Known false positives
    A kernel that reads every weight once is always bound by memory.
    """

    code, name, severity, default = "KRN002", "low-intensity-hot-kernel", Severity.INFO, False
    fix = Fix.NONE
    structural = inside = True
    bad = (
        Fixture(
            "hlo",
            """HloModule m, is_scheduled=true

fused {
  a = f32[1048576] parameter(0)
  b = f32[1048576] negate(a)
  c = f32[1048576] add(a, b)
  d = f32[1048576] multiply(c, b)
  ROOT r = f32[1048576] abs(d)
}

ENTRY e {
  x = f32[1048576] parameter(0)
  ROOT f = f32[1048576] fusion(x), kind=kLoop, calls=fused
}
""",
            ("r",),
            "xla-cpu",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[4096,4096] parameter(0)
              y = f32[4096,4096] parameter(1)
              ROOT r = f32[4096,4096] add(x, y)
            }
        """,
            "r",
        ),
        Fixture.torchscript(
            """
            graph(%x : Float(4096, 4096)):
              %y : Float(4096, 4096) = aten::neg(%x)
              return (%y)
        """,
            "y",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(4096, 4096), float32]) -> Tensor[(4096, 4096), float32] {
              %0 = nn.relu(%x);
              %0
            }
        """,
            "0",
        ),
    )
    good = (
        Fixture.hlo("""
            ENTRY e {
              x = f32[1024,1024] parameter(0)
              y = f32[1024,1024] parameter(1)
              ROOT r = f32[1024,1024] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
            }
        """),
        Fixture.torchscript("""
            graph(%x : Float(16, 16)):
              %y : Float(16, 16) = aten::neg(%x)
              return (%y)
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(1024, 1024), float32], %w: Tensor[(1024, 1024), float32]) -> Tensor[(1024, 1024), float32] {
              nn.dense(%x, %w)
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              x = s32[] parameter(0)
              t = token[] parameter(1)
              s = (s32[], u32[], token[]) send(x, t), channel_id=3, is_host_transfer=true
              d = token[] send-done(s), channel_id=3, is_host_transfer=true
              ROOT r = s32[] negate(x)
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        planned, machine = context.costs.planned, context.costs.machine
        if planned is None or not context.costs.total_us:
            return
        works = Works(machine, context.settings.policy)
        plan = planned.plans[-1]
        for group in plan.groups:
            if not group.outputs:
                continue  # it runs only for its effect
            us = planned.kernel_us(plan.graph, group, works)
            node = context.view.original(group.root, plan.graph)
            if us < max(FEWEST_US, SHARE * context.costs.total_us) or node is None:
                continue
            read, written = planned.flow(plan.graph, group)
            computing = sum(works.us(n) for n in group.nodes)
            if machine.move_us(read, written) <= computing:
                continue
            own = [n for n in group.nodes if n.index < len(plan.graph.nodes) and plan.graph.nodes[n.index] is n]
            flops = sum(planned.survey.costs.flops(n, plan.graph) for n in own)
            balance = machine.vector_gflops / machine.read_gbs
            yield self.finding(
                context, node,
                f"the kernel of %{node.name} moves {human_bytes(read + written)} in about {human_us(us)}, "
                f"{100 * us / context.costs.total_us:.0f} % of all: {flops / max(1.0, read + written):.2g} operations "
                f"per byte, of the {balance:.2g} that {machine.name} could do",
                help="narrower types, fewer kernels over the same values, blocks that stay in the caches",
            )
