"""FUS014: a value is read at so many places that a kernel would hold too many copies of its code."""

from __future__ import annotations

from irscope.lint import Context, Findings, Fixture, Rule
from irscope.lint.unfused import findings_by_producer
from irscope.source import Severity


def _sum_of_slices(n: int) -> str:
    """A value of 400 elements whose ``n`` neighbouring stretches are added up, as a window written out by hand."""
    lines = ["ENTRY e {", "  x = f32[400]{0} parameter(0)", "  p = f32[400]{0} negate(x)", "  a0 = f32[50]{0} slice(p), slice={[0:50]}"]
    for i in range(1, n):
        lines.append(f"  c{i} = f32[50]{{0}} slice(p), slice={{[{i}:{50 + i}]}}")
        lines.append(f"  a{i} = f32[50]{{0}} add(a{i - 1}, c{i})")
    return "\n".join([*lines, f"  ROOT r = f32[50]{{0}} tanh(a{n - 1})", "}"])


class DuplicationLimit(Rule):
    """A kernel would hold more copies of a value's code than the compiler emits.

    ## What it does
    Under `--policy xla-cpu` and `xla-gpu`, finds values that XLA keeps out of a kernel because they are read there at too many different
    indices: more than 15 copies on the CPU, too many instructions on the GPU. One finding a value, with the numbers that were compared.

    ## Why is this bad?
    The value is written to memory in full and read again, for want of one way to read it.

    ## Use instead
    One operation for the whole window (`lax.reduce_window`, a convolution, `jnp.take` with an index array), or one slice that is used
    twice.

    ## Known false positives
    A value that is dear to compute is rightly stored once; the finding says what storing it costs, not what computing it sixteen times
    would.
    """

    code, name, severity = "FUS014", "duplication-limit", Severity.WARNING
    formats = ("hlo",)
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
