"""FUS006: an expensive value is not fused into its consumer, which would compute it again for each broadcast element."""

from __future__ import annotations

from irscope.lint import Context, Findings, Fix, Fixture, Rule, Severity
from irscope.lint.unfused import findings_by_producer


class ExpensiveIntoBroadcast(Rule):
    """An exponential, a division or another expensive operator is not fused, because its consumer reads each element more than once.

    ## What it does
    Finds values that the policy does not fuse into a consumer because it reads their elements more than once: XLA's CPU compiler says
    "Fusion is not profitable.", irscope's own policy that work would be repeated.

    ## Why is this bad?
    Mostly it is not: computing the small value once and storing it is cheaper. It is bad if the value is as large as its consumer's result.

    ## Use instead
    Nothing, if the value is small compared with the result; otherwise compute the exponential after the broadcast.

    ## Known false positives
    Most findings: the rule is therefore off by default, and reports only information.
    """

    code, name, severity, default = "FUS006", "expensive-into-broadcast", Severity.INFO, False
    fix = Fix.NONE
    structural = True
    policies = ("xla-cpu", "irscope")
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[512]{0} parameter(0)
              y = f32[64,512]{1,0} parameter(1)
              p = f32[512]{0} exponential(x)
              b = f32[64,512]{1,0} broadcast(p), dimensions={1}
              ROOT r = f32[64,512]{1,0} add(b, y)
            }
        """,
            "p",
            policy="xla-cpu",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[512] parameter(0)
              y = f32[64,512] parameter(1)
              p = f32[512] exponential(x)
              b = f32[64,512] broadcast(p), dimensions={1}
              ROOT r = f32[64,512] add(b, y)
            }
        """,
            "p",
        ),
    )
    good = (
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[512]{0} parameter(0)
              y = f32[64,512]{1,0} parameter(1)
              p = f32[512]{0} negate(x)
              b = f32[64,512]{1,0} broadcast(p), dimensions={1}
              ROOT r = f32[64,512]{1,0} add(b, y)
            }
        """,
            policy="xla-cpu",
        ),
        Fixture.hlo("""
            ENTRY e {
              x = f32[64,512] parameter(0)
              y = f32[64,512] parameter(1)
              p = f32[64,512] exponential(x)
              ROOT r = f32[64,512] add(p, y)
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        said = "is stored for {consumer} ({op}), which would compute it repeatedly"
        yield from findings_by_producer(context, self, ("not-profitable", "repeated-work"), said)
