"""``irscope diff``: two dumps compared as graphs, with gates for CI."""
from __future__ import annotations

from dataclasses import dataclass

import click

from irscope import api
from irscope.api.options import DiffOptions, option
from irscope.api.paths import path_of
from irscope.cli.errors import FINDINGS, OK, USAGE
from irscope.cli.options import options
from irscope.cli.output import opened
from irscope.cli.terminal import TERMINAL, say


@dataclass(frozen=True, kw_only=True)
class DiffOutput:
    """Where and how it is written."""

    form: str = option("text", "How to print it; html is one page that needs no network, svg a drawing of both sides.", "--format",
                       choices=("text", "json", "markdown", "html", "svg"))
    output: str = option("-", "Write there instead of to standard output.", "-o", "--output", metavar="FILE", shown=False)


@click.command()
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@options(request=DiffOptions, output=DiffOutput)
def command(before: str, after: str, request: DiffOptions, output: DiffOutput) -> int:
    """Compare two dumps as graphs: names and the order of independent lines do not count.

    \b
    Examples:
      irscope diff old.hlo new.hlo
      irscope diff old.hlo new.hlo --format html -o diff.html
      irscope diff before.hlo after.hlo --format json --matches
      irscope diff old.hlo new.hlo --fail-if 'kernels>+0' --fail-if 'bytes>+5%'
    """
    result = api.diff(path_of(before), path_of(after), request, watch=TERMINAL)
    text = result.rendered(output.form)
    with opened(output.output, (before, after)) as stream:
        stream.write(text + "\n")
    for failure in result.failed:
        say(f"gate failed: {failure}")
    if not result.readable:
        for error in result.errors:
            say(error.render())
        return USAGE
    return FINDINGS if result.failed else OK
