"""SHP007: a symbolic size that became a constant while torch.compile traced."""

from __future__ import annotations

from irscope.formats.inductor.compilation import Compiled
from irscope.formats.inductor.dialect import INDUCTOR
from irscope.lint import Context, Findings, Fixture, Rule, RuleFinding, Severity

_PREFIX = "V1122 13:54:20.592000 7 torch/fx/experimental/symbolic_shapes.py:7649] "
_FRAME = '"frame_id": 0, "frame_compile_id": 0, "attempt": 0}'


def _trace(source: str) -> str:
    return (_PREFIX + '{"symbolic_shape_specialization": {"symbol": "s27", "sources": ["' + source
            + '"], "value": "128", "reason": "range_refined_to_singleton"}, ' + _FRAME)


class SizeMadeConstant(Rule):
    """A dynamic size became a constant.

    ## What it does
    Reads the specialisations that a trace (`TORCH_TRACE`) records: a dimension that was to stay symbolic, the value that it got, and the
    reason in torch's words.

    ## Why is this bad?
    The graph serves that one size only: another one compiles again.

    ## Use instead
    Compare and slice without a fixed number in the function, or give the size by `torch._dynamo.mark_dynamic(tensor, index)`, which reports
    the line that fixes it.

    ## Known false positives
    Sizes of layers, which never vary.
    """

    code, name, severity = "SHP007", "size-made-constant", Severity.INFO
    timed = False
    dialect = INDUCTOR
    bad = (Fixture.inductor(_trace("L['x'].size()[1]")), Fixture.inductor(_trace("L['tokens'].size()[0]")))
    good = (
        Fixture.inductor(_trace("L['s']._modules['ln'].eps")),
        Fixture.inductor(_PREFIX + '{"create_symbol": {"symbol": "s27", "val": "128"}, ' + _FRAME),
    )

    def check(self, context: Context) -> Findings:
        compiled = Compiled.of(context.module)
        if compiled.compilation is None or not compiled.tells_compilation:
            return
        for fixed in compiled.compilation.specialisations:
            if ".size()[" in fixed.source:
                yield RuleFinding(
                    self.code, self.name, self.severity, f"{fixed.symbol}, the size {fixed.source}, became {fixed.value} ({fixed.reason})",
                    compiled.compilation.source, fixed.offset, help="torch._dynamo.mark_dynamic reports the line that fixes it",
                    source_line=compiled.compilation.place, timed=False)
