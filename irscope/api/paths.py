"""Checks of path arguments before anything is read."""
from __future__ import annotations

from irscope.source import UserError


def once_stdin(paths: tuple[str, ...]) -> tuple[str, ...]:
    """The paths as given. Raises UserError if standard input is given twice, because it can be read only once."""
    if paths.count("-") > 1:
        raise UserError("standard input (-) can be given once", "write one of the inputs into a file")
    return paths


def path_of(given: str) -> str:
    """A path as it was given on a command line. Raises UserError for a dump's text instead, which the Python functions would accept."""
    if given != "-" and "\n" in given:
        raise UserError(f"{given.splitlines()[0][:60]!r}... is no path", "give a text by standard input: irscope COMMAND - < FILE")
    return given
