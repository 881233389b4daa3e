"""``irscope list``: what irscope knows, by kind."""
from __future__ import annotations

import json
from collections.abc import Callable

import click

from irscope.formats import FORMATS, TITLES, readable

Row = dict[str, str]


@click.command()
@click.argument("kind", type=click.Choice(["formats", "ops", "rules", "passes", "policies", "targets"]))
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", help="How to print.", show_default=True)
def command(kind: str, format_: str) -> None:
    """List what irscope knows: formats, ops, rules, passes, policies or targets."""
    rows = KINDS[kind]()
    if format_ == "json":
        click.echo(json.dumps(rows, indent=2))
        return
    width = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        rest = "  ".join(value for key, value in row.items() if key != "name" and value)
        click.echo(f"{row['name']:<{width}}  {rest}".rstrip())


def formats() -> list[Row]:
    """The formats, and which of them are read by this version."""
    known = readable()
    return [{"name": name, "title": TITLES[name], "reads": "yes" if name in known else "not yet"} for name in FORMATS]


KINDS: dict[str, Callable[[], list[Row]]] = {"formats": formats}
