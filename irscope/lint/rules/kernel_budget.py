"""FUS015: a fused kernel would exceed one of the compiler's limits for a kernel."""

from __future__ import annotations

from irscope.lint import Context, Findings, Fixture, Rule, Severity
from irscope.lint.unfused import findings_by_producer


def _sum_of_inputs(n: int) -> str:
    """A chain that adds ``n`` inputs: one kernel with ``n`` operands, if the limit allows it."""
    lines = ["ENTRY e {", *(f"  p{i} = f32[4096]{{0}} parameter({i})" for i in range(n)), "  a1 = f32[4096]{0} add(p0, p1)"]
    lines += [f"  a{i} = f32[4096]{{0}} add(a{i - 1}, p{i})" for i in range(2, n)]
    return "\n".join([*lines, f"  ROOT r = f32[4096]{{0}} negate(a{n - 1})", "}"])


def _sums(n: int) -> str:
    """The product of ``n`` row sums, each of its own array."""
    lines = ["ENTRY e {"]
    lines += [f"  p{i} = f32[64,64]{{1,0}} parameter({i})" for i in range(n)]
    lines += ["  z = f32[] constant(0)", *(f"  t{i} = f32[64]{{0}} reduce(p{i}, z), dimensions={{1}}, to_apply=sum" for i in range(n))]
    lines += ["  m1 = f32[64]{0} multiply(t0, t1)", *(f"  m{i} = f32[64]{{0}} multiply(m{i - 1}, t{i})" for i in range(2, n))]
    return "\n".join([*lines, f"  ROOT r = f32[64]{{0}} negate(m{n - 1})", "}"])


class KernelBudget(Rule):
    """A fused kernel would need more operands, reductions or shared memory than the compiler allows.

    ## What it does
    Under `--policy xla-gpu`, finds edges that XLA does not fuse because the kernel would exceed a limit: 96 operands and results, 8
    reductions, the shared memory of a block. Under `--policy xla-cpu`: 5 reductions.

    ## Why is this bad?
    One more input can split a fusion, and two kernels then write and read every value between them.

    ## Use instead
    Stack small arrays into one (`jnp.stack`, a flat parameter vector), reduce stacked arrays together, split the program's result in two.

    ## Known false positives
    The limit reflects what one kernel does efficiently; two kernels of half the size may cost little more.
    """

    code, name, severity = "FUS015", "kernel-budget", Severity.WARNING
    structural = True
    policies = ("xla-gpu", "xla-cpu")
    bad = (
        Fixture.hlo(_sum_of_inputs(120), policy="xla-gpu"),
        Fixture.hlo(_sums(8), policy="xla-cpu"),
    )
    good = (
        Fixture.hlo(_sum_of_inputs(60), policy="xla-gpu"),
        Fixture.hlo(_sums(4), policy="xla-cpu"),
    )

    def check(self, context: Context) -> Findings:
        rules = ("too-many-buffers", "too-many-reductions", "shared-memory")
        yield from findings_by_producer(context, self, rules, "goes through memory to {consumer} ({op})")
