"""Records the files that a piece of work reads, so that its output does not replace one of them.

A command reads more files than its arguments name: the settings of the project, the files that they name, logs beside a dump, the external
data of a model. Whatever opens a file of the user calls :func:`note_read`; a block :func:`files_read` has their paths.
"""
from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_blocks: ContextVar[tuple[dict[str, None], ...]] = ContextVar("files read", default=())


@contextmanager
def files_read() -> Iterator[Collection[str]]:
    """The paths of the files that are read in the block, in order, each once; they grow, and an outer block has them too."""
    found: dict[str, None] = {}
    before = _blocks.set((*_blocks.get(), found))
    try:
        yield found
    finally:
        _blocks.reset(before)


def note_read(path: str | os.PathLike[str]) -> None:
    """Record that a file is read; ``-`` is standard input. Does nothing outside of :func:`files_read`."""
    name = os.fspath(path)
    for found in _blocks.get():
        found[name] = None


def known_reads() -> Collection[str]:
    """The paths of the innermost block, which grow while the block runs; none outside of any."""
    blocks = _blocks.get()
    return blocks[-1] if blocks else ()
