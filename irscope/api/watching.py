"""What a function reports while it works: notes, and the stages of long work. The command line prints both; the default reports nothing."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from irscope.source import UserError

T = TypeVar("T")


def _nothing(n: int = 1) -> None:
    """Report no progress."""


class Watcher:
    """Override a method to hear of it. One watcher may watch several calls."""

    def note(self, text: str) -> None:
        """Something that a user should know of the call: one line, without ``note:``."""

    def unusable(self, name: str, error: UserError) -> None:
        """One of several inputs cannot be used; the others still are."""

    @contextmanager
    def stage(self, label: str, total: int | None = None) -> Iterator[Callable[[], None]]:
        """Around work that may take long. The function that it gives is called for each of the ``total`` items that is done."""
        yield _nothing

    def track(self, items: Iterable[T], label: str, total: int | None = None) -> Iterator[T]:
        """The items, as a stage."""
        with self.stage(label, total) as advance:
            for item in items:
                yield item
                advance()


SILENT = Watcher()
