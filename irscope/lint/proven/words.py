"""The answer about an edge, in words."""

from __future__ import annotations

from collections.abc import Sequence

from irscope.lint.proven.fix import Attempt, FixAnswer, ProvenFix, TrialOutcome
from irscope.lint.proven.savings import saving_words
from irscope.source.plural import plural

COMPILERS = {"xla-cpu": "XLA", "xla-gpu": "XLA", "tvm": "TVM", "inductor": "Inductor", "irscope": "irscope's compiler"}
LISTED = 3
"""Other edges that are named."""
MADE = {
    TrialOutcome.UNDONE: "{compiler} rewrites {what} into the same kernels",
    TrialOutcome.REFUSED: "with {what} the edge is refused all the same",
    TrialOutcome.DEARER: "{what} costs more kernels, bytes or time",
    TrialOutcome.NOT_REFUSED: "a program from before {compiler}'s optimisation has no such refusal where irscope tried {what}",
    TrialOutcome.UNPLANNED: "irscope cannot plan {what}",
}


def sentence(answer: FixAnswer) -> str:
    """The answer in one sentence: what to change, or that nothing changes it, and what was tried."""
    compiler = COMPILERS.get(answer.compiler, answer.compiler)
    if answer.fix is not None:
        return answer.fix.how
    if answer.why_not:
        return f"none was tried: {answer.why_not}"
    left = f"; not tried, because it would take more than twice the time of the plan: {_listed(answer.untried)}" if answer.untried else ""
    behind = f"; {answer.behind}" if answer.behind else ""
    if not answer.attempts:
        return ("nothing was tried" + left if left else "irscope knows no change of the source that could help") + behind
    tried = ", ".join(attempt.name for attempt in answer.attempts)
    return f"nothing that irscope tried in the source changes this (tried: {tried}): {_failures(answer.attempts, compiler)}{left}{behind}"


def answer_lines(answer: FixAnswer) -> list[str]:
    """The answer for people, without indentation: the change, its operators before and after, what it saves and what else changes."""
    if answer.fix is None:
        return [f"no fix: {sentence(answer)}"]
    fix = answer.fix
    lines = [f"fix: {fix.how}"]
    for name, operators in (("before", fix.before), ("after", fix.after)):
        lines += [f"  {name + ':' if number == 0 else '':8}{line}" for number, line in enumerate(operators)]
    return [*lines, f"  {effects(fix)}"]


def effects(fix: ProvenFix) -> str:
    """``saves 1 kernel, 32 KiB, by a plan of the changed program (all 12 operators); also fuses %a -> %b``."""
    scope = f"all {plural(fix.nodes, 'operator')}" if fix.is_whole else f"the {plural(fix.nodes, 'operator')} around the edge"
    less = "" if fix.outcome is TrialOutcome.FUSED else "a smaller edge takes its place, which is not fused; "
    text = f"{less}saves {saving_words(fix.saves)}, by a plan of the changed program ({scope})"
    for what, pairs in (("also fuses", fix.gained), ("no longer fuses", fix.lost)):
        if pairs:
            named = ", ".join(f"%{one} -> %{other}" for one, other in pairs[:LISTED])
            text += f"; {what} {named}" + (f" and {len(pairs) - LISTED} more" if len(pairs) > LISTED else "")
    return text


def _failures(attempts: Sequence[Attempt], compiler: str) -> str:
    """What became of the attempts, those that failed alike together."""
    names: dict[TrialOutcome, list[str]] = {}
    for attempt in attempts:
        names.setdefault(attempt.outcome, []).append(attempt.name)
    return "; ".join(MADE[outcome].format(compiler=compiler, what=_listed(what)) for outcome, what in names.items())


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
