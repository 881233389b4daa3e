"""Which tests reach which lines of irscope: only those can notice a mutant of a line.

Each test file runs once in a fork of a server that has imported irscope (``tests.mutants.server``), so that what is cached in one file hides
nothing from another, under the line coverage of the fuzzer. What is kept is the first test of the file that reaches a line: those before it
run the same with a mutant of the line as without. Lines that a test reaches in a child process alone are not seen: a mutant there counts as
not noticed.
"""
from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from queue import SimpleQueue

from tests.fuzz.coverage import MONITORING
from tests.mutants.server import Answer, Request, Server
from tests.mutants.trial import LIMIT, Part, Plan

NO_TESTS = 5
"""The exit status of pytest where a file has no test that runs here."""
NEAR = 5
"""A test file that has the name of the mutated one runs as early as another that takes a fifth of its time."""


class Reach:
    """What each test file reaches, kept in a folder under the content of the sources and of the test file."""

    def __init__(self, root: Path, folder: Path, jobs: int) -> None:
        self.root, self.folder, self.jobs = root, folder, jobs
        self._sources = _digest(sorted((root / "irscope").rglob("*.py")))
        self._answers: dict[str, Answer] = {}
        self._imports: dict[str, set[int]] = {}
        folder.mkdir(parents=True, exist_ok=True)

    @staticmethod
    def works_here() -> bool:
        """Whether lines are cheap to record: Python 3.12 and later."""
        return MONITORING is not None

    def add(self, files: Sequence[str]) -> None:
        """Run the test files that have not been run yet."""
        kept = {file: self.folder / f"{_digest([self.root / file])}-{self._sources}.json" for file in files}
        imports = self.folder / f"imports-{self._sources}.json"
        todo = [file for file, path in kept.items() if not path.exists()]
        if todo or not imports.exists():
            self._record([(file, kept[file]) for file in todo], imports)
        self._imports = {file: set(lines) for file, lines in json.loads(imports.read_text()).items()}
        self._answers |= {file: Answer(**json.loads(path.read_text())) for file, path in kept.items()}

    def _record(self, todo: Sequence[tuple[str, Path]], imports: Path) -> None:
        servers: SimpleQueue[Server] = SimpleQueue()
        running = [Server(self.root) for _ in range(self.jobs)]
        imports.write_text(json.dumps({file: sorted(lines) for file, lines in running[0].imports.items()}))

        def one(file: str, path: Path) -> None:
            server = servers.get()
            path.write_text(json.dumps(asdict(server.run(Request(file, limit=LIMIT, cover=True)))))
            servers.put(server)
        try:
            for server in running:
                servers.put(server)
            with ThreadPoolExecutor(self.jobs) as pool:
                list(pool.map(one, *zip(*todo, strict=True)) if todo else ())
        finally:
            for server in running:
                server.close()

    def plan(self, path: str, line: int, files: Sequence[str]) -> Plan:
        """What of some test files can notice a mutant of a line; what takes the least time comes first.

        Files from the first test on that reaches the line, or another of the same statement; all of them where importing irscope runs it.
        """
        span, source = statement_lines((self.root / path).read_text(), line), path.partition("/")[2]
        imported = not span or bool(span & self._imports.get(source, set()))
        costs: dict[Part, tuple[bool, float]] = {}
        for file in files:
            answer = self._answers[file]
            lines = answer.lines.get(source, {})
            tests = [lines[str(at)] for at in span if str(at) in lines]
            if answer.status == NO_TESTS or not (tests or imported):
                continue
            start = max(0, min(tests)) if tests and not imported else 0
            fine = answer.status == 0 and start < len(answer.tests)
            seconds = sum(seconds for _, seconds in answer.tests[start:])
            part = Part(file, answer.tests[start][0] if start and fine else "", int(20 + 10 * answer.seconds) if fine else 0, seconds)
            near = NEAR if Path(path).stem in Path(file).stem else 1
            costs[part] = imported and not lines, seconds / near
        return Plan(sorted(costs, key=lambda part: costs[part]), imported)


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
