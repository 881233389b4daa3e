"""Records the files that a piece of work reads, so that its output does not replace one of them.

A command reads more files than its arguments name: the settings of the project, the files that they name, logs beside a dump, the external
data of a model. Whatever opens a file of the user calls :func:`note_read`; a block :func:`files_read` has the list.
"""
from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_lists: ContextVar[tuple[list[str], ...]] = ContextVar("files read", default=())


@contextmanager
def files_read() -> Iterator[list[str]]:
    """The paths of the files that are read in the block, as a list that grows; an outer block has them too."""
    found: list[str] = []
    before = _lists.set((*_lists.get(), found))
    try:
        yield found
    finally:
        _lists.reset(before)


def note_read(path: str | os.PathLike[str]) -> None:
    """Record that a file is read; ``-`` is standard input. Does nothing outside of :func:`files_read`."""
    name = os.fspath(path)
    for found in _lists.get():
        if name not in found:
            found.append(name)


def known_reads() -> list[str]:
    """The list of the innermost block, which grows while the block runs; an empty list outside of any."""
    lists = _lists.get()
    return lists[-1] if lists else []
