"""A copy of the project in which one file is mutated at a time, and the tests that are to notice it."""
from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.mutants.points import Point

COPIED = ("irscope", "tests", "samples", "docs", "benchmarks", "pyproject.toml", "README.md", "CHANGELOG.md", "Makefile")
LIMIT = 300
"""Seconds of CPU time that the tests of a room may take; a mutant that makes them take longer is noticed."""


@dataclass(frozen=True)
class Outcome:
    """``said``: ``noticed``, ``endless`` (which is noticed too) or ``alive``; ``by`` is the first test that fails."""

    said: str
    by: str
    seconds: float


class Trial:
    """A folder with a copy of the project; mutants are put into it one after the other."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root, self.folder = root, folder
        self.times = 0
        for name in COPIED:
            source = root / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("*.so", ".pytest_cache"))
            elif source.exists():
                shutil.copy2(source, folder / name)

    def run(self, point: Point, first: str = "", files: Sequence[str] | None = None) -> Outcome:
        """What the tests of the mutated file's room say, or those ``files`` of them; none but the test ``first`` runs where that one fails."""
        path = self.folder / point.path
        original = path.read_text()
        self._write(path, point.apply(original))
        try:
            outcome = self._tests([first]) if first else None
            if outcome and outcome.by == first:
                return outcome
            files = suites_of(self.folder, point.path) if files is None else files
            room = self._tests(list(files)) if files else Outcome("alive", "", 0.0)
            return replace(room, seconds=room.seconds + outcome.seconds) if outcome else room
        finally:
            self._write(path, original)

    def _write(self, path: Path, text: str) -> None:
        """Compiled files are known by the time of their source, in whole seconds: each version gets a time of its own."""
        path.write_text(text)
        self.times += 1
        os.utime(path, (1_000_000_000 + self.times, 1_000_000_000 + self.times))

    def _tests(self, files: list[str]) -> Outcome:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        environment = {**os.environ, "PYTHONPATH": str(self.folder), "PYTHONHASHSEED": "0", "HYPOTHESIS_STORAGE_DIRECTORY": str(self.folder / "out")}
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "--no-header", "--tb=no", "-p", "no:cacheprovider", *files]
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT + 5)))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if done.returncode == 0:
            return Outcome("alive", "", seconds)
        if done.returncode < 0 and seconds >= LIMIT - 1:
            return Outcome("endless", "", seconds)
        failed = next((line.split(" - ")[0].split(" ", 1)[1] for line in done.stdout.split("\n") if line.startswith(("FAILED ", "ERROR "))), "")
        return Outcome("noticed", failed or f"exit status {done.returncode}", seconds)


def room_of(path: str) -> str:
    """The room of a file: ``lint`` of ``irscope/lint/rules/x.py``."""
    return path.split("/")[1].removesuffix(".py")


def suites_of(root: Path, path: str) -> list[str]:
    """The test files of a file's room; first those that name its module, those that say so most often before others."""
    room = room_of(path)
    folder = root / "tests" / room
    files = sorted(folder.rglob("test_*.py")) if folder.is_dir() else [root / "tests" / f"test_{room}.py"]
    names = {path.removesuffix(".py").replace("/", "."), Path(path).stem, Path(path).stem.replace("_", "-")}

    def nearness(file: Path) -> tuple[int, int]:
        text = file.read_text()
        return -sum(text.count(name) for name in names) - 1000 * (Path(path).stem in file.stem), file.stat().st_size
    return [str(file.relative_to(root)) for file in sorted(files, key=nearness)]
