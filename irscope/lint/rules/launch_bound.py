"""KRN001: the program spends most of its time launching kernels."""

from __future__ import annotations

from irscope.lint import Context, Findings, Fix, Fixture, Rule, Severity, human_bytes, human_us

SHARE = 0.5
FEWEST = 32


class LaunchBound(Rule):
    """More than half of the estimated time is kernel launch overhead.

    ## What it does
    Plans the module by the chosen policy and compares the launch cost of its kernels with the whole estimated time, both on the chosen
    machine; loops count by their trips. Reports modules of 32 or more kernels whose launches take more than half of the time.

    ## Why is this bad?
    Faster kernels do not help: there are too many, and they are too small.

    ## Use instead
    Work on larger batches (`jax.vmap`), unroll short loops (`lax.scan(..., unroll=4)`), and check the reasons from `--why-not-fused`.

    ## Known false positives
    A runtime that launches the next kernel while the last one runs (streams, CUDA graphs) hides part of the overhead.
    """

    code, name, severity, default = "KRN001", "launch-bound", Severity.INFO, False
    fix = Fix.NONE
    structural = inside = True
    bad = (
        Fixture.hlo(
            "ENTRY e {\n  v0 = f32[8,8] parameter(0)\n"
            + "".join(
                f"  v{i} = f32[8,8] dot(v{i - 1}, v{i - 1}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n" for i in range(1, 41)
            )
            + "  ROOT r = f32[8,8] negate(v40)\n}",
            "r",
        ),
        Fixture.hlo(
            "less {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT l = pred[] compare(a, b), direction=LT\n}\n\n"
            "ENTRY e {\n  v0 = f32[4] parameter(0)\n"
            + "".join(f"  v{i} = f32[4] sort(v{i - 1}), dimensions={{0}}, to_apply=less\n" for i in range(1, 41))
            + "  ROOT r = f32[4] negate(v40)\n}",
            "r",
        ),
        Fixture.torchscript(
            "graph(%v0 : Float(8, 8)):\n"
            + "".join(f"  %v{i} : Float(8, 8) = aten::mm(%v{i - 1}, %v{i - 1})\n" for i in range(1, 41))
            + "  return (%v40)",
            "v40",
        ),
        Fixture.relay(
            "def @main(%x: Tensor[(8, 8), float32]) {\n  %0 = nn.dense(%x, %x);\n"
            + "".join(f"  %{i} = nn.dense(%{i - 1}, %{i - 1});\n" for i in range(1, 40))
            + "  %39\n}",
            "39",
        ),
    )
    good = (
        Fixture.hlo(
            "ENTRY e {\n  v0 = f32[512,512] parameter(0)\n"
            + "".join(
                f"  v{i} = f32[512,512] dot(v{i - 1}, v{i - 1}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
                for i in range(1, 41)
            )
            + "  ROOT r = f32[512,512] negate(v40)\n}"
        ),
        Fixture.hlo(
            "ENTRY e {\n  v0 = f32[8,8] parameter(0)\n"
            + "".join(f"  v{i} = f32[8,8] tanh(v{i - 1})\n" for i in range(1, 41))
            + "  ROOT r = f32[8,8] negate(v40)\n}"
        ),
        Fixture.torchscript("""
            graph(%x : Float(8, 8)):
              %y : Float(8, 8) = aten::mm(%x, %x)
              return (%y)
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(8, 8), float32]) {
              nn.dense(%x, %x)
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        planned, total, machine = context.costs.planned, context.costs.total_us, context.costs.machine
        if planned is None or not total or context.module.main().root is None:
            return
        times = planned.survey.calls.times
        kernels = sum(times.get(plan.graph, 0.0) * plan.kernels() for plan in planned.plans)
        each = machine.launch(context.settings.policy)
        launch = kernels * each
        if kernels < FEWEST or launch < SHARE * total:
            return
        main = context.module.main()
        yield self.finding(
            context, main.result(),
            f"{kernels:.0f} kernels cost {human_us(launch)} to launch at {each:g} us each on {machine.name}, of "
            f"{human_us(total)} in all ({human_bytes(planned.traffic)}): {100 * launch / total:.0f} % is launch overhead",
            help="make them larger or fewer: a larger batch, an unrolled loop, what --why-not-fused names",
        )
