"""The mutation tests' own tests: where a text can be mutated, which tests run, and that a copy is put back."""
from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.mutants.__main__ import earlier, run, sample
from tests.mutants.points import Point, is_valid, points
from tests.mutants.reach import Reach, statement_lines
from tests.mutants.trial import Outcome, Part, Plan, Trial, suites_of

TEXT = '''"""A docstring with 1 number."""
LIMIT: int = 4
OPS = {"add", "Sum of all"}


def f(x: int, names: list[str]) -> int:
    """Whether 1 < 2."""
    if x < LIMIT and not names:
        raise ValueError(f"{x + 1} is too small")
    names.append("é"); x += 1
    return max(x, 3)
'''


SMALL = "irscope/graph/small.py"


def changes(text: str) -> set[tuple[str, str]]:
    return {(p.old, p.new) for p in points("irscope/graph/f.py", text) if not p.idle and is_valid(p, text)}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    for name, text in {"irscope/__init__.py": "", "irscope/graph/__init__.py": "", SMALL: "def double(x):\n    return x * 2\n",
                       "tests/graph/test_small.py": "from irscope.graph.small import double\n\ndef test_double():\n    assert double(3) == 6\n",
                       "tests/graph/test_other.py": "def test_other():\n    pass\n",
                       "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '--import-mode=importlib'\n"}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def mutants(project: Path) -> dict[str, Point]:
    """The mutants of ``x * 2``, by what stands in place of the operator or the number."""
    return {p.new: p for p in points(SMALL, (project / SMALL).read_text()) if p.old in ("2", "*")}


def test_code_is_mutated_and_words_for_readers_are_not() -> None:
    found = changes(TEXT)
    assert found == {
        ("4", "(4 + 1)"), ('"add"', '"mutated"'), ("<", "<="), ("and", "or"), ("not ", ""), ("x < LIMIT and not names", "(not (x < LIMIT and not names))"),
        ('names.append("é")', "pass"), ("x += 1", "pass"), ("1", "(1 + 1)"), ("return max(x, 3)", "return None"), ("max", "min"), ("3", "(3 + 1)"),
    }


def test_a_change_is_made_where_it_says() -> None:
    [point] = [p for p in points("irscope/graph/f.py", TEXT) if p.old == "x += 1"]
    assert point.line == 10 and point.where == 'names.append("é"); x += 1'
    assert 'names.append("é"); pass' in point.apply(TEXT)


def test_what_makes_no_difference_is_no_point() -> None:
    assert changes('__all__ = ["f", "g"]\nNAMES = ["f"]\n') == {('"f"', '"mutated"')}
    assert changes("@dataclass(frozen=True, slots=True)\nclass A:\n    pass\n") == set()
    assert changes("zip(a, b, strict=True)\n") == {("zip(a, b, strict=True)", "pass")}
    assert changes("@dataclass(eq=False, order=True)\nclass A:\n    pass\n") == {("False", "True"), ("True", "False")}


def test_a_returned_truth_value_becomes_the_opposite_once() -> None:
    assert changes("def f():\n    return False\n") == {("return False", "return True")}
    assert changes("def f():\n    return True\n") == {("return True", "return False")}
    assert changes("def f():\n    return g(True)\n") == {("return g(True)", "return None"), ("True", "False")}
    assert changes("def f():\n    return 1\n") == {("return 1", "return None"), ("1", "(1 + 1)")}


def test_points_that_are_left_out_do_not_change_the_others_of_a_seed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tests.mutants.__main__.ROOT", tmp_path)
    text = "def f(x):\n    return x < 1 or x > 2\n\n\ndef g():\n    return True\n"
    (tmp_path / "f.py").write_text(text)
    found = points("f.py", text)
    [idle] = [p for p in found if p.idle]
    drawn = sample(found, len(found), seed=1)
    assert idle not in drawn and len(drawn) == len(found) - 1
    assert len(sample(found, 3, seed=1)) == 3 and set(sample(found, 3, seed=1)) <= set(sample(found, 4, seed=1))


def test_a_mutant_is_noticed_and_taken_out_again(project: Path, tmp_path: Path) -> None:
    trial = Trial(project, tmp_path / "copy")
    assert suites_of(project, SMALL) == ["tests/graph/test_small.py", "tests/graph/test_other.py"]
    text = (project / SMALL).read_text()
    assert {new: trial.run(p).said for new, p in mutants(project).items()} == {"+": "noticed", "(2 + 1)": "noticed"}
    assert (tmp_path / "copy" / SMALL).read_text() == text


@pytest.mark.parametrize(("first", "runs"), [
    ("tests/graph/test_small.py::test_double", [["tests/graph/test_small.py::test_double"]]),
    ("tests/graph/test_other.py::test_other", [["tests/graph/test_other.py::test_other"], ["tests/graph/test_small.py", "tests/graph/test_other.py"]]),
    ("tests/graph/test_gone.py::test_gone", [["tests/graph/test_gone.py::test_gone"], ["tests/graph/test_small.py", "tests/graph/test_other.py"]]),
], ids=["fails", "passes", "is gone"])
def test_one_test_is_enough_only_where_it_fails(first: str, runs: list[list[str]], project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trial, ran = Trial(project, tmp_path / "copy"), []
    tests = trial._tests

    def recorded(files: list[str]) -> Outcome:
        ran.append(files)
        return tests(files)
    monkeypatch.setattr(trial, "_tests", recorded)
    outcome = trial.run(mutants(project)["+"], first)
    assert ran == runs
    assert (outcome.said, outcome.by) == ("noticed", "tests/graph/test_small.py::test_double")


def test_records_of_other_trees_name_the_test_to_try_first(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.mutants.__main__.ROOT", project)
    monkeypatch.setattr(Reach, "works_here", lambda: False)
    point = mutants(project)["+"]
    state = tmp_path / "state"
    state.mkdir()
    for age, (said, by) in enumerate([("noticed", "tests/a.py::old"), ("noticed", "tests/a.py::new"), ("alive", ""), ("endless", "")]):
        record = state / f"{9 - age}.jsonl"
        record.write_text(json.dumps({"key": point.key, "said": said, "by": by, "seconds": 1.0}) + "\n")
        os.utime(record, (age, age))
    assert earlier(state) == {point.key: "tests/a.py::new"}
    tried = []

    def noticed(_: Trial, point: Point, first: str, files: None) -> Outcome:
        tried.append((point.key, first))
        return Outcome("noticed", first, 0.0)
    monkeypatch.setattr(Trial, "run", noticed)
    for _ in range(2):
        assert dict(run([point], state, 1)) == {point.key: Outcome("noticed", "tests/a.py::new", 0.0)}
    assert tried == [(point.key, "tests/a.py::new")], "what ran on this tree does not run again"


STATEMENTS = """import os
LIMIT = (1 +
         2)


@decorated(1)
def f(x,
      y=3):
    if (x and
            y):
        return max(
            x,
            y)
    class Inner:
        size = 1
    match x:
        case 1:
            pass
    with open(x): pass
"""


@pytest.mark.parametrize(("line", "lines"), [
    (2, set()), (3, set()), (6, set()), (8, set()), (9, {9, 10}), (10, {9, 10}), (11, {11, 12, 13}), (13, {11, 12, 13}), (15, {15}), (16, {16}), (18, {18}), (19, {19}),
])
def test_the_lines_of_a_statement_are_those_before_its_body(line: int, lines: set[int]) -> None:
    assert statement_lines(STATEMENTS, line) == lines


@pytest.fixture
def served(project: Path) -> Path:
    """A project whose tests a server runs."""
    for name in ("__init__.py", "mutants/__init__.py", "mutants/server.py", "fuzz/__init__.py", "fuzz/coverage.py"):
        (project / "tests" / name).parent.mkdir(parents=True, exist_ok=True)
        source = Path(__file__).parents[1] / name
        (project / "tests" / name).write_text(source.read_text() if source.exists() else "")
    (project / SMALL).write_text((project / SMALL).read_text() + SEVERAL)
    (project / "tests/graph/test_small.py").write_text(TESTS)
    return project


SEVERAL = """

def scaled(x, by):
    if by == 2:
        return double(x)
    return (lambda y: y * by)(x)


def table():
    return {"size": 7}


TABLE = table()
LIMIT = 3


def adder(by):
    def add(x):
        return x + by
    return add


more = adder(4)


def endless(x):
    while x < 10:
        x += 1
    return x
"""
TESTS = """
import pytest
from irscope.graph.small import LIMIT, TABLE, double, endless, more, scaled

def test_table():
    assert TABLE["size"] == 7 and LIMIT == 3

@pytest.mark.parametrize("x", [1, 3])
def test_double(x):
    assert double(x) == 2 * x

def test_others():
    assert scaled(3, by=5) == 15 and more(1) == 5 and endless(9) == 10
"""


@pytest.mark.skipif(not Reach.works_here(), reason="Python 3.11 has no sys.monitoring")
class TestForks:
    def test_files_that_reach_a_line_run_from_the_first_test_that_does(self, served: Path, tmp_path: Path) -> None:
        files = suites_of(served, SMALL)
        reach = Reach(served, tmp_path / "reach", 1)
        reach.add(files)

        def parts(text: str) -> tuple[list[tuple[str, str]], bool]:
            line = (served / SMALL).read_text().split("\n").index(text) + 1
            plan = reach.plan(SMALL, line, files)
            return [(part.file, part.start.partition("::")[2]) for part in plan.parts], plan.imported
        assert parts("    return x * 2") == ([("tests/graph/test_small.py", "test_double[1]")], False)
        assert parts("    return (lambda y: y * by)(x)") == ([("tests/graph/test_small.py", "test_others")], False)
        assert parts("        return double(x)") == ([], False), "no test reaches it"
        both = [("tests/graph/test_small.py", ""), ("tests/graph/test_other.py", "")]
        for text in ("LIMIT = 3", '    return {"size": 7}', "def double(x):"):
            assert parts(text) == (both, True), "importing the module runs it"
        again = Reach(served, tmp_path / "reach", 1)
        again.add(files)
        assert again.plan(SMALL, 2, files) == reach.plan(SMALL, 2, files), "from the records"

    def test_mutants_have_the_same_outcomes_in_forks_as_in_processes(self, served: Path, tmp_path: Path) -> None:
        files = suites_of(served, SMALL)
        reach = Reach(served, tmp_path / "reach", 1)
        reach.add(files)
        trial = Trial(served, tmp_path / "copy")
        every = points(SMALL, (served / SMALL).read_text())
        [hangs] = [p for p in every if (p.old, p.new) == ("x += 1", "pass")]
        small = [p for p in every if p.line != hangs.line and p.new not in ("return None", "(4 + 1)", "(7 + 1)", '"mutated"')]
        try:
            assert trial.run(hangs, plan=Plan([Part("tests/graph/test_small.py", limit=1)])).said == "endless"
            planned = {p: trial.run(p, plan=reach.plan(SMALL, p.line, files)) for p in small}
        finally:
            trial.close()
        alive = {(p.where, p.new) for p, outcome in planned.items() if outcome.said == "alive"}
        assert alive == {("if by == 2:", "(2 + 1)")}
        for point, outcome in list(planned.items())[::4]:
            plain = Trial(served, tmp_path / f"plain{point.start}").run(point)
            assert (plain.said, plain.by) == (outcome.said, outcome.by)
