"""``irscope rule``: what a lint rule finds, why it matters, and what to write instead."""

from __future__ import annotations

import json
from typing import Any

import click

from irscope.cli.fixing import NEEDS_OPTIONS
from irscope.lint.gate import Gate, all_documented
from irscope.lint.rule import Fix, Rule, find_rule
from irscope.source import UserError

FIXES = {
    Fix.REWRITE: "irscope makes it on a copy of the graph, and tells what the copy saves",
    Fix.HINT: "a change of the program: what to write instead stands above",
    Fix.NONE: "none by itself: it tells what is so",
}
"""How far irscope helps, in a line."""


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
    rules = list(all_documented()) if all_ else [find_rule(code or "", all_documented())]
    if format_ == "json":
        documents = [as_dict(rule) for rule in rules]
        click.echo(json.dumps(documents if all_ else documents[0], indent=1))
    elif format_ == "markdown" or not all_:
        click.echo("\n\n".join(as_markdown(rule) if format_ == "markdown" else as_text(rule) for rule in rules))
    else:
        for rule in rules:
            click.echo(f"{rule.code}  {rule.name:<28} {rule.severity!s:<8} {'' if rule.default else 'off':<4} {rule.title()}")


def as_dict(rule: type[Rule]) -> dict[str, Any]:
    """A rule with its documentation by heading; a gate names the option that asks for it."""
    return {
        "code": rule.code,
        "name": rule.name,
        "severity": str(rule.severity),
        "default": rule.default,
        "title": rule.title(),
        "sections": {section.heading: section.text for section in rule.sections()},
        "policies": list(rule.policies),
        "fix": str(rule.fix),
        "passes": list(rule.passes),
        "formats": list(rule.formats) if issubclass(rule, Gate) else sorted({f.format for f in rule.bad}),
        "option": rule.option if issubclass(rule, Gate) else None,
    }


def as_text(rule: type[Rule]) -> str:
    """The page of a rule for a terminal."""
    off = "" if rule.default else f"; off until selected: --select {rule.code}"
    under = f"; under --policy {' or '.join(rule.policies)}" if rule.policies else ""
    lines = [f"{rule.code} {rule.name} ({rule.severity}{off}{under})", "", rule.title()]
    for section in rule.sections():
        body = "\n".join("  " + line for line in section.text.splitlines() if not line.startswith("```"))
        lines += ["", section.heading, body]
    lines += ["", "Fix", f"  {FIXES[rule.fix]}"]
    if rule.passes:
        runs = "" if NEEDS_OPTIONS.issuperset(rule.passes) else ", and irscope lint --fix runs it"
        lines.append(f"  irscope opt --passes {','.join(rule.passes)} makes it in some of the cases{runs}")
    return "\n".join(lines)


def as_markdown(rule: type[Rule]) -> str:
    """The page of a rule for the documentation."""
    sections = "\n\n".join(f"## {section.heading}\n{section.text}" for section in rule.sections())
    return f"# {rule.code} {rule.name}\n\nSeverity: {rule.severity}\n\n{rule.title()}\n\n{sections}\n"
