"""FUS020: many small kernels run one after another."""

from __future__ import annotations

from collections.abc import Iterator

from irscope.fusion import Plan
from irscope.fusion.plan import Group
from irscope.lint import Context, Findings, Fixture, Note, Rule, Severity, human_bytes, saving
from irscope.lint.planned import Planned

SMALL_BYTES = 16 * 1024
MANY = 16
LISTED = 3


class SmallWrappedKernels(Rule):
    """Sixteen or more kernels in a row move less than 16 KiB each.

    ## What it does
    Plans the module by irscope's own policy and finds runs of consecutive kernels, each of which reads and writes less than 16 KiB.

    ## Why is this bad?
    Launching such a kernel costs more than its work. Optimiser steps over many small parameters have this form.

    ## Use instead
    Keep the parameters in one flat array (`jax.flatten_util.ravel_pytree`, `foreach=True` in torch), or batch equal ones with `jax.vmap`.

    ## Known false positives
    Programs that run once; CPUs, where launching a compiled kernel costs little.
    """

    code, name, severity, default = "FUS020", "small-wrapped-kernels", Severity.INFO, False
    structural = inside = True
    bad = (
        Fixture.hlo(
            "ENTRY e {\n"
            + "".join(f"  p{i} = f32[{64 + i}] parameter({i})\n  q{i} = f32[{64 + i}] negate(p{i})\n" for i in range(20))
            + f"  ROOT t = ({', '.join(f'f32[{64 + i}]' for i in range(20))}) tuple({', '.join(f'q{i}' for i in range(20))})\n}}",
            "q0",
        ),
        Fixture.hlo(
            "ENTRY e {\n  v0 = f32[8,8] parameter(0)\n"
            + "".join(
                f"  v{i} = f32[8,8] dot(v{i - 1}, v{i - 1}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n" for i in range(1, 21)
            )
            + "  ROOT r = f32[8,8] negate(v20)\n}",
            "v1",
        ),
    )
    good = (
        Fixture.hlo(
            "ENTRY e {\n"
            + "".join(f"  p{i} = f32[{6400 + i}] parameter({i})\n  q{i} = f32[{6400 + i}] negate(p{i})\n" for i in range(20))
            + f"  ROOT t = ({', '.join(f'f32[{6400 + i}]' for i in range(20))}) tuple({', '.join(f'q{i}' for i in range(20))})\n}}"
        ),
        Fixture.hlo(
            "ENTRY e {\n  v0 = f32[8,8] parameter(0)\n"
            + "".join(f"  v{i} = f32[8,8] tanh(v{i - 1})\n" for i in range(1, 21))
            + "  ROOT r = f32[8,8] negate(v20)\n}"
        ),
    )

    def check(self, context: Context) -> Findings:
        if context.costs.planned is None:
            return
        for plan in context.costs.planned.plans:
            for run in _runs(context.costs.planned, plan):
                total = sum(moved for _, moved in run)
                nodes = (context.view.in_text(output, plan.graph) for group, _ in run for output in group.outputs)
                node = next((node for node in nodes if node is not None), None)
                if node is None:
                    continue
                yield self.finding(
                    context, node,
                    f"{len(run)} kernels in a row from here move {human_bytes(total)} together",
                    notes=tuple(Note(f"%{g.root.name} moves {human_bytes(moved)}", g.root.loc) for g, moved in run[1 : 1 + LISTED]),
                    help="combine them: one flat array, vmap over equal shapes",
                    saves=saving(kernels=float(len(run) - 1)),
                )


def _runs(planned: Planned, plan: Plan) -> Iterator[list[tuple[Group, float]]]:
    """Runs of small kernels that are long enough to report."""
    run: list[tuple[Group, float]] = []
    for group in plan.groups:
        moved = planned.moved(plan.graph, group)
        if 0 < moved < SMALL_BYTES:
            run.append((group, moved))
            continue
        if len(run) >= MANY:
            yield run
        run = []
    if len(run) >= MANY:
        yield run
