"""CTL007: a frame that torch.compile compiled in pieces."""

from __future__ import annotations

from irscope.formats.inductor.compilation import Compiled
from irscope.formats.inductor.dialect import INDUCTOR
from irscope.lint import Context, Findings, Fixture, Note, Rule, RuleFinding, Severity

_BREAK = """
    V1122 13:54:20.592000 7 torch/_dynamo/symbolic_convert.py:5124] [1/0] [__graph_breaks] Graph break in user code at net.py:16
    V1122 13:54:20.592000 7 torch/_dynamo/symbolic_convert.py:5124] [1/0] [__graph_breaks] Graph Break Reason: {reason}
"""


class FrameInPieces(Rule):
    """A graph break splits a function into several compiled graphs.

    ## What it does
    Reads the graph breaks that a log (`TORCH_LOGS=graph_breaks`) or a trace (`TORCH_TRACE`) records: the line, the reason in torch's words,
    and its advice. One finding per place.

    ## Why is this bad?
    Nothing fuses across a break. Python runs between the pieces, each piece has guards of its own, and all values that are needed later are
    stored.

    ## Use instead
    What the hint says; mostly: take printing, `.item()`, and calls of unsupported functions out of the compiled function, register a custom
    operator (`torch.library.custom_op`), or set `torch._dynamo.config.capture_scalar_outputs`. `torch.compile(fullgraph=True)` makes each
    break an error.

    ## Known false positives
    A break at a place that runs once.
    """

    code, name, severity = "CTL007", "frame-in-pieces", Severity.WARNING
    timed = False
    dialect = INDUCTOR
    bad = (
        Fixture.inductor(_BREAK.format(reason="Tensor.item() call with capture_scalar_outputs=False")),
        Fixture.inductor(_BREAK.format(reason="Unsupported function call")),
    )
    good = (
        Fixture.inductor("""
            V1122 13:54:20.592000 7 torch/_dynamo/guards.py:5396] [1/0] [__guards] GUARDS:
        """),
        Fixture.inductor("""
            V1122 13:54:20.592000 7 torch/_inductor/scheduler.py:1] [0/0] [__fusion] ===== attempting fusion (1/10): 1 nodes =====
        """),
    )

    def check(self, context: Context) -> Findings:
        compiled = Compiled.of(context.module)
        if compiled.compilation is None or not compiled.tells_compilation:
            return
        for broken in compiled.compilation.breaks:
            title = compiled.compilation.title
            notes = (Note(f"torch says: {broken.hint}"),) if broken.hint else ()
            yield RuleFinding(
                self.code, self.name, self.severity, f"{title} is compiled in pieces: {broken.reason}",
                compiled.compilation.source, broken.offset, notes=notes, help="torch.compile(fullgraph=True) makes each break an error",
                source_line=broken.place, timed=False)
