"""``irscope list``: what irscope knows, by kind."""
from __future__ import annotations

import click

from irscope import api
from irscope.source.data_text import strict_json

KINDS = ("formats", "ops", "passes", "rules", "policies", "targets")


@click.command()
@click.argument("kind", type=click.Choice(KINDS))
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", help="How to print.", show_default=True)
def command(kind: str, format_: str) -> None:
    """List what irscope knows of a kind.

    \b
    Examples:
      irscope list rules
      irscope list ops --format json
    """
    rows = api.listed(kind)
    if format_ == "json":
        click.echo(strict_json(rows, indent=1))
        return
    widths = [max(len(value) for value in column) for column in zip(*(row.values() for row in rows))]
    for row in rows:
        click.echo("  ".join(value.ljust(width) for value, width in zip(row.values(), widths)).rstrip())
