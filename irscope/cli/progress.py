"""A progress bar for work that takes longer than a second: on stderr, on a terminal only, removed at the end."""
from __future__ import annotations

import os
import sys
import threading
from typing import Any

# In seconds. Shorter work shows no bar, and rich, which draws it, is not imported.
DELAY = 1.0


class Progress:
    """A bar (with ``total``) or a spinner (without), shown once the work has taken ``delay`` seconds.

    ``with Progress("reading", 3) as progress: ...; progress.advance()``
    """

    def __init__(self, label: str, total: int | None = None, delay: float = DELAY) -> None:
        self.label = label
        self.total = total
        self.done = 0
        self._delay = delay
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()
        self._bar: Any = None
        self._ended = False

    def __enter__(self) -> Progress:
        if _wanted():
            self._timer = threading.Timer(self._delay, self._show)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is None:
            return
        self._timer.cancel()
        with self._lock:
            self._ended = True
            if self._bar is not None:
                self._bar.stop()

    def advance(self) -> None:
        """One more of the total is done."""
        self.done += 1
        if self._bar is not None:
            self._bar.update(0, completed=self.done)

    def _show(self) -> None:
        """Runs in the timer's thread. The lock keeps it from drawing after the work has ended."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        columns: list[Any] = [SpinnerColumn(), TextColumn("{task.description}")]
        if self.total is not None:
            columns += [BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()]
        # rich would send what is printed meanwhile to its own stream: right on a terminal, where it keeps the bar below, wrong in a pipe.
        bar = RichProgress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True, redirect_stdout=sys.stdout.isatty())
        bar.add_task(self.label, total=self.total, completed=self.done)
        with self._lock:
            if not self._ended:
                self._bar = bar
                bar.start()


def _wanted() -> bool:
    """Whether to draw: stderr is a terminal that can move its cursor, and no environment variable forbids it."""
    if os.environ.get("IRSCOPE_NO_PROGRESS") or os.environ.get("CI") or os.environ.get("TERM") == "dumb":
        return False
    return bool(sys.stderr and sys.stderr.isatty())
