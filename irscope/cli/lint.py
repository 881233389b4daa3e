"""``irscope lint``: findings, gates, and why two operators did not fuse."""

from __future__ import annotations

import os
import sys

import click

from irscope.cli.errors import FINDINGS, OK, USAGE
from irscope.cli.input import from_option, load, once_stdin
from irscope.cli.output import opened
from irscope.cli.progress import track
from irscope.source import Severity, UserError


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@from_option
@click.option(
    "--format",
    "format_",
    type=click.Choice(["full", "concise", "json", "jsonl", "github"]),
    default="full",
    show_default=True,
    help="How to report.",
)
@click.option("-o", "output", type=click.Path(dir_okay=False), help="Write the report to a file.")
@click.option("--select", multiple=True, metavar="CODE", help="Only these rules: codes, names, families (DTY), ALL; with commas.")
@click.option("--ignore", multiple=True, metavar="CODE", help="All but these rules.")
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "info"]),
    default="warning",
    show_default=True,
    help="Exit 1 on findings of this severity and above.",
)
@click.option("--exit-zero", is_flag=True, help="Exit 0 whatever was found.")
@click.option("--baseline", metavar="FILE", help="Leave out the findings that this file accepts.")
@click.option("--write-baseline", metavar="FILE", help="Accept what was found, for later runs.")
@click.option("--why-not-fused", "why", is_flag=True, help="Judge every edge between two operators; with A B behind the file, those two.")
@click.option("--policy", default="irscope", show_default=True, help="Whose fusion rules: irscope list policies.")
@click.option("--device", help="The device of a GPU policy: h100, a100, b200.")
@click.option("--max-kernels", type=click.IntRange(0), metavar="N", help="Exit 1 when the policy makes more kernels of the entry.")
def command(
    paths: tuple[str, ...],
    from_: str | None,
    format_: str,
    output: str | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    fail_on: str,
    exit_zero: bool,
    baseline: str | None,
    write_baseline: str | None,
    why: bool,
    policy: str,
    device: str | None,
    max_kernels: int | None,
) -> int:
    """Find what makes a graph slow or wrong.

    \b
    Examples:
      irscope lint model.hlo
      irscope lint dumps/ --select DTY,BRD --format concise
      irscope lint model.hlo --why-not-fused            every edge
      irscope lint model.hlo --why-not-fused dot.3 add.4  these two
    """
    from irscope.fleet.files import find_files
    from irscope.lint import lint_reading
    from irscope.lint import select as select_rules
    from irscope.lint.baseline import read_baseline, unknown_to
    from irscope.lint.baseline import write_baseline as store
    from irscope.lint.fusion import judge, kernels_over, remarks, version_of
    from irscope.lint.report import FileReport, Report

    paths, pair = _split_pair(paths, why)
    rules = select_rules(_words(select), _words(ignore))
    accepted = read_baseline(baseline) if baseline else None
    files: list[FileReport] = []
    broken = False
    everything = find_files(once_stdin(paths)).files
    if not everything:
        raise UserError(f"no dump in {', '.join(paths)}", "name a file to hear what is wrong with it")
    for path in track(everything, "linting"):
        try:
            reading = load(path, from_)
        except UserError as error:
            if len(everything) == 1:
                raise
            click.echo(error.render(), err=True)
            broken = True
            continue
        report = FileReport(path, lint_reading(reading, rules), readable=reading.ok)
        if accepted is not None:
            report.findings = unknown_to(accepted, report.findings)
        # A module whose text broke off in the middle of a graph has no kernels to speak of; the finding that says so stands already.
        whole = [module for module in reading.modules if module.entry and all(graph.root for graph in module.graphs.values())]
        if why:
            report.edges = [edge for module in whole for edge in judge(module, policy, device, pair)]
            report.remarks = [remark for module in reading.modules if module.entry for remark in remarks(module, policy)]
        if max_kernels is not None:
            report.findings += [f for module in whole for f in kernels_over(module, policy, device, max_kernels)]
        files.append(report)
    report_all = Report(files, policy=version_of(policy) if why else "")
    if write_baseline:
        store(write_baseline, report_all.findings())
        click.echo(f"{write_baseline}: {len(report_all.findings())} findings accepted", err=True)
    _print(report_all, format_, output)
    if exit_zero:
        return OK
    if broken or any(not file.readable for file in files):
        return USAGE
    limit = Severity[fail_on.upper()]
    return FINDINGS if not write_baseline and any(f.severity >= limit for f in report_all.findings()) else OK


def _split_pair(paths: tuple[str, ...], why: bool) -> tuple[tuple[str, ...], tuple[str, str] | None]:
    """``FILE A B`` behind --why-not-fused: the two names are no files."""
    named = paths[:1] == ("-",) or (bool(paths) and os.path.exists(paths[0]))
    if why and len(paths) == 3 and named and not os.path.exists(paths[1]) and not os.path.exists(paths[2]):
        return paths[:1], (paths[1].lstrip("%"), paths[2].lstrip("%"))
    return paths, None


def _words(given: tuple[str, ...]) -> list[str]:
    return [word.strip() for text in given for word in text.split(",") if word.strip()]


def _print(report: object, format_: str, output: str | None) -> None:
    from irscope.cli.errors import wants_colour
    from irscope.lint.report import Report
    from irscope.lint.reporters import reporter

    assert isinstance(report, Report)
    text = reporter(format_)(report)
    if output and output != "-":
        with opened(output) as stream:
            stream.write(text + "\n")
    elif text:
        click.echo(_coloured(text) if format_ in ("full", "concise") and wants_colour(sys.stdout) else text)


COLOURS = {"error[": "red", "warning[": "yellow", "info[": "blue"}


def _coloured(text: str) -> str:
    """The severities in colour, carets and headings bright."""
    lines = []
    for line in text.split("\n"):
        for word, colour in COLOURS.items():
            before, found, after = line.partition(f": {word}")
            if found:
                code, _, message = after.partition("]")
                line = click.style(before, bold=True) + ": " + click.style(f"{word}{code}]", fg=colour, bold=True) + message
                break
        if line.lstrip().startswith("| ") and set(line.lstrip()[2:].strip()) == {"^"}:
            line = click.style(line, fg="red")
        lines.append(line)
    return "\n".join(lines)
