"""Which test files reach which lines of irscope: only those can notice a mutant of a line.

Each test file runs once in a process of its own, so that what is cached in one file hides nothing from another, under the line coverage of
the fuzzer. As a plugin of pytest (``-p tests.mutants.reach``) this module writes the lines that a run reached to the file that
``IRSCOPE_REACH`` names. Lines that a test reaches in a child process alone are not seen: a mutant there counts as not noticed.
"""
from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

from tests.fuzz.coverage import MONITORING, Coverage

TARGET = "IRSCOPE_REACH"
_coverage = Coverage()


def pytest_configure() -> None:
    """Begin to record."""
    if TARGET in os.environ:
        _coverage.start()


def pytest_unconfigure() -> None:
    """Write the lines, by source file."""
    if TARGET not in os.environ:
        return
    _coverage.stop()
    lines: dict[str, list[int]] = {}
    for file, line in sorted(_coverage.take()):
        lines.setdefault(file, []).append(line)
    Path(os.environ[TARGET]).write_text(json.dumps(lines))


class Reach:
    """The lines that each test file reaches, kept in a folder under the content of the sources and of the test file."""

    def __init__(self, root: Path, folder: Path, jobs: int) -> None:
        self.root, self.folder, self.jobs = root, folder, jobs
        self._sources = _digest(sorted((root / "irscope").rglob("*.py")))
        self._lines: dict[str, dict[str, set[int]]] = {}
        folder.mkdir(parents=True, exist_ok=True)

    @staticmethod
    def works_here() -> bool:
        """Whether lines are cheap to record: Python 3.12 and later."""
        return MONITORING is not None

    def add(self, files: Sequence[str]) -> None:
        """Run the test files that have not been run yet."""
        todo = [file for file in dict.fromkeys(files) if file not in self._lines]
        with ThreadPoolExecutor(self.jobs) as pool:
            for file, lines in zip(todo, pool.map(self._of, todo), strict=True):
                self._lines[file] = lines

    def _of(self, file: str) -> dict[str, set[int]]:
        kept = self.folder / f"{_digest([self.root / file])}-{self._sources}.json"
        if not kept.exists():
            with tempfile.TemporaryDirectory() as temporary:
                target = Path(temporary) / "lines.json"
                environment = {**os.environ, "PYTHONPATH": str(self.root), "PYTHONHASHSEED": "0", TARGET: str(target), "HYPOTHESIS_STORAGE_DIRECTORY": temporary}
                subprocess.run([sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "tests.mutants.reach", "-p", "no:cacheprovider", file],
                               cwd=self.root, env=environment, capture_output=True, stdin=subprocess.DEVNULL, check=False)
                kept.write_text(target.read_text())
        return {name: set(lines) for name, lines in json.loads(kept.read_text()).items()}

    def files_at(self, path: str, line: int, files: Sequence[str]) -> list[str]:
        """Those of some test files that reach a line, or another of the same statement; those that reach the fewest lines come first."""
        span = statement_lines((self.root / path).read_text(), line)
        source = path.partition("/")[2]
        chosen = [file for file in files if not span or span & self._lines[file].get(source, set())]
        return sorted(chosen, key=lambda file: sum(map(len, self._lines[file].values())))


def statement_lines(text: str, line: int) -> set[int]:
    """The lines of the innermost statement at a line, of a compound one those before its body; none where importing the module runs it."""
    found: tuple[int, int] | None = None
    inside = False
    for statement, in_function in _statements(ast.parse(text)):
        first, last = _header(statement)
        if first <= line <= last and (found is None or first >= found[0]):
            found, inside = (first, last), in_function
    return set(range(found[0], found[1] + 1)) if found and inside else set()


def _statements(tree: ast.Module) -> Iterator[tuple[ast.stmt, bool]]:
    """All statements, each with whether a function contains it."""
    stack: list[tuple[ast.AST, bool]] = [(tree, False)]
    while stack:
        node, inside = stack.pop()
        if isinstance(node, ast.stmt):
            yield node, inside
        deeper = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        stack.extend((child, deeper) for child in ast.iter_child_nodes(node))


def _header(statement: ast.stmt) -> tuple[int, int]:
    """The first and last line of a statement without the statements in it."""
    decorators = [decorator.lineno for decorator in getattr(statement, "decorator_list", ())]
    body = getattr(statement, "body", None) or getattr(statement, "cases", None)
    end = statement.end_lineno or statement.lineno
    if not body:
        return statement.lineno, end
    first = body[0]
    begins = first.pattern.lineno if isinstance(first, ast.match_case) else min([first.lineno, *(d.lineno for d in getattr(first, "decorator_list", ()))])
    return min([statement.lineno, *decorators]), max(statement.lineno, begins - 1)


def _digest(paths: Sequence[Path]) -> str:
    digest = sha256()
    for path in paths:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
