"""``--watch``: an act is repeated when one of its files changes, until Ctrl-C."""
from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable, Sequence
from typing import NoReturn

from irscope.api.paths import files_of
from irscope.source import UserError
from irscope.source.budget import fresh_budget

POLL = 0.25
"""Seconds between two looks at the files."""
CLEAR = "\x1b[H\x1b[2J\x1b[3J"
"""Moves the cursor to the top of the terminal, and clears it with what was scrolled away."""

Stamps = tuple[tuple[str, int, int], ...]


def repeat(paths: Sequence[str], output: str, act: Callable[[], object], say: Callable[[str], None]) -> NoReturn:
    """Call ``act``, and again after every change of the files, or of what is in the folders, at ``paths``.

    ``say`` reports when ``output`` was written; ``-`` is standard output, which is cleared before if it is a terminal. The file of
    ``output`` is not watched where it is in one of the folders.

    Raises UserError for standard input, what ``act`` raises where a path is missing at the start, and KeyboardInterrupt at Ctrl-C. Later,
    a UserError of ``act`` is reported, and the file watched on: it may be half written. A file that is still being written, or missing
    because it is being replaced, is waited for.
    """
    if "-" in paths:
        raise UserError("--watch looks at files, and standard input is none")
    shown: Stamps | None = None
    before: Stamps | None = None
    if stamps(paths, output) is None:
        act()
    while True:
        now = stamps(paths, output)
        settled = shown is None or now == before
        if now is not None and now != shown and settled:
            shown = now
            if output == "-" and sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
                sys.stdout.write(CLEAR)
            try:
                with fresh_budget(paths[0]):  # each time is a run of its own
                    act()
                if output != "-":
                    say(f"wrote {output}")
            except UserError as error:
                say(error.render())
            sys.stdout.flush()
        before = now
        time.sleep(POLL)


def stamps(paths: Sequence[str], output: str = "-") -> Stamps | None:
    """Name, time of the last change in nanoseconds and bytes of every file at ``paths`` but ``output``; None while one is missing.

    Only regular files count: the time of a folder changes when ``output`` is written into it.
    """
    written = os.path.realpath(output) if output != "-" else ""
    found: list[tuple[str, int, int]] = []
    for path in files_of(paths):
        try:
            status = os.stat(path)
        except OSError:
            return None
        if stat.S_ISREG(status.st_mode) and os.path.realpath(path) != written:
            found.append((path, status.st_mtime_ns, status.st_size))
    return tuple(found)
