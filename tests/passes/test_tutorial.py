"""The tutorial is run from top to bottom: its files are written, its commands run, and what it shows is printed."""
from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path

import pytest

from tests.conftest import REPO, Cli

PAGE = REPO / "docs" / "tutorial" / "write-a-pass.md"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_tutorial_is_true(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    commands = 0
    for language, block in FENCE.findall(PAGE.read_text(encoding="utf-8")):
        first, *rest = block.splitlines()
        if language in ("python", "relay"):
            Path(first.lstrip("#/ ")).write_text(block)
            continue
        commands += 1
        words = shlex.split(first.removeprefix("$ "))
        printed = iter([line.rstrip() for line in run(words, cli, capsys).splitlines()])
        for line in rest:
            assert line.rstrip() in printed, f"{first} does not print {line!r} there"
    assert commands >= 6


def run(words: list[str], cli: Cli, capsys: pytest.CaptureFixture[str]) -> str:
    """What a command prints, results before messages."""
    if words[0] == "python":
        runpy.run_path(words[1])
        return capsys.readouterr().out
    done = cli(*words[1:])
    assert done.exit_code in (0, 1), done.stderr
    return done.stdout + done.stderr
