"""LAY006: a write into a part of a tensor that became a copy of the whole tensor."""

from __future__ import annotations

from irscope.formats.export.dialect import EXPORT
from irscope.graph import bytes_of
from irscope.lint import Context, Findings, Fixture, Rule, Severity, human_bytes, saving
from irscope.ops.sets import torchscript

WRITES = torchscript("slice_scatter select_scatter diagonal_scatter as_strided_scatter")
WORTH_BYTES = 1 << 16


def _graph(line: str) -> str:
    return f"""
        class GraphModule(torch.nn.Module):
            def forward(self, x: "f32[512, 512]", y: "f32[512]", z: "f32[16, 512]"):
                {line}
                return (out,)
    """


class FunctionalisedWrite(Rule):
    """A write into a slice of a tensor copies the whole tensor.

    ## What it does
    Finds the operators into which functionalisation turns `x[i] = y` and `x[a:b].copy_(y)`: `select_scatter`, `slice_scatter`,
    `diagonal_scatter`, `as_strided_scatter`, whose result has the size of all of `x`. Results below 64 KiB are left out.

    ## Why is this bad?
    Where the compiler does not turn it back into a write in place, each one reads and writes all of `x`.

    ## Use instead
    Collect the parts and join them once (`torch.cat`, `torch.stack`), or update a buffer of the module, which Inductor writes in place.

    ## Known false positives
    Inductor re-inplaces writes into graph inputs and into values without later readers; ir_post_fusion.txt shows whether it did.
    """

    code, name, severity = "LAY006", "functionalised-write", Severity.INFO
    timed = False
    dialect = EXPORT
    bad = (
        Fixture.fx(_graph('out: "f32[512, 512]" = torch.ops.aten.select_scatter.default(x, y, 0, 3)'), "out"),
        Fixture.fx(_graph('out: "f32[512, 512]" = torch.ops.aten.slice_scatter.default(x, z, 0, 0, 16)'), "out"),
    )
    good = (
        Fixture.fx(_graph('out: "f32[512]" = torch.ops.aten.relu.default(y)')),
        Fixture.fx(_graph('out: "f32[528, 512]" = torch.ops.aten.cat.default([x, z])')),
    )

    def check(self, context: Context) -> Findings:
        for graph in context.view.graphs:
            for node in context.view.with_op(WRITES, graph):
                size = bytes_of(node.type)
                if size >= WORTH_BYTES:
                    yield self.finding(
                        context, node, f"%{node.name} writes a part of %{node.operands[0].name}: a copy of all of it, {human_bytes(size)}",
                        help="join the parts once with torch.cat or torch.stack, or write into a buffer of the module",
                        saves=saving(bytes=2.0 * size))
