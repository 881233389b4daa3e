"""KRN001: the program spends its time in starting kernels."""

from __future__ import annotations

from collections.abc import Iterator

from irscope.lint.context import Context
from irscope.lint.rule import Fixture, Rule
from irscope.lint.savings import CPU_BYTES_PER_US, KERNEL_US, human_bytes
from irscope.source import Finding, Severity

FLOPS_PER_US = 50_000.0
"""What one core computes beside reading and writing, 50 GFLOP/s: the lower end of what irscope's products reach."""
SHARE = 0.5
FEWEST = 32


class LaunchBound(Rule):
    """More than half of the estimated time goes into starting kernels.

    ## What it does
    Plans the module by irscope's own policy and compares `kernels x 1 us` with the time for their traffic at 42 GB/s and arithmetic at
    50 GFLOP/s, loops by their trips. Told when there are 32 kernels and more, and starting them is more than half.

    ## Why is this bad?
    Faster kernels change nothing: there are too many, and they are too small.

    ## Example
    ```
    while: 1000 trips x 12 kernels of 4 KiB
    ```

    ## Use instead
    Work on larger batches (`jax.vmap`), unroll short loops (`lax.scan(..., unroll=4)`), and look at what `--why-not-fused` says.

    ## Known false positives
    On a CPU a kernel of a compiled program is a call and costs far less than the 1 us that is assumed here; on a GPU it costs more.
    """

    code, name, severity, default = "KRN001", "launch-bound", Severity.INFO, False
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
            "ENTRY e {\n  v0 = f32[64] parameter(0)\n"
            + "".join(f"  v{i} = f32[64] sort(v{i - 1}), dimensions={{0}}, to_apply=less\n" for i in range(1, 41))
            + "  ROOT r = f32[64] negate(v40)\n}",
            "r",
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
    )

    def check(self, context: Context) -> Iterator[Finding]:
        if context.planned is None or context.module.main().root is None:
            return
        planned = context.planned
        times = planned.survey.calls.times
        kernels = sum(times.get(plan.graph, 0.0) * plan.kernels() for plan in planned.plans)
        if kernels < FEWEST:
            return
        flops = planned.survey.totals.flops
        launch, work = kernels * KERNEL_US, planned.traffic / CPU_BYTES_PER_US + flops / FLOPS_PER_US
        if launch < SHARE * (launch + work):
            return
        main = context.module.main()
        yield context.finding(
            self,
            main.result(),
            main,
            f"{kernels:.0f} kernels cost {launch:.0f} us to start at {KERNEL_US:g} us each, and {work:.0f} us to run "
            f"({human_bytes(planned.traffic)}, {flops / 1e6:.1f} MFLOP): {100 * launch / (launch + work):.0f} % is starting",
            help="make them larger or fewer: a larger batch, an unrolled loop, what --why-not-fused names",
        )
