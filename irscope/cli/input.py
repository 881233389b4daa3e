"""What every command asks of the paths that it is given."""
from __future__ import annotations

from irscope.api.loading import once_stdin
from irscope.source import UserError

__all__ = ["once_stdin", "path_of"]


def path_of(given: str) -> str:
    """A path as it was given. Raises UserError for a text in its place, which the functions would read."""
    if given != "-" and "\n" in given:
        raise UserError(f"{given.splitlines()[0][:60]!r}... is no path", "give a text by standard input: irscope COMMAND - < FILE")
    return given
