"""``irscope rule``: what a lint rule finds, why it matters, and what to write instead."""
from __future__ import annotations

import click

from irscope import api
from irscope.source import UserError
from irscope.source.data_text import strict_json


@click.command()
@click.argument("code", required=False)
@click.option("--all", "all_", is_flag=True, help="All rules.")
@click.option(
    "--format", "format_", type=click.Choice(["text", "markdown", "json"]), default="text", show_default=True, help="How to print."
)
def command(code: str | None, all_: bool, format_: str) -> None:
    """Explain the rule CODE (or its name): what it does, why it is bad, an example, what to write instead.

    \b
    Examples:
      irscope rule DTY001
      irscope rule --all --format json
    """
    if all_ == bool(code):
        raise UserError("give one rule, or --all", "irscope rule DTY001, or irscope rule --all")
    rules = api.explain_all() if all_ else [api.explain(code or "")]
    if format_ == "json":
        documents = [rule.as_json() for rule in rules]
        click.echo(strict_json(documents if all_ else documents[0], indent=1))
    elif format_ == "markdown" or not all_:
        click.echo("\n\n".join(rule.as_markdown() if format_ == "markdown" else rule.as_text() for rule in rules))
    else:
        for rule in rules:
            click.echo(f"{rule.code}  {rule.name:<28} {rule.level:<6} {rule.severity:<8} {'' if rule.default else 'off':<4} {rule.title}")
