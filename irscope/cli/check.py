"""``irscope check``: the exported models of a project against the budgets and results that its file demands."""

from __future__ import annotations

import click

from irscope.cli.lint import FORMATS


@click.command()
@click.argument("path", default=".", metavar="[PATH]")
@click.option("--format", "format_", type=click.Choice(FORMATS), default=None, help="How to report (default: full).")
@click.option("-o", "output", type=click.Path(dir_okay=False), help="Write the report to a file.")
@click.option("--config", "config_file", metavar="FILE", help="Settings (default: the nearest irscope.toml or pyproject.toml).")
@click.option("--write-baseline", is_flag=True, help="Store findings, kernels and traffic of today in the baseline that the settings name.")
@click.option("--exit-zero", is_flag=True, help="Exit 0 whatever was found.")
@click.option("--all", "all_", is_flag=True, help="Show all that is information, not the first few of each file.")
@click.option("--statistics", is_flag=True, help="Count the findings by rule.")
def command(
    path: str,
    format_: str | None,
    output: str | None,
    config_file: str | None,
    write_baseline: bool,
    exit_zero: bool,
    all_: bool,
    statistics: bool,
) -> int:
    """Check the exported models of a project, as [tool.irscope.check] of its pyproject.toml or irscope.toml demands.

    PATH is where the search for the settings begins (default: here).

    \b
    Examples:
      irscope check
      irscope check --format sarif -o irscope.sarif
      irscope check --write-baseline
    """
    from irscope.cli.checking import Request, run

    return run(Request(path, format_, output, config_file, write_baseline, exit_zero, statistics, all_))
