"""``irscope.fix``: runs the passes that correct lint findings over a copy, and lints the copy again."""
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from irscope.analysis.soundness import Use, require
from irscope.api.explaining import NEEDS_OPTIONS
from irscope.api.linting import read_bound, session_of
from irscope.api.loading import Source, load, name_of
from irscope.api.optimising import printed
from irscope.api.options import LintOptions
from irscope.graph import Module
from irscope.lint.gate import all_documented
from irscope.lint.report import FileReport
from irscope.lint.rule import Rule
from irscope.passes import pass_named
from irscope.source import Finding, UserError


@dataclass(slots=True)
class FixResult:
    """A program after the corrections that passes can make.

    ``text`` is the program in its original format, ``passes`` are those that changed it, ``before`` and ``after`` count the findings by
    code. ``fails`` says whether a remaining finding is as severe as ``fail_on``.
    """

    module: Module
    text: str = ""
    passes: list[str] = field(default_factory=list)
    before: Counter[str] = field(default_factory=Counter)
    after: Counter[str] = field(default_factory=Counter)
    fails: bool = False

    def __str__(self) -> str:
        fixed, new = self.before - self.after, self.after - self.before
        nothing = "no pass fixes these findings: each finding says what to do" if self.before else "nothing was found"
        parts = [f"fixed by {', '.join(self.passes)}: {_counted(fixed)}" if fixed else nothing]
        parts += [f"left: {_counted(self.after)}"] if self.after else []
        parts += [f"new: {_counted(new)}"] if new else []
        return "; ".join(parts)


def fix(what: Source, options: LintOptions | None = None) -> FixResult:
    """Correct the findings that passes can correct in one dump.

    Raises :class:`irscope.UserError` for a dump with errors, and as :func:`irscope.lint` does.

    >>> text = '''ENTRY main {
    ...   p = f32[2,2] parameter(0)
    ...   t = f32[2,2] transpose(p), dimensions={1,0}
    ...   ROOT u = f32[2,2] transpose(t), dimensions={1,0}
    ... }'''
    >>> fixed = fix(text, LintOptions(isolated=True))
    >>> print(fixed)
    fixed by cancel-transposes: LAY001 1
    """
    options = options or LintOptions()
    file, session = name_of(what), session_of(options)
    reading = read_bound(what, options)
    first = session.add(file, reading)
    if not first.readable or not reading.modules:
        raise UserError(f"{file} has faults, and cannot be fixed", "irscope lint without --fix names them", findings=first.findings[:3])
    module = reading.module()
    require(reading, module, Use.PASSES)
    fixed = FixResult(module, before=_codes(first.findings))
    for name in _passes_for(first):
        became = pass_named(name).run(fixed.module)
        if became is not fixed.module:
            fixed.module = became
            fixed.passes.append(name)
    fixed.text = printed(fixed.module)
    left = first
    if fixed.passes:
        # The baseline and the options about edges are about the text before the passes: they do not apply to the new one.
        again = session_of(replace(options, baseline=None, write_baseline=None, why=False, pair=None, fusion_log=None,
                                   track_fusion=False, statistics=False))
        left = again.add(file, load(fixed.text, format=module.format, name=file))
    fixed.after, fixed.fails = _codes(left.findings), left.fails
    return fixed


def _passes_for(report: FileReport) -> list[str]:
    """The passes that correct the findings, in the order of the findings."""
    rules: dict[str, type[Rule]] = {rule.code: rule for rule in all_documented()}
    named = (name for f in report.findings if f.code in rules for name in rules[f.code].passes)
    return [name for name in dict.fromkeys(named) if name not in NEEDS_OPTIONS]


def _codes(findings: list[Finding]) -> Counter[str]:
    return Counter(finding.code for finding in findings)


def _counted(codes: Mapping[str, int]) -> str:
    return ", ".join(f"{code} {n}" for code, n in sorted(codes.items()))
