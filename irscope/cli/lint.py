"""``irscope lint``: findings, gates, and why two operators did not fuse."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

from irscope.cli.errors import FINDINGS, OK, USAGE
from irscope.cli.input import bind, binding_options, from_option, load, once_stdin, require_ok
from irscope.cli.output import opened
from irscope.cli.progress import track
from irscope.source import Severity, UserError, did_you_mean
from irscope.source.budget import fresh_budget

if TYPE_CHECKING:
    from irscope.graph import Reading
    from irscope.lint.config import Config
    from irscope.lint.report import Report
    from irscope.lint.session import Session

AUDITS = ("dtype", "shape", "layout", "memory", "parallel")
FORMATS = ("full", "concise", "json", "jsonl", "sarif", "github", "gitlab", "junit", "markdown")


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@from_option
@click.option("--format", "format_", type=click.Choice(FORMATS), default=None, help="How to report (default: full).")
@click.option("-o", "output", type=click.Path(dir_okay=False), help="Write the report to a file.")
@click.option("--select", multiple=True, metavar="CODE", help="Only these rules: codes, names or families (DTY), repeated or with commas.")
@click.option("--ignore", multiple=True, metavar="CODE", help="All but these rules.")
@click.option("--strict-relay", is_flag=True, help="Also mark what TVM's own Relay reader would refuse.")
@click.option("--fail-on", type=click.Choice(["error", "warning", "info"]), default=None, help="Exit 1 from this severity on (warning).")
@click.option("--exit-zero", is_flag=True, help="Exit 0 whatever was found.")
@click.option("--statistics", is_flag=True, help="Count the findings by rule.")
@click.option("--all", "all_", is_flag=True, help="Show all that is information, not the first few of each file.")
@click.option("--baseline", metavar="FILE", help="Leave out the findings that this file accepts.")
@click.option("--write-baseline", metavar="FILE", help="Accept what was found, for later runs.")
@click.option("--track-fusion", is_flag=True, help="Store kernels and traffic in the baseline; later runs tell what grew.")
@click.option("--why-not-fused", "why", is_flag=True, help="Judge every edge between two operators; with A B behind the file, those two.")
@click.option("--policy", default=None, help="Whose fusion rules: irscope list policies (default: irscope).")
@click.option("--fusion-log", metavar="FILE", help="With --why-not-fused: the compiler's own log, whose word is the truth.")
@click.option("--device", help="The device of a GPU policy: h100, a100, b200.")
@click.option("--machine", metavar="NAME", help="What time costs: cpu, h100, a100, b200, or a FILE.toml (default: as the policy's device).")
@click.option("--max-kernels", type=click.IntRange(0), metavar="N", help="A finding when the policy makes more kernels of the entry.")
@click.option("--max-traffic", metavar="SIZE", help="A finding when the kernels move more than SIZE (200MiB) in a run.")
@click.option("--max-memory", metavar="SIZE", help="A finding when more than SIZE lives at once.")
@click.option("--require-fused", multiple=True, metavar="PATTERN", help="A finding when a chain such as 'dot,add,max*' is not one kernel.")
@click.option("--expect-dtype", type=click.Choice(["f32", "f16", "bf16", "int8"]), help="A finding where operators run in another dtype.")
@click.option("--where", metavar="QUERY", help="With --expect-dtype: only the nodes that the query picks.")
@click.option("--audit", type=click.Choice(AUDITS), help="Print a table instead of findings.")
@click.option("--fix", "fix_", is_flag=True, help="Mend what passes can mend in one file, and write the program to -o FILE.")
@click.option("--config", "config_file", metavar="FILE", help="Settings (default: the nearest irscope.toml or pyproject.toml).")
@click.option("--isolated", is_flag=True, help="Ignore all settings of the project.")
@binding_options
def command(
    paths: tuple[str, ...],
    from_: str | None,
    format_: str | None,
    output: str | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    strict_relay: bool,
    fail_on: str | None,
    exit_zero: bool,
    statistics: bool,
    all_: bool,
    baseline: str | None,
    write_baseline: str | None,
    track_fusion: bool,
    why: bool,
    policy: str | None,
    fusion_log: str | None,
    device: str | None,
    machine: str | None,
    max_kernels: int | None,
    max_traffic: str | None,
    max_memory: str | None,
    require_fused: tuple[str, ...],
    expect_dtype: str | None,
    where: str | None,
    audit: str | None,
    fix_: bool,
    config_file: str | None,
    isolated: bool,
    shapes: dict[str, tuple[int, ...]],
    dtypes: dict[str, str],
) -> int:
    """Find what makes a graph slow or wrong.

    \b
    Examples:
      irscope lint model.hlo
      irscope lint dumps/ --select DTY,BRD --format concise
      irscope lint model.hlo --why-not-fused            every edge
      irscope lint model.hlo --why-not-fused dot.3 add.4  these two
      irscope lint model.hlo --why-not-fused --fusion-log vlog.txt  by XLA's own log
      irscope lint model.hlo --max-kernels 12 --require-fused 'dot,add,max*'
      irscope lint model.hlo --audit memory
      irscope lint model.hlo --fix -o mended.hlo        what passes can mend, and what is left
    """
    from irscope.api import scalar_loops
    from irscope.lint.baseline import write_baseline as store
    from irscope.lint.config import find_config, read_config
    from irscope.lint.session import Options, Session
    from irscope.source.sizes import parse_size

    if isolated and config_file:
        raise UserError("--isolated and --config exclude each other", "give one of them")
    if where and not expect_dtype:
        raise UserError("--where picks the nodes of --expect-dtype", "give both; irscope show --where QUERY shows what a query picks")
    if fusion_log and (not why or policy):
        raise UserError("--fusion-log answers --why-not-fused", "give that, and no --policy: the log says whose it is")
    if track_fusion and not write_baseline:
        raise UserError("--track-fusion stores into a baseline", "give --write-baseline FILE too")
    config = None if isolated else read_config(config_file) if config_file else find_config(".")
    format_ = format_ or format_of(config)

    def read(path: str) -> Reading:
        return bind(load(path, from_), shapes, dtypes)

    if audit:
        return _audit(paths, read, audit, format_, output)
    paths, pair = _split_pair(paths, why)
    demands = {
        "policy": policy,
        "device": device,
        "machine": machine,
        "max_kernels": max_kernels,
        "max_traffic": parse_size(max_traffic) if max_traffic else None,
        "max_memory": parse_size(max_memory) if max_memory else None,
        "require_fused": require_fused,
        "expect_dtype": expect_dtype,
        "where": where,
    }
    level = Severity[fail_on.upper()] if fail_on else None
    if strict_relay:
        from irscope.lint.rule import default_rules

        select = (*(select or [rule.code for rule in default_rules()]), "strict-relay")
    options = Options(_words(select), _words(ignore), level, demands, baseline, why, pair, track_fusion, statistics)
    options.fresh, options.loops = write_baseline is not None, scalar_loops
    if fusion_log:
        from irscope.fusion.logs.verdicts import load_log

        options.log = load_log(fusion_log)
    session = Session(options, config)
    if fix_:
        return _fix(paths, read, session, output, exit_zero, other=format_ != format_of(config) or why or bool(write_baseline))
    broken = _each(paths, read, session.add)
    report = session.report()
    report.everything = all_
    if write_baseline:
        store(write_baseline, session.acceptable(), session.fusion)
        click.echo(f"{write_baseline}: {len(session.acceptable())} findings accepted", err=True)
    print_report(report, format_, output, paths)
    if session.accepted:
        click.echo(f"accepted by the baseline: {session.accepted}", err=True)
    if exit_zero:
        return OK
    if broken or any(not file.readable for file in report.files):
        return USAGE
    return FINDINGS if not write_baseline and any(file.fails for file in report.files) else OK


def _fix(
    paths: tuple[str, ...], read: Callable[[str], Reading], session: Session, output: str | None, exit_zero: bool, other: bool
) -> int:
    from irscope.cli.fixing import fix

    if len(paths) != 1 or os.path.isdir(paths[0]):
        raise UserError("--fix mends one file", "irscope lint FILE --fix -o MENDED")
    if other:
        raise UserError("--fix writes the program, and no report", "run irscope lint on what it wrote")
    return fix(read(paths[0]), paths[0], session, output, exit_zero)


def _each(paths: tuple[str, ...], read: Callable[[str], Reading], work: Callable[[str, Reading], object]) -> bool:
    """Read every dump that the paths stand for and hand it over; True when one of several could not be used, which is said at once."""
    from irscope.fleet.files import find_files, no_dump

    found = find_files(once_stdin(paths))
    if not found.files:
        raise no_dump(paths, found.skipped)
    broken = False
    for path in track(found.files, "linting"):
        try:
            with fresh_budget():
                work(path, read(path))
        except UserError as error:
            if len(found.files) == 1:
                raise
            click.echo(f"{path}: {error.render()}" if path not in error.message else error.render(), err=True)
            broken = True
    return broken


def format_of(config: Config | None) -> str:
    """The format of the settings, or ``full``."""
    named = str(config.top.get("format", "full")) if config is not None else "full"
    if named not in FORMATS:
        raise UserError(f"there is no format {named!r}", did_you_mean(named, FORMATS) or f"the formats are {', '.join(FORMATS)}")
    return named


def _audit(paths: tuple[str, ...], read: Callable[[str], Reading], audit: str, format_: str, output: str | None) -> int:
    from irscope.analysis.soundness import held_together
    from irscope.lint.audits import FileAudit, auditor, write_audits

    told: list[FileAudit] = []

    def look(path: str, reading: Reading) -> None:
        require_ok(reading)
        told.append(FileAudit(path, [auditor(audit)(held_together(module)) for module in reading.modules if module.entry]))

    broken = _each(paths, read, look)
    write_text(write_audits(told, format_), output, inputs=paths)
    return USAGE if broken else OK


def _split_pair(paths: tuple[str, ...], why: bool) -> tuple[tuple[str, ...], tuple[str, str] | None]:
    """``FILE A B`` behind --why-not-fused: the two names are no files."""
    named = paths[:1] == ("-",) or (bool(paths) and os.path.exists(paths[0]))
    if why and len(paths) == 3 and named and not os.path.exists(paths[1]) and not os.path.exists(paths[2]):
        return paths[:1], (paths[1].lstrip("%"), paths[2].lstrip("%"))
    return paths, None


def _words(given: tuple[str, ...]) -> list[str]:
    return [word.strip() for text in given for word in text.split(",") if word.strip()]


def print_report(report: Report, format_: str, output: str | None, inputs: Iterable[str] = ()) -> None:
    """Write a report to a file or to standard output, coloured where a terminal wants it."""
    from irscope.lint.reporters import reporter

    write_text(reporter(format_)(report), output, format_ in ("full", "concise"), inputs)
    if format_ not in ("full", "json"):  # those two tell it themselves
        for why in (why for file in report.files for why in file.skipped):
            click.echo(f"note: {why}", err=True)


def write_text(text: str, output: str | None, coloured: bool = False, inputs: Iterable[str] = ()) -> None:
    """Write a text to a file that is none of the inputs, or to standard output."""
    from irscope.cli.errors import wants_colour

    if output and output != "-":
        with opened(output, inputs) as stream:
            stream.write(text + "\n")
    elif text:
        click.echo(_coloured(text) if coloured and wants_colour(sys.stdout) else text)


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
