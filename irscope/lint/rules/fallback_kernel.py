"""KRN005: an operator that Inductor does not compile, and calls in torch instead."""

from __future__ import annotations

from irscope.formats.inductor.attributes import Called
from irscope.formats.inductor.dialect import INDUCTOR
from irscope.graph import Node
from irscope.lint import Context, Findings, Fixture, Note, Rule, Severity

FALLBACKS = ("torch.ops.aten.", "aten.", "torch.ops.prims.", "prims.")
"""How calls of torch's own operators begin in output code. Calls of a library (extern_kernels) are no fallbacks."""
LISTED = 3


def _code(call: str) -> str:
    return f"""
        # AOT ID: ['0_inference']
        async_compile = AsyncCompile()

        def call(args):
            arg0_1, arg1_1 = args
            {call}
            return (buf1, )
    """


class FallbackKernel(Rule):
    """Inductor has no kernel for an operator and calls torch for it.

    ## What it does
    Finds calls of `torch.ops.aten` in output code; one finding for each operator, with the number of its calls.

    ## Why is this bad?
    Nothing fuses into the call: its operands and results go through memory, in the layout that it asks for, and each call is dispatched by
    torch.

    ## Use instead
    An operator that Inductor compiles or decomposes (a sort of a few columns is cheaper as comparisons, `topk(1)` is `max`); or leave it,
    if the operator is the work.

    ## Known false positives
    Attention, convolutions and sorts, whose own kernels are better than a generated one.
    """

    code, name, severity = "KRN005", "fallback-kernel", Severity.INFO
    timed = False
    dialect = INDUCTOR
    bad = (
        Fixture.inductor(_code("buf1 = torch.ops.aten.cumsum.default(arg0_1, dim=1)"), "buf1"),
        Fixture.inductor(_code("buf1 = torch.ops.aten.sort.stable(arg0_1, stable=False)"), "buf1"),
    )
    good = (
        Fixture.inductor(_code("buf1 = extern_kernels.convolution(arg0_1, arg1_1, stride=(1, 1))")),
        Fixture.inductor(_code("buf1 = reinterpret_tensor(arg0_1, (4, 5), (1, 4), 0)")),
    )

    def check(self, context: Context) -> Findings:
        calls: dict[str, list[Node]] = {}
        for graph in context.view.graphs:
            for node in graph.shown():
                kernel = Called.kernel.given(node)
                if kernel is not None and kernel.startswith(FALLBACKS):
                    calls.setdefault(kernel, []).append(node)
        for kernel, nodes in calls.items():
            more = f", {len(nodes)} times" if len(nodes) > 1 else ""
            yield self.finding(
                context, nodes[0], f"{kernel} is not compiled: Inductor calls torch for it{more}, and nothing fuses into it",
                notes=tuple(Note(f"%{node.name} is another", node.loc) for node in nodes[1:LISTED]))
