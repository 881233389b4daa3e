"""CTL008: a frame that torch.compile compiled again, because guards failed."""

from __future__ import annotations

from irscope.formats.inductor.compilation import Compiled
from irscope.formats.inductor.dialect import INDUCTOR
from irscope.lint import Context, Findings, Fixture, Note, Rule, RuleFinding, Severity

_AGAIN = """
    V1122 13:54:20.592000 7 torch/_dynamo/guards.py:5396] [1/1] [__recompiles] Recompiling function f in net.py:14
    V1122 13:54:20.592000 7 torch/_dynamo/guards.py:5396] [1/1] [__recompiles]     triggered by the following guard failure(s):
    V1122 13:54:20.592000 7 torch/_dynamo/guards.py:5396] [1/1] [__recompiles]     - 1/0: {reason}
"""
_HELP = {
    "size mismatch": "torch._dynamo.mark_dynamic(tensor, index) before the first call, or torch.compile(dynamic=True)",
    "stride mismatch": "call .contiguous() before the function, so that the strides do not vary",
    "dtype mismatch": "convert before the function, so that one dtype comes in",
    "requires_grad": "wrap all calls, or none, in torch.no_grad()",
    "grad_mode": "wrap all calls, or none, in torch.no_grad()",
    "___check_type_id": "pass one type: a Python number in place of a tensor compiles again",
}
"""What to do, by words of the guard that failed."""


class CompiledAgain(Rule):
    """A guard failed, and a function was compiled again.

    ## What it does
    Reads the recompilations that a log (`TORCH_LOGS=recompiles`) or a trace (`TORCH_TRACE`) records, with the guards that failed: what
    changed between the calls.

    ## Why is this bad?
    Each compilation takes seconds, and after `torch._dynamo.config.recompile_limit` of them the function runs uncompiled.

    ## Use instead
    Mark sizes that vary as dynamic, pad them to a few values, and keep Python values that vary out of the function, or pass them as
    tensors.

    ## Known false positives
    The second compilation with a dynamic size, if it is the last one.
    """

    code, name, severity = "CTL008", "compiled-again", Severity.WARNING
    timed = False
    dialect = INDUCTOR
    bad = (
        Fixture.inductor(_AGAIN.format(reason="tensor 'a' size mismatch at index 0. expected 4, actual 5")),
        Fixture.inductor(_AGAIN.format(reason="G['step'] == 1")),
    )
    good = (
        Fixture.inductor("""
            V1122 13:54:20.592000 7 torch/_dynamo/guards.py:5396] [1/1] [__guards] GUARDS:
        """),
        Fixture.inductor("""
            V1122 13:54:20.592000 7 torch/_inductor/scheduler.py:1] [0/0] [__fusion] ===== attempting fusion (1/10): 1 nodes =====
        """),
    )

    def check(self, context: Context) -> Findings:
        compiled = Compiled.of(context.module)
        if compiled.compilation is None or not compiled.tells_compilation:
            return
        for again in compiled.compilation.recompiles:
            first, *more = again.reasons
            help = next((words for sign, words in _HELP.items() if sign in first), "")
            yield RuleFinding(
                self.code, self.name, self.severity, f"{compiled.compilation.title} was compiled again: {first}",
                compiled.compilation.source,
                again.offset, notes=tuple(Note(f"another guard failed: {reason}") for reason in more), help=help,
                source_line=again.place or compiled.compilation.place, timed=False)
