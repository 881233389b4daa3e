"""FUS013: the user of a reduction also reads another array, so XLA's GPU compiler does not fuse it into the reduction."""

from __future__ import annotations

from irscope.lint import Context, Findings, Fixture, Rule, Severity
from irscope.lint.unfused import findings_by_producer

_ROWS = """
            ENTRY e {
              x = f32[1024,512]{1,0} parameter(0)
              y = f32[1024]{0} parameter(1)
              z = f32[] constant(0)
              t = f32[1024]{0} reduce(x, z), dimensions={1}, to_apply=sum
              ROOT r = f32[1024]{0} WORK
            }
        """


class ReduceEpilogue(Rule):
    """A binary operator after a reduction also reads another array, and is not fused into the reduction's kernel.

    ## What it does
    Under `--policy xla-gpu`, finds reductions whose epilogue XLA does not fuse, because "fusion into output of a reduce fusion would create
    a loop fusion".

    ## Why is this bad?
    The reduced values go through memory, and another kernel is launched, for one operation per value.

    ## Use instead
    Operators that read only the sum (a scale by a scalar, a square root) fuse into the kernel; add the other array before the reduction if
    the arithmetic allows it, or leave it: the reduced array is small.

    ## Known false positives
    Reduced arrays are small: only the launch is lost.
    """

    code, name, severity, default = "FUS013", "reduce-epilogue", Severity.INFO, False
    structural = True
    policies = ("xla-gpu",)
    bad = (
        Fixture.hlo(_ROWS.replace("WORK", "add(t, y)"), "t", policy="xla-gpu"),
        Fixture.hlo(_ROWS.replace("WORK", "multiply(y, t)"), "t", policy="xla-gpu"),
    )
    good = (
        Fixture.hlo(_ROWS.replace("WORK", "sqrt(t)"), policy="xla-gpu"),
        Fixture.hlo(_ROWS.replace("WORK", "negate(t)"), policy="xla-gpu"),
    )

    def check(self, context: Context) -> Findings:
        yield from findings_by_producer(context, self, ("reduce-epilogue",), "is written out before {consumer} ({op})")
