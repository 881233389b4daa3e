"""``show --watch`` draws again when the file changes, survives a file that cannot be read, and ends with Ctrl-C."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from irscope.api.redrawing import stamps
from irscope.source.writing import writing
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


def test_an_output_in_the_folder_that_is_watched_is_no_change(tmp_path: Path) -> None:
    (tmp_path / "a.hlo").write_text(TEXT.format("tanh"))
    output = str(tmp_path / "out.hlo")
    before = stamps([str(tmp_path)], output)
    for _ in range(2):
        with writing(output) as stream:
            stream.write(TEXT.format("tanh").encode())
        assert stamps([str(tmp_path)], output) == before
    (tmp_path / "b.hlo").write_text(TEXT.format("tanh"))
    assert stamps([str(tmp_path)], output) != before


@pytest.mark.parametrize("file", ["-"])
def test_standard_input_cannot_be_watched(file: str, cli: Cli) -> None:
    done = cli("show", file, "--watch", input=TEXT.format("tanh"))
    assert done.exit_code == 2 and "standard input" in done.stderr
