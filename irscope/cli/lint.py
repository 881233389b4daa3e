"""``irscope lint``: findings, gates, and why two operators did not fuse."""
from __future__ import annotations

import os
from dataclasses import dataclass, replace

import click

from irscope import api
from irscope.api.options import LintOptions, option
from irscope.api.paths import path_of
from irscope.cli.errors import FINDINGS, OK, USAGE
from irscope.cli.options import options
from irscope.cli.output import opened
from irscope.cli.reporting import FORMATS, format_of, print_report, write_text
from irscope.cli.terminal import TERMINAL, say
from irscope.source import UserError

AUDITS = ("dtype", "shape", "layout", "memory", "parallel")


@dataclass(frozen=True, kw_only=True)
class LintOutput:
    """What to report, and where."""

    form: str | None = option(None, "How to report (default: full).", "--format", choices=FORMATS)
    output: str | None = option(None, "Write the report to a file.", "-o", file=True)
    exit_zero: bool = option(False, "Exit 0 whatever was found in texts that are whole.")
    facts: bool = option(False, "Show every fact in full, instead of one line for each of the costliest.")
    everything: bool = option(False, "Run all rules, also those that are off by default, and show all that they find.", "--all")
    audit: str | None = option(None, "Print a table instead of findings.", choices=AUDITS)
    oom: str | None = option(None, "With --audit memory: find the buffers of an out-of-memory error of XLA in the dump.", metavar="LOG")
    fix: bool = option(False, "Fix what passes can fix in one file, and write the program to -o FILE.")


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@options(output=LintOutput, request=LintOptions)
def command(paths: tuple[str, ...], output: LintOutput, request: LintOptions) -> int:
    """Find what makes a graph slow or wrong.

    \b
    Examples:
      irscope lint model.hlo
      irscope lint dumps/ --select DTY,BRD --format concise
      irscope lint model.hlo --facts                    also what costs little
      irscope lint model.hlo --why-not-fused            every edge
      irscope lint model.hlo --why-not-fused dot.3 add.4  these two
      irscope lint model.hlo --why-not-fused --fusion-log vlog.txt  by XLA's own log
      irscope lint model.hlo --max-kernels 12 --require-fused 'dot,add,max*'
      irscope lint model.hlo --audit memory --oom train.log
      irscope lint model.hlo --fix -o fixed.hlo         what passes can fix, and what is left
    """
    from irscope.api.linting import consistent, settings

    consistent(request, output.output)
    settled = format_of(settings(request)) if output.form is None or output.fix else None
    format = output.form or settled or "full"
    paths = tuple(path_of(path) for path in paths)
    if output.audit or output.oom:
        return _audit(paths, request, output, format)
    paths, pair = _split_pair(paths, request.why)
    request = replace(request, pair=pair, select=request.select or (("ALL",) if output.everything else ()))
    if output.fix:
        return _fix(paths, request, output, other=format != settled or request.why or bool(request.write_baseline))
    result = api.lint(paths, request, watch=TERMINAL)
    result.report.everything = output.everything or output.facts
    if request.write_baseline:
        say(f"{request.write_baseline}: {result.written} findings accepted")
    print_report(result.report, format, output.output, paths)
    if result.accepted:
        say(f"accepted by the baseline: {result.accepted}")
    if not result.readable:
        return USAGE
    return FINDINGS if result.fails and not request.write_baseline and not output.exit_zero else OK


def _audit(paths: tuple[str, ...], request: LintOptions, output: LintOutput, format: str) -> int:
    from irscope.lint.audits import write_audits

    audits, errors = api.audit(paths, output.audit or "memory", request, oom=output.oom, watch=TERMINAL)
    named = [path for path in (output.oom, request.baseline, request.machine) if path is not None]  # also those that no audit reads
    write_text(write_audits(audits, format), output.output, inputs=[*paths, *named])
    return USAGE if errors else OK


def _fix(paths: tuple[str, ...], request: LintOptions, output: LintOutput, other: bool) -> int:
    """Correct one file, write the program, and report the remaining findings, which decide the exit status."""
    if len(paths) != 1 or os.path.isdir(paths[0]):
        raise UserError("--fix takes one file", "irscope lint FILE --fix -o FIXED")
    if other:
        raise UserError("--fix writes the program, and no report", "run irscope lint on what it wrote")
    fixed = api.fix(paths[0], request)
    with opened(output.output or "-", paths, verbatim=True) as stream:
        stream.write(fixed.text)
    say(f"{paths[0]}: {fixed}")
    return FINDINGS if fixed.fails and not output.exit_zero else OK


def _split_pair(paths: tuple[str, ...], why: bool) -> tuple[tuple[str, ...], tuple[str, str] | None]:
    """``FILE A B`` behind --why-not-fused: the two names are no files."""
    named = paths[:1] == ("-",) or (bool(paths) and os.path.exists(paths[0]))
    if why and len(paths) == 3 and named and not os.path.exists(paths[1]) and not os.path.exists(paths[2]):
        return paths[:1], (paths[1].lstrip("%"), paths[2].lstrip("%"))
    return paths, None
