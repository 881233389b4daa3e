"""A pytest that has imported irscope once and runs test files in forks of itself, one file in each.

As a plugin of pytest (``-p tests.mutants.server``) this module imports all of irscope and then answers requests, one line of JSON each. A fork
replaces the code of one module's functions where a request says so, and runs a file from one of its tests on. That saves the start of
Python, pytest and irscope, which is most of what a short test file costs. :class:`Server` is the other end of the two pipes.
"""
from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import CodeType, FunctionType
from typing import IO, Any

import pytest

from tests.fuzz.coverage import Coverage

PIPES = "IRSCOPE_PIPES"
UNPATCHABLE = 90
"""The exit status of a fork that cannot replace a function's code: its free variables have changed."""
IMPORTS = 100
"""Seconds of CPU time that importing irscope may take."""
MEMORY = 6 << 30
"""Bytes that a fork may allocate."""
WALL = 6
"""How many seconds a fork may last for each second of CPU time that it may take."""


@dataclass(frozen=True)
class Request:
    """Run a test file from the test ``start`` on (or all of it), until a test fails; ``limit`` in seconds of CPU time.

    ``source`` is a file of irscope, whose text was ``old`` when the server began and is ``new``. ``cover``: record which lines each test
    reaches first.
    """

    file: str
    start: str = ""
    limit: int = 300
    source: str = ""
    old: str = ""
    new: str = ""
    cover: bool = False


@dataclass
class Answer:
    """``status`` as ``subprocess`` counts (negative: a signal); the first test that failed; seconds of CPU time.

    With ``cover``: the tests with their seconds, and by file of irscope, for each line, which of the tests was the first to reach it
    (-1: collecting the tests did).
    """

    status: int
    failed: str
    seconds: float
    tests: list[tuple[str, float]] = field(default_factory=list)
    lines: dict[str, dict[str, int]] = field(default_factory=dict)


class Server:
    """A server in a folder that holds a copy of the project. ``imports``: the lines that importing irscope reaches, by file."""

    def __init__(self, folder: Path) -> None:
        asked, ask = os.pipe()
        answers, answered = os.pipe()
        environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONHASHSEED": "0", "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / "out"),
                       PIPES: f"{asked},{answered}"}
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "--no-header", "--tb=no", "-p", "no:cacheprovider", "-p", "tests.mutants.server", "tests"]
        self._process = subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                         pass_fds=(asked, answered))
        os.close(asked)
        os.close(answered)
        self._requests, self._answers = os.fdopen(ask, "w"), os.fdopen(answers)
        ready = json.loads(self._answers.readline() or "null")
        if ready is None:
            raise RuntimeError(f"no server of tests in {folder}: exit status {self._process.wait()}")
        self.imports: dict[str, set[int]] = {file: set(lines) for file, lines in ready["imports"].items()}
        self.seconds = float(ready["seconds"])

    def run(self, request: Request) -> Answer:
        """What becomes of one test file."""
        print(json.dumps(asdict(request)), file=self._requests, flush=True)
        return Answer(**json.loads(self._answers.readline()))

    def close(self) -> None:
        """End the server."""
        self._requests.close()
        self._answers.close()
        self._process.wait()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """In the server: answer requests until there are no more. In a fork: let pytest go on with the file of the request."""
    if PIPES not in os.environ:
        return
    asked, answered = map(int, os.environ.pop(PIPES).split(","))
    resource.setrlimit(resource.RLIMIT_CPU, (IMPORTS, resource.RLIM_INFINITY))
    coverage = Coverage()
    coverage.start()
    _import_all()
    coverage.stop()
    resource.setrlimit(resource.RLIMIT_CPU, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    imports: dict[str, list[int]] = {}
    for file, line in sorted(coverage.take()):
        imports.setdefault(file, []).append(line)
    gc.collect()
    gc.freeze()
    requests, answers = os.fdopen(asked), os.fdopen(answered, "w")
    print(json.dumps({"imports": imports, "seconds": time.process_time()}), file=answers, flush=True)
    for asking in requests:
        request = Request(**json.loads(asking))
        began, written = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(began)
            _become(request, config, os.fdopen(written, "w"), coverage)
            return
        os.close(written)
        answer = _wait(child, os.fdopen(began), request.limit)
        print(json.dumps(asdict(answer)), file=answers, flush=True)
    os._exit(0)


def _import_all() -> None:
    """Import irscope and what its tests need of other packages; a module that a mutant breaks is left to the tests."""
    import irscope
    for name in ("numpy", "hypothesis", "hypothesis.strategies", "click.testing"):
        importlib.import_module(name)
    for module in pkgutil.walk_packages(irscope.__path__, "irscope.", onerror=lambda name: None):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(Exception):
                importlib.import_module(module.name)


def _become(request: Request, config: pytest.Config, results: IO[str], coverage: Coverage) -> None:
    """Make this process, a fork, one that runs the file of a request."""
    os.setpgid(0, 0)
    resource.setrlimit(resource.RLIMIT_CPU, (request.limit, request.limit + 5))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    if request.source:
        try:
            replace_code(os.path.realpath(request.source), request.old, request.new)
        except (ValueError, SyntaxError):
            os._exit(UNPATCHABLE)
    config.args[:] = [request.file]
    config.pluginmanager.register(_Recorder(request, results, coverage if request.cover else None))
    if request.cover:
        coverage.start()
        coverage.again()


def _wait(child: int, results: IO[str], limit: int) -> Answer:
    """Wait until a fork ends, and end it with all that it started where it lasts too long."""
    until = time.monotonic() + WALL * limit
    said: dict[str, Any] = {}
    text = ""
    while select.select([results], [], [], max(0.0, until - time.monotonic()))[0]:
        part = os.read(results.fileno(), 1 << 16).decode()
        if not part:
            break
        text += part
    late = time.monotonic() >= until
    if late:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
    results.close()
    _, status, usage = os.wait4(child, 0)
    for line in text.splitlines():
        with contextlib.suppress(json.JSONDecodeError):
            said |= json.loads(line)
    code = -signal.SIGXCPU if late else os.waitstatus_to_exitcode(status)
    return Answer(code, said.get("failed", ""), usage.ru_utime + usage.ru_stime, said.get("tests", []), said.get("lines", {}))


class _Recorder:
    """In a fork: which test failed first, and which lines the tests reached."""

    def __init__(self, request: Request, results: IO[str], coverage: Coverage | None) -> None:
        self.request, self.results, self.coverage = request, results, coverage
        self.failed = False
        self.tests: list[tuple[str, float]] = []
        self.lines: dict[str, dict[str, int]] = {}
        self.began = time.process_time()

    def pytest_collection_modifyitems(self, items: list[pytest.Item], config: pytest.Config) -> None:
        names = [item.nodeid for item in items]
        if self.request.start in names:
            config.hook.pytest_deselected(items=items[:names.index(self.request.start)])
            del items[:names.index(self.request.start)]
        self._take(-1)
        self.began = time.process_time()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._failure(report.failed, report.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failure(report.failed, report.nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        if self.coverage:
            now = time.process_time()
            self.tests.append((nodeid, round(now - self.began, 4)))
            self._take(len(self.tests) - 1)
            self.began = now

    def pytest_sessionfinish(self) -> None:
        if self.coverage:
            self.coverage.stop()
            self._write({"tests": self.tests, "lines": self.lines})

    def _take(self, test: int) -> None:
        for file, line in self.coverage.take() if self.coverage else ():
            self.lines.setdefault(file, {})[str(line)] = test

    def _failure(self, failed: bool, nodeid: str) -> None:
        if failed and not self.failed:
            self.failed = True
            self._write({"failed": nodeid})

    def _write(self, said: dict[str, Any]) -> None:
        print(json.dumps(said), file=self.results, flush=True)


def replace_code(path: str, old: str, new: str) -> None:
    """Give the functions of a module the code that they have in another text of it.

    Raises ValueError where that cannot be done: a function has other free variables, or one that exists is no longer in the text.
    """
    pairs = dict(_pairs(*(compile(text, path, "exec", dont_inherit=True) for text in (old, new))))
    gc.unfreeze()
    functions = [f for f in gc.get_objects() if type(f) is FunctionType and f.__code__.co_filename == path]
    gc.freeze()
    for function in functions:
        if function.__code__ not in pairs:
            raise ValueError(function.__qualname__)
        function.__code__ = pairs[function.__code__]


def _pairs(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """The code objects of two versions of a text, as far as both have them."""
    stack = [(old, new)]
    while stack:
        before, after = stack.pop()
        yield before, after
        children = [[c for c in code.co_consts if isinstance(c, CodeType)] for code in (before, after)]
        if [c.co_name for c in children[0]] == [c.co_name for c in children[1]]:
            stack.extend(zip(*children, strict=True))
