"""``irscope lint FILE --fix``: the passes that mend what was found, run over a copy, which is linted again."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import click

from irscope.analysis.soundness import Use, require
from irscope.cli.errors import FINDINGS, OK
from irscope.cli.opt import printed
from irscope.cli.output import opened
from irscope.graph import Module, Reading
from irscope.lint.gate import all_documented
from irscope.lint.report import FileReport
from irscope.lint.rule import Rule
from irscope.lint.session import Options, Session
from irscope.source import Finding, UserError

NEEDS_OPTIONS = frozenset(("convert-layout",))
"""Passes that mend nothing before somebody says how."""


@dataclass(slots=True)
class Mended:
    """A program with what passes could mend in it: the passes that changed it, the findings by code before and behind them."""

    module: Module
    passes: list[str] = field(default_factory=list)
    before: Counter[str] = field(default_factory=Counter)
    after: Counter[str] = field(default_factory=Counter)

    def told(self) -> str:
        """``mended by share-equal: ALG002 2; left: FUS001 1``."""
        gone = {code: n - self.after[code] for code, n in sorted(self.before.items()) if n > self.after[code]}
        new = {code: n - self.before[code] for code, n in sorted(self.after.items()) if n > self.before[code]}
        nothing = "no pass mends what was found: each finding says what to do" if self.before else "nothing was found"
        parts = [f"mended by {', '.join(self.passes)}: {_counted(gone)}" if gone else nothing]
        parts += [f"left: {_counted(self.after)}"] if self.after else []
        parts += [f"new: {_counted(new)}"] if new else []
        return "; ".join(parts)


def fix(reading: Reading, file: str, session: Session, output: str | None, exit_zero: bool) -> int:
    """Mend one file, write the program, and say on standard error what is gone and what is left; the status is that of what is left."""
    first = session.add(file, reading)
    if not first.readable or not reading.modules:
        raise UserError(f"{file} has faults, and cannot be mended", "irscope lint without --fix names them", findings=first.findings[:3])
    require(reading, reading.module(), Use.PASSES)
    mended, left = _mended(reading.module(), first, session)
    text = printed(mended.module)
    with opened(output or "-", (file,), verbatim=True) as stream:
        stream.write(text)
    click.echo(f"{file}: {mended.told()}", err=True)
    return OK if exit_zero or not left.fails else FINDINGS


def _mended(module: Module, first: FileReport, session: Session) -> tuple[Mended, FileReport]:
    from irscope.passes import pass_named

    rules: dict[str, type[Rule]] = {rule.code: rule for rule in all_documented()}
    wanted = dict.fromkeys(name for f in first.findings if f.code in rules for name in rules[f.code].passes if name not in NEEDS_OPTIONS)
    told = Mended(module, before=_codes(first.findings))
    for name in wanted:
        became = pass_named(name).run(told.module)
        if became is not told.module:
            told.module = became
            told.passes.append(name)
    if not told.passes:
        told.after = told.before
        return told, first
    text = printed(told.module)
    from irscope import api

    options = session.options
    again = Session(Options(options.select, options.ignore, options.fail_on, options.demands, loops=options.loops), session.config)
    left = again.add(first.file, api.load(text, format=module.format, name=first.file))
    told.after = _codes(left.findings)
    return told, left


def _codes(findings: list[Finding]) -> Counter[str]:
    return Counter(finding.code for finding in findings)


def _counted(codes: Counter[str] | dict[str, int]) -> str:
    return ", ".join(f"{code} {n}" for code, n in sorted(codes.items()))
