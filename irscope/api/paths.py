"""Checks of path arguments before anything is read."""
from __future__ import annotations

import os
from collections.abc import Iterable

from irscope.fleet.files import find_files
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


def files_of(paths: Iterable[str]) -> list[str]:
    """The paths, and the dumps in those that are folders."""
    given = list(paths)
    return [*given, *find_files(path for path in given if os.path.isdir(path)).files]
