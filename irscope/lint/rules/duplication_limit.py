"""FUS014: a value is read at so many different indices that a kernel would contain too many copies of its code."""

from __future__ import annotations

from irscope.lint import Context, Findings, Fixture, Rule, Severity
from irscope.lint.unfused import findings_by_producer


def _sum_of_slices(n: int) -> str:
    """A value of 400 elements whose ``n`` adjacent slices are added, as a window sum written out by hand."""
    lines = ["ENTRY e {", "  x = f32[400]{0} parameter(0)", "  p = f32[400]{0} negate(x)", "  a0 = f32[50]{0} slice(p), slice={[0:50]}"]
    for i in range(1, n):
        lines.append(f"  c{i} = f32[50]{{0}} slice(p), slice={{[{i}:{50 + i}]}}")
        lines.append(f"  a{i} = f32[50]{{0}} add(a{i - 1}, c{i})")
    return "\n".join([*lines, f"  ROOT r = f32[50]{{0}} tanh(a{n - 1})", "}"])


class DuplicationLimit(Rule):
    """A kernel would contain more copies of a value's code than the compiler allows.

    ## What it does
    Under `--policy xla-cpu` and `xla-gpu`, finds values that XLA does not fuse into a consumer because it reads them at too many different
    indices: more than 15 copies on the CPU, too many instructions on the GPU. One finding per value, with the numbers that XLA compares.

    ## Why is this bad?
    The whole value is written to memory and read again.

    ## Use instead
    One operation for the whole window (`lax.reduce_window`, a convolution, `jnp.take` with an index array), or one slice used twice.

    ## Known false positives
    An expensive value is rightly stored once; the finding gives the cost of storing it, not of computing it sixteen times.
    """

    code, name, severity = "FUS014", "duplication-limit", Severity.WARNING
    structural = True
    policies = ("xla-cpu", "xla-gpu")
    bad = (
        Fixture.hlo(_sum_of_slices(20), "p", policy="xla-cpu"),
        Fixture.hlo(_sum_of_slices(20).replace("f32[400]{0} negate(x)", "f32[400]{0} abs(x)"), "p", policy="xla-cpu"),
    )
    good = (
        Fixture.hlo(_sum_of_slices(8), policy="xla-cpu"),
        Fixture.hlo(_sum_of_slices(20).replace("slice(p)", "slice(x)").replace("p = f32[400]{0} negate(x)", ""), policy="xla-cpu"),
    )

    def check(self, context: Context) -> Findings:
        yield from findings_by_producer(context, self, ("too-many-copies", "code-duplication"), "is stored for {consumer} ({op})")
