"""``irscope doctor``: what irscope found on this machine, for inspection and for bug reports."""
from __future__ import annotations

import shutil
import sys

import click

from irscope import api
from irscope.cli.errors import FINDINGS, OK, wants_colour
from irscope.source.data_text import strict_json


@click.command()
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", help="How to print.", show_default=True)
def command(format_: str) -> int:
    """Report what irscope found on this machine: versions, processor, tools, terminal.

    Exit status 1 if something that irscope needs is missing.
    """
    facts = {**api.machine(), "terminal": _terminal()}
    if format_ == "json":
        click.echo(strict_json(facts, indent=2))
    else:
        for section, rows in facts.items():
            click.echo(f"{section}")
            for key, value in rows.items():
                click.echo(f"  {key:<14} {value}")
    return FINDINGS if any(value.startswith("missing") for value in facts["packages"].values()) else OK


def _terminal() -> dict[str, str]:
    size = shutil.get_terminal_size()
    return {
        "stdout": "terminal" if sys.stdout.isatty() else "not a terminal",
        "colour": "yes" if wants_colour(sys.stdout) else "no",
        "encoding": str(sys.stdout.encoding),
        "size": f"{size.columns}x{size.lines}",
    }
