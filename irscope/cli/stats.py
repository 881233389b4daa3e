"""``irscope stats``: what is in files, one object or row a file."""
from __future__ import annotations

import os
import sys

import click

from irscope.cli.input import from_option, once_stdin


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--format", "format_", type=click.Choice(["table", "json", "jsonl"]), default="table", show_default=True,
              help="How to print it.")
@click.option("--signature", is_flag=True, help="Also the inputs and outputs of the entry.")
@click.option("--jobs", type=click.IntRange(1), default=None, metavar="N",
              help="Processes for many files (default: the cores of this machine).")
@click.option("-o", "--output", default="-", metavar="FILE", help="Write there instead of to standard output.")
@from_option
def command(paths: tuple[str, ...], format_: str, signature: bool, jobs: int | None, output: str, from_: str | None) -> int:
    """Count operators, parameters, FLOPs and bytes of files and folders.

    A folder stands for the dumps in it. Every file is answered, whatever happens to the others.

    \b
    Examples:
      irscope stats dumps/ --format jsonl
      irscope stats model.hlo --signature --format json
    """
    from irscope.cli.output import opened, paint_for
    from irscope.cli.progress import Progress
    from irscope.fleet.files import find_files, no_dump
    from irscope.fleet.stats import stats_of
    from irscope.render.stats import writer
    from irscope.render.units import plural

    found = find_files(once_stdin(paths))
    if not found.files:
        raise no_dump(paths, found.skipped)
    with opened(output, [*paths, *found.files]) as stream:
        write = writer(format_, stream, paint_for(stream))
        with Progress("reading", len(found.files)) as progress:
            for record in stats_of(found.files, from_, signature, jobs):
                write.add(record)
                progress.advance()
        write.end()
        if format_ == "table":
            for path in paths:
                if path != "-" and os.path.isdir(path):
                    from irscope.cli.showing_folder import folder_timelines

                    stream.writelines(line + "\n" for line in folder_timelines(path, paint_for(stream)))
    if found.skipped:
        print(f"{plural(len(found.skipped), 'file')} in folders skipped: no dumps", file=sys.stderr)
    if write.failed and len(found.files) > 1:
        print(f"{write.failed} of {len(found.files)} files are not ok", file=sys.stderr)
    return 2 if write.failed else 0
