"""A copy of the project in which one file is mutated at a time, and the tests that are to notice it."""
from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.mutants.points import Point
from tests.mutants.server import UNPATCHABLE, Request, Server

COPIED = ("irscope", "tests", "samples", "docs", "benchmarks", "pyproject.toml", "README.md", "CHANGELOG.md", "Makefile")
LIMIT = 300
"""Seconds of CPU time that the tests of a room may take; a mutant that makes them take longer is noticed."""


@dataclass(frozen=True)
class Outcome:
    """``said``: ``noticed``, ``endless`` (which is noticed too) or ``alive``; ``by`` is the first test that fails."""

    said: str
    by: str
    seconds: float


class Unpatchable(Exception):
    """The functions of a server that runs cannot be replaced by those of a mutant."""


@dataclass(frozen=True)
class Part:
    """A test file from a test on (``start``; all of it where that is empty), within ``limit`` seconds of CPU time.

    Without a limit it does not run in a fork: it gets a process of its own. ``seconds`` is what it takes without a mutant.
    """

    file: str
    start: str = ""
    limit: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Plan:
    """What runs against a mutant, in this order; ``imported``: importing irscope runs the mutated line."""

    parts: list[Part]
    imported: bool = False

    def split(self, seconds: float) -> tuple[Plan, Plan]:
        """The first parts, which take so long at most, and the others."""
        total = 0.0
        for count, part in enumerate(self.parts):
            total += part.seconds
            if total > seconds:
                return replace(self, parts=self.parts[:count]), replace(self, parts=self.parts[count:])
        return self, replace(self, parts=[])


class Trial:
    """A folder with a copy of the project; mutants are put into it one after the other."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root, self.folder = root, folder
        self.times = 0
        self._server: Server | None = None
        for name in COPIED:
            source = root / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("*.so", ".pytest_cache"))
            elif source.exists():
                shutil.copy2(source, folder / name)

    def run(self, point: Point, first: str = "", plan: Plan | None = None) -> Outcome:
        """What the tests of the mutated file's room say, or those of a plan; none but the test ``first`` runs where that one fails."""
        path = self.folder / point.path
        original = path.read_text()
        if plan and plan.parts and self._server is None:
            self._server = Server(self.folder)
        self._write(path, point.apply(original))
        try:
            if plan is None:
                return self._first_then(first, lambda: self._tests(suites_of(self.folder, point.path)))
            if plan.imported:
                return self._anew(first, plan.parts)
            assert self._server or not plan.parts
            request = Request("", source=str(path), old=original, new=point.apply(original))
            return self._forks(self._server, first, plan.parts, request) if self._server else Outcome("alive", "", 0.0)
        except Unpatchable:
            assert plan
            return self._anew(first, plan.parts)
        finally:
            self._write(path, original)

    def close(self) -> None:
        """End the server of this copy, where there is one."""
        if self._server:
            self._server.close()

    def _first_then(self, first: str, rest: Callable[[], Outcome]) -> Outcome:
        outcome = self._tests([first]) if first else Outcome("alive", "", 0.0)
        if first and outcome.by == first:
            return outcome
        after = rest()
        return replace(after, seconds=outcome.seconds + after.seconds)

    def _anew(self, first: str, parts: Sequence[Part]) -> Outcome:
        """The parts in a server that has imported the mutant."""
        try:
            server = Server(self.folder)
        except RuntimeError as stopped:
            return Outcome("noticed", str(stopped).rpartition(": ")[2], 0.0)
        with server:
            outcome = self._forks(server, first, parts, Request(""))
        return replace(outcome, seconds=outcome.seconds + server.seconds)

    def _forks(self, server: Server, first: str, parts: Sequence[Part], request: Request) -> Outcome:
        seconds = 0.0
        for part in [*([Part(first, limit=LIMIT)] if first else []), *parts]:
            outcome = self._of(part, server, request)
            seconds += outcome.seconds
            if outcome.said != "alive" and (part.file != first or outcome.by == first):
                return replace(outcome, seconds=seconds)
        return Outcome("alive", "", seconds)

    def _of(self, part: Part, server: Server, request: Request) -> Outcome:
        """What one part says."""
        if not part.limit:
            return self._tests([part.file])
        answer = server.run(replace(request, file=part.file, start=part.start, limit=part.limit))
        if answer.status == UNPATCHABLE:
            raise Unpatchable
        if answer.status == -signal.SIGXCPU:
            return Outcome("endless", "", answer.seconds)
        return Outcome("noticed" if answer.status else "alive", answer.failed or (f"exit status {answer.status}" if answer.status else ""), answer.seconds)

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
