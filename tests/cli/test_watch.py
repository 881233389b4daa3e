"""``show --watch`` draws again when the file changes, survives a file that cannot be read, and ends with Ctrl-C."""
from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from irscope.api.redrawing import CLEAR, repeat, stamps
from tests.conftest import Cli

TEXT = "HloModule m\nENTRY e {{\n p = f32[2] parameter(0)\n ROOT r = f32[2] {}(p)\n}}\n"


def waited(condition: Callable[[], bool]) -> None:
    for _ in range(300):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("not within 30 seconds")


def test_a_change_is_shown_and_ctrl_c_ends_it(tmp_path: Path, repo: Path) -> None:
    source, picture, log = tmp_path / "m.hlo", tmp_path / "m.dot", tmp_path / "log"
    source.write_text(TEXT.format("negate"))
    with log.open("wb") as said:
        process = subprocess.Popen([sys.executable, "-m", "irscope", "show", str(source), "-o", str(picture), "--watch"],
                                   stderr=said, env={**os.environ, "PYTHONPATH": str(repo)})
    try:
        waited(lambda: picture.exists() and "negate" in picture.read_text())
        source.write_text("no module")
        waited(lambda: "error" in log.read_text())
        assert process.poll() is None, "a file that cannot be read is watched on"
        source.unlink()
        time.sleep(0.6)
        source.write_text(TEXT.format("tanh"))
        waited(lambda: "tanh" in picture.read_text())
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130
    finally:
        process.kill()
    assert log.read_text().count("wrote ") == 2 and log.read_text().endswith("interrupted\n")


def test_nothing_is_drawn_without_a_change(tmp_path: Path) -> None:
    source = tmp_path / "m.hlo"
    assert stamps([str(source)]) is None
    source.write_text("a")
    first = stamps([str(source)])
    assert first == stamps([str(source)])
    os.utime(source, ns=(1, 1))
    assert stamps([str(source)]) != first
    folder = stamps([str(tmp_path)])
    (tmp_path / "other.hlo").write_text(TEXT.format("tanh"))
    assert stamps([str(tmp_path)]) != folder


def test_what_is_written_into_a_watched_folder_is_no_change(tmp_path: Path) -> None:
    (tmp_path / "m.hlo").write_text(TEXT.format("tanh"))
    written = tmp_path / "written.hlo"
    before = stamps([str(tmp_path)], str(written))
    written.write_text(TEXT.format("tanh"))
    assert stamps([str(tmp_path)], str(written)) == before != stamps([str(tmp_path)])


def test_a_file_that_is_missing_at_the_start_is_an_error(tmp_path: Path, repo: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "irscope", "show", str(tmp_path / "nowhere.hlo"), "--watch"], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(repo)}, timeout=60, check=False)
    assert done.returncode == 2 and "nowhere.hlo" in done.stderr


def test_only_a_terminal_that_shows_the_result_is_cleared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    def end() -> None:
        raise KeyboardInterrupt

    source = tmp_path / "m.hlo"
    source.write_text(TEXT.format("tanh"))
    for output, term, cleared in (("-", "xterm", True), ("-", "dumb", False), (str(tmp_path / "m.svg"), "xterm", False)):
        screen = Screen()
        monkeypatch.setattr(sys, "stdout", screen)
        monkeypatch.setenv("TERM", term)
        with pytest.raises(KeyboardInterrupt):
            repeat([str(source)], output, end, lambda text: None)
        assert (CLEAR in screen.getvalue()) is cleared


def test_standard_input_cannot_be_watched(cli: Cli) -> None:
    done = cli("show", "-", "--watch", input=TEXT.format("tanh"))
    assert done.exit_code == 2 and "standard input" in done.stderr
