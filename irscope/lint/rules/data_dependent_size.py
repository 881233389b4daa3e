"""SHP008: a size that only the data decides (an unbacked symbol of torch)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from irscope.formats.export.dialect import EXPORT
from irscope.graph import DynamicDim, TensorType, Type
from irscope.lint import Context, Findings, Fixture, Rule, Severity

UNBACKED = re.compile(r"\bu\d+\b")
"""Names of symbols that torch has no example value for: u0, u1, ..."""


def _graph(lines: str) -> str:
    return f"""
        class GraphModule(torch.nn.Module):
            def forward(self, x: "f32[8]"):
                {lines}
                return (out,)
    """


class DataDependentSize(Rule):
    """A size depends on the values of a tensor.

    ## What it does
    Finds the first value whose shape has a symbol that only a run gives (`u0`), as of `nonzero`, a boolean mask, `unique`, or `.item()`
    used as a size. One finding for each symbol.

    ## Why is this bad?
    The device must be asked for the size before what follows can be launched, buffers cannot be planned, and comparisons with the size fail
    in export without hints.

    ## Use instead
    Keep the size: multiply by the mask, or use `torch.where` and a sum over it; else bound the size with `torch._check(n <= limit)`.

    ## Known false positives
    Sizes that must depend on the data, such as the number of boxes that a detector keeps.
    """

    code, name, severity = "SHP008", "data-dependent-size", Severity.INFO
    timed = False
    dialect = EXPORT
    bad = (
        Fixture.fx(_graph('out: "i64[u0, 1]" = torch.ops.aten.nonzero.default(x)'), "out"),
        Fixture.fx(_graph('kept: "f32[u3]" = torch.ops.aten.masked_select.default(x, x)\n'
                          '                out: "f32[u3]" = torch.ops.aten.relu.default(kept)'), "kept"),
    )
    good = (
        Fixture.fx(_graph('out: "f32[8]" = torch.ops.aten.relu.default(x)')),
        Fixture.fx(_graph('out: "f32[s0]" = torch.ops.aten.relu.default(x)')),
    )

    def check(self, context: Context) -> Findings:
        seen: set[str] = set()
        for graph in context.view.graphs:
            for node in graph.shown():
                for symbol in sorted({symbol for dim in _open(node.type) for symbol in UNBACKED.findall(str(dim))} - seen):
                    seen.add(symbol)
                    yield self.finding(
                        context, node, f"%{node.name} is {node.type}: {symbol} is known only when the values before it are",
                        help=f"keep the size with a mask, or bound it: torch._check({symbol} <= limit)")


def _open(type: Type) -> Iterator[DynamicDim]:
    """The open dimensions of a type."""
    for leaf in type.leaves():
        if isinstance(leaf, TensorType):
            yield from (dim for dim in leaf.shape if isinstance(dim, DynamicDim))
