"""``irscope diff``: two dumps compared as graphs, with gates for CI."""
from __future__ import annotations

import json

import click

from irscope.cli.errors import FINDINGS, OK
from irscope.cli.input import first_module, from_option, load_ok, once_stdin
from irscope.cli.output import opened


@click.command()
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@from_option
@click.option("--format", "format_", type=click.Choice(["text", "json", "markdown", "html"]), default="text", show_default=True,
              help="How to print it; html is one page that needs no network.")
@click.option("--fail-if", multiple=True, metavar="CONDITION", help="Exit 1 when it holds: 'kernels>+0', 'bytes>+5%', 'ops.transpose>0'.")
@click.option("-o", "--output", default="-", metavar="FILE", help="Write there instead of to standard output.")
def command(before: str, after: str, from_: str | None, format_: str, fail_if: tuple[str, ...], output: str) -> int:
    """Compare two dumps as graphs: names and the order of independent lines do not count.

    \b
    Examples:
      irscope diff old.hlo new.hlo
      irscope diff old.hlo new.hlo --format html -o diff.html
      irscope diff old.hlo new.hlo --fail-if 'kernels>+0' --fail-if 'bytes>+5%'
    """
    from irscope.diff import compare, parse_gate
    from irscope.diff.report import as_json, as_text

    gates = [parse_gate(text) for text in fail_if]
    once_stdin((before, after))
    modules = first_module(load_ok(before, from_)), first_module(load_ok(after, from_))
    comparison = compare(*modules)
    failed = [told for gate in gates if (told := gate.fails(comparison))]
    if format_ == "json":
        text = json.dumps(as_json(comparison, failed), indent=1)
    elif format_ == "html":
        from irscope.diff.page import as_html

        text = as_html(comparison, *modules, (before, after), failed)
    else:
        text = as_text(comparison, before, after, format_ == "markdown")
    with opened(output, (before, after)) as stream:
        stream.write(text + "\n")
    for told in failed:
        click.echo(f"gate failed: {told}", err=True)
    return FINDINGS if failed else OK
