"""``irscope stats``: what is in files, one object or row per file."""
from __future__ import annotations

import os
from dataclasses import dataclass

import click

from irscope import api
from irscope.api.options import StatsOptions, option
from irscope.cli.errors import OK, USAGE
from irscope.cli.options import options
from irscope.cli.output import opened, paint_for
from irscope.cli.terminal import TERMINAL, say


@dataclass(frozen=True, kw_only=True)
class StatsOutput:
    """Where and how it is written."""

    form: str = option("table", "How to print it.", "--format", choices=("table", "json", "jsonl"))
    output: str = option("-", "Write there instead of to standard output.", "-o", "--output", metavar="FILE", shown=False)


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@options(output=StatsOutput, request=StatsOptions)
def command(paths: tuple[str, ...], output: StatsOutput, request: StatsOptions) -> int:
    """Count operators, parameters, FLOPs and bytes of files and folders.

    A folder means the dumps in it. Every file gets a record, even if others fail.

    \b
    Examples:
      irscope stats dumps/ --format jsonl
      irscope stats model.hlo --signature --format json
    """
    from irscope.render.stats import writer
    from irscope.render.units import plural

    counted = api.stats(paths, request)
    with opened(output.output, [*paths, *counted.files]) as stream:
        write = writer(output.form, stream, paint_for(stream))
        for record in TERMINAL.track(counted, "reading", len(counted)):
            write.add(record)
        write.end()
        for path in paths if output.form == "table" else ():
            if path != "-" and os.path.isdir(path):
                from irscope.api.folders import folder_timelines

                stream.writelines(line + "\n" for line in folder_timelines(path, paint_for(stream)))
    if counted.skipped:
        say(f"{plural(len(counted.skipped), 'file')} in folders skipped: no dumps")
    if write.failed:
        say(f"{write.failed} of {plural(len(counted), 'file')} not ok")
    return USAGE if write.failed else OK
