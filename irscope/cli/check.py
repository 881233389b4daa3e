"""``irscope check``: the exported models of a project against the budgets and results that its file demands."""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from irscope import api
from irscope.api.options import CheckOptions, option
from irscope.cli.errors import FINDINGS, OK, USAGE
from irscope.cli.options import options
from irscope.cli.reporting import FORMATS, format_of, print_report
from irscope.cli.terminal import TERMINAL, say

if TYPE_CHECKING:
    from irscope.api import CheckResult


@dataclass(frozen=True, kw_only=True)
class CheckOutput:
    """What to report, and where."""

    form: str | None = option(None, "How to report (default: full).", "--format", choices=FORMATS)
    output: str | None = option(None, "Write the report to a file.", "-o", file=True)
    exit_zero: bool = option(False, "Exit 0 whatever was found in texts that are whole.")
    facts: bool = option(False, "Show every fact in full, instead of one line for each of the costliest.", "--facts", "--all")


@click.command()
@click.argument("path", default=".", metavar="[PATH]")
@options(output=CheckOutput, request=CheckOptions)
def command(path: str, output: CheckOutput, request: CheckOptions) -> int:
    """Check the exported models of a project, as [tool.irscope.check] of its pyproject.toml or irscope.toml demands.

    PATH is where the search for the settings begins (default: here).

    \b
    Examples:
      irscope check
      irscope check --format sarif -o irscope.sarif
      irscope check --write-baseline
    """
    result = api.check(path, request, watch=TERMINAL)
    result.report.everything = output.facts
    if result.written is not None:
        say(f"{result.baseline}: {result.written} findings accepted, {result.measured} models measured")
    print_report(result.report, output.form or format_of(result.config), output.output, [model.file for model in result.models])
    failed = result.failed
    others = f"; not {', '.join(failed)}" if failed else ""
    say(f"{len(result.models)} models, {len(result.models) - len(failed)} as demanded{others}{_accepted(result)}")
    if not result.readable:
        return USAGE
    if output.exit_zero:
        return OK
    return FINDINGS if not request.write_baseline and result.fails else OK


def _accepted(result: CheckResult) -> str:
    """The part of the summary about the baseline: how many findings it hides, and how many of its entries no longer occur."""
    if not result.accepted and not result.stale:
        return ""
    from irscope.api.checking import shown

    stale = f", and {result.stale} more that no longer occur: --write-baseline rewrites it" if result.stale else ""
    return f"; accepted by {shown(result.baseline or '')}: {result.accepted}{stale}"
