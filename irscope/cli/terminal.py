"""What functions report while they work, on the terminal: notes on standard error, a bar for long work, and Ctrl-C in native code."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import click

from irscope.api.watching import Watcher
from irscope.cli.interrupt import interruptible
from irscope.cli.progress import Progress
from irscope.source import UserError

NATIVE = ("compiling", "running")
"""Stages in which code runs that is not Python."""


def say(text: str) -> None:
    """Write a line to standard error."""
    click.echo(text, err=True)


class Terminal(Watcher):
    """Reports to the user of a command."""

    def note(self, text: str) -> None:
        say(f"note: {text}")

    def unusable(self, name: str, error: UserError) -> None:
        say(f"{name}: {error.render()}" if name not in error.message else error.render())

    @contextmanager
    def stage(self, label: str, total: int | None = None) -> Iterator[Callable[[], None]]:
        with ExitStack() as stack:
            if label in NATIVE:
                stack.enter_context(interruptible())
            yield stack.enter_context(Progress(label, total)).advance


TERMINAL = Terminal()
