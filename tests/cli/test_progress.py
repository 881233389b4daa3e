"""The bar: silent where nobody looks, there when work is long."""
from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr
from typing import TypeVar

import pytest

from irscope.cli import progress
from irscope.cli.terminal import TERMINAL

T = TypeVar("T")


class Terminal:
    """A stderr that says it is a terminal and keeps what it is sent."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self.said = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.said += text
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal that wants a bar. Each test puts it in place itself: pytest sets its own stderr between a fixture and the test."""
    for name in ("CI", "IRSCOPE_NO_PROGRESS", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    return Terminal()


def wait_for(word: str, terminal: Terminal) -> None:
    """Work on until the bar, which another thread draws, says the word; gives up after ten seconds."""
    end = time.monotonic() + 10
    while word not in terminal.said and time.monotonic() < end:
        time.sleep(0.02)


def track(items: Sequence[T], label: str, delay: float) -> Iterator[T]:
    """The items, with a bar that appears after ``delay`` seconds."""
    with progress.Progress(label, len(items), delay) as bar:
        for item in items:
            yield item
            bar.advance()


def test_items_pass_through_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(TERMINAL.track("abc", "reading")) == ["a", "b", "c"]
    assert capsys.readouterr().err == ""


def test_short_work_shows_nothing(terminal: Terminal) -> None:
    with redirect_stderr(terminal):
        assert list(track([1, 2], "reading", delay=30)) == [1, 2]
    assert terminal.said == ""


def test_long_work_shows_how_far_it_is(terminal: Terminal) -> None:
    with redirect_stderr(terminal):
        for _ in track(range(3), "reading files", delay=0.01):
            wait_for("/3", terminal)
    assert "reading files" in terminal.said and "/3" in terminal.said


def test_a_stage_without_a_count_shows_its_name(terminal: Terminal) -> None:
    with redirect_stderr(terminal), progress.Progress("compiling", delay=0.01):
        wait_for("compiling", terminal)
    assert "compiling" in terminal.said


def test_ci_gets_no_bar(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with redirect_stderr(terminal):
        for _ in track(range(2), "reading", delay=0.01):
            time.sleep(0.1)
    assert terminal.said == ""


def test_an_error_inside_the_loop_ends_the_bar(terminal: Terminal) -> None:
    with redirect_stderr(terminal), pytest.raises(ValueError, match="stop"):
        for _ in track(range(2), "reading", delay=0.01):
            wait_for("reading", terminal)
            raise ValueError("stop")
    assert terminal.said.endswith("\x1b[2K")  # the line of the bar is wiped
