"""Reports of findings: their formats, written to a file or to standard output, coloured where a terminal wants it."""
from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from irscope.cli.errors import wants_colour
from irscope.cli.output import opened
from irscope.cli.terminal import TERMINAL
from irscope.source import UserError, did_you_mean

if TYPE_CHECKING:
    from irscope.lint.config import Config
    from irscope.lint.report import Report

FORMATS = ("full", "concise", "json", "jsonl", "sarif", "github", "gitlab", "junit", "markdown")


def format_of(config: Config | None) -> str:
    """The format of the settings, or ``full``."""
    named = str(config.top.get("format", "full")) if config is not None else "full"
    if named not in FORMATS:
        raise UserError(f"there is no format {named!r}", did_you_mean(named, FORMATS) or f"the formats are {', '.join(FORMATS)}")
    return named


def print_report(report: Report, format_: str, output: str | None, inputs: Iterable[str] = ()) -> None:
    """Write a report to a file or to standard output, coloured where a terminal wants it."""
    from irscope.lint.reporters import reporter

    write_text(reporter(format_)(report), output, format_ in ("full", "concise"), inputs)
    if format_ not in ("full", "json"):  # those two tell it themselves
        for why in (why for file in report.files for why in file.skipped):
            TERMINAL.note(why)


def write_text(text: str, output: str | None, coloured: bool = False, inputs: Iterable[str] = ()) -> None:
    """Write a text to a file that is none of the inputs, or to standard output."""
    if output and output != "-":
        with opened(output, inputs) as stream:
            stream.write(text + "\n")
    elif text:
        click.echo(_coloured(text) if coloured and wants_colour(sys.stdout) else text)


COLOURS = {"error[": "red", "warning[": "yellow", "info[": "blue"}


def _coloured(text: str) -> str:
    """The severities in colour, carets and headings bright."""
    lines = []
    for line in text.split("\n"):
        for word, colour in COLOURS.items():
            before, found, after = line.partition(f": {word}")
            if found:
                code, _, message = after.partition("]")
                line = click.style(before, bold=True) + ": " + click.style(f"{word}{code}]", fg=colour, bold=True) + message
                break
        if line.lstrip().startswith("| ") and set(line.lstrip()[2:].strip()) == {"^"}:
            line = click.style(line, fg="red")
        lines.append(line)
    return "\n".join(lines)
